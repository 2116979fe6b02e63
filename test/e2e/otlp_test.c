/* Runs examples/otlp (the program interop_otlp) against a server of this test, which unpacks the span and the metric
 * with generated code. If the server rejects spans, or nobody listens, the program fails and prints the reason.
 *
 * The program is a child process that reaches the server over a real socket. Each test has a server (kits/backends.h),
 * which test_no_receiver stops. The server's thread calls on_trace and on_metrics, which store the unpacked requests in
 * `received`, in an arena that teardown frees after the server. */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <torc/protobuf_c.h>

#include "otlp.pb-c.h"
#include "proto/pack.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

extern char **environ;

/* The server's thread and the test share this. The test reads the requests when the program has ended. */
static struct {
    pthread_mutex_t mutex;                        /* guards the fields below */
    torc_arena *arena;                            /* has the requests below */
    const Otlp__ExportTraceServiceRequest *trace; /* the last one; NULL: none, or it was malformed */
    const Otlp__ExportMetricsServiceRequest *metrics;
    int64_t rejects; /* the number of spans that the server says it rejects; set by the test */
} received = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void reply(struct tc_server_call *call, const ProtobufCMessage *message)
{
    struct tc_buf bytes = {0};
    tc_pack(message, &bytes);
    tc_server_call_reply(call, tc_buf_slice(&bytes));
    tc_buf_fini(&bytes);
}

/* Returns the request in the arena, or NULL if it is malformed. With the mutex held. `request` is borrowed. */
static const ProtobufCMessage *unpack(const ProtobufCMessageDescriptor *type, struct tc_rstr *request)
{
    struct tc_slice bytes = tc_rstr_slice(request);
    return torc_protobuf_c_unpack(type, bytes.data, bytes.len, received.arena, NULL);
}

static void on_trace(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    (void)arg;
    Otlp__ExportTracePartialSuccess partial = OTLP__EXPORT_TRACE_PARTIAL_SUCCESS__INIT;
    Otlp__ExportTraceServiceResponse response = OTLP__EXPORT_TRACE_SERVICE_RESPONSE__INIT;
    pthread_mutex_lock(&received.mutex);
    received.trace = (const void *)unpack(&otlp__export_trace_service_request__descriptor, request);
    partial.rejected_spans = received.rejects;
    pthread_mutex_unlock(&received.mutex);
    partial.error_message = (char *)"too many";
    response.partial_success = &partial;
    reply(call, &response.base);
}

static void on_metrics(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    (void)arg;
    Otlp__ExportMetricsServiceResponse response = OTLP__EXPORT_METRICS_SERVICE_RESPONSE__INIT;
    pthread_mutex_lock(&received.mutex);
    received.metrics = (const void *)unpack(&otlp__export_metrics_service_request__descriptor, request);
    pthread_mutex_unlock(&received.mutex);
    reply(call, &response.base);
}

static void add(struct tc_server *server, void *arg)
{
    (void)arg;
    tc_server_add_unary(server, "/opentelemetry.proto.collector.trace.v1.TraceService/Export", on_trace, NULL);
    tc_server_add_unary(server, "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", on_metrics, NULL);
}

/* Runs the program to its end. Returns its exit status, and in `said` what it wrote to standard error, 1,023 bytes at
 * most. */
static int run(const char *target, char said[1024])
{
    char program[4096];
    char *argv[] = {program, (char *)(uintptr_t)target, NULL};
    posix_spawn_file_actions_t actions;
    FILE *error = tmpfile();
    pid_t pid;
    int status;
    snprintf(program, sizeof(program), "%s/interop/interop_otlp", getenv("TORC_BINARY_DIR"));
    assert_non_null(error);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(error), STDERR_FILENO);
    assert_int_equal(posix_spawn(&pid, program, &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    rewind(error);
    said[fread(said, 1, 1023, error)] = '\0';
    fclose(error);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int setup(void **state)
{
    struct kit_backends *kit = *state = kit_backends_new(1, NULL);
    received.arena = torc_arena_new(0);
    received.trace = NULL;
    received.metrics = NULL;
    received.rejects = 0;
    kit_backends_do(kit, add, 0, NULL);
    return 0;
}

static int teardown(void **state)
{
    kit_backends_free(*state);
    torc_arena_free(received.arena);
    return 0;
}

static void is_example(const Otlp__Resource *resource)
{
    assert_int_equal(resource->n_attributes, 1);
    assert_string_equal(resource->attributes[0]->key, "service.name");
    assert_string_equal(resource->attributes[0]->value->string_value, "example");
}

static void test_exports(void **state)
{
    char said[1024];
    int status = run(kit_backends_target(*state), said);
    pthread_mutex_lock(&received.mutex);
    assert_string_equal(said, "");
    assert_int_equal(status, 0);
    assert_non_null(received.trace);
    assert_int_equal(received.trace->n_resource_spans, 1);
    is_example(received.trace->resource_spans[0]->resource);
    const Otlp__Span *span = received.trace->resource_spans[0]->scope_spans[0]->spans[0];
    assert_int_equal(span->trace_id.len, 16);
    assert_int_equal(span->span_id.len, 8);
    assert_string_equal(span->name, "work");
    assert_true(span->start_time_unix_nano > 0 && span->start_time_unix_nano <= span->end_time_unix_nano);

    assert_non_null(received.metrics);
    is_example(received.metrics->resource_metrics[0]->resource);
    const Otlp__Metric *metric = received.metrics->resource_metrics[0]->scope_metrics[0]->metrics[0];
    assert_string_equal(metric->name, "jobs");
    assert_int_equal(metric->data_case, OTLP__METRIC__DATA_SUM);
    assert_true(metric->sum->is_monotonic);
    assert_int_equal(metric->sum->data_points[0]->as_int, 1);
    pthread_mutex_unlock(&received.mutex);
}

static void test_partial_success(void **state)
{
    char said[1024];
    pthread_mutex_lock(&received.mutex);
    received.rejects = 1;
    pthread_mutex_unlock(&received.mutex);
    assert_int_equal(run(kit_backends_target(*state), said), 1);
    assert_non_null(strstr(said, "span: too many"));
    assert_null(strstr(said, "metric:"));
}

static void test_no_receiver(void **state)
{
    char said[1024];
    kit_backends_stop(*state, 0);
    assert_int_equal(run(kit_backends_target(*state), said), 1);
    assert_non_null(strstr(said, "span: "));
    assert_non_null(strstr(said, "metric: "));
    assert_non_null(strstr(said, "Connection refused"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_exports, setup, teardown),
        cmocka_unit_test_setup_teardown(test_partial_success, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_receiver, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
