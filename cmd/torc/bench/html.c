/* torc bench: the report as a page.
 *
 * The page has no script and fetches nothing; its Content-Security-Policy makes the browser enforce that. Its colours
 * follow the reader's choice of light or dark. Foreign texts (targets, methods, addresses, localities, status messages)
 * pass cli_xml_text, because anybody may have written them.
 *
 * bench_append_html appends the sections one after another. The functions read the figures and keep nothing. */
#include <math.h>
#include <time.h>

#include <torc/torc.h>

#include "bench/report.h"
#include "cli.h"

/* The curve: sizes in SVG units, its segments (POINTS), and the bands between lines of the grid (GRID). */
enum { WIDTH = 720, HEIGHT = 220, MARGINS = 120, POINTS = 120, GRID = 4 };

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1b1f24;--dim:#5b6570;--line:#d5dae0;--page:#fff;--mark:#1f6fb2;--bad:#b3261e}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4e8ec;--dim:#9aa5b1;--line:#3a424c;--page:#15191e;--mark:#6cb2eb;"
    "--bad:#ff8a80}}"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:60em;margin:2em auto;"
    "padding:0 1em}h1{font-size:1.4em;overflow-wrap:anywhere}h2{font-size:1.1em;margin-top:2em}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.25em .8em;text-align:right;"
    "border-bottom:1px solid var(--line)}th{color:var(--dim);font-weight:normal}th:first-child,td:first-child,.text{"
    "text-align:left;overflow-wrap:anywhere}.bad{color:var(--bad)}p{color:var(--dim);overflow-wrap:anywhere}"
    "svg{max-width:100%;height:auto}svg text{fill:var(--dim);font-size:12px}.curve{fill:none;stroke:var(--mark);"
    "stroke-width:2}.grid{stroke:var(--line)}div{overflow-x:auto}";

static void append_time(struct tc_buf *out, uint64_t ns)
{
    tc_buf_append_str(out, "<td>");
    cli_format_us(out, ns / 1000);
    tc_buf_append_str(out, "</td>");
}

static void append_head(const struct bench *b, struct tc_buf *out)
{
    time_t start = (time_t)(b->start_unix_ms / 1000);
    char date[32] = "";
    struct tm utc;
    if (gmtime_r(&start, &utc))
        strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC", &utc);
    tc_buf_printf(out,
                  "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                  "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>torc bench ");
    cli_xml_text(out, b->types.path);
    tc_buf_printf(out, "</title>\n<style>%s</style>\n</head>\n<body>\n<h1>", style);
    cli_xml_text(out, b->types.path);
    tc_buf_append_str(out, "</h1>\n<p>");
    cli_xml_text(out, b->args.connect.target);
    tc_buf_printf(out, ", %s loop, %s, torc %s</p>\n", b->args.plan.closed ? "closed" : "open", date, torc_version());
}

/* Appends the table of the whole load's figures, and notes on unfinished calls and on messages. */
static void append_summary(const struct bench *b, const struct bench_rows *rows, struct tc_buf *out)
{
    const struct bench_row *all = rows->list.data;
    uint64_t errors = b->counts.calls - bench_ok(&b->counts);
    tc_buf_append_str(out, "<div><table>\n<tr><th>calls</th><th>seconds</th><th>a second</th><th>errors</th>"
                           "<th>not begun</th><th>most at a time</th><th>CPU of a call</th></tr>\n");
    tc_buf_printf(out,
                  "<tr><td>%llu</td><td>%.3f</td><td>%.1f</td><td%s>%llu</td><td>%llu</td><td>%llu</td>"
                  "<td>%.2f us</td></tr>\n</table></div>\n",
                  (unsigned long long)b->counts.calls, bench_seconds(b), bench_rate(all),
                  errors ? " class=\"bad\"" : "", (unsigned long long)errors, (unsigned long long)b->not_started,
                  (unsigned long long)b->most_in_flight,
                  b->counts.calls ? b->cpu_seconds * 1e6 / (double)b->counts.calls : 0);
    if (b->interrupted || b->unfinished)
        tc_buf_printf(out, "<p>%s; %llu calls under way are in no figure.</p>\n",
                      b->interrupted ? "Interrupted" : "A call could not be started or a message not be made",
                      (unsigned long long)b->unfinished);
    if (b->streams)
        tc_buf_printf(out, "<p>Messages: %llu sent, %llu received.</p>\n", (unsigned long long)b->sent,
                      (unsigned long long)b->received);
}

/* Appends the curve of latency over percentiles. The horizontal axis is logarithmic: 0, 90, 99, 99.9 % and so on are
 * equally far apart. */
static void append_curve(const struct histogram *h, struct tc_buf *out)
{
    double nines = TC_MAX(ceil(log10((double)TC_MAX(h->count, UINT64_C(10)))), 1.0);
    double most = (double)TC_MAX(h->max, UINT64_C(1000));
    tc_buf_printf(out,
                  "<svg viewBox=\"-80 -20 %d %d\" width=\"%d\" role=\"img\" aria-label=\"latency by percentile\">\n",
                  WIDTH + MARGINS, HEIGHT + 50, WIDTH + MARGINS);
    for (int i = 0; i <= GRID; i++) {
        double y = HEIGHT - (double)i * HEIGHT / GRID;
        tc_buf_printf(out, "<path class=\"grid\" d=\"M0 %.1fH%d\"/><text x=\"-8\" y=\"%.1f\" text-anchor=\"end\">", y,
                      WIDTH, y + 4);
        cli_format_us(out, (uint64_t)(most * i / GRID / 1000));
        tc_buf_append_str(out, "</text>\n");
    }
    for (int i = 0; i <= (int)nines; i++)
        tc_buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.10g %%</text>\n", i * WIDTH / nines,
                      HEIGHT + 20, 100 - 100 / pow(10, i));
    tc_buf_append_str(out, "<path class=\"curve\" d=\"");
    for (int i = 0; i <= POINTS; i++) {
        double q = 1 - pow(10, -nines * i / POINTS);
        tc_buf_printf(out, "%c%.1f %.1f", i ? 'L' : 'M', (double)i * WIDTH / POINTS,
                      HEIGHT - (double)histogram_at(h, q) / most * HEIGHT);
    }
    tc_buf_append_str(out, "\"/>\n</svg>\n");
}

static void append_latencies(const struct bench *b, struct tc_buf *out)
{
    tc_buf_append_str(out, "<h2>Latency</h2>\n");
    append_curve(&b->counts.latency_ns, out);
    tc_buf_append_str(out, "<div><table>\n<tr><th></th><th>mean</th>");
    for (size_t i = 0; i < BENCH_QUANTILES; i++)
        tc_buf_printf(out, "<th>%s</th>", bench_quantiles[i].title);
    tc_buf_append_str(out, "</tr>\n");
    for (int messages = 0; messages <= b->gives_stream; messages++) {
        const struct histogram *h = messages ? &b->message_ns : &b->counts.latency_ns;
        tc_buf_printf(out, "<tr><td>%s</td>", messages ? "a message" : "a call");
        append_time(out, (uint64_t)histogram_mean(h));
        for (size_t i = 0; i < BENCH_QUANTILES; i++)
            append_time(out, histogram_at(h, bench_quantiles[i].q));
        tc_buf_append_str(out, "</tr>\n");
    }
    tc_buf_append_str(out, "</table></div>\n");
}

static void append_statuses(const struct bench *b, struct tc_buf *out)
{
    tc_buf_append_str(out, "<h2>Status</h2>\n<div><table>\n<tr><th>status</th><th>calls</th><th>share</th>"
                           "<th class=\"text\">text of the first</th></tr>\n");
    for (int i = 0; i < BENCH_CODES; i++) {
        if (!b->counts.by_code[i])
            continue;
        tc_buf_printf(out, "<tr><td%s>%s</td><td>%llu</td><td>%.1f %%</td><td class=\"text\">",
                      i == TORC_STATUS_OK ? "" : " class=\"bad\"", torc_status_code_name(i),
                      (unsigned long long)b->counts.by_code[i], bench_percent(b, b->counts.by_code[i]));
        cli_xml_text(out, b->texts[i] ? b->texts[i] : "");
        tc_buf_append_str(out, "</td></tr>\n");
    }
    tc_buf_append_str(out, "</table></div>\n");
}

/* Appends the table of a scope with its title, or nothing if the scope has no rows. */
static void append_rows(const struct bench *b, const struct bench_rows *rows, enum bench_scope scope, const char *title,
                        struct tc_buf *out)
{
    size_t n;
    const struct bench_row *first = bench_rows_of(rows, scope, &n);
    struct tc_buf name = {0};
    if (n)
        tc_buf_printf(out,
                      "<h2>%s</h2>\n<div><table>\n<tr><th></th><th>calls</th><th>share</th><th>a second</th>"
                      "<th>errors</th><th>p50</th><th>p99</th><th>max</th>%s</tr>\n",
                      title, scope == BENCH_STAGE ? "<th>not begun</th>" : "");
    for (size_t i = 0; i < n + (n && scope == BENCH_STAGE); i++) { /* the table of stages ends with a total */
        const struct bench_row *row = i < n ? first + i : rows->list.data;
        const struct bench_counts *c = row->counts;
        uint64_t errors = c->calls - bench_ok(c);
        tc_buf_clear(&name);
        bench_row_append_name(row, &name);
        tc_buf_append_str(out, "<tr><td>");
        cli_xml_text(out, name.len ? tc_buf_cstr(&name) : i < n ? "none reached" : "all");
        tc_buf_printf(out, "</td><td>%llu</td><td>%.1f %%</td><td>%.1f</td><td%s>%llu</td>",
                      (unsigned long long)c->calls, bench_percent(b, c->calls), bench_rate(row),
                      errors ? " class=\"bad\"" : "", (unsigned long long)errors);
        append_time(out, histogram_at(&c->latency_ns, 0.5));
        append_time(out, histogram_at(&c->latency_ns, 0.99));
        append_time(out, histogram_at(&c->latency_ns, 1));
        if (scope == BENCH_STAGE)
            tc_buf_printf(out, "<td>%llu</td>", (unsigned long long)row->not_started);
        tc_buf_append_str(out, "</tr>\n");
    }
    tc_buf_append_str(out, n ? "</table></div>\n" : "");
    tc_buf_fini(&name);
}

void bench_append_html(const struct bench *b, const struct bench_rows *rows, struct tc_buf *out)
{
    append_head(b, out);
    append_summary(b, rows, out);
    append_rows(b, rows, BENCH_STAGE, "Stages", out);
    append_latencies(b, out);
    append_statuses(b, out);
    append_rows(b, rows, BENCH_BACKEND, "Backends", out);
    append_rows(b, rows, BENCH_LOCALITY, "Localities", out);
    tc_buf_append_str(out, "</body>\n</html>\n");
}
