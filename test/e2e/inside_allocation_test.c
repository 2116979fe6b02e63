/* Threads that act while a function of Torc is in its middle: they free the stream or finish the call that the function
 * uses, or they fork while the function has locked a mutex. An allocator of the test has such a thread run when the
 * function allocates, and waits for the thread. AddressSanitizer sees a stream or a call that is used after its end.
 *
 * setup makes a server with its services, and a channel to it, on one runtime that has a thread of its own; teardown
 * frees them. The test's thread sets `armed`, then calls the function. The other thread runs `armed` and ends before
 * the allocation returns. A test frees its stream, unless the other thread has. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <torc/health.h>
#include <torc/orca.h>
#include <torc/reflection.h>
#include <torc/torc.h>

#include "kinds.torc.h"
#include "mirror.torc.h"
#include "support/cmocka.h"

typedef Torc__Test__Kinds__Kinds Kinds;

/* --- the allocator --- */

static _Thread_local void *(*armed)(void *arg); /* runs on another thread at this thread's next allocation */
static int ran;                                 /* how often that has happened */

static void meanwhile(void)
{
    pthread_t other;
    void *(*fn)(void *arg) = armed;
    if (!fn)
        return;
    armed = NULL;
    if (pthread_create(&other, NULL, fn, NULL) != 0 || pthread_join(other, NULL) != 0)
        abort();
    ran++;
}

static void *own_malloc(size_t size)
{
    meanwhile();
    return malloc(size);
}

static void *own_calloc(size_t n, size_t size)
{
    meanwhile();
    return calloc(n, size);
}

static void *own_realloc(void *ptr, size_t size)
{
    meanwhile();
    return realloc(ptr, size);
}

/* --- a server and a channel on one runtime --- */

static torc_runtime *rt;
static torc_server *server;
static torc_health *health;
static torc_orca *orca;
static torc_reflection *reflection;
static torc_channel *ch;
static torc_stream *stream;
static torc_server_call *call; /* of `stream` */
static atomic_int begun, over; /* begun: `call` is set; over: the call was released */
static char large[4096];       /* more than the bytes that a function packs without an allocation */

static void on_released(void *arg)
{
    (void)arg;
    atomic_store(&over, 1);
}

static void both(torc_server_call *c, void *arg)
{
    static const struct torc_server_call_events events = {TORC_SIZE(torc_server_call_events), .release = on_released};
    (void)arg;
    torc_server_call_set_events(c, &events, NULL);
    call = c;
    atomic_store(&begun, 1);
}

static int setup(void **state)
{
    const struct torc__test__mirror__mirror__handlers handlers = {TORC_SIZE(torc__test__mirror__mirror__handlers),
                                                                  .both = both};
    torc_error *error = NULL;
    char *bound = NULL;
    (void)state;
    ran = begun = over = 0;
    call = NULL;
    memset(large, 'x', sizeof(large) - 1);
    rt = torc_runtime_new(NULL, &error);
    const struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    server = torc_server_new(&o, &error);
    torc__test__mirror__mirror__add(server, &handlers, NULL, &error);
    health = torc_health_new(server, &error);
    orca = torc_orca_new(server, -1, &error);
    reflection = torc_reflection_new(server, &error);
    torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error);
    torc_server_start(server, &error);
    ch = torc_channel_new(rt, bound, NULL, &error);
    assert_string_equal(torc_error_text(error), "");
    torc_free(bound);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    torc_channel_free(ch);
    torc_server_free(server);
    torc_health_free(health);
    torc_orca_free(orca);
    torc_reflection_free(reflection);
    return torc_runtime_free(rt);
}

static void stream_open(void)
{
    torc_error *error = NULL;
    stream = torc__test__mirror__mirror__both__open(ch, NULL, &error);
    assert_non_null(stream);
    while (!atomic_load(&begun))
        sched_yield();
}

static void on_passed(void *arg)
{
    atomic_store((atomic_int *)arg, 1);
}

/* Returns when the loop is past the event that released a stream or a call: the loop has no reference to it left. */
static void loop_pass(void)
{
    atomic_int passed = 0;
    torc_runtime_post(rt, on_passed, &passed);
    while (!atomic_load(&passed))
        sched_yield();
}

static Kinds *large_message(void)
{
    static Kinds k;
    torc__test__kinds__kinds__init(&k);
    k.f_string = large;
    return &k;
}

/* --- a stream that is freed --- */

static void *close_stream(void *arg)
{
    (void)arg;
    if (torc_stream_close(stream) != 0)
        abort();
    loop_pass();
    return NULL;
}

static void call_finish(void)
{
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

/* torc_protobuf_c_send: the other thread frees the stream when the function allocates what the stream keeps (the first
 * round), or the bytes of the message. */
static void test_free_in_send(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        begun = 0;
        stream_open();
        if (round == 1)
            assert_int_equal(torc__test__mirror__mirror__both__send(stream, large_message(), 0, 0), 0);
        armed = close_stream;
        assert_int_equal(torc__test__mirror__mirror__both__send(stream, large_message(), 0, 0), TORC_ECLOSED);
        assert_int_equal(ran, round + 1);
        call_finish();
    }
}

/* A send of another method's message: the other thread frees the stream when the function is about to fail the RPC. */
static void test_free_in_a_refusal(void **state)
{
    (void)state;
    stream_open();
    armed = close_stream;
    assert_int_equal(torc__test__mirror__mirror__last__send(stream, large_message(), 0, 0), TORC_EINVAL);
    assert_int_equal(ran, 1);
    call_finish();
}

static void test_free_in_receive(void **state)
{
    (void)state;
    const Kinds *message = NULL;
    stream_open();
    armed = close_stream;
    assert_int_equal(torc__test__mirror__mirror__both__receive(stream, -1, &message), 0);
    assert_int_equal(ran, 1);
    assert_null(message);
    call_finish();
}

/* --- a call that is finished --- */

static void *finish_call(void *arg)
{
    (void)arg;
    call_finish();
    while (!atomic_load(&over))
        sched_yield();
    loop_pass();
    return NULL;
}

static void expect_ok(void)
{
    torc_result *result = torc_stream_finish(stream);
    assert_int_equal(torc_result_code(result), TORC_STATUS_OK);
    torc_result_free(result);
    torc_stream_free(stream);
    assert_int_equal(ran, 1);
}

static void test_finish_in_respond(void **state)
{
    (void)state;
    stream_open();
    armed = finish_call;
    assert_int_equal(torc__test__mirror__mirror__both__reply(call, large_message(), 0, 0), TORC_ESTATE);
    expect_ok();
}

/* A response of another method: the other thread finishes the call when the function is about to fail the RPC. */
static void test_finish_in_a_refusal(void **state)
{
    (void)state;
    stream_open();
    armed = finish_call;
    assert_int_equal(torc__test__mirror__mirror__each__reply(call, large_message(), 0, 0), TORC_EINVAL);
    expect_ok();
}

/* torc_protobuf_c_reply, for the call's method and for another. */
static void test_finish_in_reply(void **state)
{
    (void)state;
    static const char *const paths[] = {"/torc.test.mirror.Mirror/Both", "/torc.test.mirror.Mirror/Once"};
    for (int i = 0; i < 2; i++) {
        const struct torc_protobuf_c_method m = {.size = sizeof(m),
                                                 .version = torc_stub_v1,
                                                 .path = paths[i],
                                                 .request = &torc__test__kinds__kinds__descriptor,
                                                 .response = &torc__test__kinds__kinds__descriptor};
        begun = over = ran = 0;
        stream_open();
        armed = finish_call;
        assert_int_equal(torc_protobuf_c_reply(call, &m, &large_message()->base), TORC_ESTATE);
        expect_ok();
    }
}

static void test_finish_in_finish(void **state)
{
    (void)state;
    const ProtobufCMessage *const details[] = {&large_message()->base};
    stream_open();
    armed = finish_call;
    assert_int_equal(torc_protobuf_c_finish(call, TORC_STATUS_ABORTED, "text", NULL, details, 1), TORC_ESTATE);
    expect_ok();
}

/* --- a fork --- */

static int child_status;

/* Forks. The child exits with the result of `check`; it is killed if it hangs. Waits for the child. */
static void fork_and_check(int (*check)(void))
{
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        _exit(check());
    }
    if (child < 0 || waitpid(child, &child_status, 0) != child)
        abort();
}

static void expect_forked(void)
{
    assert_int_equal(ran, 1);
    assert_true(WIFEXITED(child_status));
    assert_int_equal(WEXITSTATUS(child_status), 0);
}

static int health_in_child(void)
{
    int rc = torc_health_set(health, "", TORC_HEALTH_NOT_SERVING);
    torc_health_shutdown(health);
    torc_health_free(health);
    return rc == TORC_EFORK ? 0 : 1;
}

static void *fork_with_health(void *arg)
{
    (void)arg;
    fork_and_check(health_in_child);
    return NULL;
}

/* torc_health_set has the mutex when it allocates a service. */
static void test_fork_in_health_set(void **state)
{
    (void)state;
    armed = fork_with_health;
    assert_int_equal(torc_health_set(health, "a.New", TORC_HEALTH_SERVING), 0);
    expect_forked();
}

static int orca_in_child(void)
{
    int set = torc_orca_set(orca, TORC_ORCA_CPU, NULL, 0.5), clear = torc_orca_clear(orca, TORC_ORCA_CPU, NULL);
    torc_orca_free(orca);
    return set == TORC_EFORK && clear == TORC_EFORK ? 0 : 1;
}

static void *fork_with_orca(void *arg)
{
    (void)arg;
    fork_and_check(orca_in_child);
    return NULL;
}

/* torc_orca_set has the mutex when it allocates a value. */
static void test_fork_in_orca_set(void **state)
{
    (void)state;
    armed = fork_with_orca;
    assert_int_equal(torc_orca_set(orca, TORC_ORCA_CPU, NULL, 0.25), 0);
    expect_forked();
}

static int reflection_in_child(void)
{
    torc_error *one = NULL, *other = NULL;
    int add = torc_reflection_add(reflection, &torc_stub_file__kinds_proto, &one),
        set = torc_reflection_add_set(reflection, "", 0, &other);
    bool told = torc_error_code(one) == TORC_EFORK && torc_error_code(other) == TORC_EFORK;
    torc_reflection_free(reflection);
    return add == TORC_EFORK && set == TORC_EFORK && told ? 0 : 1;
}

static void *fork_with_reflection(void *arg)
{
    (void)arg;
    fork_and_check(reflection_in_child);
    return NULL;
}

/* torc_reflection_add has the mutex when it allocates what it keeps of a file. */
static void test_fork_in_reflection_add(void **state)
{
    (void)state;
    armed = fork_with_reflection;
    assert_int_equal(torc_reflection_add(reflection, &torc_stub_file__mirror_proto, NULL), 0);
    expect_forked();
}

/* --- generated code in the child: another thread of the parent had the runtime's lock --- */

static int next_in_child(void)
{
    const Kinds *request = NULL;
    return torc__test__mirror__mirror__both__next(call, 0, &request) == TORC_EFORK ? 0 : 1;
}

static int refused_reply_in_child(void)
{
    return torc__test__mirror__mirror__each__reply(call, large_message(), 0, 0) != 0 ? 0 : 1;
}

static int refused_send_in_child(void)
{
    return torc__test__mirror__mirror__last__send(stream, large_message(), 0, 0) != 0 ? 0 : 1;
}

static int (*in_child)(void);

static void *fork_with_typed(void *arg)
{
    (void)arg;
    fork_and_check(in_child);
    return NULL;
}

/* Forks inside torc_orca_record, which has the runtime's lock when it allocates a value. The child runs `check`. */
static void fork_in_record(int (*check)(void))
{
    stream_open();
    in_child = check;
    armed = fork_with_typed;
    assert_int_equal(torc_orca_record(call, TORC_ORCA_CPU, NULL, 0.25), 0);
    call_finish();
    torc_stream_free(stream);
    expect_forked();
}

static void test_fork_then_next(void **state)
{
    (void)state;
    fork_in_record(next_in_child);
}

static void test_fork_then_refused_reply(void **state)
{
    (void)state;
    fork_in_record(refused_reply_in_child);
}

static void test_fork_then_refused_send(void **state)
{
    (void)state;
    fork_in_record(refused_send_in_child);
}

int main(void)
{
    static const struct torc_allocator own = {TORC_SIZE(torc_allocator), own_malloc, own_calloc, own_realloc, free};
    if (torc_set_allocator(&own) != 0)
        return 1;
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_free_in_send),           TEST(test_free_in_a_refusal),   TEST(test_free_in_receive),
        TEST(test_finish_in_respond),      TEST(test_finish_in_a_refusal), TEST(test_finish_in_reply),
        TEST(test_finish_in_finish),       TEST(test_fork_in_health_set),  TEST(test_fork_in_orca_set),
        TEST(test_fork_in_reflection_add), TEST(test_fork_then_next),      TEST(test_fork_then_refused_reply),
        TEST(test_fork_then_refused_send),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
