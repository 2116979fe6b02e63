/* A runtime that one thread frees while others use its channels and calls in many ways. The callback of accepted work
 * comes once, and later work is rejected with TORC_ECLOSED; a sanitizer sees a use after free.
 *
 * A round (struct scene) has one runtime. Each of four threads (struct actor) has channels that no other thread uses.
 * Each does random things with its channels, with the runtime, and with a resolver's listener that all threads share,
 * until the runtime has ended, MAX_STEPS at most. The main thread frees the runtime at a random moment, joins the
 * threads, checks that each callback that was due has come, and frees the channels. Callbacks run on the loop's thread:
 * the runtime's own, or a thread that waits, polls or frees the runtime (own_loop). All rounds share one echo server
 * (kits/backends.h).
 *
 * TORC_THREAD_ROUNDS: how many runtimes (150 by default); TORC_THREAD_SEED: the first seed. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/number.h"

#include "base/mem.h"
#include "base/random.h"

enum { ACTORS = 4, MAX_STEPS = 10000 };

struct scene;

/* A thread and the channels that only this thread uses. */
struct actor {
    pthread_t thread;
    struct scene *scene;
    struct tc_rng rng;
    torc_channel *ch, *other; /* ch: made by the main thread; other: made and replaced by the actor's thread, NULL:
                                 none; the main thread frees both after the join */
    atomic_uint told;         /* callbacks that came */
    /* Read by the main thread after the join. */
    unsigned due;  /* callbacks that must come */
    unsigned done; /* number of operations, for the report */
    int rc;        /* the error that ended the thread; 0: MAX_STEPS operations ended it */
    bool refused;  /* after all operations an RPC, a post and a description were rejected with TORC_ECLOSED */
};

struct scene {
    torc_runtime *rt;
    bool own_loop; /* the runtime has no thread: threads that wait or poll drive it */
    struct torc_resolver_factory resolver;
    const struct torc_resolver_factory *resolvers[2];
    _Atomic(torc_resolver_listener *) listener; /* a reference; NULL: no channel has resolved yet */
    struct actor actors[ACTORS];
};

static unsigned long n_done; /* operations of all rounds */

static unsigned chance(struct actor *a, unsigned n)
{
    return (unsigned)tc_rng_below(&a->rng, n);
}

/* --- a resolver whose listener other threads hold --- */

/* Called on the loop's thread. Keeps a reference to the scene's first listener, for the actors. Reports the address in
 * `rest`. */
static void *resolver_start(const char *rest, torc_resolver_listener *listener, void *arg)
{
    struct scene *s = arg;
    torc_resolver_listener *none = NULL;
    torc_resolver_listener_ref(listener);
    if (!atomic_compare_exchange_strong(&s->listener, &none, listener))
        torc_resolver_listener_unref(listener);
    const char *address = rest;
    struct torc_endpoint e = {TORC_SIZE(torc_endpoint), .addresses = &address, .n_addresses = 1};
    torc_resolver_report(listener, &e, 1, NULL); /* rejected once the runtime has begun to end */
    return s;
}

static void resolver_stop(void *state)
{
    (void)state;
}

/* Reports the server's address or an error to the listener that the scene keeps, if there is one yet. The listener's
 * channel may have ended. */
static int report(struct actor *a)
{
    torc_resolver_listener *listener = atomic_load(&a->scene->listener);
    if (!listener)
        return 0;
    if (chance(a, 4) == 0)
        return torc_resolver_report_error(listener, TORC_STATUS_UNAVAILABLE, "for a moment");
    const char *address = kit_backends_address(kit_backends_one, 0);
    struct torc_endpoint e = {TORC_SIZE(torc_endpoint), .addresses = &address, .n_addresses = 1};
    return torc_resolver_report(listener, &e, 1, NULL);
}

/* --- callbacks --- */

static void on_unary(const torc_result *result, void *arg)
{
    CHECK(torc_result_text(result));
    atomic_fetch_add(&((struct actor *)arg)->told, 1);
}

static void on_post(void *arg)
{
    atomic_fetch_add(&((struct actor *)arg)->told, 1);
}

static void on_state(torc_channel *channel, enum torc_connectivity state, const char *text, void *arg)
{
    (void)channel, (void)state, (void)text;
    atomic_fetch_add(&((struct actor *)arg)->told, 1);
}

static void on_done(torc_stream *call, const torc_result *result, void *arg)
{
    (void)call;
    on_unary(result, arg);
}

static const struct torc_stream_events events = {TORC_SIZE(torc_stream_events), .on_done = on_done};

/* --- actions of a thread --- */

static const char *method(struct actor *a)
{
    static const char *const methods[] = {"a.B/C", "torc.test.Backend/Hang", "torc.test.Backend/Fail"};
    return methods[chance(a, TC_ARRAY_LEN(methods))];
}

static struct torc_call_options options(struct actor *a)
{
    int64_t left = (int64_t)chance(a, 20);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = left ? left : -1,
                                  .wait_for_ready = chance(a, 2) != 0};
    return o;
}

static int unary(struct actor *a)
{
    struct torc_call_options o = options(a);
    torc_result *r = torc_unary(a->ch, method(a), "x", 1, &o);
    int rc = torc_error_code(torc_result_error(r));
    torc_result_free(r);
    return rc == TORC_ESTATUS ? 0 : rc;
}

static int unary_async(struct actor *a)
{
    struct torc_call_options o = options(a);
    torc_stream *call = NULL;
    bool keep = chance(a, 2);
    int rc = torc_unary_async(a->ch, method(a), "x", 1, &o, on_unary, a, keep ? &call : NULL, NULL);
    if (rc == 0)
        a->due++;
    if (call && chance(a, 2))
        torc_stream_cancel(call);
    torc_stream_free(call);
    return rc;
}

static int code_of(torc_error *error)
{
    int code = torc_error_code(error);
    torc_error_free(error);
    return code;
}

static int stream(struct actor *a)
{
    struct torc_call_options o = options(a);
    torc_error *error = NULL;
    torc_stream *call = torc_stream_start(a->ch, method(a), &o, &events, a, &error);
    if (!call)
        return code_of(error);
    a->due++;
    torc_stream_want(call, 1);
    torc_stream_send(call, "hello", 5, chance(a, 2) ? TORC_SEND_LAST : 0, 0);
    int rc = torc_stream_want(call, 1);
    if (chance(a, 2))
        torc_stream_cancel(call);
    torc_stream_free(call);
    return rc == TORC_ECLOSED ? 0 : rc; /* the RPC is over, maybe by its deadline */
}

static int stream_blocking(struct actor *a)
{
    struct torc_call_options o = options(a);
    const torc_message *m = NULL;
    torc_error *error = NULL;
    torc_stream *call = torc_stream_open(a->ch, method(a), &o, &error);
    if (!call)
        return code_of(error);
    torc_stream_send(call, "hello", 5, chance(a, 2) ? TORC_SEND_LAST : 0, -1);
    if (chance(a, 2))
        torc_stream_receive(call, -1, &m);
    if (chance(a, 2))
        torc_result_free(torc_stream_finish(call));
    torc_stream_free(call);
    return 0;
}

static int wait_state(struct actor *a)
{
    enum torc_connectivity now = torc_channel_state(a->ch, chance(a, 2));
    int rc = torc_channel_wait_state(a->ch, now, chance(a, 3), &now);
    return rc == TORC_ETIMEDOUT ? 0 : rc;
}

static int connect_to(struct actor *a)
{
    int rc = torc_channel_connect(a->ch, chance(a, 3));
    return rc == TORC_ETIMEDOUT ? 0 : rc;
}

static int watch(struct actor *a)
{
    int rc = torc_channel_watch_state(a->ch, torc_channel_state(a->ch, false), on_state, a);
    if (rc == 0)
        a->due++; /* the end of the runtime calls it, too */
    return rc;
}

static int describe(struct actor *a)
{
    char *json = NULL;
    int rc = torc_channel_describe(a->ch, &json);
    torc_free(json);
    return rc;
}

static int dump(struct actor *a)
{
    void *bytes = NULL;
    size_t n;
    int rc = torc_csds_dump(a->scene->rt, true, &bytes, &n);
    torc_free(bytes);
    return rc;
}

static int post(struct actor *a)
{
    int rc = torc_runtime_post(a->scene->rt, on_post, a);
    if (rc == 0)
        a->due++;
    return rc;
}

/* resolved: the target is for the scene's resolver. Returns NULL if the runtime was freed; otherwise a channel that the
 * caller frees. */
static torc_channel *channel_new(struct scene *s, bool resolved)
{
    char target[64];
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .resolvers = s->resolvers, .backoff_initial_ms = 2};
    snprintf(target, sizeof(target), "held:%s", kit_backends_address(kit_backends_one, 0));
    return torc_channel_new(s->rt, resolved ? target : kit_backends_target(kit_backends_one), &o, NULL);
}

/* Frees another channel and makes a new one. The thread's own channel keeps the runtime's handle valid. */
static int another(struct actor *a)
{
    torc_channel_free(a->other);
    a->other = channel_new(a->scene, chance(a, 2));
    if (a->other && chance(a, 2))
        torc_channel_state(a->other, true);
    torc_channel_reset_backoff(a->ch);
    return 0;
}

static int drive(struct actor *a)
{
    torc_runtime_timeout_ms(a->scene->rt);
    torc_runtime_fd(a->scene->rt);
    int rc = torc_runtime_poll(a->scene->rt, (int)chance(a, 2));
    return rc == TORC_ESTATE || rc > 0 ? 0 : rc;
}

static void *act(void *arg)
{
    /* Each returns 0, or TORC_ECLOSED if the runtime was freed. Other codes fail the test. */
    static int (*const deeds[])(struct actor *) = {
        unary,   unary_async, stream, stream_blocking, wait_state, connect_to, watch, describe,
        another, dump,        post,   report,          drive,      report,     post,
    };
    struct actor *a = arg;
    for (unsigned i = 0; i < MAX_STEPS && a->rc == 0; i++) {
        a->rc = deeds[chance(a, TC_ARRAY_LEN(deeds))](a);
        a->done++;
    }
    a->refused = unary(a) == TORC_ECLOSED && post(a) == TORC_ECLOSED && describe(a) == TORC_ECLOSED;
    return NULL;
}

/* --- one round --- */

/* Lets the actors run for a random time. Without a thread in the runtime, drives the loop now and then. */
static void pass_time(struct actor *a)
{
    unsigned n = chance(a, 3) ? chance(a, 300) : 0;
    for (unsigned i = 0; i < n; i++) {
        if (a->scene->own_loop && i % 8 == 0)
            torc_runtime_poll(a->scene->rt, 0);
        sched_yield();
    }
}

static void one_round(uint64_t seed)
{
    struct scene *s = TC_NEW(struct scene);
    struct actor master = {.scene = s}; /* the main thread, for `chance` and pass_time */
    tc_rng_init_seed(&master.rng, seed);
    s->own_loop = chance(&master, 2);
    s->rt = kit_backends_runtime(s->own_loop ? TORC_RUNTIME_CALLER : TORC_RUNTIME_THREAD);
    s->resolver = (struct torc_resolver_factory){
        .size = sizeof(s->resolver), .scheme = "held", .start = resolver_start, .stop = resolver_stop, .arg = s};
    s->resolvers[0] = &s->resolver;
    for (unsigned i = 0; i < ACTORS; i++) {
        struct actor *a = &s->actors[i];
        a->scene = s;
        tc_rng_init_seed(&a->rng, seed * ACTORS + i);
        a->ch = channel_new(s, i % 2);
        assert_non_null(a->ch);
        assert_int_equal(pthread_create(&a->thread, NULL, act, a), 0);
    }
    pass_time(&master);
    assert_int_equal(torc_runtime_free(s->rt), 0);
    for (unsigned i = 0; i < ACTORS; i++)
        pthread_join(s->actors[i].thread, NULL);
    torc_resolver_listener_unref(s->listener);
    for (unsigned i = 0; i < ACTORS; i++) {
        struct actor *a = &s->actors[i];
        unsigned told = atomic_load(&a->told);
        if (a->rc != 0 && (a->rc != TORC_ECLOSED || !a->refused))
            fail_msg("seed %llu: %s", (unsigned long long)seed, torc_strerror(a->rc));
        if (told != a->due)
            fail_msg("seed %llu: %u callbacks of %u", (unsigned long long)seed, told, a->due);
        torc_channel_free(a->other);
        torc_channel_free(a->ch);
        n_done += a->done;
    }
    tc_free(s);
}

static void test_runtime_end(void **state)
{
    (void)state;
    uint64_t n = tc_env_number("TORC_THREAD_ROUNDS", 150), first = tc_env_number("TORC_THREAD_SEED", 1);
    for (uint64_t i = 0; i < n; i++)
        one_round(first + i);
    print_message("%llu runtimes were freed while %d threads did %lu things with them\n", (unsigned long long)n, ACTORS,
                  n_done);
    assert_true(n < 100 || n_done > n * ACTORS); /* on average an actor did more than one thing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_runtime_end)};
    return cmocka_run_group_tests(tests, kit_backends_one_setup, kit_backends_one_teardown);
}
