/* torc bench: prints the figures, as text or JSON, and writes the reports and the live line.
 *
 * Every form is made of the rows of stages, backends and localities that collect() makes.
 * The JSON form is a contract (torc(1)): members may be added, not renamed; so are the columns of csv. Rows of backends
 * are in the order of their addresses. The row of a locality is the sum of its backends, with their histograms merged:
 * its percentiles are those of its RPCs. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "cli.h"

#define NAME BENCH_NAME

static const struct {
    const char *name, *title;
    double q;
} quantiles[] = {
    {"p50", "p50", 0.5},      {"p90", "p90", 0.9},         {"p99", "p99", 0.99},
    {"p999", "p99.9", 0.999}, {"p9999", "p99.99", 0.9999}, {"max", "max", 1},
};

/* A stage of --stage, or a backend or a locality that RPCs were counted for. */
struct row {
    const char *name, *locality;
    const struct bench_counts *counts;
    double seconds;       /* of the load that the RPCs belong to */
    uint64_t not_started; /* of a stage */
    unsigned stage;       /* counted from 1; 0: the row is not a stage's */
};

struct rows {
    TC_VEC(struct row) stages; /* which own their names */
    TC_VEC(struct row) backends;
    TC_VEC(struct row) localities;
    TC_VEC(struct bench_counts *) sums; /* of localities */
};

static double seconds_of(const struct bench *b)
{
    return (double)(b->over_ns - b->begin_ns) / 1e9;
}

static double rate_of(const struct bench_counts *c, double seconds)
{
    return seconds > 0 ? (double)c->calls / seconds : 0;
}

static uint64_t ok_of(const struct bench_counts *c)
{
    return c->by_code[TORC_STATUS_OK];
}

/* Returns the messages received as if each were an RPC. The histogram is borrowed. */
static struct bench_counts messages_of(const struct bench *b)
{
    return (struct bench_counts){
        .calls = b->received, .by_code = {[TORC_STATUS_OK] = b->received}, .latency_ns = b->message_ns};
}

static double per_call(const struct bench *b, double v)
{
    return b->counts.calls ? v / (double)b->counts.calls : 0;
}

/* --- rows --- */

static int by_name(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void add_to_locality(struct rows *rows, const struct row *backend)
{
    struct bench_counts *sum;
    size_t i = 0;
    while (i < rows->localities.len && strcmp(rows->localities.data[i].name, backend->locality) != 0)
        i++;
    if (i == rows->localities.len) {
        sum = TC_NEW(struct bench_counts);
        *tc_vec_push(&rows->sums) = sum;
        *tc_vec_push(&rows->localities) =
            (struct row){backend->locality, backend->locality, sum, .seconds = backend->seconds};
    }
    sum = rows->sums.data[i];
    sum->calls += backend->counts->calls;
    for (int k = 0; k < BENCH_CODES; k++)
        sum->by_code[k] += backend->counts->by_code[k];
    histogram_merge(&sum->latency_ns, &backend->counts->latency_ns);
}

/* Adds a row for each stage: also for one that -n or a signal did not let begin. */
static void add_stages(const struct bench *b, struct rows *rows)
{
    uint64_t ran_ns = b->stopped_ns > b->begin_ns && b->phase != BENCH_WARMUP ? b->stopped_ns - b->begin_ns : 0;
    for (size_t i = 0; b->stages && i < b->args.plan.stages.len; i++) {
        const struct bench_stage *s = &b->args.plan.stages.data[i];
        uint64_t end_ns = TC_MIN(s->end_ns, ran_ns);
        struct tc_buf name = {0};
        bench_plan_append_text(&b->args.plan, i, &name);
        *tc_vec_push(&rows->stages) =
            (struct row){.name = tc_strdup(tc_buf_cstr(&name)),
                         .counts = &b->stages[i].counts,
                         .seconds = end_ns > s->begin_ns ? (double)(end_ns - s->begin_ns) / 1e9 : 0,
                         .not_started = b->stages[i].not_started,
                         .stage = (unsigned)i + 1};
        tc_buf_fini(&name);
    }
}

static void collect(const struct bench *b, struct rows *rows)
{
    add_stages(b, rows);
    for (const struct bench_backend *at = b->backends; at; at = at->hh.next)
        if (at->counts.calls)
            *tc_vec_push(&rows->backends) =
                (struct row){at->address, at->locality, &at->counts, .seconds = seconds_of(b)};
    if (rows->backends.len)
        qsort(rows->backends.data, rows->backends.len, sizeof(struct row), by_name);
    for (size_t i = 0; i < rows->backends.len; i++)
        if (rows->backends.data[i].locality)
            add_to_locality(rows, &rows->backends.data[i]);
}

static void rows_fini(struct rows *rows)
{
    for (size_t i = 0; i < rows->sums.len; i++) {
        histogram_fini(&rows->sums.data[i]->latency_ns);
        tc_free(rows->sums.data[i]);
    }
    for (size_t i = 0; i < rows->stages.len; i++)
        tc_free((char *)rows->stages.data[i].name);
    tc_vec_fini(&rows->stages);
    tc_vec_fini(&rows->sums);
    tc_vec_fini(&rows->localities);
    tc_vec_fini(&rows->backends);
}

/* --- JSON --- */

static void append_statuses(struct tc_buf *out, const struct bench_counts *c)
{
    const char *comma = "";
    tc_buf_append_str(out, "\"by_status\":{");
    for (int i = 0; i < BENCH_CODES; i++) {
        if (!c->by_code[i])
            continue;
        tc_buf_printf(out, "%s\"%s\":%llu", comma, torc_status_code_name(i), (unsigned long long)c->by_code[i]);
        comma = ",";
    }
    tc_buf_append_char(out, '}');
}

static void append_latency(struct tc_buf *out, const struct histogram *h)
{
    tc_buf_append_str(out, "\"latency_us\":{");
    for (size_t i = 0; i < TC_ARRAY_LEN(quantiles); i++)
        tc_buf_printf(out, "%s\"%s\":%.1f", i ? "," : "", quantiles[i].name,
                      (double)histogram_at(h, quantiles[i].q) / 1e3);
    tc_buf_append_char(out, '}');
}

/* Appends a list of rows; `own` is the member of the row's name. */
static void append_rows(struct tc_buf *out, const char *list, const char *own, const struct row *rows, size_t n)
{
    tc_buf_printf(out, ",\"%s\":[", list);
    for (size_t i = 0; i < n; i++) {
        const struct bench_counts *c = rows[i].counts;
        tc_buf_append_str(out, i ? ",{" : "{");
        if (rows[i].stage)
            tc_buf_printf(out, "\"stage\":%u,\"seconds\":%.3f,\"rps\":%.1f,\"not_started\":%llu,", rows[i].stage,
                          rows[i].seconds, rate_of(c, rows[i].seconds), (unsigned long long)rows[i].not_started);
        tc_buf_printf(out, "\"%s\":", own);
        cli_json_string(out, rows[i].name, strlen(rows[i].name));
        if (rows[i].locality != rows[i].name && rows[i].locality) {
            tc_buf_append_str(out, ",\"locality\":");
            cli_json_string(out, rows[i].locality, strlen(rows[i].locality));
        }
        tc_buf_printf(out, ",\"calls\":%llu,\"ok\":%llu,", (unsigned long long)c->calls, (unsigned long long)ok_of(c));
        append_statuses(out, c);
        tc_buf_append_char(out, ',');
        append_latency(out, &c->latency_ns);
        tc_buf_append_char(out, '}');
    }
    tc_buf_append_char(out, ']');
}

static void append_json(const struct bench *b, const struct rows *rows, struct tc_buf *out)
{
    tc_buf_printf(out, "{\"bench\":{\"calls\":%llu,\"ok\":%llu,\"not_started\":%llu,",
                  (unsigned long long)b->counts.calls, (unsigned long long)ok_of(&b->counts),
                  (unsigned long long)b->not_started);
    append_statuses(out, &b->counts);
    tc_buf_printf(out, ",\"rps\":%.1f,", rate_of(&b->counts, seconds_of(b)));
    append_latency(out, &b->counts.latency_ns);
    tc_buf_printf(out, ",\"latency_mean_us\":%.1f,\"latency_stddev_us\":%.1f",
                  histogram_mean(&b->counts.latency_ns) / 1e3, histogram_deviation(&b->counts.latency_ns) / 1e3);
    tc_buf_printf(out, ",\"most_in_flight\":%llu,\"seconds\":%.3f,\"cpu_seconds\":%.3f,\"cpu_us_per_call\":%.2f",
                  (unsigned long long)b->most_in_flight, seconds_of(b), b->cpu_seconds,
                  per_call(b, b->cpu_seconds * 1e6));
    tc_buf_printf(out, ",\"interrupted\":%s,\"unfinished\":%llu", b->interrupted ? "true" : "false",
                  (unsigned long long)b->unfinished);
    if (b->streams)
        tc_buf_printf(out, ",\"messages\":{\"sent\":%llu,\"received\":%llu", (unsigned long long)b->sent,
                      (unsigned long long)b->received);
    if (b->gives_stream) {
        tc_buf_append_char(out, ',');
        append_latency(out, &b->message_ns);
    }
    if (b->streams)
        tc_buf_append_char(out, '}');
    if (b->stages)
        append_rows(out, "stages", "load", rows->stages.data, rows->stages.len);
    append_rows(out, "backends", "address", rows->backends.data, rows->backends.len);
    append_rows(out, "localities", "locality", rows->localities.data, rows->localities.len);
    tc_buf_append_str(out, "}}\n");
}

/* --- text --- */

static void append_time(struct tc_buf *out, uint64_t ns)
{
    struct tc_buf time = {0};
    cli_format_us(&time, ns / 1000);
    tc_buf_printf(out, " %10s", tc_buf_cstr(&time));
    tc_buf_fini(&time);
}

static void append_table(const struct bench *b, const char *title, const struct row *rows, size_t n, struct tc_buf *out)
{
    struct tc_buf scratch = {0};
    int width = 22;
    bool stages = n && rows[0].stage;
    for (size_t i = 0; i < n; i++)
        width = TC_MAX(width, (int)TC_MIN(strlen(rows[i].name), (size_t)60));
    if (n)
        tc_buf_printf(out, "%-10s %-*s %10s %8s %8s %10s %10s%s\n", title, width, "", "calls",
                      stages ? "a second" : "share", "errors", "p50", "p99", stages ? "  not begun" : "");
    for (size_t i = 0; i < n; i++) {
        const struct bench_counts *c = rows[i].counts;
        tc_buf_printf(out, "%-10s %-*s %10llu", "", width,
                      *rows[i].name ? cli_shown(&scratch, rows[i].name) : "none reached", (unsigned long long)c->calls);
        if (stages)
            tc_buf_printf(out, " %8.1f", rate_of(c, rows[i].seconds));
        else
            tc_buf_printf(out, " %6.1f %%", per_call(b, 100.0 * (double)c->calls));
        tc_buf_printf(out, " %8llu", (unsigned long long)(c->calls - ok_of(c)));
        append_time(out, histogram_at(&c->latency_ns, 0.5));
        append_time(out, histogram_at(&c->latency_ns, 0.99));
        if (stages)
            tc_buf_printf(out, " %10llu", (unsigned long long)rows[i].not_started);
        tc_buf_append_char(out, '\n');
    }
    tc_buf_fini(&scratch);
}

static void append_text(const struct bench *b, const struct rows *rows, struct tc_buf *out)
{
    const struct bench_counts *all = &b->counts;
    tc_buf_printf(out, "%llu calls in %.3f s: %.0f a second, at most %llu at a time\n", (unsigned long long)all->calls,
                  seconds_of(b), rate_of(all, seconds_of(b)), (unsigned long long)b->most_in_flight);
    if (b->interrupted || b->unfinished)
        tc_buf_printf(out, "%s; %llu calls under way are in no figure\n",
                      b->interrupted ? "interrupted" : "a call could not be started",
                      (unsigned long long)b->unfinished);
    if (b->not_started)
        tc_buf_printf(out, "%llu calls were due but not started: -c calls were in flight\n",
                      (unsigned long long)b->not_started);
    if (b->streams)
        tc_buf_printf(out, "messages   %llu sent, %llu received\n", (unsigned long long)b->sent,
                      (unsigned long long)b->received);
    tc_buf_printf(out, "CPU        %.2f us a call\n", per_call(b, b->cpu_seconds * 1e6));
    if (b->gives_stream)
        tc_buf_printf(out, "%-17s %10s %10s\n", "", "of a call", "a message");
    for (size_t i = 0; i < TC_ARRAY_LEN(quantiles); i++) {
        tc_buf_printf(out, "%-10s %-6s", i ? "" : "latency", quantiles[i].title);
        append_time(out, histogram_at(&all->latency_ns, quantiles[i].q));
        if (b->gives_stream)
            append_time(out, histogram_at(&b->message_ns, quantiles[i].q));
        tc_buf_append_char(out, '\n');
    }
    bool first = true;
    for (int i = 0; i < BENCH_CODES; i++) {
        if (all->by_code[i])
            tc_buf_printf(out, "%-10s %-20s %10llu  %5.1f %%\n", first ? "status" : "", torc_status_code_name(i),
                          (unsigned long long)all->by_code[i], per_call(b, 100.0 * (double)all->by_code[i]));
        first = first && !all->by_code[i];
    }
    append_table(b, "stage", rows->stages.data, rows->stages.len, out);
    append_table(b, "backend", rows->backends.data, rows->backends.len, out);
    append_table(b, "locality", rows->localities.data, rows->localities.len, out);
}

/* --- reports --- */

/* Appends a field of CSV in quotes. */
static void append_field(struct tc_buf *out, const char *text)
{
    tc_buf_append_char(out, '"');
    for (; *text; text++)
        tc_buf_append_str(out, *text == '"' ? "\"\"" : (char[]){*text, '\0'});
    tc_buf_append_char(out, '"');
}

static void append_csv_row(const char *scope, const struct row *row, struct tc_buf *out)
{
    const struct bench_counts *c = row->counts;
    char *numbered = row->stage ? tc_asprintf("%u: %s", row->stage, row->name) : NULL;
    tc_buf_printf(out, "%s,", scope);
    append_field(out, numbered ? numbered : row->name);
    tc_free(numbered);
    tc_buf_printf(out, ",%llu,%llu,%.1f,%.1f", (unsigned long long)c->calls, (unsigned long long)(c->calls - ok_of(c)),
                  rate_of(c, row->seconds), histogram_mean(&c->latency_ns) / 1e3);
    for (size_t i = 0; i < TC_ARRAY_LEN(quantiles); i++)
        tc_buf_printf(out, ",%.1f", (double)histogram_at(&c->latency_ns, quantiles[i].q) / 1e3);
    tc_buf_append_str(out, "\r\n");
}

static void append_csv(const struct bench *b, const struct rows *rows, struct tc_buf *out)
{
    tc_buf_append_str(out, "scope,name,calls,errors,rps,mean_us");
    for (size_t i = 0; i < TC_ARRAY_LEN(quantiles); i++)
        tc_buf_printf(out, ",%s_us", quantiles[i].name);
    tc_buf_append_str(out, "\r\n");
    append_csv_row("all", &(struct row){.name = "", .counts = &b->counts, .seconds = seconds_of(b)}, out);
    if (b->gives_stream) {
        struct bench_counts received = messages_of(b);
        append_csv_row("messages", &(struct row){.name = "received", .counts = &received, .seconds = seconds_of(b)},
                       out);
    }
    for (int i = 0; i < BENCH_CODES; i++) /* latencies are not kept by status */
        if (b->counts.by_code[i])
            tc_buf_printf(out, "status,\"%s\",%llu,%llu,,,,,,,,\r\n", torc_status_code_name(i),
                          (unsigned long long)b->counts.by_code[i],
                          (unsigned long long)(i == TORC_STATUS_OK ? 0 : b->counts.by_code[i]));
    for (size_t i = 0; i < rows->stages.len; i++)
        append_csv_row("stage", &rows->stages.data[i], out);
    for (size_t i = 0; i < rows->backends.len; i++)
        append_csv_row("backend", &rows->backends.data[i], out);
    for (size_t i = 0; i < rows->localities.len; i++)
        append_csv_row("locality", &rows->localities.data[i], out);
}

int bench_open_reports(struct bench *b)
{
    for (size_t i = 0; i < BENCH_REPORTS; i++) {
        const char *path = b->args.report[i];
        if (!path || strcmp(path, "-") == 0)
            continue;
        b->reports[i] = fopen(path, "we");
        if (!b->reports[i])
            return cli_fail(NAME, "--report: cannot write %s: %s", path, strerror(errno));
    }
    return 0;
}

static int write_report(struct bench *b, size_t i, const struct tc_buf *text)
{
    if (!b->reports[i]) {
        fwrite(text->data, 1, text->len, stdout); /* cli_end_output tells of a failure */
        return 0;
    }
    bool ok = fwrite(text->data, 1, text->len, b->reports[i]) == text->len && fflush(b->reports[i]) == 0;
    return ok ? 0 : cli_fail(NAME, "--report: cannot write %s: %s", b->args.report[i], strerror(errno));
}

int bench_report(struct bench *b)
{
    struct rows rows = {0};
    struct tc_buf text = {0};
    int rc = 0;
    collect(b, &rows);
    (b->args.json ? append_json : append_text)(b, &rows, &text);
    fwrite(text.data, 1, text.len, stdout);
    cli_flush();
    for (size_t i = 0; i < BENCH_REPORTS && rc == 0; i++) {
        if (!b->args.report[i])
            continue;
        tc_buf_clear(&text);
        if (i == BENCH_CSV)
            append_csv(b, &rows, &text);
        else
            histogram_append_text(&b->counts.latency_ns, (double)TC_NS_PER_MS, &text);
        rc = write_report(b, i, &text);
    }
    tc_buf_fini(&text);
    rows_fini(&rows);
    return rc;
}

/* --- the live line --- */

void bench_show_line(struct bench *b)
{
    uint64_t now = bench_now_ns();
    const struct bench_counts *c = &b->counts;
    struct tc_buf line = {0};
    tc_buf_printf(&line, "\r\033[Ktorc bench: %.0f s", (double)(now - b->begin_ns) / 1e9);
    if (b->phase == BENCH_WARMUP) {
        tc_buf_append_str(&line, " of the warm-up");
    } else {
        tc_buf_printf(&line, ", %llu calls, %.0f a second, %llu errors, p99", (unsigned long long)c->calls,
                      (double)(c->calls - b->shown_calls) * 1e9 / (double)TC_MAX(now - b->shown_ns, UINT64_C(1)),
                      (unsigned long long)(c->calls - ok_of(c)));
        append_time(&line, histogram_at(&c->latency_ns, 0.99));
    }
    if (b->stages && b->phase == BENCH_COUNTED)
        tc_buf_printf(&line, ", stage %zu of %zu", bench_plan_stage(b->plan, now - b->begin_ns) + 1,
                      b->plan->stages.len);
    fwrite(line.data, 1, line.len, stderr);
    b->shown_ns = now;
    b->shown_calls = c->calls;
    tc_buf_fini(&line);
}

void bench_clear_line(struct bench *b)
{
    if (b->shows)
        fputs("\r\033[K", stderr);
}
