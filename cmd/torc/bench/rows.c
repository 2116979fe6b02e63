/* torc bench: the figures as rows.
 *
 * Rows of backends are sorted by address. The row of a locality is the sum of its backends. Histograms are merged, so
 * the percentiles of a locality are those of its RPCs. */
#include "base/mem.h"
#include "bench/report.h"

const struct bench_quantile bench_quantiles[BENCH_QUANTILES] = {
    {"p50", "p50", 0.5},      {"p90", "p90", 0.9},         {"p99", "p99", 0.99},
    {"p999", "p99.9", 0.999}, {"p9999", "p99.99", 0.9999}, {"max", "max", 1},
};

const char *const bench_scope_names[BENCH_SCOPES] = {"all", "stage", "backend", "locality"};

double bench_seconds(const struct bench *b)
{
    return (double)(b->over_ns - b->begin_ns) / 1e9;
}

double bench_rate(const struct bench_row *row)
{
    return row->seconds > 0 ? (double)row->counts->calls / row->seconds : 0;
}

uint64_t bench_ok(const struct bench_counts *c)
{
    return c->by_code[TORC_STATUS_OK];
}

double bench_percent(const struct bench *b, uint64_t part)
{
    return b->counts.calls ? 100.0 * (double)part / (double)b->counts.calls : 0;
}

struct bench_counts bench_messages(const struct bench *b)
{
    return (struct bench_counts){
        .calls = b->received, .by_code = {[TORC_STATUS_OK] = b->received}, .latency_ns = b->message_ns};
}

const struct bench_row *bench_rows_of(const struct bench_rows *rows, enum bench_scope scope, size_t *n)
{
    *n = rows->first[scope + 1] - rows->first[scope];
    return rows->list.data + rows->first[scope];
}

void bench_row_append_name(const struct bench_row *row, struct tc_buf *out)
{
    if (row->stage)
        tc_buf_printf(out, "%u: ", row->stage);
    tc_buf_append_str(out, row->name);
}

/* Adds a row for each stage, also for one that never began because of -n or a signal. */
static void add_stages(const struct bench *b, struct bench_rows *rows)
{
    uint64_t ran_ns = b->stopped_ns > b->begin_ns ? b->stopped_ns - b->begin_ns : 0;
    for (size_t i = 0; b->stages && i < b->args.plan.stages.len; i++) {
        const struct bench_stage *s = &b->args.plan.stages.data[i];
        uint64_t end_ns = TC_MIN(s->end_ns, ran_ns);
        struct tc_buf name = {0};
        bench_plan_append_text(&b->args.plan, i, &name);
        *tc_vec_push(&rows->names) = tc_strdup(tc_buf_cstr(&name));
        *tc_vec_push(&rows->list) =
            (struct bench_row){.name = rows->names.data[i],
                               .counts = &b->stages[i].counts,
                               .seconds = end_ns > s->begin_ns ? (double)(end_ns - s->begin_ns) / 1e9 : 0,
                               .not_started = b->stages[i].not_started,
                               .stage = (unsigned)i + 1};
        tc_buf_fini(&name);
    }
}

static int by_name(const void *a, const void *b)
{
    const struct bench_row *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void add_backends(const struct bench *b, struct bench_rows *rows)
{
    size_t first = rows->list.len;
    for (const struct bench_backend *at = b->backends; at; at = at->hh.next)
        if (at->counts.calls)
            *tc_vec_push(&rows->list) = (struct bench_row){
                .name = at->address, .locality = at->locality, .counts = &at->counts, .seconds = bench_seconds(b)};
    if (rows->list.len > first)
        qsort(rows->list.data + first, rows->list.len - first, sizeof(struct bench_row), by_name);
}

static void add_localities(const struct bench *b, struct bench_rows *rows)
{
    size_t first = rows->list.len;
    for (size_t k = rows->first[BENCH_BACKEND]; k < first; k++) {
        const struct bench_row backend = rows->list.data[k];
        size_t i = first;
        while (backend.locality && i < rows->list.len && strcmp(rows->list.data[i].name, backend.locality) != 0)
            i++;
        if (!backend.locality)
            continue;
        if (i == rows->list.len) {
            *tc_vec_push(&rows->sums) = TC_NEW(struct bench_counts);
            *tc_vec_push(&rows->list) = (struct bench_row){
                .name = backend.locality, .counts = rows->sums.data[i - first], .seconds = bench_seconds(b)};
        }
        struct bench_counts *sum = rows->sums.data[i - first];
        sum->calls += backend.counts->calls;
        for (int code = 0; code < BENCH_CODES; code++)
            sum->by_code[code] += backend.counts->by_code[code];
        histogram_merge(&sum->latency_ns, &backend.counts->latency_ns);
    }
}

void bench_rows_collect(const struct bench *b, struct bench_rows *rows)
{
    *tc_vec_push(&rows->list) = (struct bench_row){
        .name = "", .counts = &b->counts, .seconds = bench_seconds(b), .not_started = b->not_started};
    rows->first[BENCH_STAGE] = rows->list.len;
    add_stages(b, rows);
    rows->first[BENCH_BACKEND] = rows->list.len;
    add_backends(b, rows);
    rows->first[BENCH_LOCALITY] = rows->list.len;
    add_localities(b, rows);
    rows->first[BENCH_SCOPES] = rows->list.len;
}

void bench_rows_fini(struct bench_rows *rows)
{
    for (size_t i = 0; i < rows->names.len; i++)
        tc_free(rows->names.data[i]);
    for (size_t i = 0; i < rows->sums.len; i++) {
        histogram_fini(&rows->sums.data[i]->latency_ns);
        tc_free(rows->sums.data[i]);
    }
    tc_vec_fini(&rows->names);
    tc_vec_fini(&rows->sums);
    tc_vec_fini(&rows->list);
}
