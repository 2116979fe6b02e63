/* A torc_server_call: references, the arena, metadata that is too large to be sent, the trailers of a reply that could
 * not be packed, messages that wait for room, and compression. e2e/server_test.c has more of what calls do.
 *
 * Each test has a server and a channel on loopback, each with a runtime that has a thread. The handler of "a.B/Held"
 * gives its call to the test, which uses and finishes the call. The handler of "a.B/Pooled" runs on a pool. The other
 * handlers, and the events of calls, run on the thread of the server's runtime.
 *
 * A function that takes the runtime's lock must hold a reference to its call while it waits for the lock, since another
 * thread may finish the call meanwhile. test_functions_hold takes the lock, calls the functions of `rows` on a second
 * thread, and counts the references. */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <torc/protobuf_c.h>
#include <torc/torc.h>

#include "api/server/call_object.h"
#include "io/loop.h"
#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

static torc_runtime *rt, *client_rt;
static torc_server *server;
static torc_pool *pool;
static torc_channel *ch;

/* The call that on_hand_over got, which is the test's until the test finishes it; and the step that a handler or an
 * event has reached. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    torc_server_call *call;
    int step;
} shared = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static void step_to(int step)
{
    pthread_mutex_lock(&shared.mutex);
    shared.step = step;
    pthread_cond_broadcast(&shared.cond);
    pthread_mutex_unlock(&shared.mutex);
}

static void wait_for_step(int step)
{
    pthread_mutex_lock(&shared.mutex);
    while (shared.step < step)
        pthread_cond_wait(&shared.cond, &shared.mutex);
    pthread_mutex_unlock(&shared.mutex);
}

static void on_hand_over(torc_server_call *call, void *arg)
{
    (void)arg;
    shared.call = call;
    step_to(1);
}

/* --- a handler of a pool --- */

static void on_cancel(torc_server_call *call, void *arg)
{
    (void)arg;
    CHECK(torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL) == TORC_ECANCELED);
    step_to(2);
}

/* Uses the call after on_cancel has finished it on the loop's thread, and the loop has dropped its reference. */
static void on_pooled(torc_server_call *call, void *arg)
{
    static const struct torc_server_call_events events = {TORC_SIZE(torc_server_call_events), .on_cancel = on_cancel};
    const torc_message *m;
    (void)arg;
    CHECK(torc_server_call_set_events(call, &events, NULL) == 0);
    step_to(1);
    wait_for_step(2);
    /* Waits for a turn of the loop that begins after the event. */
    CHECK(torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), NULL, NULL) == 0);
    CHECK(torc_server_call_cancelled(call) == 1);
    CHECK(torc_server_call_want(call, 1) == TORC_ESTATE);
    CHECK(torc_server_call_receive(call, -1, &m) == TORC_ESTATE);
    CHECK(torc_server_call_send(call, "x", 1, 0, -1) == TORC_ESTATE);
    CHECK(torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL) == TORC_ESTATE);
    CHECK(strcmp(torc_server_call_method(call), "/a.B/Pooled") == 0);
    step_to(3);
}

static void test_handler_of_a_pool(void **state)
{
    (void)state;
    torc_stream *s = torc_stream_open(ch, "a.B/Pooled", NULL, NULL);
    wait_for_step(1);
    torc_stream_free(s);
    wait_for_step(3);
}

/* --- functions --- */

static int do_want(torc_server_call *c)
{
    return torc_server_call_want(c, 1);
}

static int do_cancelled(torc_server_call *c)
{
    return torc_server_call_cancelled(c);
}

static int do_set_events(torc_server_call *c)
{
    return torc_server_call_set_events(
        c, &(struct torc_server_call_events){TORC_SIZE(torc_server_call_events), .on_cancel = on_cancel}, NULL);
}

static int do_headers(torc_server_call *c)
{
    return torc_server_call_send_headers(c, NULL);
}

static int do_receive(torc_server_call *c)
{
    const torc_message *m;
    return torc_server_call_receive(c, 0, &m);
}

static int do_send(torc_server_call *c)
{
    return torc_server_call_send(c, "x", 1, 0, 0);
}

static int do_next(torc_server_call *c)
{
    static const struct torc_protobuf_c_method method = {.path = "/a.B/Held"};
    const ProtobufCMessage *m;
    return torc_protobuf_c_next(c, &method, 0, &m);
}

static int do_finish(torc_server_call *c)
{
    return torc_server_call_finish(c, TORC_STATUS_OK, NULL, NULL);
}

static const struct row {
    int (*fn)(torc_server_call *call);
    int open, finished; /* what `fn` returns while the RPC runs, and after the call was finished and the RPC is over */
} rows[] = {
    {do_want, 0, TORC_ESTATE},
    {do_cancelled, 0, 1},
    {do_set_events, TORC_ESTATE, TORC_ESTATE}, /* do_want has asked for a message */
    {do_headers, 0, TORC_ESTATE},
    {do_receive, TORC_EAGAIN, TORC_ESTATE},
    {do_next, TORC_EAGAIN, TORC_ESTATE},
    {do_send, 0, TORC_ESTATE},
    {do_finish, 0, TORC_ESTATE},
};

struct caller {
    const struct row *row;
    int rc;
};

static void *call_main(void *arg)
{
    struct caller *c = arg;
    c->rc = c->row->fn(shared.call);
    return NULL;
}

static unsigned references(void)
{
    return atomic_load(&shared.call->ref.n);
}

/* Returns once the loop has done what the functions on calls have posted so far. */
static void loop_settles(void)
{
    char *bound = NULL;
    assert_int_equal(torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, NULL), 0);
    torc_free(bound);
}

/* Calls the row's function on another thread while this one has the runtime's lock. Asserts that the function holds one
 * reference meanwhile, and returns rc. */
static void expect_held(const struct row *row, int rc)
{
    struct caller c = {.row = row};
    pthread_t thread;
    loop_settles();
    tc_runtime_lock(rt);
    unsigned before = references();
    assert_int_equal(pthread_create(&thread, NULL, call_main, &c), 0);
    uint64_t until_ns = tc_loop_clock_ns(tc_runtime_loop(rt)) + 60 * TC_NS_PER_S;
    while (references() == before && tc_loop_clock_ns(tc_runtime_loop(rt)) < until_ns)
        sched_yield();
    unsigned held = references() - before;
    tc_runtime_unlock(rt);
    pthread_join(thread, NULL);
    if (held != 1)
        fail_msg("function %zu holds %u references while it waits for the lock", (size_t)(row - rows), held);
    assert_int_equal(c.rc, rc);
}

static void test_functions_hold(void **state)
{
    (void)state;
    torc_stream *s = torc_stream_open(ch, "a.B/Held", NULL, NULL);
    wait_for_step(1);
    tc_api_call_hold(shared.call); /* the test's reference keeps the call after do_finish */
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++)
        expect_held(&rows[i], rows[i].open);
    while (torc_server_call_cancelled(shared.call) == 0)
        sched_yield();
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++)
        expect_held(&rows[i], rows[i].finished);
    torc_result *r = torc_stream_finish(s);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    torc_stream_free(s);
    tc_api_call_drop(shared.call);
}

/* --- the arena --- */

/* Headers and trailers are not copied into the call's arena: any thread may send them, but the arena is for one thread
 * at a time. */
static void test_metadata_is_not_in_the_arena(void **state)
{
    (void)state;
    torc_metadata *m = torc_metadata_new();
    for (int i = 0; i < 50; i++)
        assert_int_equal(torc_metadata_add_string(m, "key", "value"), 0);
    torc_stream *s = torc_stream_open(ch, "a.B/Held", NULL, NULL);
    wait_for_step(1);
    tc_api_call_hold(shared.call);
    torc_arena *arena = torc_server_call_arena(shared.call);
    char *at[4];
    at[0] = torc_arena_alloc(arena, 16);
    at[1] = torc_arena_alloc(arena, 16);
    assert_int_equal(torc_server_call_send_headers(shared.call, m), 0);
    at[2] = torc_arena_alloc(arena, 16);
    assert_int_equal(torc_server_call_finish(shared.call, TORC_STATUS_OK, NULL, m), 0);
    at[3] = torc_arena_alloc(arena, 16);
    assert_int_equal(at[2] - at[1], at[1] - at[0]);
    assert_int_equal(at[3] - at[2], at[1] - at[0]);
    torc_result *r = torc_stream_finish(s);
    assert_int_equal(torc_metadata_count(torc_result_headers(r)), 50);
    assert_int_equal(torc_metadata_count(torc_result_trailers(r)), 50);
    torc_result_free(r);
    torc_stream_free(s);
    torc_metadata_free(m);
    tc_api_call_drop(shared.call);
}

/* The application may reset the call's arena: the call's method, metadata and peer stay. */
static void test_a_reset_of_the_arena(void **state)
{
    (void)state;
    torc_metadata *m = torc_metadata_new();
    assert_int_equal(torc_metadata_add_string(m, "key", "value"), 0);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .metadata = m};
    torc_stream *s = torc_stream_open(ch, "a.B/Held", &o, NULL);
    torc_metadata_free(m);
    wait_for_step(1);
    torc_arena *arena = torc_server_call_arena(shared.call);
    torc_arena_reset(arena);
    memset(torc_arena_alloc(arena, 2048), 'x', 2048);
    assert_string_equal(torc_server_call_method(shared.call), "/a.B/Held");
    assert_string_equal(torc_metadata_find(torc_server_call_metadata(shared.call), "key", NULL), "value");
    assert_int_equal(strncmp(torc_server_call_peer(shared.call), "127.0.0.1:", 10), 0);
    assert_int_equal(torc_server_call_finish(shared.call, TORC_STATUS_OK, NULL, NULL), 0);
    torc_result_free(torc_stream_finish(s));
    torc_stream_free(s);
}

/* Metadata that is too large to be sent ends the RPC. */
static void test_large_metadata(void **state)
{
    (void)state;
    static char value[2 << 20];
    memset(value, 'v', sizeof(value));
    torc_metadata *m = torc_metadata_new();
    assert_int_equal(torc_metadata_add(m, "k", value, sizeof(value)), 0);
    torc_stream *s = torc_stream_open(ch, "a.B/Held", NULL, NULL);
    wait_for_step(1);
    assert_int_equal(torc_server_call_send_headers(shared.call, m), 0);
    while (torc_server_call_cancelled(shared.call) == 0)
        sched_yield();
    assert_int_equal(torc_server_call_finish(shared.call, TORC_STATUS_OK, NULL, NULL), TORC_ECANCELED);
    torc_result *r = torc_stream_finish(s);
    assert_int_equal(torc_result_code(r), TORC_STATUS_INTERNAL);
    torc_result_free(r);
    torc_stream_free(s);
    torc_metadata_free(m);
}

/* If the reply's message could not be packed, the server sends INTERNAL instead of the application's status, and leaves
 * out the application's trailers, which would describe that status. */
static void test_trailers_of_a_spoilt_reply(void **state)
{
    (void)state;
    torc_metadata *m = torc_metadata_new();
    assert_int_equal(torc_metadata_add(m, "grpc-status-details-bin", "\x08\x09", 2), 0);
    torc_stream *s = torc_stream_open(ch, "a.B/Held", NULL, NULL);
    wait_for_step(1);
    tc_api_call_spoil(shared.call, "field `a`: not UTF-8");
    assert_int_equal(torc_server_call_finish(shared.call, TORC_STATUS_FAILED_PRECONDITION, "no", m), 0);
    torc_result *r = torc_stream_finish(s);
    assert_int_equal(torc_result_code(r), TORC_STATUS_INTERNAL);
    assert_string_equal(torc_error_text(torc_result_error(r)), "field `a`: not UTF-8");
    assert_null(torc_metadata_find(torc_result_trailers(r), "grpc-status-details-bin", NULL));
    torc_result_free(r);
    torc_stream_free(s);
    torc_metadata_free(m);
}

/* --- messages that wait --- */

/* A client that does not read makes a sender of empty messages wait, too, since they take memory. */
static void test_empty_messages(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    torc_stream *s = torc_stream_open(ch, "a.B/Held", NULL, NULL);
    wait_for_step(1);
    int sent = 0, rc = 0;
    while (sent < MANY && (rc = torc_server_call_send(shared.call, NULL, 0, 0, 20)) == 0)
        sent++;
    assert_int_equal(rc, TORC_ETIMEDOUT);
    assert_in_range(sent, 1024, 20000); /* each takes 5 bytes of the client's window, or 64 of the send buffer */
    assert_int_equal(torc_server_call_finish(shared.call, TORC_STATUS_OK, NULL, NULL), 0);
    for (; sent; sent--) {
        const torc_message *m = NULL;
        assert_int_equal(torc_stream_receive(s, -1, &m), 1);
        assert_int_equal(torc_message_size(m), 0);
    }
    torc_result *r = torc_stream_finish(s);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    torc_stream_free(s);
}

/* --- room that came early, compression --- */

/* Answers "1" or "0": whether the request came compressed. */
static void on_ask_compressed(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)arg;
    CHECK(torc_server_call_request(call) == request);
    const char *text = torc_server_call_printf(call, "%d", torc_message_compressed(request));
    torc_server_call_reply(call, text, strlen(text));
}

static void on_writable(torc_server_call *call, void *arg)
{
    (void)call, (void)arg;
    step_to(2);
}

/* on_writable is called although the room came before torc_server_call_set_events. */
static void test_room_is_told_late(void **state)
{
    (void)state;
    static char block[30000];
    const struct torc_server_call_events events = {TORC_SIZE(torc_server_call_events), .on_writable = on_writable};
    const torc_message *m;
    torc_stream *s = torc_stream_open(ch, "a.B/Held", NULL, NULL);
    wait_for_step(1);
    int sent = 0;
    while (torc_server_call_send(shared.call, block, sizeof(block), 0, 0) == 0)
        sent++;
    for (; sent; sent--)
        assert_int_equal(torc_stream_receive(s, -1, &m), 1);
    for (size_t left = 1; left; sched_yield()) {
        tc_runtime_lock(rt);
        left = shared.call->unwritten.n;
        tc_runtime_unlock(rt);
    }
    assert_int_equal(torc_server_call_set_events(shared.call, &events, NULL), 0);
    wait_for_step(2);
    torc_server_call_finish(shared.call, TORC_STATUS_OK, NULL, NULL);
    torc_stream_free(s);
}

static void test_compressed_requests(void **state)
{
    (void)state;
    static const char zeros[5000];
    for (int gzip = 0; gzip <= 1; gzip++) {
        struct torc_call_options options = {TORC_SIZE(torc_call_options), .gzip = gzip ? TORC_ON : TORC_OFF};
        torc_result *r = torc_unary(ch, "a.B/Compressed", zeros, sizeof(zeros), &options);
        const torc_message *answer = torc_result_response(r);
        assert_int_equal(torc_message_size(answer), 1);
        assert_int_equal(*(const char *)torc_message_data(answer), '0' + gzip);
        assert_int_equal(torc_message_compressed(answer), 0); /* the server's option gzip is off */
        torc_result_free(r);
    }
    torc_stream *s = torc_stream_open(ch, "a.B/Held", NULL, NULL);
    wait_for_step(1);
    assert_null(torc_server_call_request(shared.call));
    assert_null(torc_server_call_request(NULL));
    assert_int_equal(torc_message_compressed(NULL), TORC_EINVAL);
    assert_int_equal(torc_server_call_finish(shared.call, TORC_STATUS_OK, NULL, NULL), 0);
    torc_result_free(torc_stream_finish(s));
    torc_stream_free(s);
}

/* The flags of each message decide whether a client's stream sends the message compressed. Without flags the option
 * gzip decides. */
static void test_compression_by_message(void **state)
{
    (void)state;
    static const char zeros[5000];
    static const struct {
        unsigned flags;
        int compressed;
    } messages[] = {{0, 1}, {TORC_SEND_PLAIN, 0}, {TORC_SEND_COMPRESS, 1}, {TORC_SEND_PLAIN | TORC_SEND_LAST, 0}};
    struct torc_call_options options = {TORC_SIZE(torc_call_options), .gzip = TORC_ON};
    torc_stream *s = torc_stream_open(ch, "a.B/Held", &options, NULL);
    wait_for_step(1);
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        const torc_message *m = NULL;
        assert_int_equal(torc_stream_send(s, zeros, sizeof(zeros), messages[i].flags, -1), 0);
        assert_int_equal(torc_server_call_receive(shared.call, -1, &m), 1);
        assert_int_equal(torc_message_size(m), sizeof(zeros));
        assert_int_equal(torc_message_compressed(m), messages[i].compressed);
    }
    assert_int_equal(torc_server_call_finish(shared.call, TORC_STATUS_OK, NULL, NULL), 0);
    torc_result_free(torc_stream_finish(s));
    torc_stream_free(s);
}

/* --- set-up --- */

static int setup(void **state)
{
    (void)state;
    char *bound = NULL;
    struct torc_handler pooled = {TORC_SIZE(torc_handler), .stream = on_pooled};
    struct torc_handler held = {TORC_SIZE(torc_handler), .stream = on_hand_over};
    struct torc_handler compressed = {TORC_SIZE(torc_handler), .unary = on_ask_compressed};
    shared.step = 0;
    rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    client_rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    pool = torc_pool_new(1, 1, NULL);
    struct torc_method_options pooled_options = {TORC_SIZE(torc_method_options), .pool = pool};
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    server = torc_server_new(&o, NULL);
    assert_int_equal(torc_server_add_method(server, "a.B/Pooled", &pooled, NULL), 0);
    assert_int_equal(torc_server_add_method(server, "a.B/Held", &held, NULL), 0);
    assert_int_equal(torc_server_add_method(server, "a.B/Compressed", &compressed, NULL), 0);
    assert_int_equal(torc_server_limit(server, "a.B/Pooled", &pooled_options, NULL), 0);
    assert_int_equal(torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, NULL), 0);
    assert_int_equal(torc_server_start(server, NULL), 0);
    ch = torc_channel_new(client_rt, bound, NULL, NULL);
    torc_free(bound);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    torc_channel_free(ch);
    torc_server_free(server);
    assert_int_equal(torc_pool_free(pool), 0);
    assert_int_equal(torc_runtime_free(client_rt), 0);
    return torc_runtime_free(rt);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_handler_of_a_pool),
        TEST(test_functions_hold),
        TEST(test_metadata_is_not_in_the_arena),
        TEST(test_large_metadata),
        TEST(test_empty_messages),
        TEST(test_room_is_told_late),
        TEST(test_compressed_requests),
        TEST(test_compression_by_message),
        TEST(test_a_reset_of_the_arena),
        TEST(test_trailers_of_a_spoilt_reply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
