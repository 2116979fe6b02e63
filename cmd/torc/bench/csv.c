#include "base/mem.h"
#include "bench/report.h"
#include "cli.h"

static void append_row(const char *scope, const struct bench_row *row, struct tc_buf *out)
{
    const struct bench_counts *c = row->counts;
    struct tc_buf name = {0};
    bench_row_append_name(row, &name);
    tc_buf_printf(out, "%s,", scope);
    cli_csv_text(out, tc_buf_cstr(&name));
    tc_buf_fini(&name);
    tc_buf_printf(out, ",%llu,%llu,%.1f,%.1f", (unsigned long long)c->calls,
                  (unsigned long long)(c->calls - bench_ok(c)), bench_rate(row), histogram_mean(&c->latency_ns) / 1e3);
    for (size_t i = 0; i < BENCH_QUANTILES; i++)
        tc_buf_printf(out, ",%.1f", (double)histogram_at(&c->latency_ns, bench_quantiles[i].q) / 1e3);
    tc_buf_append_str(out, "\r\n");
}

void bench_append_csv(const struct bench *b, const struct bench_rows *rows, struct tc_buf *out)
{
    tc_buf_append_str(out, "scope,name,calls,errors,rps,mean_us");
    for (size_t i = 0; i < BENCH_QUANTILES; i++)
        tc_buf_printf(out, ",%s_us", bench_quantiles[i].name);
    tc_buf_append_str(out, "\r\n");
    for (size_t s = 0; s < BENCH_SCOPES; s++) {
        for (size_t i = rows->first[s]; i < rows->first[s + 1]; i++)
            append_row(bench_scope_names[s], &rows->list.data[i], out);
        if (s != BENCH_ALL)
            continue;
        if (b->gives_stream) {
            struct bench_counts received = bench_messages(b);
            append_row("messages", &(struct bench_row){"received", NULL, &received, bench_seconds(b), 0, 0}, out);
        }
        for (int i = 0; i < BENCH_CODES; i++) /* rates and latencies are not kept by status */
            if (b->counts.by_code[i])
                tc_buf_printf(out, "status,\"%s\",%llu,%llu,,,,,,,,\r\n", torc_status_code_name(i),
                              (unsigned long long)b->counts.by_code[i],
                              (unsigned long long)(i == TORC_STATUS_OK ? 0 : b->counts.by_code[i]));
    }
}
