/* Calls, channels and runtimes that are freed at random moments. Each channel has a random flow, which decides its
 * target, options and credentials (support/teardown/flows.c). Each call ends once, also one whose handle is freed, and
 * nothing crashes, hangs or leaks descriptors and threads.
 *
 * A teardown (struct world) makes a runtime and some channels, does random things for some steps, and frees everything
 * in random order. The main thread does all of this, and also drives the runtime if that has no thread (own_loop). One
 * call or channel may also be freed inside a callback on the loop's thread (in_callback). So the main thread takes a
 * channel out of the world while it uses the channel (take_channel). All teardowns share the servers, which run on
 * threads of their own (support/teardown/world.h).
 *
 * TORC_TEARDOWNS: how many (300 by default); TORC_TEARDOWN_SEED: the first seed. Run a failed teardown again by its
 * seed and TORC_TEARDOWNS=1. */
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <torc/torc.h>

#include "support/check.h"
#include "support/cmocka.h"
#include "support/number.h"
#include "support/sanitizer.h"
#include "support/teardown/world.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"

/* libcrypto and libuv are not built with the sanitizer. libuv closes descriptors by a raw system call, which the
 * sanitizer does not see. The sanitizer takes a later descriptor for an earlier one of the same number, and reports a
 * race when libcrypto closes a folder (OPENSSL_DIR_end). Calls from inside libuv are ignored: between threads Torc
 * relies on its own locks and atomics. */
#if SANITIZER_THREAD
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:OPENSSL_DIR_end\ncalled_from_lib:libuv.so\n";
}
#endif

/* How many times slower the sanitizers make everything, about. */
#if SANITIZER_THREAD || SANITIZER_ADDRESS
#define SLOW 5
#else
#define SLOW 1
#endif

#define CSDS "envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus"
#define CHANNELS 3
#define CALLS 6
#define HANG_S 120                   /* for one teardown, before on_alarm ends the process */
#define SETTLE_NS (20 * TC_NS_PER_S) /* for the wait of settles() */

/* More than the first window of a stream (64 KiB) takes. */
static const char much[300000];

static struct teardown *servers;
static uint64_t seed_now; /* of the teardown that runs; on_alarm prints it */

/* A call and its events. handle, given_up and done are under the world's lock; the rest is set before the RPC starts.
 * on_writable counts writes_left down. */
struct call {
    struct world *w;
    torc_stream *handle;                 /* owned; NULL: none was asked for, not set yet, or given up */
    bool streaming, explained, given_up; /* given_up: the handle was taken to be freed */
    unsigned done;                       /* how many times the call has ended */
    size_t flow;                         /* of the channel */
    unsigned writes_left;                /* messages that on_writable has to send */
};

/* The objects of one teardown. */
struct world {
    struct tc_rng rng; /* the main thread's */
    pthread_mutex_t lock;
    torc_runtime *rt;
    bool own_loop;                    /* the main thread drives the runtime */
    torc_csds *csds;                  /* the main thread's; NULL: the runtime does not serve CSDS */
    size_t flows[CHANNELS];           /* of the channels */
    torc_channel *channels[CHANNELS]; /* owned, under the lock; NULL: none, given up, or taken to be used */
    struct call calls[CALLS];
    size_t n_calls;             /* the main thread's */
    unsigned callbacks, act_at; /* callbacks: how many came so far, under the lock; act_at: the number, from 1, of the
                                   callback that gives up act_what, 0: none */
    unsigned act_what;          /* see give_up */
};

static unsigned chance(struct world *w, unsigned n)
{
    return (unsigned)tc_rng_below(&w->rng, n);
}

/* --- giving up --- */

/* Takes the handle of call i out of the world. Returns the handle for the caller to free, or NULL if there is none. */
static torc_stream *take_call(struct world *w, size_t i)
{
    pthread_mutex_lock(&w->lock);
    torc_stream *handle = w->calls[i].handle;
    w->calls[i].handle = NULL;
    w->calls[i].given_up |= handle != NULL;
    pthread_mutex_unlock(&w->lock);
    return handle;
}

/* Takes channel i out of the world. Returns the channel for the caller to free or to put back, or NULL if there is
 * none. */
static torc_channel *take_channel(struct world *w, size_t i)
{
    pthread_mutex_lock(&w->lock);
    torc_channel *ch = w->channels[i];
    w->channels[i] = NULL;
    pthread_mutex_unlock(&w->lock);
    return ch;
}

/* Frees call `what`, or channel `what` - CALLS, if the world still has it. */
static void give_up(struct world *w, unsigned what)
{
    if (what < CALLS)
        torc_stream_free(take_call(w, what));
    else if (what < CALLS + CHANNELS)
        torc_channel_free(take_channel(w, what - CALLS));
}

/* Counts a callback. The callback that act_at names gives up act_what. */
static void in_callback(struct world *w)
{
    pthread_mutex_lock(&w->lock);
    bool act = ++w->callbacks == w->act_at;
    unsigned what = w->act_what;
    pthread_mutex_unlock(&w->lock);
    if (act)
        give_up(w, what);
}

/* --- calls --- */

static void on_headers(torc_stream *call, const torc_metadata *headers, void *arg)
{
    (void)call, (void)headers;
    in_callback(((struct call *)arg)->w);
}

static void on_message(torc_stream *call, const torc_message *message, void *arg)
{
    (void)call, (void)message;
    in_callback(((struct call *)arg)->w);
}

/* Sends a small or a large message without waiting. The result does not matter: the call may have ended. */
static void write_some(torc_stream *call, bool a_lot, bool last)
{
    torc_stream_send(call, a_lot ? much : "hello", a_lot ? sizeof(much) : 5, last ? TORC_SEND_LAST : 0, 0);
}

static void on_writable(torc_stream *call, void *arg)
{
    struct call *c = arg;
    if (c->writes_left > 0) {
        write_some(call, true, --c->writes_left == 0);
        write_some(call, true, false); /* finds no room, so on_writable follows; rejected after the last message */
    }
    in_callback(c->w);
}

static void ended(struct call *c, const torc_result *r)
{
    CHECK(torc_result_text(r));
    pthread_mutex_lock(&c->w->lock);
    c->done++;
    if (!c->given_up && !c->explained)
        teardown_count(servers, c->flow, torc_result_code(r));
    pthread_mutex_unlock(&c->w->lock);
    in_callback(c->w);
}

static void on_done(torc_stream *call, const torc_result *result, void *arg)
{
    (void)call;
    ended(arg, result);
}

static void on_unary(const torc_result *result, void *arg)
{
    ended(arg, result);
}

static const struct torc_stream_events events = {TORC_SIZE(torc_stream_events), .on_headers = on_headers,
                                                 .on_message = on_message, .on_writable = on_writable,
                                                 .on_done = on_done};

static void on_channel_state(torc_channel *channel, enum torc_connectivity state, const char *text, void *arg)
{
    (void)channel, (void)state, (void)text;
    in_callback(arg);
}

/* Starts a random RPC on a random channel. Does nothing if there is no such channel, or if CALLS calls were started. */
static void start_call(struct world *w)
{
    static const char *const methods[] = {
        "a.B/C", "a.B/Chat", "torc.test.Backend/Hang", "torc.test.Backend/Fail", "torc.test.Backend/Repeat",
    };
    size_t at = chance(w, CHANNELS);
    if (w->n_calls == CALLS)
        return;
    /* A callback cannot free the channel while this function has it. */
    torc_channel *ch = take_channel(w, at);
    if (!ch)
        return;
    struct call *c = &w->calls[w->n_calls++];
    c->w = w;
    c->flow = w->flows[at];
    c->streaming = chance(w, 2);
    c->explained = !c->streaming && chance(w, 5) == 0;
    bool keep = chance(w, 2);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .wait_for_ready = chance(w, 2) != 0,
                                  .timeout_ms = chance(w, 2) ? (int64_t)chance(w, 20) - 1 : 0,
                                  .explain = chance(w, 4) == 0,
                                  .credentials = chance(w, 8) == 0 ? teardown_credentials(servers) : NULL};
    bool ask = w->csds && chance(w, 3) == 0; /* with the empty request */
    const char *method = ask ? CSDS : methods[chance(w, TC_ARRAY_LEN(methods))];
    c->writes_left = ask || chance(w, 3) ? 0 : 1 + chance(w, 4);
    torc_stream *handle = NULL;
    int rc = 0;
    if (c->streaming)
        rc = (handle = torc_stream_start(ch, method, &o, &events, c, NULL)) ? 0 : TORC_EINVAL;
    else if (c->explained)
        rc = torc_explain_async(ch, method, &o, on_unary, c, keep ? &handle : NULL, NULL);
    else
        rc = torc_unary_async(ch, method, "14", ask ? 0 : 2, &o, on_unary, c, keep ? &handle : NULL, NULL);
    assert_int_equal(rc, 0);
    torc_call_credentials_unref(o.credentials);
    if (c->streaming) {
        bool a_lot = c->writes_left > 0;
        torc_stream_want(handle, 1);
        if (ask)
            torc_stream_send(handle, "", 0, TORC_SEND_LAST, 0);
        else
            write_some(handle, a_lot, !a_lot && chance(w, 2));
        if (a_lot)
            write_some(handle, true, false);
        if (chance(w, 2))
            torc_stream_want(handle, 1);
    }
    pthread_mutex_lock(&w->lock);
    c->handle = handle;
    w->channels[at] = ch;
    pthread_mutex_unlock(&w->lock);
}

/* --- one teardown --- */

static void pass_time(struct world *w)
{
    if (w->own_loop)
        assert_true(torc_runtime_poll(w->rt, (int)chance(w, 2)) >= 0);
    else
        (void)poll(NULL, 0, (int)chance(w, 3)); /* a random delay, not a wait for anything */
}

/* Describes channel `at`, or dumps the runtime's CSDS, while RPCs run. */
static void look(struct world *w, size_t at)
{
    torc_channel *ch = take_channel(w, at);
    char *json = NULL;
    void *bytes = NULL;
    size_t n;
    if (ch && chance(w, 2))
        assert_int_equal(torc_channel_describe(ch, &json), 0);
    else
        assert_int_equal(torc_csds_dump(w->rt, chance(w, 2), &bytes, &n), 0);
    torc_free(json);
    torc_free(bytes);
    pthread_mutex_lock(&w->lock);
    w->channels[at] = ch;
    pthread_mutex_unlock(&w->lock);
}

/* Makes a random change, or none. */
static void stir(struct world *w)
{
    size_t at = chance(w, CHANNELS);
    torc_channel *ch;
    switch (chance(w, 24)) {
    case 0:
    case 1:
    case 2:
        start_call(w);
        break;
    case 3:
        give_up(w, chance(w, CALLS + CHANNELS));
        break;
    case 4:
        if ((ch = take_channel(w, at))) {
            torc_channel_reset_backoff(ch);
            torc_channel_watch_state(ch, torc_channel_state(ch, true), on_channel_state, w);
            pthread_mutex_lock(&w->lock);
            w->channels[at] = ch;
            pthread_mutex_unlock(&w->lock);
        }
        break;
    case 5: {
        size_t i = chance(w, CALLS);
        torc_stream *call = take_call(w, i);
        if (call)
            torc_stream_cancel(call);
        torc_stream_free(call);
        break;
    }
    case 6:
    case 7:
        if (chance(w, 4) == 0)
            teardown_stir(servers, &w->rng);
        break;
    case 8:
        look(w, at);
        break;
    default:
        break;
    }
}

/* Frees everything, in random order. */
static void tear_down(struct world *w)
{
    unsigned order[CALLS + CHANNELS + 2];
    for (unsigned i = 0; i < TC_ARRAY_LEN(order); i++)
        order[i] = i;
    for (unsigned i = TC_ARRAY_LEN(order) - 1; i > 0; i--) {
        unsigned j = chance(w, i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (unsigned i = 0; i < TC_ARRAY_LEN(order); i++) {
        if (order[i] < CALLS + CHANNELS)
            give_up(w, order[i]);
        else if (order[i] == CALLS + CHANNELS)
            torc_csds_free(w->csds);
        else
            assert_int_equal(torc_runtime_free(w->rt), 0);
    }
}

static void one_teardown(uint64_t seed)
{
    struct world *w = TC_NEW(struct world);
    seed_now = seed;
    tc_rng_init_seed(&w->rng, seed);
    pthread_mutex_init(&w->lock, NULL);
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options)};
    w->own_loop = chance(w, 3) != 0;
    o.mode = w->own_loop ? TORC_RUNTIME_CALLER : TORC_RUNTIME_THREAD;
    if (chance(w, 4) == 0)
        o.idle_connection_ms = -1;
    o.xds_domain = chance(w, 5) ? NULL : torc_xds_domain_new(NULL);
    w->rt = torc_runtime_new(&o, NULL);
    assert_non_null(w->rt);
    assert_int_equal(torc_xds_domain_free(o.xds_domain), 0);
    w->csds = chance(w, 2) ? NULL : torc_csds_serve(w->rt, "127.0.0.1:0", NULL);
    w->act_at = chance(w, 3) ? 0 : 1 + chance(w, 6);
    w->act_what = chance(w, CALLS + CHANNELS);
    size_t n = 1 + chance(w, CHANNELS);
    for (size_t i = 0; i < n; i++)
        w->channels[i] =
            teardown_channel(servers, w->rt, w->csds ? torc_csds_address(w->csds) : NULL, &w->rng, &w->flows[i]);
    start_call(w);
    unsigned steps = chance(w, 2) ? chance(w, 12) : chance(w, 2) ? chance(w, 80) : chance(w, 80 * SLOW);
    for (unsigned i = 0; i < steps; i++) {
        pass_time(w);
        stir(w);
    }
    tear_down(w);
    teardown_settle(servers);
    for (size_t i = 0; i < w->n_calls; i++) {
        const struct call *c = &w->calls[i];
        if (c->done != 1)
            fail_msg("seed %llu: call %zu ended %u times", (unsigned long long)seed, i, c->done);
    }
    pthread_mutex_destroy(&w->lock);
    tc_free(w);
}

/* --- the campaign --- */

/* Returns the number of entries of a folder, "." and ".." included, and in /proc/self/fd the descriptor that reads. */
static unsigned entries(const char *path)
{
    unsigned n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Waits until the process has no more descriptors and threads than these, as entries() counts, and fails the test after
 * SETTLE_NS. Servers notice closed connections a moment later. */
static void settles(unsigned descriptors, unsigned threads)
{
    uint64_t begin = tc_system_clock.monotonic_ns(tc_system_clock.arg);
    while (entries("/proc/self/fd") > descriptors || entries("/proc/self/task") > threads) {
        if (tc_system_clock.monotonic_ns(tc_system_clock.arg) - begin > SETTLE_NS)
            fail_msg("%u descriptors and %u threads, of %u and %u, up to seed %llu", entries("/proc/self/fd"),
                     entries("/proc/self/task"), descriptors, threads, (unsigned long long)seed_now);
        (void)poll(NULL, 0, 5);
    }
}

static void on_alarm(int sig)
{
    char text[64];
    (void)sig;
    int n = snprintf(text, sizeof(text), "seed %llu hangs\n", (unsigned long long)seed_now);
    if (write(2, text, (size_t)n) < 0)
        _exit(3);
    abort();
}

static void teardowns(void **state)
{
    (void)state;
    uint64_t n = tc_env_number("TORC_TEARDOWNS", 300), first = tc_env_number("TORC_TEARDOWN_SEED", 1);
    signal(SIGALRM, on_alarm);
    unsigned descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    for (uint64_t i = 0; i < n; i++) {
        alarm(HANG_S);
        one_teardown(first + i);
        if (i % 100 == 99 || i + 1 == n)
            settles(descriptors, threads);
    }
    alarm(0);
    print_message("%llu teardowns, %u descriptors and %u threads before and after\n", (unsigned long long)n,
                  descriptors - 3, threads - 2);
    teardown_report(servers);
}

static int open_world(void **state)
{
    (void)state;
    /* Hides the machine's Google credentials. */
    setenv("GOOGLE_APPLICATION_CREDENTIALS", "", 1);
    setenv("CLOUDSDK_CONFIG", "/nonexistent", 1);
    servers = teardown_new();
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    teardown_free(servers);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(teardowns)};
    return cmocka_run_group_tests(tests, open_world, close_world);
}
