/* Failing allocations. The program is linked so that malloc, calloc and realloc of Torc's code pass here. Allocations
 * above refuse_above bytes are refused. Only the test's thread sets its refuse_above: the other threads, such as the
 * servers', get all memory that they ask for.
 *
 * Without memory for a message its RPC fails, without memory for a response its ADS stream: the client goes on. Without
 * memory for Torc's own state the process aborts, unless the application's handler ends it first. the_end_is_said does
 * this in children of the test. One child runs the command, with a limit of its address space (RLIMIT_AS) instead of
 * refuse_above.
 *
 * The tests of a client have real servers in this process. setup makes the client's runtime `rt`, which the test's
 * thread drives; teardown frees it. The other tests have no runtime: inflated_message and decoded_message call a
 * decoder. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/kits/mesh.h"
#include "support/sanitizer.h"

#include "base/mem.h"
#include "http2/framing.h"
#include "pb/google/protobuf/any.pb-c.h"
#include "proto/unpack.h"

enum { MIB = 1 << 20, LARGE = 8 * MIB };

/* Sanitizers take more address space than the test allows. */
#if SANITIZER_ADDRESS || SANITIZER_THREAD
#define BOUNDED_SPACE 0
#else
#define BOUNDED_SPACE 1
#endif

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *ptr, size_t size);

static _Thread_local size_t refuse_above; /* bytes; 0: no allocation is refused */
static _Thread_local unsigned refused;    /* how many allocations were refused */

static bool refuse(size_t size)
{
    if (!refuse_above || size <= refuse_above)
        return false;
    refused++;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return refuse(size) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return refuse(n * size) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *ptr, size_t size)
{
    return refuse(size) ? NULL : __real_realloc(ptr, size);
}

static torc_runtime *rt; /* driven by the test's thread */

static int setup(void **state)
{
    (void)state;
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    rt = torc_runtime_new(&o, NULL);
    refused = 0;
    return rt ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    refuse_above = 0;
    return torc_runtime_free(rt);
}

/* --- messages --- */

static void answer_large(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    (void)arg, (void)request;
    char *bytes = tc_calloc(1, LARGE);
    tc_server_call_reply(call, tc_slice_of(bytes, LARGE));
    tc_free(bytes);
}

static void add_large(struct tc_server *server, void *arg)
{
    (void)arg;
    tc_server_add_unary(server, "/test.Service/Large", answer_large, NULL);
}

/* Makes a call. Asserts its status code, and that its status text contains `part`. */
static void call(torc_channel *ch, const char *method, int code, const char *part)
{
    torc_result *r;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 60000,
                                  .max_receive_message_bytes = LARGE};
    r = torc_unary(ch, method, "x", 1, &o);
    if (torc_result_code(r) != code || !strstr(torc_result_text(r), part))
        fail_msg("%s: %s", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
    torc_result_free(r);
}

/* The RPC whose message cannot be allocated fails; other RPCs on the same connection are not affected. */
static void large_message(void **state)
{
    (void)state;
    struct kit_backends *kit = kit_backends_new(1, NULL);
    kit_backends_do(kit, add_large, 0, NULL);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), NULL, NULL);
    call(ch, "/test.Service/Large", TORC_STATUS_OK, "");
    refuse_above = MIB;
    call(ch, "/test.Service/Large", TORC_STATUS_RESOURCE_EXHAUSTED,
         "no memory for a received message of 8388608 bytes");
    call(ch, "/test.Service/Echo", TORC_STATUS_OK, "");
    assert_true(refused > 0);
    refuse_above = 0;
    call(ch, "/test.Service/Large", TORC_STATUS_OK, "");
    assert_int_equal(kit_backends_counts(kit, 0).connections, 1);
    torc_channel_free(ch);
    kit_backends_free(kit);
}

/* On a stream that the application does not read, a message that cannot be stored fails that stream alone. */
static void unread_message(void **state)
{
    (void)state;
    struct kit_backends *kit = kit_backends_new(1, NULL);
    torc_result *r;
    kit_backends_do(kit, add_large, 0, NULL);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), NULL, NULL);
    call(ch, "/test.Service/Echo", TORC_STATUS_OK, "");
    torc_stream *large = torc_stream_open(ch, "/test.Service/Large", NULL, NULL);
    assert_non_null(large);
    assert_int_equal(torc_stream_send(large, "x", 1, TORC_SEND_LAST, -1), 0);
    refuse_above = 16384;
    while (!refused)
        torc_runtime_poll(rt, 100);
    refuse_above = 0;
    r = torc_stream_finish(large);
    if (torc_result_code(r) != TORC_STATUS_RESOURCE_EXHAUSTED ||
        !strstr(torc_result_text(r), "bytes that wait to be read"))
        fail_msg("%s: %s", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
    torc_result_free(r);
    torc_stream_free(large);
    call(ch, "/test.Service/Echo", TORC_STATUS_OK, "");
    assert_int_equal(kit_backends_counts(kit, 0).connections, 1);
    torc_channel_free(ch);
    kit_backends_free(kit);
}

static void inflated_message(void **state)
{
    (void)state;
    char *zeros = tc_calloc(1, LARGE);
    struct tc_rstr *packed = tc_h2_gzip(tc_slice_of(zeros, LARGE)), *plain = NULL;
    assert_non_null(packed);
    refuse_above = MIB;
    assert_int_equal(tc_h2_gunzip(NULL, tc_rstr_slice(packed), LARGE, &plain), TORC_EAGAIN);
    assert_null(plain);
    refuse_above = 1; /* refuses zlib's allocations too */
    assert_int_equal(tc_h2_gunzip(NULL, tc_rstr_slice(packed), LARGE, &plain), TORC_EAGAIN);
    refuse_above = 0;
    assert_int_equal(tc_h2_gunzip(NULL, tc_rstr_slice(packed), LARGE, &plain), 0);
    assert_int_equal(plain->len, LARGE);
    tc_rstr_unref(plain);
    tc_rstr_unref(packed);
    tc_free(zeros);
}

/* --- resources --- */

/* Memory that runs out while a message is decoded is a validation error. */
static void decoded_message(void **state)
{
    (void)state;
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    const struct tc_scan_options options = {.max_string_bytes = LARGE};
    struct tc_buf bytes = {0};
    struct tc_validation_errors faults = {0};
    struct tc_arena arena;
    ProtobufCMessage *m = NULL;
    any.value.len = 2 * MIB;
    any.value.data = tc_calloc(1, any.value.len);
    bytes.len = protobuf_c_message_pack(
        &any.base, (uint8_t *)tc_buf_reserve(&bytes, protobuf_c_message_get_packed_size(&any.base)));
    tc_arena_init(&arena, 0, tc_unpack_budget(bytes.len));
    refuse_above = MIB;
    assert_int_equal(tc_unpack(any.base.descriptor, tc_buf_slice(&bytes), &options, &arena, &m, &faults), TORC_ELIMIT);
    assert_non_null(strstr(tc_validation_text(&faults), "of memory, or memory ran out"));
    tc_arena_fini(&arena);
    /* An unknown field at the end: decoding needs a copy without that field. */
    tc_buf_append(&bytes, "\xf8\x07\x01", 3);
    tc_validation_fini(&faults);
    faults = (struct tc_validation_errors){0};
    tc_arena_init(&arena, 0, tc_unpack_budget(bytes.len));
    assert_int_equal(tc_unpack(any.base.descriptor, tc_buf_slice(&bytes), &options, &arena, &m, &faults), TORC_ELIMIT);
    assert_non_null(strstr(tc_validation_text(&faults), "no memory to strip unknown fields"));
    refuse_above = 0;
    assert_int_equal(tc_unpack(any.base.descriptor, tc_buf_slice(&bytes), &options, &arena, &m, &faults), 0);
    tc_validation_fini(&faults);
    tc_arena_fini(&arena);
    tc_buf_fini(&bytes);
    tc_free(any.value.data);
}

/* A response that cannot be allocated ends the ADS stream, and resources in use stay. Once there is memory, the next
 * stream brings the response. */
static void large_response(void **state)
{
    (void)state;
    struct kit_mesh *k = kit_mesh_new(2);
    struct tc_buf large = {0};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .xds_bootstrap_json = kit_mesh_bootstrap(k), .backoff_initial_ms = 50,
                                     .backoff_max_ms = 100};
    kit_mesh_put_listener(k, "svc", "c", NULL);
    kit_mesh_put_cluster(k, "c", "lb_policy: ROUND_ROBIN");
    kit_mesh_put_endpoints(k, "c", "0/a: 0", NULL);
    torc_channel *ch = torc_channel_new(rt, "xds:///svc", &o, NULL);
    assert_non_null(ch);
    call(ch, "/test.Service/Echo", TORC_STATUS_OK, "");
    /* Backend 1 instead of 0, with metadata that makes the response large. */
    for (int i = 0; i < 40000; i++)
        tc_buf_append_str(&large, "0123456789");
    kit_mesh_put(
        k,
        "resources:\n- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
        "  cluster_name: c\n  endpoints:\n  - locality: {sub_zone: z}\n    load_balancing_weight: 1\n"
        "    lb_endpoints:\n    - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}\n"
        "      metadata: {filter_metadata: {note: {text: %s}}}\n",
        strrchr(kit_mesh_address(k, 1), ':') + 1, tc_buf_cstr(&large));
    refuse_above = 128 * 1024;
    while (refused < 3) { /* the next streams fail too */
        torc_runtime_poll(rt, 100);
        call(ch, "/test.Service/Echo", TORC_STATUS_OK, "");
    }
    assert_int_equal(kit_mesh_handled(k, 1), 0);
    refuse_above = 0;
    while (!kit_mesh_handled(k, 1))
        call(ch, "/test.Service/Echo", TORC_STATUS_OK, "");
    torc_channel_free(ch);
    tc_buf_fini(&large);
    kit_mesh_free(k);
}

/* --- the end of the process --- */

static void on_no_memory(size_t size)
{
    char text[] = "none of 0\n";
    text[8] = (char)('0' + size % 10);
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        _exit(8);
    _exit(7);
}

/* Runs fn in a child. Returns the status that waitpid gave, and in `text` what the child wrote to standard error. */
static int in_child(void (*fn)(void), char *text, size_t size)
{
    int out[2], status = 0;
    assert_int_equal(pipe(out), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        signal(SIGABRT, SIG_DFL); /* the child must die of SIGABRT, whatever the test inherited */
        dup2(out[1], STDERR_FILENO);
        fn();
        _exit(0);
    }
    close(out[1]);
    size_t len = 0;
    for (ssize_t n; (n = read(out[0], text + len, size - 1 - len)) > 0;)
        len += (size_t)n;
    text[len] = '\0';
    close(out[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void ask_small(void)
{
    refuse_above = 1;
    tc_free(tc_malloc(13));
}

static void ask_small_handled(void)
{
    torc_set_out_of_memory_handler(on_no_memory);
    ask_small();
}

#if BOUNDED_SPACE
/* Replaces the calling process by the command, with less address space than its ring needs. */
static void ask_for_ring(void)
{
    char *torc = tc_asprintf("%s/torc", getenv("TORC_BINARY_DIR"));
    setrlimit(RLIMIT_AS, &(struct rlimit){150u << 20, 150u << 20});
    execl(torc, torc, "ring", "-e", "a", "--min", "8388608", "--max", "8388608", "--cap", "8388608", (char *)NULL);
    _exit(9);
}
#endif

/* Without memory for its own state the process aborts, and says how many bytes could not be allocated. A handler of the
 * application is called first, with that number. */
static void the_end_is_said(void **state)
{
    (void)state;
    char text[512];
    int status = in_child(ask_small, text, sizeof(text));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_string_equal(text, "torc: out of memory (13 bytes)\n");
    status = in_child(ask_small_handled, text, sizeof(text));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_string_equal(text, "none of 3\n");
#if BOUNDED_SPACE
    assert_non_null(getenv("TORC_BINARY_DIR"));
    status = in_child(ask_for_ring, text, sizeof(text));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    size_t bytes = 0;
    assert_int_equal(sscanf(text, "torc: out of memory (%zu bytes)\n", &bytes), 1);
    assert_true(bytes > MIB);
#endif
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(large_message),
        T(unread_message),
        cmocka_unit_test(inflated_message),
        cmocka_unit_test(decoded_message),
        T(large_response),
        cmocka_unit_test(the_end_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
