/* The files of torc bench --report: hostile texts in them, and numbers at the ends of their ranges. Also the histogram
 * that the numbers come from. No load runs: hostile_bench fills the figures of one, which free_bench frees. */
#include "bench/report.h"

#include "base/mem.h"
#include "base/parse.h"
#include "support/cmocka.h"

#define HOSTILE "<script>alert(1)</script>\" onload='x' &lt;\\\n\r\x1b[31m\xff\xc2\x9b"

/* Makes a load whose texts are hostile, for free_bench. */
static struct bench *hostile_bench(void)
{
    struct bench *b = TC_NEW(struct bench);
    struct bench_backend *backend = TC_NEW(struct bench_backend);
    assert_int_equal(bench_plan_read(&b->args.plan, "bench", "100..200/1s,100/1s,100/1s"), 0);
    b->stages = tc_calloc(b->args.plan.stages.len, sizeof(*b->stages));
    b->args.connect.target = "xds:///" HOSTILE;
    b->types.path = "a.B/" HOSTILE;
    b->texts[TORC_STATUS_UNAVAILABLE] = tc_strdup(HOSTILE);
    b->counts.calls = b->counts.by_code[TORC_STATUS_UNAVAILABLE] = 1;
    histogram_add(&b->counts.latency_ns, UINT64_MAX);
    b->streams = b->gives_stream = true;
    backend->address = tc_strdup(HOSTILE);
    backend->locality = tc_strdup(HOSTILE);
    backend->counts.calls = backend->counts.by_code[TORC_STATUS_UNAVAILABLE] = 1;
    HASH_ADD_KEYPTR(hh, b->backends, backend->address, strlen(backend->address), backend);
    return b;
}

static void free_bench(struct bench *b)
{
    struct bench_backend *backend = b->backends;
    HASH_DELETE(hh, b->backends, backend);
    tc_free(backend->address);
    tc_free(backend->locality);
    tc_free(backend);
    histogram_fini(&b->counts.latency_ns);
    for (int i = 0; i < BENCH_CODES; i++)
        tc_free(b->texts[i]);
    tc_free(b->stages);
    bench_plan_fini(&b->args.plan);
    tc_free(b);
}

/* Checks that a text is UTF-8, and that line ends are its only control characters below a space. U+009B, which begins
 * escape sequences as ESC [ does, must not be in it either. */
static void assert_plain(struct tc_buf *text)
{
    assert_true(tc_utf8_valid(tc_buf_slice(text)));
    for (size_t i = 0; i < text->len; i++)
        assert_true((unsigned char)text->data[i] >= ' ' || text->data[i] == '\n' || text->data[i] == '\r');
    assert_null(strstr(tc_buf_cstr(text), "\xc2\x9b"));
}

/* Stores the file that `form` makes of the bench in `out`, instead of what `out` held. */
static void append(void (*form)(const struct bench *b, const struct bench_rows *rows, struct tc_buf *out),
                   const struct bench *b, struct tc_buf *out)
{
    struct bench_rows rows = {0};
    tc_buf_clear(out);
    bench_rows_collect(b, &rows);
    form(b, &rows, out);
    bench_rows_fini(&rows);
}

static void test_html(void **state)
{
    static const char *const tags[] = {
        "!DOCTYPE html>", "html", "head", "meta ", "title", "style", "body", "h1", "h2", "p", "div",
        "table",          "tr",   "th",   "td",    "svg",   "path ", "text"};
    struct bench *b = hostile_bench();
    struct tc_buf page = {0};
    (void)state;
    append(bench_append_html, b, &page);
    assert_plain(&page);
    size_t shown = 0;
    for (const char *at = tc_buf_cstr(&page); (at = strchr(at, '<')); at++) {
        const char *name = at + 1 + (at[1] == '/');
        size_t i = 0;
        while (i < TC_ARRAY_LEN(tags) && strncmp(name, tags[i], strlen(tags[i])) != 0)
            i++;
        if (i == TC_ARRAY_LEN(tags))
            fail_msg("an element of somebody else's: %.40s", at);
        assert_true(strncmp(at, "<script", 7) != 0);
    }
    for (const char *at = page.data; (at = strstr(at, "&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload=")); at++)
        shown++;
    assert_int_equal(shown, 6); /* title, heading, target, status, backend, locality */
    assert_null(strstr(page.data, "http:") ? strstr(page.data, "http:") : strstr(page.data, "https:"));
    assert_null(strstr(page.data, "url("));
    assert_null(strstr(page.data, "nan"));
    assert_null(strstr(page.data, "inf"));
    tc_buf_fini(&page);
    free_bench(b);
}

/* Checks a line of a sample: name{label="value",...} number. */
static void check_sample(struct tc_slice line)
{
    const char *p = line.data, *end = p + line.len;
    p += strspn(p, "abcdefghijklmnopqrstuvwxyz_");
    assert_true(*p++ == '{');
    for (; *p != '}'; p += *p == ',') {
        p += strspn(p, "abcdefghijklmnopqrstuvwxyz_");
        assert_true(*p++ == '=' && *p++ == '"');
        for (; *p != '"'; p++) {
            assert_true(p < end);
            if (*p == '\\')
                assert_non_null(strchr("\\\"n", *++p));
        }
        p++;
        assert_true(*p == ',' || *p == '}');
    }
    assert_true(*++p == ' ');
    double value;
    struct tc_slice number = tc_slice_of(p + 1, (size_t)(end - p) - 1);
    assert_true(tc_slice_eq_str(number, "NaN") || tc_parse_double(number, &value) == 0);
}

static void test_prometheus(void **state)
{
    struct bench *b = hostile_bench();
    struct tc_buf text = {0};
    (void)state;
    append(bench_append_prometheus, b, &text);
    assert_plain(&text);
    struct tc_slice rest = tc_buf_slice(&text), line;
    size_t samples = 0;
    for (bool more = true; tc_slice_split(&rest, &more, '\n', &line);) {
        if (!line.len || line.data[0] == '#')
            continue;
        check_sample(line);
        samples++;
    }
    assert_true(samples > 60);
    assert_non_null(strstr(text.data, "scope=\"stage\",name=\"2: 100/1s\",quantile=\"0.99\"} NaN\n"));
    assert_non_null(strstr(text.data, "scope=\"stage\",name=\"3: 100/1s\",quantile=\"0.99\"} NaN\n"));
    assert_non_null(strstr(text.data, "le=\"500\"} 0\n"));
    assert_non_null(strstr(text.data, "le=\"+Inf\"} 1\n"));
    tc_buf_fini(&text);
    free_bench(b);
}

static void test_csv(void **state)
{
    struct bench *b = hostile_bench();
    struct tc_buf text = {0};
    (void)state;
    append(bench_append_csv, b, &text);
    assert_plain(&text);
    bool quoted = false;
    size_t fields = 1, rows = 0;
    for (size_t i = 0; i < text.len; i++) {
        quoted ^= text.data[i] == '"';
        fields += !quoted && text.data[i] == ',';
        if (quoted || text.data[i] != '\n')
            continue;
        assert_int_equal(fields, 12);
        fields = 1;
        rows++;
    }
    /* The header, all RPCs, the messages, a status, three stages, a backend, a locality. */
    assert_true(!quoted && rows == 1 + 1 + 1 + 1 + 3 + 1 + 1);
    tc_buf_fini(&text);
    free_bench(b);
}

static void test_values_below(void **state)
{
    static const struct {
        uint64_t value, below;
    } rows[] = {{0, 1},         {1, 2}, {127, 3}, {128, 3}, {999, 3}, {1007, 4}, {1000000, 4}, {UINT64_C(1) << 41, 4},
                {UINT64_MAX, 5}};
    struct histogram h = {0};
    (void)state;
    assert_int_equal(histogram_below(&h, 0), 0);
    histogram_add(&h, 0);
    histogram_add(&h, 1);
    histogram_add(&h, 127);
    histogram_add(&h, 1000);
    histogram_add(&h, UINT64_MAX);
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++)
        if (histogram_below(&h, rows[i].value) != rows[i].below)
            fail_msg("%llu: %llu", (unsigned long long)rows[i].value,
                     (unsigned long long)histogram_below(&h, rows[i].value));
    histogram_fini(&h);
}

/* A row of the histogram's text form has the value that histogram_at gives for its quantile. */
static void test_rows_agree_with_quantiles(void **state)
{
    (void)state;
    struct histogram h = {0};
    struct tc_buf text = {0};
    for (uint64_t v = 0; v < 100; v++)
        histogram_add(&h, v);
    histogram_append_text(&h, 1, &text);
    assert_int_equal(histogram_at(&h, 0.9), 89);
    assert_non_null(strstr(tc_buf_cstr(&text), "      89.000 0.900000000000         90 "));
    tc_buf_fini(&text);
    histogram_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_html),
        cmocka_unit_test(test_prometheus),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_values_below),
        cmocka_unit_test(test_rows_agree_with_quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
