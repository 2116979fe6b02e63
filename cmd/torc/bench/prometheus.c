/* torc bench: metrics in the text format of Prometheus, for a file of the node exporter or for a Pushgateway.
 *
 * Every sample has the labels target and method, so that files of several loads can be merged. The samples of a row
 * also have the labels scope (all, stage, backend, locality) and name. Foreign texts in labels are made printable by
 * cli_shown and then quoted. The format wants the samples of one metric together: rows are visited once for each
 * metric. */
#include <math.h>

#include <torc/torc.h>

#include "bench/report.h"
#include "cli.h"

static void append_label(struct tc_buf *out, const char *label, const char *value)
{
    struct tc_buf shown = {0};
    tc_buf_printf(out, "%s=\"", label);
    for (const char *c = cli_shown(&shown, value); *c; c++) {
        if (*c == '"' || *c == '\\')
            tc_buf_append_char(out, '\\');
        tc_buf_append_char(out, *c);
    }
    tc_buf_append_char(out, '"');
    tc_buf_fini(&shown);
}

static void append_number(struct tc_buf *out, double value)
{
    if (isnan(value))
        tc_buf_append_str(out, " NaN\n");
    else
        tc_buf_printf(out, " %.10g\n", value);
}

static void append_head(struct tc_buf *out, const char *name, const char *type, const char *help)
{
    tc_buf_printf(out, "# HELP torc_bench_%s %s\n# TYPE torc_bench_%s %s\n", name, help, name, type);
}

/* Appends a sample: torc_bench_NAME{target,method,MORE} VALUE. */
static void append_sample(const struct bench *b, struct tc_buf *out, const char *name, const char *more, double value)
{
    tc_buf_printf(out, "torc_bench_%s{", name);
    append_label(out, "target", b->args.connect.target);
    tc_buf_append_char(out, ',');
    append_label(out, "method", b->types.path);
    tc_buf_printf(out, "%s%s}", *more ? "," : "", more);
    append_number(out, value);
}

static void append_one(const struct bench *b, struct tc_buf *out, const char *name, const char *help, double value)
{
    append_head(out, name, "gauge", help);
    append_sample(b, out, name, "", value);
}

/* Appends a summary in seconds: its quantiles (NaN if the histogram is empty), sum and count. */
static void append_summary(const struct bench *b, struct tc_buf *out, const char *name, const char *labels,
                           const struct histogram *h)
{
    struct tc_buf more = {0};
    for (size_t i = 0; i < BENCH_QUANTILES; i++) {
        tc_buf_clear(&more);
        tc_buf_printf(&more, "%s%squantile=\"%g\"", labels, *labels ? "," : "", bench_quantiles[i].q);
        append_sample(b, out, name, tc_buf_cstr(&more),
                      h->count ? (double)histogram_at(h, bench_quantiles[i].q) / 1e9 : NAN);
    }
    tc_buf_clear(&more);
    tc_buf_printf(&more, "%s_sum", name);
    append_sample(b, out, tc_buf_cstr(&more), labels, h->sum / 1e9);
    tc_buf_clear(&more);
    tc_buf_printf(&more, "%s_count", name);
    append_sample(b, out, tc_buf_cstr(&more), labels, (double)h->count);
    tc_buf_fini(&more);
}

/* Appends the distribution of all latencies, with buckets of 1, 2 and 5 in each power of ten from 1 us to 500 s. */
static void append_distribution(const struct bench *b, struct tc_buf *out)
{
    const struct histogram *h = &b->counts.latency_ns;
    static const uint64_t steps[] = {1, 2, 5};
    struct tc_buf more = {0};
    append_head(out, "distribution_seconds", "histogram", "Latency of all RPCs.");
    for (uint64_t unit = 1000; unit <= UINT64_C(100000000000); unit *= 10)
        for (size_t i = 0; i < TC_ARRAY_LEN(steps); i++) {
            tc_buf_clear(&more);
            tc_buf_printf(&more, "le=\"%.10g\"", (double)(unit * steps[i]) / 1e9);
            append_sample(b, out, "distribution_seconds_bucket", tc_buf_cstr(&more),
                          (double)histogram_below(h, unit * steps[i]));
        }
    append_sample(b, out, "distribution_seconds_bucket", "le=\"+Inf\"", (double)h->count);
    append_sample(b, out, "distribution_seconds_sum", "", h->sum / 1e9);
    append_sample(b, out, "distribution_seconds_count", "", (double)h->count);
    tc_buf_fini(&more);
}

enum metric { CALLS, RATE, NOT_STARTED, LATENCY, METRICS };

/* Appends a row's samples of one metric. */
static void append_row(const struct bench *b, struct tc_buf *out, enum metric metric, const char *scope,
                       const struct bench_row *row)
{
    struct tc_buf labels = {0}, name = {0};
    bench_row_append_name(row, &name);
    tc_buf_printf(&labels, "scope=\"%s\",", scope);
    append_label(&labels, "name", tc_buf_cstr(&name));
    size_t own = labels.len;
    for (int i = 0; metric == CALLS && i < BENCH_CODES; i++) {
        if (!row->counts->by_code[i] && i != TORC_STATUS_OK)
            continue;
        labels.len = own;
        tc_buf_printf(&labels, ",status=\"%s\"", torc_status_code_name(i));
        append_sample(b, out, "calls", tc_buf_cstr(&labels), (double)row->counts->by_code[i]);
    }
    if (metric == RATE)
        append_sample(b, out, "calls_per_second", tc_buf_cstr(&labels), bench_rate(row));
    if (metric == NOT_STARTED && (row->stage || strcmp(scope, "all") == 0))
        append_sample(b, out, "not_started", tc_buf_cstr(&labels), (double)row->not_started);
    if (metric == LATENCY)
        append_summary(b, out, "latency_seconds", tc_buf_cstr(&labels), &row->counts->latency_ns);
    tc_buf_fini(&labels);
    tc_buf_fini(&name);
}

void bench_append_prometheus(const struct bench *b, const struct bench_rows *rows, struct tc_buf *out)
{
    static const struct {
        const char *name, *type, *help;
    } metrics[METRICS] = {
        [CALLS] = {"calls", "gauge", "RPCs that ended, by status."},
        [RATE] = {"calls_per_second", "gauge", "RPCs by the time of the load; of a stage, by the stage's."},
        [NOT_STARTED] = {"not_started", "gauge", "RPCs that were due and not started."},
        [LATENCY] = {"latency_seconds", "summary", "Latency of RPCs; in open loop from when each was to begin."},
    };
    for (enum metric m = 0; m < METRICS; m++) {
        append_head(out, metrics[m].name, metrics[m].type, metrics[m].help);
        for (size_t s = 0; s < BENCH_SCOPES; s++)
            for (size_t i = rows->first[s]; i < rows->first[s + 1]; i++)
                append_row(b, out, m, bench_scope_names[s], &rows->list.data[i]);
    }
    append_distribution(b, out);
    append_one(b, out, "unfinished", "RPCs under way at the end, which are in no figure.", (double)b->unfinished);
    append_one(b, out, "most_in_flight", "The most RPCs that were under way at a time.", (double)b->most_in_flight);
    append_one(b, out, "duration_seconds", "From the begin of the load to the last end of an RPC.", bench_seconds(b));
    append_one(b, out, "cpu_seconds", "CPU time of this process.", b->cpu_seconds);
    append_one(b, out, "start_time_seconds", "When the load began, since 1970.", (double)b->start_unix_ms / 1e3);
    if (!b->streams)
        return;
    append_head(out, "messages", "gauge", "Messages of streams.");
    append_sample(b, out, "messages", "direction=\"sent\"", (double)b->sent);
    append_sample(b, out, "messages", "direction=\"received\"", (double)b->received);
    if (b->gives_stream) {
        append_head(out, "message_latency_seconds", "summary", "Latency of messages of responses.");
        append_summary(b, out, "message_latency_seconds", "", &b->message_ns);
    }
}
