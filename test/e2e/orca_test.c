/* ORCA of a server (torc/orca.h): load reports at the end of RPCs, and out of band by OpenRcaService. A channel gets
 * the reports over a real socket, and the test unpacks them with generated code.
 *
 * Each test has a channel, and a server with a torc_orca whose shortest interval is LEAST_MS; one test has a torc_orca
 * without the service. Server and channel have a runtime each, with a thread: handlers run on the server's thread, and
 * the test's thread waits for results. Unpacked reports are in `arena`, which teardown frees. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <torc/protobuf_c.h>
#include <torc/torc.h>

#include "api/server/orca.h"
#include "base/clock.h"
#include "pb/xds/data/orca/v3/orca_load_report.pb-c.h"
#include "support/case.h"
#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

#define SERVICE "xds.service.orca.v3.OpenRcaService/StreamCoreMetrics"

enum { LEAST_MS = 20 };

typedef Xds__Data__Orca__V3__OrcaLoadReport report_t;

static torc_runtime *rt, *client_rt;
static torc_server *server;
static torc_orca *orca;
static torc_channel *ch;
static torc_arena *arena;

/* Records what the request says: "": nothing; "c": a cost, which replaces an earlier one; "u": also a utilization and
 * the CPU. */
static void on_work(torc_server_call *call, const torc_message *request, void *arg)
{
    const char *text = torc_message_data(request);
    (void)arg;
    if (*text) {
        CHECK(torc_orca_record(call, TORC_ORCA_REQUEST_COST, "rows", 1) == 0);
        CHECK(torc_orca_record(call, TORC_ORCA_REQUEST_COST, "rows", 1200.5) == 0);
    }
    if (*text == 'u') {
        CHECK(torc_orca_record(call, TORC_ORCA_UTILIZATION, "disk", 0.25) == 0);
        CHECK(torc_orca_record(call, TORC_ORCA_CPU, NULL, 1.5) == 0);
    }
    torc_server_call_reply(call, NULL, 0);
}

/* Records a value, and fails with a report that the handler itself put into the trailers. */
static void on_own(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    torc_metadata *trailers = torc_metadata_new();
    torc_metadata_add(trailers, "endpoint-load-metrics-bin", "own", 3);
    torc_orca_record(call, TORC_ORCA_CPU, NULL, 1);
    torc_server_call_finish(call, TORC_STATUS_ABORTED, NULL, trailers);
    torc_metadata_free(trailers);
}

/* Records nothing: each torc_orca_record is refused. */
static void on_bad(torc_server_call *call, const torc_message *request, void *arg)
{
    static char long_name[300];
    memset(long_name, 'n', sizeof(long_name) - 1);
    (void)request, (void)arg;
    CHECK(torc_orca_record(NULL, TORC_ORCA_CPU, NULL, 1) == TORC_EINVAL);
    CHECK(torc_orca_record(call, 0, NULL, 1) == TORC_EINVAL);
    CHECK(torc_orca_record(call, 3, NULL, 1) == TORC_EINVAL);
    CHECK(torc_orca_record(call, 10, NULL, 1) == TORC_EINVAL);
    CHECK(torc_orca_record(call, -1, NULL, 1) == TORC_EINVAL);
    CHECK(torc_orca_record(call, TORC_ORCA_CPU, "name", 1) == TORC_EINVAL);
    CHECK(torc_orca_record(call, TORC_ORCA_NAMED, NULL, 1) == TORC_EINVAL);
    CHECK(torc_orca_record(call, TORC_ORCA_NAMED, "\xff", 1) == TORC_EINVAL);
    CHECK(torc_orca_record(call, TORC_ORCA_NAMED, long_name, 1) == TORC_EINVAL);
    CHECK(torc_orca_record(call, TORC_ORCA_CPU, NULL, -0.1) == TORC_EINVAL);
    CHECK(torc_orca_record(call, TORC_ORCA_CPU, NULL, (double)NAN) == TORC_EINVAL);
    CHECK(torc_orca_record(call, TORC_ORCA_RPS, NULL, (double)INFINITY) == TORC_EINVAL);
    CHECK(torc_orca_record(call, TORC_ORCA_MEMORY, NULL, 1.01) == TORC_EINVAL);
    CHECK(torc_orca_record(call, TORC_ORCA_UTILIZATION, "x", 1.01) == TORC_EINVAL);
    torc_server_call_reply(call, NULL, 0);
}

/* Records 256 values, as many as a report may have. */
static void on_many(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    for (int i = 0; i < 256; i++)
        CHECK(torc_orca_record(call, TORC_ORCA_NAMED, torc_server_call_printf(call, "n%d", i), i) == 0);
    CHECK(torc_orca_record(call, TORC_ORCA_NAMED, "more", 1) == TORC_ELIMIT);
    CHECK(torc_orca_record(call, TORC_ORCA_NAMED, "n7", 8) == 0);
    torc_server_call_reply(call, NULL, 0);
}

/* Makes what a test has. min_interval_ms: as torc_orca_new takes it. */
static void server_make(int64_t min_interval_ms)
{
    static const struct {
        const char *method;
        void (*unary)(torc_server_call *call, const torc_message *request, void *arg);
    } methods[] = {{"a.B/Work", on_work}, {"a.B/Bad", on_bad}, {"a.B/Many", on_many}, {"a.B/Own", on_own}};
    char *bound;
    torc_error *error = NULL;
    rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    client_rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    arena = torc_arena_new(0);
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    server = torc_server_new(&o, &error);
    for (size_t i = 0; i < TC_ARRAY_LEN(methods); i++) {
        struct torc_handler h = {TORC_SIZE(torc_handler), .unary = methods[i].unary};
        torc_server_add_method(server, methods[i].method, &h, &error);
    }
    orca = torc_orca_new(server, min_interval_ms, &error);
    torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error);
    torc_server_start(server, &error);
    assert_string_equal(torc_error_text(error), "");
    ch = torc_channel_new(client_rt, bound, NULL, NULL);
    torc_free(bound);
}

static int setup(void **state)
{
    (void)state;
    server_make(LEAST_MS);
    return 0;
}

static int setup_without_service(void **state)
{
    (void)state;
    server_make(-1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    torc_channel_free(ch);
    torc_server_free(server);
    torc_orca_free(orca);
    torc_arena_free(arena);
    assert_int_equal(torc_runtime_free(client_rt), 0);
    return torc_runtime_free(rt);
}

/* Unpacks the report into the arena. Never returns NULL. */
static const report_t *unpack(const void *bytes, size_t n)
{
    const report_t *r = (const report_t *)torc_protobuf_c_unpack(&xds__data__orca__v3__orca_load_report__descriptor,
                                                                 bytes, n, arena, NULL);
    assert_non_null(r);
    return r;
}

/* Makes an RPC, which must succeed. Returns the report at its end, in the arena; NULL: none. */
static const report_t *work(const char *method, const char *request)
{
    size_t n;
    torc_result *r = torc_unary(ch, method, request, strlen(request), NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    const char *bytes = torc_metadata_find(torc_result_trailers(r), "endpoint-load-metrics-bin", &n);
    const report_t *report = bytes ? unpack(bytes, n) : NULL;
    torc_result_free(r);
    return report;
}

/* Opens a stream of reports with this OrcaLoadReportRequest of n bytes. The caller frees the stream. */
static torc_stream *watch(const void *request, size_t n)
{
    torc_stream *s = torc_stream_open(ch, SERVICE, NULL, NULL);
    assert_int_equal(torc_stream_send(s, request, n, TORC_SEND_LAST, -1), 0);
    return s;
}

/* Waits for the next report of the stream. Returns it, in the arena. */
static const report_t *next(torc_stream *s)
{
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_receive(s, -1, &m), 1);
    return unpack(torc_message_data(m), torc_message_size(m));
}

/* Asserts the status of the stream and its text. Frees the stream. */
static void finish(torc_stream *s, int code, const char *text)
{
    torc_result *r = torc_stream_finish(s);
    assert_int_equal(torc_result_code(r), code);
    assert_string_equal(torc_result_text(r), text);
    torc_result_free(r);
    torc_stream_free(s);
}

/* --- the cases --- */

static void test_interval(void **state)
{
    TC_CASE(OR01);
    (void)state;
    static const struct {
        const char *request;
        size_t n;
        uint64_t ms; /* the interval; 0: the request is malformed */
    } rows[] = {
        {"", 0, LEAST_MS},
        {"\x0a\x00", 2, LEAST_MS},
        {"\x0a\x05\x10\xc0\x96\xb1\x02", 7, LEAST_MS},                          /* 5 ms */
        {"\x0a\x05\x10\x80\x8c\x8d\x9e\x02", 8, 0},                             /* cut short */
        {"\x0a\x02\x08\x3c", 4, 60000},                                         /* 60 s */
        {"\x0a\x08\x08\x01\x10\x80\xca\xb5\xee\x01", 10, 1500},                 /* 1.5 s */
        {"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13, LEAST_MS}, /* -1 s */
        {"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00", 13, 0},        /* malformed */
        {"\x0a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 12, 1000000000},   /* INT64_MAX s is bounded */
        {"\x12\x04"
         "cost\x0a\x02\x08\x3c",
         10, 60000},
        {"\x0a", 1, 0},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++)
        assert_int_equal(tc_orca_interval_ms(tc_slice_of(rows[i].request, rows[i].n), LEAST_MS), rows[i].ms);
    uint64_t since_ns = tc_system_clock.monotonic_ns(NULL);
    torc_stream *s = watch("", 0);
    for (int i = 0; i < 4; i++)
        next(s);
    assert_true(tc_system_clock.monotonic_ns(NULL) - since_ns >= 2 * LEAST_MS * TC_NS_PER_MS);
    torc_stream_free(s);
}

static void test_unchanged(void **state)
{
    TC_CASE(OR02);
    (void)state;
    assert_int_equal(torc_orca_set(orca, TORC_ORCA_CPU, NULL, 0.5), 0);
    assert_int_equal(torc_orca_set(orca, TORC_ORCA_UTILIZATION, "disk", 0.75), 0);
    torc_stream *s = watch("", 0);
    for (int i = 0; i < 3; i++) {
        const report_t *r = next(s);
        assert_true(r->cpu_utilization == 0.5);
        assert_int_equal(r->n_utilization, 1);
        assert_true(r->utilization[0]->value == 0.75);
    }
    assert_int_equal(torc_orca_set(orca, TORC_ORCA_CPU, NULL, 0.25), 0);
    while (next(s)->cpu_utilization != 0.25) /* reports with the old value may still come */
        continue;
    torc_stream_free(s);
}

static void test_merged(void **state)
{
    TC_CASE(OR03);
    (void)state;
    torc_orca_set(orca, TORC_ORCA_CPU, NULL, 0.5);
    torc_orca_set(orca, TORC_ORCA_MEMORY, NULL, 0.125);
    torc_orca_set(orca, TORC_ORCA_UTILIZATION, "disk", 0.75);
    torc_orca_set(orca, TORC_ORCA_UTILIZATION, "net", 1);
    torc_orca_set(orca, TORC_ORCA_RPS, NULL, 1000);
    torc_orca_set(orca, TORC_ORCA_EPS, NULL, 2);
    torc_orca_set(orca, TORC_ORCA_APPLICATION, NULL, 3);
    torc_orca_set(orca, TORC_ORCA_NAMED, "queue", 17);
    const report_t *r = work("a.B/Work", "u");
    assert_true(r->cpu_utilization == 1.5);
    assert_true(r->mem_utilization == 0.125);
    assert_true(r->rps_fractional == 1000 && r->eps == 2 && r->application_utilization == 3);
    assert_int_equal(r->n_request_cost, 1);
    assert_string_equal(r->request_cost[0]->key, "rows");
    assert_true(r->request_cost[0]->value == 1200.5);
    assert_int_equal(r->n_utilization, 2);
    assert_string_equal(r->utilization[0]->key, "disk");
    assert_true(r->utilization[0]->value == 0.25);
    assert_string_equal(r->utilization[1]->key, "net");
    assert_int_equal(r->n_named_metrics, 1);
    assert_true(r->named_metrics[0]->value == 17);
    assert_int_equal(torc_orca_clear(orca, TORC_ORCA_CPU, NULL), 0);
    assert_int_equal(torc_orca_clear(orca, TORC_ORCA_CPU, NULL), TORC_ENOTFOUND);
    assert_true(work("a.B/Work", "c")->cpu_utilization == 0);
}

static void test_nothing_recorded(void **state)
{
    TC_CASE(OR04);
    (void)state;
    torc_orca_set(orca, TORC_ORCA_CPU, NULL, 0.5);
    assert_null(work("a.B/Work", ""));
    assert_null(work("a.B/Bad", ""));
    assert_true(work("a.B/Work", "c")->cpu_utilization == 0.5);
}

static void test_own_trailer(void **state)
{
    (void)state;
    torc_result *r = torc_unary(ch, "a.B/Own", NULL, 0, NULL);
    const torc_metadata *trailers = torc_result_trailers(r);
    const char *name;
    const void *value;
    size_t size, n = 0;
    for (size_t i = 0; torc_metadata_at(trailers, i, &name, &value, &size) == 0; i++) {
        if (strcmp(name, "endpoint-load-metrics-bin") != 0)
            continue;
        assert_memory_equal(value, "own", 3);
        n++;
    }
    assert_int_equal(n, 1);
    torc_result_free(r);
}

static void test_shutdown(void **state)
{
    TC_CASE(OR05);
    (void)state;
    torc_stream *streams[3];
    for (size_t i = 0; i < 2; i++)
        next(streams[i] = watch("", 0));
    streams[2] = torc_stream_open(ch, SERVICE, NULL, NULL);    /* without a request */
    torc_result_free(torc_unary(ch, "a.B/Work", "", 1, NULL)); /* the server has seen streams[2] when this ends */
    assert_int_equal(torc_server_stop(server, -1), 0);         /* returns when all RPCs have ended */
    for (size_t i = 0; i < TC_ARRAY_LEN(streams); i++) {
        const torc_message *m = NULL;
        while (torc_stream_receive(streams[i], -1, &m) == 1)
            continue;
        finish(streams[i], TORC_STATUS_UNAVAILABLE, "the server is being stopped");
    }
}

static void test_requests(void **state)
{
    (void)state;
    static char large[5000];
    finish(watch("\x0a", 1), TORC_STATUS_INTERNAL, "malformed OrcaLoadReportRequest");
    torc_stream *s = torc_stream_open(ch, SERVICE, NULL, NULL);
    finish(s, TORC_STATUS_INTERNAL, "no OrcaLoadReportRequest came");
    s = watch(large, sizeof(large));
    torc_result *r = torc_stream_finish(s);
    assert_int_equal(torc_result_code(r), TORC_STATUS_RESOURCE_EXHAUSTED);
    torc_result_free(r);
    torc_stream_free(s);
}

static void test_many_values(void **state)
{
    (void)state;
    char name[16];
    assert_int_equal(work("a.B/Many", "")->n_named_metrics, 256);
    for (int i = 0; i < 256; i++) {
        snprintf(name, sizeof(name), "v%d", i);
        assert_int_equal(torc_orca_set(orca, TORC_ORCA_NAMED, name, i), 0);
    }
    assert_int_equal(torc_orca_set(orca, TORC_ORCA_NAMED, "more", 1), TORC_ELIMIT);
    assert_int_equal(torc_orca_clear(orca, TORC_ORCA_NAMED, "v0"), 0);
    assert_int_equal(torc_orca_set(orca, TORC_ORCA_NAMED, "more", 1), 0);
}

static void test_without_the_service(void **state)
{
    (void)state;
    torc_orca_set(orca, TORC_ORCA_CPU, NULL, 0.5);
    assert_true(work("a.B/Work", "c")->cpu_utilization == 0.5);
    torc_stream *s = torc_stream_open(ch, SERVICE, NULL, NULL);
    int rc = torc_stream_send(s, "", 0, TORC_SEND_LAST, -1); /* the server may answer before the request comes */
    assert_true(rc == 0 || rc == TORC_ECLOSED);
    torc_result *r = torc_stream_finish(s);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNIMPLEMENTED);
    torc_result_free(r);
    torc_stream_free(s);
}

static void test_arguments(void **state)
{
    (void)state;
    torc_error *error = NULL;
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    torc_server *other = torc_server_new(&o, NULL);
    assert_null(torc_orca_new(NULL, 0, NULL));
    assert_null(torc_orca_new(other, -2, NULL));
    torc_orca *first = torc_orca_new(other, 0, NULL);
    assert_non_null(first);
    assert_null(torc_orca_new(other, -1, &error));
    assert_int_equal(torc_error_code(error), TORC_EEXIST);
    torc_error_clear(&error);
    assert_null(torc_orca_new(other, 0, &error));
    assert_int_equal(torc_error_code(error), TORC_EEXIST);
    torc_error_clear(&error);
    assert_null(torc_orca_new(server, -1, &error)); /* the server was started */
    assert_int_equal(torc_error_code(error), TORC_ESTATE);
    torc_error_clear(&error);
    /* A torc_orca_new that fails does not leave the service in the server. */
    torc_server *third = torc_server_new(&o, NULL);
    torc_orca *values = torc_orca_new(third, -1, NULL);
    assert_null(torc_orca_new(third, 0, NULL));
    const struct torc_handler own = {TORC_SIZE(torc_handler), .unary = on_work};
    assert_int_equal(torc_server_add_method(third, SERVICE, &own, NULL), 0);
    torc_orca_free(values);
    torc_server_free(third);
    torc_error_free(error);
    torc_orca_free(first); /* before the server */
    torc_orca_free(NULL);
    torc_server_free(other);
    assert_int_equal(torc_orca_set(NULL, TORC_ORCA_CPU, NULL, 1), TORC_EINVAL);
    assert_int_equal(torc_orca_set(orca, TORC_ORCA_REQUEST_COST, "x", 1), TORC_EINVAL);
    assert_int_equal(torc_orca_clear(orca, TORC_ORCA_NAMED, NULL), TORC_EINVAL);
    assert_int_equal(torc_orca_clear(NULL, TORC_ORCA_CPU, NULL), TORC_EINVAL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_interval),
        TEST(test_unchanged),
        TEST(test_merged),
        TEST(test_nothing_recorded),
        TEST(test_own_trailer),
        TEST(test_shutdown),
        TEST(test_requests),
        TEST(test_many_values),
        cmocka_unit_test_setup_teardown(test_without_the_service, setup_without_service, teardown),
        TEST(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
