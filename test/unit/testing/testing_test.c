/* Worlds, their time and their network (torc/testing.h).
 *
 * A test makes a world, or several one after another. The time of a world begins at 1,000 ms. The test frees its
 * channels, servers and runtimes, and then ends the world; test_order_of_ends ends the world first. Time passes only
 * inside functions that turn or end the world, so a test can assert moments to the millisecond. Callbacks, handlers and
 * functions of torc_testing_after run on the test's thread, inside such a function. death_test.c has the waits that
 * abort the process. */
#include <time.h>

#include "unit/testing/kit.h"

#define SERVER "10.0.0.1:443"

static double real_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void test_a_call(void **state)
{
    (void)state;
    torc_testing *world = torc_testing_new(1, NULL);
    struct says s;
    char said[128];
    assert_non_null(world);
    says_begin(&s, "one", SERVER);
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK);
    assert_string_equal(said, "one");
    assert_int_equal(torc_time_ms(), 1000); /* no time has passed */
    torc_channel_free(channel);
    torc_server_free(s.server);
    assert_int_equal(torc_testing_free(world), 0);
}

/* 2,880 deadlines of 30 s, a day in all, pass within 20 s of real time. */
static void test_a_deadline(void **state)
{
    (void)state;
    torc_testing *world = torc_testing_new(1, NULL);
    struct says s;
    char said[128];
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 30000, .wait_for_ready = TORC_ON};
    double began = real_seconds();
    says_begin(&s, "one", SERVER);
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK);
    assert_int_equal(torc_testing_set_host(world, SERVER, TORC_TESTING_SILENT), 0);
    for (int i = 1; i <= 2880; i++) {
        assert_int_equal(say(channel, &o, said), TORC_STATUS_DEADLINE_EXCEEDED);
        assert_int_equal(torc_time_ms(), 1000 + i * 30000);
    }
    assert_true(real_seconds() - began < 20); /* a sanitizer is slow */
    torc_channel_free(channel);
    torc_server_free(s.server);
    assert_int_equal(torc_testing_free(world), 0);
}

static int is_set(void *arg)
{
    return *(int *)arg;
}

static void set(void *arg)
{
    *(int *)arg = 1;
}

static torc_testing *the_world; /* the test's; for tick, again_now and free_world, whose `arg` is an int */

static void tick(void *arg)
{
    ++*(int *)arg;
    if (torc_testing_after(the_world, 10, tick, arg) != 0)
        *(int *)arg = -1;
}

/* A function of torc_testing_after that sets itself again runs each 10 ms until the world ends. */
static void test_ticks(void **state)
{
    (void)state;
    int ticks = 0;
    the_world = torc_testing_new(1, NULL);
    assert_int_equal(torc_testing_after(the_world, 10, tick, &ticks), 0);
    assert_int_equal(torc_testing_advance(the_world, 1005), 0);
    assert_int_equal(ticks, 100);
    assert_int_equal(torc_testing_free(the_world), 0);
    assert_int_equal(ticks, -1); /* torc_testing_free calls the tick that still waits, which cannot set another */
}

static void post_again(void *arg)
{
    ++*(int *)arg;
    torc_runtime_post(torc_runtime_default(), post_again, arg);
}

static void again_now(void *arg)
{
    ++*(int *)arg;
    torc_testing_after(the_world, 0, again_now, arg);
}

/* Work that has no end at one moment: time goes on all the same, and an RPC ends at its deadline. */
static void test_work_without_end(void **state)
{
    (void)state;
    int posts = 0, nows = 0, late = 0;
    char said[128];
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 3000};
    the_world = torc_testing_new(1, NULL);
    torc_testing_set_host(the_world, SERVER, TORC_TESTING_SILENT);
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    assert_int_equal(torc_testing_after(the_world, 0, again_now, &nows), 0);
    assert_int_equal(torc_testing_run_until_idle(the_world), TORC_ELIMIT);
    assert_true(nows >= 10000);
    assert_int_equal(torc_runtime_post(torc_runtime_default(), post_again, &posts), 0);
    assert_int_equal(torc_testing_run_until_idle(the_world), TORC_ELIMIT);
    assert_true(posts >= 10000);
    assert_int_equal(torc_time_ms(), 1000);
    assert_int_equal(torc_testing_after(the_world, 1500, set, &late), 0);
    assert_int_equal(torc_testing_advance(the_world, 1499), 0);
    assert_int_equal(late, 0);
    assert_int_equal(torc_testing_advance(the_world, 1), 0);
    assert_int_equal(torc_time_ms(), 2500);
    assert_int_equal(say(channel, &o, said), TORC_STATUS_DEADLINE_EXCEEDED);
    assert_in_range(torc_time_ms(), 5500, 6500); /* at most a second late */
    assert_int_equal(late, 1);
    torc_channel_free(channel);
    assert_int_equal(torc_testing_free(the_world), 0);
}

static void on_post(void *arg)
{
    *(int64_t *)arg = torc_time_ms();
}

static torc_runtime *posting; /* the runtime of post_to; the test's */

static void post_to(void *arg)
{
    torc_runtime_post(posting, on_post, arg);
}

/* torc_runtime_poll waits for its runtime, and says whether the runtime did anything. */
static void test_poll(void **state)
{
    (void)state;
    int late = 0;
    int64_t posted = 0;
    torc_testing *world = torc_testing_new(1, NULL);
    torc_runtime *one = torc_runtime_new(NULL, NULL), *other = torc_runtime_new(NULL, NULL);
    assert_int_equal(torc_testing_run_until_idle(world), 0);
    assert_int_equal(torc_runtime_poll(one, 0), 0);
    assert_int_equal(torc_runtime_poll(one, 100), 0);
    assert_int_equal(torc_time_ms(), 1100);
    assert_int_equal(torc_testing_after(world, 50, set, &late), 0); /* an event, but not of the runtime `one` */
    assert_int_equal(torc_runtime_post(other, on_post, &posted), 0);
    assert_int_equal(torc_runtime_poll(one, 100), 0);
    assert_int_equal(torc_time_ms(), 1200);
    assert_int_equal(late, 1);
    assert_int_equal(posted, 1100); /* the world runs the other runtime meanwhile */
    assert_int_equal(torc_runtime_post(one, on_post, &posted), 0);
    assert_int_equal(torc_runtime_poll(one, 100), 1);
    assert_int_equal(torc_time_ms(), 1200);
    assert_int_equal(posted, 1200);
    assert_int_equal(torc_runtime_free(one), 0);
    assert_int_equal(torc_runtime_free(other), 0);
    assert_int_equal(torc_testing_free(world), 0);
}

/* The `arg` of poll_again. */
struct polling {
    torc_runtime *rt; /* the test's */
    int rc;           /* of the inner poll */
    int64_t from, to; /* when the inner poll began and returned, by torc_time_ms */
};

static void poll_again(void *arg)
{
    struct polling *p = arg;
    p->from = torc_time_ms();
    assert_int_equal(torc_runtime_free(p->rt), TORC_EDEADLK); /* the test's poll has not returned */
    p->rc = torc_runtime_poll(p->rt, -1);
    p->to = torc_time_ms();
}

/* A function of torc_testing_after polls the runtime that the test polls. Both polls return when the runtime did
 * something: the inner poll with 0, as any poll of a loop that another poll drives. */
static void test_poll_inside_a_poll(void **state)
{
    (void)state;
    int64_t posted = 0;
    torc_testing *world = torc_testing_new(1, NULL);
    struct polling p = {.rt = torc_runtime_new(NULL, NULL), .rc = -1};
    assert_int_equal(torc_testing_run_until_idle(world), 0);
    assert_int_equal(torc_testing_after(world, 50, poll_again, &p), 0);
    posting = p.rt;
    assert_int_equal(torc_testing_after(world, 80, post_to, &posted), 0);
    assert_int_equal(torc_runtime_poll(p.rt, -1), 1);
    assert_int_equal(posted, 1080);
    assert_int_equal(torc_time_ms(), 1080);
    assert_int_equal(p.rc, 0);
    assert_int_equal(p.from, 1050);
    assert_int_equal(p.to, 1080);
    assert_int_equal(torc_runtime_free(p.rt), 0);
    assert_int_equal(torc_testing_free(world), 0);
}

static void free_world(void *arg)
{
    *(int *)arg = torc_testing_free(the_world);
}

/* torc_testing_free is refused in a callback, also if torc_runtime_poll runs the callback and no function of the world
 * is under way. */
static void test_free_inside_a_poll(void **state)
{
    (void)state;
    int rc = 0;
    the_world = torc_testing_new(1, NULL);
    assert_int_equal(torc_runtime_post(torc_runtime_default(), free_world, &rc), 0);
    assert_int_equal(torc_runtime_poll(torc_runtime_default(), 0), 1);
    assert_int_equal(rc, TORC_EDEADLK);
    assert_int_equal(torc_testing_free(the_world), 0);
}

/* Endless work of one world does not hold up the next one. */
static void test_a_world_begins_afresh(void **state)
{
    (void)state;
    int nows = 0;
    int64_t posted = 0;
    the_world = torc_testing_new(1, NULL);
    assert_int_equal(torc_testing_after(the_world, 0, again_now, &nows), 0);
    assert_int_equal(torc_testing_run_until_idle(the_world), TORC_ELIMIT);
    assert_int_equal(torc_testing_free(the_world), 0);
    the_world = torc_testing_new(1, NULL);
    assert_int_equal(torc_runtime_post(torc_runtime_default(), on_post, &posted), 0);
    assert_int_equal(torc_testing_advance(the_world, 0), 0);
    assert_int_equal(posted, 1000);
    assert_int_equal(torc_testing_free(the_world), 0);
}

static void test_time(void **state)
{
    (void)state;
    torc_testing *world = torc_testing_new(1, NULL);
    int late = 0, later = 0, never = 0;
    assert_int_equal(torc_testing_after(world, 5000, set, &late), 0);
    assert_int_equal(torc_testing_after(world, 9000, set, &later), 0);
    assert_int_equal(torc_testing_run_until_idle(world), 0);
    assert_int_equal(torc_time_ms(), 1000);
    assert_int_equal(torc_testing_advance(world, 4999), 0);
    assert_int_equal(late, 0);
    assert_int_equal(torc_testing_advance(world, 1), 0);
    assert_int_equal(late, 1);
    assert_int_equal(torc_testing_run_until(world, is_set, &later, 60000), 0);
    assert_int_equal(torc_time_ms(), 10000);
    assert_int_equal(torc_testing_run_until(world, is_set, &never, 60000), TORC_ETIMEDOUT);
    assert_int_equal(torc_time_ms(), 70000);
    assert_int_equal(torc_time_left(torc_time_ms() + 5), 5);
    assert_int_equal(torc_testing_after(world, 1000000, set, &never), 0);
    assert_int_equal(torc_testing_free(world), 0);
    assert_int_equal(never, 1); /* called inside torc_testing_free */
}

#define RETRIES                                                                                                        \
    "{\"methodConfig\": [{\"name\": [{}], \"retryPolicy\": {\"maxAttempts\": 4, \"initialBackoff\": \"10s\", "         \
    "\"maxBackoff\": \"100s\", \"backoffMultiplier\": 2, \"retryableStatusCodes\": [\"UNAVAILABLE\"]}}]}"

/* Three attempts fail. The fourth comes after backoffs of 10, 20 and 40 s, each up to 20 % more or less (A6). */
static void test_retries(void **state)
{
    (void)state;
    torc_testing *world = torc_testing_new(7, NULL);
    struct says s;
    char said[128];
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .service_config_json = RETRIES};
    says_begin(&s, "one", SERVER);
    s.fails = 3;
    torc_channel *channel = torc_channel_new(NULL, SERVER, &o, NULL);
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK);
    assert_int_equal(s.calls, 4);
    assert_in_range(s.last - 1000, 56000, 84000);
    torc_channel_free(channel);
    torc_server_free(s.server);
    assert_int_equal(torc_testing_free(world), 0);
}

/* Backoff between attempts to connect: torc_channel_connect returns when the server is up and the backoff is over. */
static void test_refused(void **state)
{
    (void)state;
    torc_testing *world = torc_testing_new(1, NULL);
    struct says s;
    char said[128];
    says_begin(&s, "one", SERVER);
    assert_int_equal(torc_testing_set_host(world, SERVER, TORC_TESTING_REFUSES), 0);
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(said, "Connection refused"));
    assert_int_equal(torc_channel_connect(channel, 60000), TORC_ETIMEDOUT);
    assert_int_equal(torc_testing_set_host(world, SERVER, TORC_TESTING_UP), 0);
    assert_int_equal(torc_channel_connect(channel, 60000), 0);
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK);
    torc_channel_free(channel);
    torc_server_free(s.server);
    assert_int_equal(torc_testing_free(world), 0);
}

static void test_cut_and_stall(void **state)
{
    (void)state;
    torc_testing *world = torc_testing_new(1, NULL);
    struct says s;
    char said[128];
    says_begin(&s, "one", SERVER);
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    assert_int_equal(torc_testing_cut(world, SERVER), 0);
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK);
    assert_int_equal(torc_testing_stall(world, SERVER, 3000), 1);
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK);
    assert_int_equal(torc_time_ms(), 4000);
    assert_int_equal(torc_testing_cut(world, SERVER), 1);
    assert_int_equal(torc_testing_run_until_idle(world), 0);
    assert_int_not_equal(torc_channel_state(channel, false), TORC_CONNECTIVITY_READY);
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK); /* on a new connection */
    torc_channel_free(channel);
    torc_server_free(s.server);
    assert_int_equal(torc_testing_free(world), 0);
}

/* torc_testing_stall and torc_testing_cut still find the connections of a silent host, and cut ends them. */
static void test_cut_of_a_silent_host(void **state)
{
    (void)state;
    torc_testing *world = torc_testing_new(1, NULL);
    struct says s;
    char said[128];
    says_begin(&s, "one", SERVER);
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK);
    assert_int_equal(torc_testing_set_host(world, SERVER, TORC_TESTING_SILENT), 0);
    assert_int_equal(torc_testing_stall(world, SERVER, 10), 1);
    assert_int_equal(torc_testing_cut(world, SERVER), 1);
    assert_int_equal(torc_testing_cut(world, SERVER), 0);
    assert_int_equal(torc_testing_run_until_idle(world), 0);
    assert_int_not_equal(torc_channel_state(channel, false), TORC_CONNECTIVITY_READY);
    torc_channel_free(channel);
    torc_server_free(s.server);
    assert_int_equal(torc_testing_free(world), 0);
}

/* Answers nothing, and stores the call, which the test finishes, in the pointer at `arg`. */
static void keep_call(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request;
    *(torc_server_call **)arg = call;
}

static void on_text(const torc_result *result, void *arg)
{
    snprintf(arg, 128, "%s", torc_result_text(result));
}

/* The client's bytes stay unacknowledged: after 15 minutes the client's end of the connection fails. The server's end
 * hears nothing of it. */
static void test_giving_up(void **state)
{
    (void)state;
    torc_testing *world = torc_testing_new(1, NULL);
    torc_server_call *kept = NULL;
    struct torc_handler keeps = {TORC_SIZE(torc_handler), .unary = keep_call, .arg = &kept};
    char said[128], first[128] = "";
    torc_server *server = torc_server_new(NULL, NULL);
    assert_int_equal(torc_server_add_method(server, "/t.Test/Say", &keeps, NULL), 0);
    assert_int_equal(torc_server_listen(server, SERVER, torc_credentials_insecure(), NULL, NULL), 0);
    assert_int_equal(torc_server_start(server, NULL), 0);
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 1200000};
    assert_int_equal(torc_unary_async(channel, "t.Test/Say", "", 0, NULL, on_text, first, NULL, NULL), 0);
    assert_int_equal(torc_testing_run_until_idle(world), 0);
    assert_non_null(kept);
    assert_int_equal(torc_testing_set_host(world, SERVER, TORC_TESTING_SILENT), 0);
    assert_int_equal(say(channel, &o, said), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(said, "Connection timed out"));
    assert_non_null(strstr(first, "Connection timed out"));
    assert_int_equal(torc_time_ms(), 1000 + 900000);
    assert_int_equal(torc_server_call_cancelled(kept), 0);
    torc_server_call_finish(kept, TORC_STATUS_OK, NULL, NULL);
    /* Only connections that both ends hold count, and the client's end has failed. */
    assert_int_equal(torc_testing_cut(world, SERVER), 0);
    torc_channel_free(channel);
    torc_server_free(server);
    assert_int_equal(torc_testing_free(world), 0);
}

/* When the host falls silent, bytes that are on their way stay unacknowledged. So do bytes that have arrived, if their
 * acknowledgement is on its way. Bytes that were acknowledged do not end a connection. */
static void test_giving_up_what_was_on_its_way(void **state)
{
    static const struct {
        int ms; /* from the call to the silence; a round trip takes 100 */
        bool gives_up;
    } rows[] = {{10, true}, {60, true}, {110, false}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        torc_testing *world = torc_testing_new(1, NULL);
        torc_server_call *kept = NULL;
        struct torc_handler keeps = {TORC_SIZE(torc_handler), .unary = keep_call, .arg = &kept};
        char text[128] = "";
        assert_int_equal(torc_testing_set_delay(world, 50000), 0);
        torc_server *server = torc_server_new(NULL, NULL);
        assert_int_equal(torc_server_add_method(server, "/t.Test/Keep", &keeps, NULL), 0);
        assert_int_equal(torc_server_listen(server, SERVER, torc_credentials_insecure(), NULL, NULL), 0);
        assert_int_equal(torc_server_start(server, NULL), 0);
        torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
        assert_int_equal(torc_channel_connect(channel, 60000), 0);
        assert_int_equal(torc_testing_advance(world, 1000), 0);
        assert_int_equal(torc_unary_async(channel, "t.Test/Keep", "", 0, NULL, on_text, text, NULL, NULL), 0);
        assert_int_equal(torc_testing_advance(world, rows[i].ms), 0);
        assert_int_equal(torc_testing_set_host(world, SERVER, TORC_TESTING_SILENT), 0);
        assert_int_equal(torc_testing_advance(world, 960000), 0);
        assert_int_equal(strstr(text, "Connection timed out") != NULL, rows[i].gives_up);
        if (kept)
            torc_server_call_finish(kept, TORC_STATUS_OK, NULL, NULL);
        torc_channel_free(channel);
        torc_server_free(server);
        assert_int_equal(torc_testing_free(world), 0);
    }
}

#define TWO_HOURS 7200000

/* Waits of more than an hour are allowed with a limit: of their own, or the deadline of their RPC. */
static void test_long_limits(void **state)
{
    (void)state;
    torc_testing *world = torc_testing_new(1, NULL);
    torc_runtime *runtime = torc_runtime_new(NULL, NULL);
    const torc_message *message;
    char said[128];
    struct torc_call_options ready = {TORC_SIZE(torc_call_options), .wait_for_ready = TORC_ON}, late = ready;
    late.timeout_ms = TWO_HOURS;
    torc_testing_set_host(world, SERVER, TORC_TESTING_SILENT);
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    assert_int_equal(torc_runtime_poll(runtime, TWO_HOURS), 0);
    assert_int_equal(torc_time_ms(), 1000 + TWO_HOURS);
    assert_int_equal(torc_channel_wait_state(channel, TORC_CONNECTIVITY_IDLE, TWO_HOURS, NULL), TORC_ETIMEDOUT);
    assert_int_equal(torc_time_ms(), 1000 + 2 * TWO_HOURS);
    torc_stream *stream = torc_stream_open(channel, "t.Test/Say", &ready, NULL);
    assert_int_equal(torc_stream_receive(stream, TWO_HOURS, &message), TORC_ETIMEDOUT);
    assert_int_equal(torc_time_ms(), 1000 + 3 * TWO_HOURS);
    torc_stream_free(stream);
    assert_int_equal(say(channel, &late, said), TORC_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(torc_time_ms(), 1000 + 4 * TWO_HOURS);
    stream = torc_stream_open(channel, "t.Test/Say", &late, NULL);
    assert_int_equal(torc_stream_receive(stream, -1, &message), 0);
    assert_int_equal(torc_time_ms(), 1000 + 5 * TWO_HOURS);
    torc_stream_free(stream);
    torc_channel_free(channel);
    assert_int_equal(torc_runtime_free(runtime), 0);
    assert_int_equal(torc_testing_free(world), 0);
}

static int turn(void *arg)
{
    torc_testing *world = arg;
    assert_int_equal(torc_testing_advance(world, 1), TORC_EDEADLK);
    assert_int_equal(torc_testing_run_until_idle(world), TORC_EDEADLK);
    assert_int_equal(torc_testing_run_until(world, turn, world, 1), TORC_EDEADLK);
    assert_int_equal(torc_testing_free(world), TORC_EDEADLK);
    return 1;
}

/* The `done` of torc_testing_run_until can neither turn the world nor end it. */
static void test_done_that_turns(void **state)
{
    (void)state;
    torc_testing *world = torc_testing_new(1, NULL);
    assert_int_equal(torc_testing_run_until(world, turn, world, 10), 0);
    assert_int_equal(torc_time_ms(), 1000);
    assert_int_equal(torc_testing_advance(world, 1), 0);
    assert_int_equal(torc_testing_free(world), 0);
}

/* With 50 ms each way connecting takes at least a round trip, and an RPC exactly one. */
static void test_delay(void **state)
{
    (void)state;
    torc_testing *world = torc_testing_new(1, NULL);
    struct says s;
    char said[128];
    assert_int_equal(torc_testing_set_delay(world, 50000), 0);
    says_begin(&s, "one", SERVER);
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    assert_int_equal(torc_channel_connect(channel, 60000), 0);
    int64_t before = torc_time_ms();
    assert_true(before >= 1100);
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK);
    assert_int_equal(torc_time_ms() - before, 100);
    torc_channel_free(channel);
    torc_server_free(s.server);
    assert_int_equal(torc_testing_free(world), 0);
}

static void test_names(void **state)
{
    (void)state;
    torc_testing *world = torc_testing_new(1, NULL);
    struct says s;
    char said[128];
    says_begin(&s, "one", "[::]:443");
    torc_channel *channel = torc_channel_new(NULL, "dns:///orders.test:443", NULL, NULL);
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(said, "not found"));
    assert_int_equal(torc_testing_set_name(world, "orders.test", "10.0.0.1,fd00::1"), 0);
    assert_int_equal(torc_testing_set_name(world, "orders.test", "10.0.0.1,elsewhere"), TORC_EINVAL);
    assert_int_equal(torc_testing_advance(world, 60000), 0); /* the next look-up waits for its backoff */
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK);
    torc_channel_free(channel);
    channel = torc_channel_new(NULL, "localhost:443", NULL, NULL);
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK);
    torc_channel_free(channel);
    torc_server_free(s.server);
    assert_int_equal(torc_testing_set_name(world, "orders.test", NULL), 0);
    assert_int_equal(torc_testing_free(world), 0);
}

/* Port 0 stands for the next free port, counted from 49152. A second listener at an address is refused. */
static void test_listening(void **state)
{
    (void)state;
    torc_testing *world = torc_testing_new(1, NULL);
    torc_error *error = NULL;
    char *one = NULL, *two = NULL, *three = NULL;
    torc_server *server = torc_server_new(NULL, NULL);
    assert_int_equal(torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &one, NULL), 0);
    assert_int_equal(torc_server_listen(server, "[::1]:0", torc_credentials_insecure(), &two, NULL), 0);
    assert_string_equal(one, "127.0.0.1:49152");
    assert_string_equal(two, "[::1]:49153");
    assert_int_equal(torc_server_listen(server, "127.0.0.1:49154", torc_credentials_insecure(), NULL, NULL), 0);
    assert_int_equal(torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &three, NULL), 0);
    assert_string_equal(three, "127.0.0.1:49155");
    assert_int_equal(torc_server_listen(server, one, torc_credentials_insecure(), NULL, &error), TORC_EIO);
    assert_string_equal(torc_error_text(error), "failed to listen on 127.0.0.1:49152: Address already in use");
    torc_error_free(error);
    torc_free(one);
    torc_free(two);
    torc_free(three);
    torc_server_free(server);
    assert_int_equal(torc_testing_free(world), 0);
}

static void test_misuse(void **state)
{
    (void)state;
    torc_error *error = NULL;
    for (int i = 0; i < 3; i++) {
        assert_false(i == 0   ? torc_channel_new(NULL, SERVER, NULL, &error) != NULL
                     : i == 1 ? torc_server_new(NULL, &error) != NULL
                              : torc_runtime_new(NULL, &error) != NULL);
        assert_int_equal(torc_error_code(error), TORC_ESTATE);
        assert_non_null(strstr(torc_error_text(error), "torc_testing_new"));
        torc_error_free(error);
        error = NULL;
    }
    torc_testing *world = torc_testing_new(1, NULL);
    assert_null(torc_testing_new(1, &error));
    assert_int_equal(torc_error_code(error), TORC_ESTATE);
    torc_error_free(error);
    assert_int_equal(torc_testing_advance(NULL, 1), TORC_EINVAL);
    assert_int_equal(torc_testing_advance(world, -1), TORC_EINVAL);
    assert_int_equal(torc_testing_run_until_idle(NULL), TORC_EINVAL);
    assert_int_equal(torc_testing_run_until(world, NULL, NULL, 1), TORC_EINVAL);
    assert_int_equal(torc_testing_run_until(world, is_set, NULL, -1), TORC_EINVAL);
    assert_int_equal(torc_testing_after(world, 1, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_testing_after(NULL, 1, set, NULL), TORC_EINVAL);
    assert_int_equal(torc_testing_set_host(world, "orders:443", TORC_TESTING_UP), TORC_EINVAL);
    assert_int_equal(torc_testing_set_host(world, "0.0.0.0:443", TORC_TESTING_UP), TORC_EINVAL);
    assert_int_equal(torc_testing_cut(world, "[::]:443"), TORC_EINVAL);
    assert_int_equal(torc_testing_stall(world, "0.0.0.0:443", 1), TORC_EINVAL);
    assert_int_equal(torc_testing_set_host(world, SERVER, 3), TORC_EINVAL);
    assert_int_equal(torc_testing_set_host(NULL, SERVER, TORC_TESTING_UP), TORC_EINVAL);
    assert_int_equal(torc_testing_cut(world, NULL), TORC_EINVAL);
    assert_int_equal(torc_testing_stall(world, SERVER, -1), TORC_EINVAL);
    assert_int_equal(torc_testing_set_delay(world, -1), TORC_EINVAL);
    assert_int_equal(torc_testing_set_name(world, "", "10.0.0.1"), TORC_EINVAL);
    assert_int_equal(torc_testing_set_name(NULL, "orders", "10.0.0.1"), TORC_EINVAL);
    assert_int_equal(torc_runtime_free(torc_runtime_default()), TORC_ESTATE);
    assert_int_equal(torc_runtime_default_free(), 0);
    assert_int_equal(torc_runtime_default_free(), 0);
    torc_runtime *own = torc_runtime_new(NULL, NULL);
    assert_int_equal(torc_runtime_fd(own), TORC_EINVAL);
    assert_int_equal(torc_testing_free(world), TORC_ESTATE); /* the test's runtime is left */
    assert_int_equal(torc_runtime_free(own), 0);
    assert_int_equal(torc_testing_free(world), 0);
    assert_int_equal(torc_testing_free(NULL), 0);
}

/* A channel and a server are freed after their world. */
static void test_order_of_ends(void **state)
{
    (void)state;
    torc_testing *world = torc_testing_new(1, NULL);
    struct says s;
    char said[128];
    says_begin(&s, "one", SERVER);
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK);
    assert_int_equal(torc_testing_free(world), 0);
    assert_int_not_equal(say(channel, NULL, said), TORC_STATUS_OK);
    torc_channel_free(channel);
    torc_server_free(s.server);
    world = torc_testing_new(1, NULL);
    assert_non_null(world);
    assert_int_equal(torc_testing_free(world), 0);
}

static void free_once_more(void *world)
{
    assert_int_equal(torc_testing_free(world), TORC_EDEADLK);
}

/* torc_testing_free calls the functions of torc_testing_after that still wait. They cannot end the world themselves. */
static void test_end_within_the_end(void **state)
{
    (void)state;
    int late = 0;
    torc_testing *world = torc_testing_new(1, NULL);
    assert_int_equal(torc_testing_after(world, 1000, free_once_more, world), 0);
    assert_int_equal(torc_testing_after(world, 2000, set, &late), 0);
    assert_int_equal(torc_testing_free(world), 0);
    assert_int_equal(late, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call),
        cmocka_unit_test(test_a_deadline),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_work_without_end),
        cmocka_unit_test(test_poll),
        cmocka_unit_test(test_poll_inside_a_poll),
        cmocka_unit_test(test_free_inside_a_poll),
        cmocka_unit_test(test_a_world_begins_afresh),
        cmocka_unit_test(test_retries),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_cut_and_stall),
        cmocka_unit_test(test_delay),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_listening),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_order_of_ends),
        cmocka_unit_test(test_end_within_the_end),
        cmocka_unit_test(test_giving_up),
        cmocka_unit_test(test_giving_up_what_was_on_its_way),
        cmocka_unit_test(test_long_limits),
        cmocka_unit_test(test_done_that_turns),
        cmocka_unit_test(test_cut_of_a_silent_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
