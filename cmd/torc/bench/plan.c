/* torc bench: stages of load.
 *
 * Open loop. The number of RPCs that are due by the time t is the area under the rate. RPC n begins when that area
 * passes n. Within a stage, with n and t counted from its begin, t is the root of n = from t + (to - from) t^2 / (2
 * length); for a constant rate that is n / rate. bench_plan_calls counts by bench_plan_due_ns, so that the RPCs that
 * were started and those that were not add up.
 *
 * Closed loop. A line from 1 to 4 RPCs at a time has four steps of equal length.
 *
 * A stage begins where the stage before it ends, so that stages are found by binary search. No stage is empty. The plan
 * owns its stages. */
#include "bench/plan.h"

#include <math.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli.h"

#define LEAST_RATE 0.001
#define MOST_RATE 1e6
#define MOST_NS (UINT64_C(2500000) * 3600 * TC_NS_PER_S) /* of all stages; one duration has the same limit */
#define SAME 1e-12                                       /* relative rounding error of a stage's `due` */

static uint64_t length_of(const struct bench_stage *s)
{
    return s->end_ns - s->begin_ns;
}

uint64_t bench_plan_end_ns(const struct bench_plan *p)
{
    return p->stages.len ? p->stages.data[p->stages.len - 1].end_ns : 0;
}

static double due_by_end(const struct bench_plan *p)
{
    return p->stages.len ? p->stages.data[p->stages.len - 1].due : 0;
}

void bench_plan_add(struct bench_plan *p, double from, double to, uint64_t length_ns)
{
    uint64_t begin_ns = bench_plan_end_ns(p), end_ns;
    double due = due_by_end(p);
    if (__builtin_add_overflow(begin_ns, length_ns, &end_ns))
        end_ns = UINT64_MAX;
    due += (from + to) / 2 * (double)(end_ns - begin_ns) / 1e9;
    *tc_vec_push(&p->stages) = (struct bench_stage){from, to, begin_ns, end_ns, due};
}

bool bench_plan_any(const struct bench_plan *p)
{
    for (size_t i = 0; i < p->stages.len; i++)
        if (p->stages.data[i].from > 0 || p->stages.data[i].to > 0)
            return true;
    return false;
}

void bench_plan_append_text(const struct bench_plan *p, size_t i, struct tc_buf *out)
{
    const struct bench_stage *s = &p->stages.data[i];
    tc_buf_printf(out, "%s%.10g", p->closed ? "c=" : "", s->from);
    if (s->to != s->from)
        tc_buf_printf(out, "..%.10g", s->to);
    tc_buf_printf(out, "/%.10gs", (double)length_of(s) / 1e9);
}

void bench_plan_fini(struct bench_plan *p)
{
    tc_vec_fini(&p->stages);
}

/* --- times --- */

size_t bench_plan_stage(const struct bench_plan *p, uint64_t t_ns)
{
    size_t low = 0, high = p->stages.len - 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (p->stages.data[middle].end_ns > t_ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint64_t bench_plan_due_ns(const struct bench_plan *p, uint64_t n)
{
    double wanted = (double)n;
    size_t low = 0, high = p->stages.len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (p->stages.data[middle].due > wanted * (1 + SAME))
            high = middle;
        else
            low = middle + 1;
    }
    if (low == p->stages.len)
        return UINT64_MAX;
    const struct bench_stage *s = &p->stages.data[low];
    double in_stage = wanted - (low ? p->stages.data[low - 1].due : 0);
    if (in_stage <= 0)
        return s->begin_ns;
    double slope = (s->to - s->from) / ((double)length_of(s) / 1e9);
    double square = s->from * s->from + 2 * slope * in_stage;
    double seconds = 2 * in_stage / (s->from + (square > 0 ? sqrt(square) : 0));
    /* Where the rate falls to 0, the last RPC may come out at the end of the stage: it still belongs to the stage. */
    if (!(seconds * 1e9 < (double)(length_of(s) - 1)))
        return s->end_ns - 1;
    return s->begin_ns + (uint64_t)(seconds * 1e9);
}

uint64_t bench_plan_calls(const struct bench_plan *p, uint64_t t_ns)
{
    size_t i = bench_plan_stage(p, t_ns);
    const struct bench_stage *s = &p->stages.data[i];
    double before = i ? p->stages.data[i - 1].due : 0;
    double seconds = (double)(TC_MIN(TC_MAX(t_ns, s->begin_ns), s->end_ns) - s->begin_ns) / 1e9;
    double slope = (s->to - s->from) / ((double)length_of(s) / 1e9);
    uint64_t n = (uint64_t)(before + s->from * seconds + slope / 2 * seconds * seconds);
    while (n && bench_plan_due_ns(p, n - 1) >= t_ns)
        n--;
    while (bench_plan_due_ns(p, n) < t_ns)
        n++;
    return n;
}

uint64_t bench_plan_concurrency(const struct bench_plan *p, uint64_t t_ns, uint64_t *until_ns)
{
    const struct bench_stage *s = &p->stages.data[bench_plan_stage(p, t_ns)];
    double steps = fabs(s->to - s->from) + 1, length = (double)length_of(s);
    double in_stage = t_ns > s->begin_ns ? (double)(t_ns - s->begin_ns) : 0;
    double step = TC_MIN(floor(in_stage * steps / length), steps - 1);
    *until_ns = s->end_ns;
    if (step < steps - 1)
        *until_ns = TC_MAX(s->begin_ns + (uint64_t)ceil((step + 1) * length / steps), t_ns + 1);
    return (uint64_t)(s->from + (s->to < s->from ? -step : step));
}

/* --- the command line --- */

/* Reads one load of `stage`: RPCs at a time if p->closed, else RPCs a second. */
static int read_load(struct bench_plan *p, const char *command, const char *stage, struct tc_slice text, double *out)
{
    uint64_t n;
    if (p->closed && tc_parse_u64(text, BENCH_MOST_CONCURRENT, &n) == 0) {
        *out = (double)n;
        return 0;
    }
    if (!p->closed && tc_parse_double(text, out) == 0 && (*out == 0 || (*out >= LEAST_RATE && *out <= MOST_RATE)))
        return 0;
    return cli_usage(command, "--stage: '%s': '%.*s' is not %s", stage, (int)text.len, text.data,
                     p->closed ? "a number of RPCs at a time, 0 to 100000"
                               : "a rate in RPCs a second: 0, or 0.001 to 1000000");
}

/* Reads "T" or "NxT": stores N (1 for "T") and the length of one step. */
static int read_length(const char *command, const char *stage, const char *text, uint64_t *steps, uint64_t *length_ns)
{
    size_t digits = strspn(text, "0123456789");
    *steps = 1;
    if (digits && text[digits] == 'x') {
        if (tc_parse_u64(tc_slice_of(text, digits), BENCH_MOST_STAGES, steps) != 0 || *steps < 2)
            return cli_usage(command, "--stage: '%s': '%.*s' is not a number of steps, 2 to %d", stage, (int)digits,
                             text, BENCH_MOST_STAGES);
        text += digits + 1;
    }
    if (tc_parse_duration_ns(tc_slice_str(text), length_ns) != 0 || *length_ns < TC_NS_PER_MS)
        return cli_usage(command, "--stage: '%s': '%s' is not a duration such as 250ms, 10s or 2m, of 1ms at least",
                         stage, text);
    return 0;
}

static int read_stage(struct bench_plan *p, const char *command, const char *stage)
{
    double from, to;
    uint64_t steps, length_ns;
    const char *slash = strrchr(stage, '/'), *load = stage;
    bool closed = strncmp(stage, "c=", 2) == 0;
    if (!slash)
        return cli_usage(command, "--stage: '%s' has no time: write LOAD/T, such as 100/30s or c=1..64/30s", stage);
    if (p->stages.len && closed != p->closed)
        return cli_usage(command, "--stage: '%s': stages are all of a rate, or all of RPCs at a time (c=)", stage);
    p->closed = closed;
    load += closed ? 2 : 0;
    struct tc_slice first = tc_slice_of(load, (size_t)(slash - load)), last = first;
    ptrdiff_t dots = tc_slice_find(first, tc_slice_str(".."));
    if (dots >= 0) {
        last = tc_slice_of(load + dots + 2, first.len - (size_t)dots - 2);
        first.len = (size_t)dots;
    }
    int rc = read_load(p, command, stage, first, &from);
    if (rc == 0)
        rc = read_load(p, command, stage, last, &to);
    if (rc == 0)
        rc = read_length(command, stage, slash + 1, &steps, &length_ns);
    if (rc == 0 && steps > BENCH_MOST_STAGES - p->stages.len)
        rc = cli_usage(command, "--stage: '%s': there are more than %d stages", stage, BENCH_MOST_STAGES);
    if (rc == 0 && length_ns > (MOST_NS - bench_plan_end_ns(p)) / steps)
        rc = cli_usage(command, "--stage: '%s': the stages take more than 2500000h", stage);
    for (uint64_t i = 0; i < steps && rc == 0; i++) {
        double load_of = steps == 1 ? from : from + (to - from) * (double)i / (double)(steps - 1);
        if (closed)
            load_of = round(load_of);
        bench_plan_add(p, load_of, steps == 1 ? to : load_of, length_ns);
    }
    return rc;
}

int bench_plan_read(struct bench_plan *p, const char *command, const char *text)
{
    struct tc_slice rest = tc_slice_str(text), part;
    struct tc_buf stage = {0};
    int rc = 0;
    for (bool more = true; rc == 0 && tc_slice_split(&rest, &more, ',', &part);) {
        tc_buf_clear(&stage);
        tc_buf_append_slice(&stage, part);
        rc = read_stage(p, command, tc_buf_cstr(&stage));
    }
    tc_buf_fini(&stage);
    return rc;
}
