/* torc bench: prints the figures, as text or JSON, and writes the reports and the live line.
 *
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

/* Backends, or localities, that RPCs were counted for: a row each. */
struct row {
    const char *name, *locality;
    const struct bench_counts *counts;
};

struct rows {
    TC_VEC(struct row) backends;
    TC_VEC(struct row) localities;
    TC_VEC(struct bench_counts *) sums; /* of localities */
};

static double seconds_of(const struct bench *b)
{
    return (double)(b->over_ns - b->begin_ns) / 1e9;
}

static double rate_of(const struct bench *b, const struct bench_counts *c)
{
    return b->over_ns > b->begin_ns ? (double)c->calls / seconds_of(b) : 0;
}

static uint64_t ok_of(const struct bench_counts *c)
{
    return c->by_code[TORC_STATUS_OK];
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
        *tc_vec_push(&rows->localities) = (struct row){backend->locality, backend->locality, sum};
    }
    sum = rows->sums.data[i];
    sum->calls += backend->counts->calls;
    for (int k = 0; k < BENCH_CODES; k++)
        sum->by_code[k] += backend->counts->by_code[k];
    histogram_merge(&sum->latency_ns, &backend->counts->latency_ns);
}

static void collect(const struct bench *b, struct rows *rows)
{
    for (const struct bench_backend *at = b->backends; at; at = at->hh.next)
        if (at->counts.calls)
            *tc_vec_push(&rows->backends) = (struct row){at->address, at->locality, &at->counts};
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
        tc_buf_printf(out, "%s{\"%s\":", i ? "," : "", own);
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
    tc_buf_printf(out, ",\"rps\":%.1f,", rate_of(b, &b->counts));
    append_latency(out, &b->counts.latency_ns);
    tc_buf_printf(out, ",\"latency_mean_us\":%.1f,\"latency_stddev_us\":%.1f",
                  histogram_mean(&b->counts.latency_ns) / 1e3, histogram_deviation(&b->counts.latency_ns) / 1e3);
    tc_buf_printf(out, ",\"most_in_flight\":%llu,\"seconds\":%.3f,\"cpu_seconds\":%.3f,\"cpu_us_per_call\":%.2f",
                  (unsigned long long)b->most_in_flight, seconds_of(b), b->cpu_seconds,
                  per_call(b, b->cpu_seconds * 1e6));
    tc_buf_printf(out, ",\"interrupted\":%s,\"unfinished\":%llu", b->interrupted ? "true" : "false",
                  (unsigned long long)b->unfinished);
    if (b->streams)
        tc_buf_printf(out, ",\"messages\":{\"sent\":%llu,\"received\":%llu}", (unsigned long long)b->sent,
                      (unsigned long long)b->received);
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
    for (size_t i = 0; i < n; i++)
        width = TC_MAX(width, (int)TC_MIN(strlen(rows[i].name), (size_t)60));
    if (n)
        tc_buf_printf(out, "%-10s %-*s %10s %8s %8s %10s %10s\n", title, width, "", "calls", "share", "errors", "p50",
                      "p99");
    for (size_t i = 0; i < n; i++) {
        const struct bench_counts *c = rows[i].counts;
        tc_buf_printf(out, "%-10s %-*s %10llu %6.1f %% %8llu", "", width,
                      *rows[i].name ? cli_shown(&scratch, rows[i].name) : "none reached", (unsigned long long)c->calls,
                      per_call(b, 100.0 * (double)c->calls), (unsigned long long)(c->calls - ok_of(c)));
        append_time(out, histogram_at(&c->latency_ns, 0.5));
        append_time(out, histogram_at(&c->latency_ns, 0.99));
        tc_buf_append_char(out, '\n');
    }
    tc_buf_fini(&scratch);
}

static void append_text(const struct bench *b, const struct rows *rows, struct tc_buf *out)
{
    const struct bench_counts *all = &b->counts;
    tc_buf_printf(out, "%llu calls in %.3f s: %.0f a second, at most %llu at a time\n", (unsigned long long)all->calls,
                  seconds_of(b), rate_of(b, all), (unsigned long long)b->most_in_flight);
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
    for (size_t i = 0; i < TC_ARRAY_LEN(quantiles); i++) {
        tc_buf_printf(out, "%-10s %-6s", i ? "" : "latency", quantiles[i].title);
        append_time(out, histogram_at(&all->latency_ns, quantiles[i].q));
        tc_buf_append_char(out, '\n');
    }
    bool first = true;
    for (int i = 0; i < BENCH_CODES; i++) {
        if (all->by_code[i])
            tc_buf_printf(out, "%-10s %-20s %10llu  %5.1f %%\n", first ? "status" : "", torc_status_code_name(i),
                          (unsigned long long)all->by_code[i], per_call(b, 100.0 * (double)all->by_code[i]));
        first = first && !all->by_code[i];
    }
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

static void append_csv_row(const struct bench *b, const char *scope, const char *name, const struct bench_counts *c,
                           struct tc_buf *out)
{
    tc_buf_printf(out, "%s,", scope);
    append_field(out, name);
    tc_buf_printf(out, ",%llu,%llu,%.1f,%.1f", (unsigned long long)c->calls, (unsigned long long)(c->calls - ok_of(c)),
                  rate_of(b, c), histogram_mean(&c->latency_ns) / 1e3);
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
    append_csv_row(b, "all", "", &b->counts, out);
    for (int i = 0; i < BENCH_CODES; i++) /* latencies are not kept by status */
        if (b->counts.by_code[i])
            tc_buf_printf(out, "status,\"%s\",%llu,%llu,,,,,,,,\r\n", torc_status_code_name(i),
                          (unsigned long long)b->counts.by_code[i],
                          (unsigned long long)(i == TORC_STATUS_OK ? 0 : b->counts.by_code[i]));
    for (size_t i = 0; i < rows->backends.len; i++)
        append_csv_row(b, "backend", rows->backends.data[i].name, rows->backends.data[i].counts, out);
    for (size_t i = 0; i < rows->localities.len; i++)
        append_csv_row(b, "locality", rows->localities.data[i].name, rows->localities.data[i].counts, out);
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
