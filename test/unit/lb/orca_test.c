/* Load reports as bytes and in trailers, and the request for reports out of band. */
#include "lb/orca.h"

#include <string.h>

#include "base/mem.h"
#include "pb/xds/service/orca/v3/orca.pb-c.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/orca.h"

static void values_in_order(void **state)
{
    (void)state;
    struct kit_orca report = {.cpu = .25, .mem = .5, .app = 4, .qps = 7, .eps = -1, .name = "queue", .named = 3};
    struct tc_buf bytes = {0};
    kit_orca_pack(&report, &bytes);
    tc_buf_append(&bytes, "\x18\x07", 2);     /* rps, which nobody reads */
    tc_buf_append(&bytes, "\x0d\0\0\0\0", 5); /* cpu_utilization of another width: as if it were unknown */
    tc_buf_append(&bytes, "\x42\0", 2);       /* an entry without name and value */
    struct tc_slice rest = tc_buf_slice(&bytes);
    static const struct tc_orca_value want[] = {
        {TC_ORCA_CPU, {0}, .25}, {TC_ORCA_MEM, {0}, .5},        {TC_ORCA_QPS, {0}, 7},  {TC_ORCA_EPS, {0}, -1},
        {TC_ORCA_NAMED, {0}, 3}, {TC_ORCA_APPLICATION, {0}, 4}, {TC_ORCA_NAMED, {0}, 0}};
    struct tc_orca_value v;
    for (size_t i = 0; i < TC_ARRAY_LEN(want); i++) {
        assert_true(tc_orca_next(&rest, &v));
        assert_int_equal(v.field, want[i].field);
        assert_true(v.value == want[i].value);
        assert_true(tc_slice_eq_str(v.name, i == 4 ? "queue" : ""));
    }
    assert_false(tc_orca_next(&rest, &v));
    assert_int_equal(rest.len, 0);
    tc_buf_fini(&bytes);
}

/* Each row is malformed: the reader stops and leaves bytes unread. */
static void malformed(void **state)
{
    (void)state;
    static const struct tc_slice rows[] = {
        {"\x09\0\0\0", 4},                                    /* a double that is cut short */
        {"\x42\x7f", 2},                                      /* an entry longer than the report */
        {"\x42\x03\x0a\x05x", 5},                             /* a name longer than its entry */
        {"\x42\x03\x0a\x01\xff", 5},                          /* not UTF-8 */
        {"\x42\x04\x0a\x02x\0", 6},                           /* a NUL in a name */
        {"\x0b\x0c", 2},                                      /* a group */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11}, /* a tag without end */
        {"\x42\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* a length of 2^64 - 1 */
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct tc_slice rest = rows[i];
        struct tc_orca_value v;
        while (tc_orca_next(&rest, &v)) {
        }
        assert_true(rest.len > 0);
    }
}

static void one_report_in_the_trailers(void **state)
{
    (void)state;
    struct tc_arena arena;
    struct tc_headers h;
    tc_arena_init(&arena, 0, 0);
    tc_headers_init(&h, &arena);
    assert_null(tc_orca_of_trailers(NULL).data);
    assert_null(tc_orca_of_trailers(&h).data);
    tc_headers_add(&h, tc_slice_str("other"), tc_slice_str("a"));
    tc_headers_add(&h, tc_slice_str("endpoint-load-metrics-bin"), tc_slice_str("b"));
    assert_true(tc_slice_eq_str(tc_orca_of_trailers(&h), "b"));
    tc_headers_add(&h, tc_slice_str("endpoint-load-metrics-bin"), tc_slice_str("c"));
    assert_null(tc_orca_of_trailers(&h).data);
    tc_arena_fini(&arena);
}

static void the_shortest_interval_is_requested(void **state)
{
    TC_CASE(WR17);
    (void)state;
    static const struct {
        uint64_t intervals[2];
        int64_t seconds;
        int32_t nanos;
    } rows[] = {{{10000, 5000}, 5, 0}, {{5000, 10000}, 5, 0}, {{1500, 86400000}, 1, 500000000}, {{0, 1}, 0, 0}};
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct tc_orca_watch watches[2] = {0};
        struct tc_link list;
        struct tc_buf out = {0};
        tc_list_init(&list);
        for (size_t k = 0; k < 2; k++) {
            watches[k].interval_ms = rows[i].intervals[k];
            tc_list_append(&list, &watches[k].side.link);
        }
        tc_orca_reports.request(&list, &out);
        Xds__Service__Orca__V3__OrcaLoadReportRequest *m =
            xds__service__orca__v3__orca_load_report_request__unpack(NULL, out.len, (const uint8_t *)out.data);
        assert_non_null(m);
        assert_int_equal(m->report_interval->seconds, rows[i].seconds);
        assert_int_equal(m->report_interval->nanos, rows[i].nanos);
        xds__service__orca__v3__orca_load_report_request__free_unpacked(m, NULL);
        tc_buf_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_in_order),
        cmocka_unit_test(malformed),
        cmocka_unit_test(one_report_in_the_trailers),
        cmocka_unit_test(the_shortest_interval_is_requested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
