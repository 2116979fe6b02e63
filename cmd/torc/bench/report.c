/* torc bench: prints the figures, as text or JSON, and writes the reports and the live line.
 *
 * Every form but hdr shows the rows of rows.c. The JSON form is a contract (torc(1)): members may be added, not
 * renamed. The files of --report are opened before the load begins, so that a path that cannot be written is an error
 * at once. They are written after the load, and fini() of bench.c closes them. */
#include "bench/report.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli.h"

#define NAME BENCH_NAME

enum { TEXT_SHOWN = 200 }; /* bytes of a status message in the text form, at most; JSON and HTML have all of it */

/* Returns the mean CPU time of a counted RPC in microseconds. */
static double cpu_us(const struct bench *b)
{
    return b->counts.calls ? b->cpu_seconds * 1e6 / (double)b->counts.calls : 0;
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

static void append_texts(const struct bench *b, struct tc_buf *out)
{
    const char *comma = "";
    tc_buf_append_str(out, ",\"status_texts\":{");
    for (int i = 0; i < BENCH_CODES; i++) {
        if (!b->texts[i])
            continue;
        tc_buf_printf(out, "%s\"%s\":", comma, torc_status_code_name(i));
        cli_json_string(out, b->texts[i], strlen(b->texts[i]));
        comma = ",";
    }
    tc_buf_append_char(out, '}');
}

static void append_latency(struct tc_buf *out, const struct histogram *h)
{
    tc_buf_append_str(out, "\"latency_us\":{");
    for (size_t i = 0; i < BENCH_QUANTILES; i++)
        tc_buf_printf(out, "%s\"%s\":%.1f", i ? "," : "", bench_quantiles[i].name,
                      (double)histogram_at(h, bench_quantiles[i].q) / 1e3);
    tc_buf_append_char(out, '}');
}

/* Appends the rows of a scope as the array `list`. `own` is the member that has a row's name. */
static void append_rows(struct tc_buf *out, const struct bench_rows *all, enum bench_scope scope, const char *list,
                        const char *own)
{
    size_t n;
    const struct bench_row *rows = bench_rows_of(all, scope, &n);
    tc_buf_printf(out, ",\"%s\":[", list);
    for (size_t i = 0; i < n; i++) {
        const struct bench_counts *c = rows[i].counts;
        tc_buf_append_str(out, i ? ",{" : "{");
        if (rows[i].stage)
            tc_buf_printf(out, "\"stage\":%u,\"seconds\":%.3f,\"rps\":%.1f,\"not_started\":%llu,", rows[i].stage,
                          rows[i].seconds, bench_rate(&rows[i]), (unsigned long long)rows[i].not_started);
        tc_buf_printf(out, "\"%s\":", own);
        cli_json_string(out, rows[i].name, strlen(rows[i].name));
        if (rows[i].locality) {
            tc_buf_append_str(out, ",\"locality\":");
            cli_json_string(out, rows[i].locality, strlen(rows[i].locality));
        }
        tc_buf_printf(out, ",\"calls\":%llu,\"ok\":%llu,", (unsigned long long)c->calls,
                      (unsigned long long)bench_ok(c));
        append_statuses(out, c);
        tc_buf_append_char(out, ',');
        append_latency(out, &c->latency_ns);
        tc_buf_append_char(out, '}');
    }
    tc_buf_append_char(out, ']');
}

static void append_json(const struct bench *b, const struct bench_rows *rows, struct tc_buf *out)
{
    tc_buf_printf(out, "{\"bench\":{\"calls\":%llu,\"ok\":%llu,\"not_started\":%llu,",
                  (unsigned long long)b->counts.calls, (unsigned long long)bench_ok(&b->counts),
                  (unsigned long long)b->not_started);
    append_statuses(out, &b->counts);
    tc_buf_printf(out, ",\"rps\":%.1f,", bench_rate(rows->list.data));
    append_latency(out, &b->counts.latency_ns);
    tc_buf_printf(out, ",\"latency_mean_us\":%.1f,\"latency_stddev_us\":%.1f",
                  histogram_mean(&b->counts.latency_ns) / 1e3, histogram_deviation(&b->counts.latency_ns) / 1e3);
    tc_buf_printf(out, ",\"most_in_flight\":%llu,\"seconds\":%.3f,\"cpu_seconds\":%.3f,\"cpu_us_per_call\":%.2f",
                  (unsigned long long)b->most_in_flight, bench_seconds(b), b->cpu_seconds, cpu_us(b));
    append_texts(b, out);
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
        append_rows(out, rows, BENCH_STAGE, "stages", "load");
    append_rows(out, rows, BENCH_BACKEND, "backends", "address");
    append_rows(out, rows, BENCH_LOCALITY, "localities", "locality");
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

/* Appends the table of a scope, or nothing if the scope has no rows. */
static void append_table(const struct bench *b, const struct bench_rows *all, enum bench_scope scope,
                         struct tc_buf *out)
{
    size_t n;
    const struct bench_row *rows = bench_rows_of(all, scope, &n);
    struct tc_buf scratch = {0};
    int width = 22;
    bool stages = n && scope == BENCH_STAGE;
    for (size_t i = 0; i < n; i++)
        width = TC_MAX(width, (int)TC_MIN(strlen(rows[i].name), (size_t)60));
    if (n)
        tc_buf_printf(out, "%-10s %-*s %10s %8s %8s %10s %10s%s\n", bench_scope_names[scope], width, "", "calls",
                      stages ? "a second" : "share", "errors", "p50", "p99", stages ? "  not begun" : "");
    for (size_t i = 0; i < n + stages; i++) { /* the table of stages ends with a total */
        const struct bench_row *row = i < n ? &rows[i] : all->list.data;
        const struct bench_counts *c = row->counts;
        const char *unnamed = i < n ? "none reached" : "all";
        tc_buf_printf(out, "%-10s %-*s %10llu", "", width, *row->name ? cli_shown(&scratch, row->name) : unnamed,
                      (unsigned long long)c->calls);
        if (stages)
            tc_buf_printf(out, " %8.1f", bench_rate(row));
        else
            tc_buf_printf(out, " %6.1f %%", bench_percent(b, c->calls));
        tc_buf_printf(out, " %8llu", (unsigned long long)(c->calls - bench_ok(c)));
        append_time(out, histogram_at(&c->latency_ns, 0.5));
        append_time(out, histogram_at(&c->latency_ns, 0.99));
        if (stages)
            tc_buf_printf(out, " %10llu", (unsigned long long)row->not_started);
        tc_buf_append_char(out, '\n');
    }
    tc_buf_fini(&scratch);
}

/* Returns how many bytes of a status message the text form shows. It cuts no UTF-8 character. */
static size_t shown_length(const char *text)
{
    size_t n = strnlen(text, TEXT_SHOWN);
    for (size_t i = 0; i < 3 && n == TEXT_SHOWN - i && ((unsigned char)text[n] & 0xc0) == 0x80; i++)
        n--;
    return n;
}

static void append_text(const struct bench *b, const struct bench_rows *rows, struct tc_buf *out)
{
    const struct bench_counts *all = &b->counts;
    tc_buf_printf(out, "%llu calls in %.3f s: %.0f a second, at most %llu at a time\n", (unsigned long long)all->calls,
                  bench_seconds(b), bench_rate(rows->list.data), (unsigned long long)b->most_in_flight);
    if (b->interrupted || b->unfinished)
        tc_buf_printf(out, "%s; %llu calls under way are in no figure\n",
                      b->interrupted ? "interrupted" : "a call could not be started or a message not be made",
                      (unsigned long long)b->unfinished);
    if (b->not_started)
        tc_buf_printf(out, "%llu calls were due but not started: -c calls were in flight\n",
                      (unsigned long long)b->not_started);
    if (b->streams)
        tc_buf_printf(out, "messages   %llu sent, %llu received\n", (unsigned long long)b->sent,
                      (unsigned long long)b->received);
    tc_buf_printf(out, "CPU        %.2f us a call\n", cpu_us(b));
    if (b->gives_stream)
        tc_buf_printf(out, "%-17s %10s %10s\n", "", "of a call", "a message");
    for (size_t i = 0; i < BENCH_QUANTILES; i++) {
        tc_buf_printf(out, "%-10s %-6s", i ? "" : "latency", bench_quantiles[i].title);
        append_time(out, histogram_at(&all->latency_ns, bench_quantiles[i].q));
        if (b->gives_stream)
            append_time(out, histogram_at(&b->message_ns, bench_quantiles[i].q));
        tc_buf_append_char(out, '\n');
    }
    bool first = true;
    for (int i = 0; i < BENCH_CODES; i++) {
        if (all->by_code[i])
            tc_buf_printf(out, "%-10s %-20s %10llu  %5.1f %%", first ? "status" : "", torc_status_code_name(i),
                          (unsigned long long)all->by_code[i], bench_percent(b, all->by_code[i]));
        if (all->by_code[i] && b->texts[i]) {
            tc_buf_append_str(out, "  ");
            cli_append_shown(out, b->texts[i], shown_length(b->texts[i]));
        }
        if (all->by_code[i])
            tc_buf_append_char(out, '\n');
        first = first && !all->by_code[i];
    }
    append_table(b, rows, BENCH_STAGE, out);
    append_table(b, rows, BENCH_BACKEND, out);
    append_table(b, rows, BENCH_LOCALITY, out);
}

/* --- reports --- */

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
        fwrite(text->data, 1, text->len, stdout); /* cli_end_output reports a failure */
        return 0;
    }
    bool ok = fwrite(text->data, 1, text->len, b->reports[i]) == text->len && fflush(b->reports[i]) == 0;
    return ok ? 0 : cli_fail(NAME, "--report: cannot write %s: %s", b->args.report[i], strerror(errno));
}

static void append_hdr(const struct bench *b, const struct bench_rows *rows, struct tc_buf *out)
{
    (void)rows;
    histogram_append_text(&b->counts.latency_ns, (double)TC_NS_PER_MS, out);
}

int bench_report(struct bench *b)
{
    static void (*const append[BENCH_REPORTS])(const struct bench *b, const struct bench_rows *rows,
                                               struct tc_buf *out) = {
        [BENCH_CSV] = bench_append_csv,
        [BENCH_HDR] = append_hdr,
        [BENCH_HTML] = bench_append_html,
        [BENCH_PROMETHEUS] = bench_append_prometheus,
    };
    struct bench_rows rows = {0};
    struct tc_buf text = {0};
    int rc = 0;
    bench_rows_collect(b, &rows);
    (b->args.json ? append_json : append_text)(b, &rows, &text);
    fwrite(text.data, 1, text.len, stdout);
    cli_flush();
    for (size_t i = 0; i < BENCH_REPORTS && rc == 0; i++) {
        if (!b->args.report[i])
            continue;
        tc_buf_clear(&text);
        append[i](b, &rows, &text);
        rc = write_report(b, i, &text);
    }
    tc_buf_fini(&text);
    bench_rows_fini(&rows);
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
                      (unsigned long long)(c->calls - bench_ok(c)));
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
