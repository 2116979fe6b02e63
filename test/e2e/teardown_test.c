/* Calls, channels and runtimes that end at any moment of any flow, from any thread and from inside callbacks: nothing
 * is called twice or too late, nothing crashes, hangs, or stays behind. TORC_TEARDOWNS says how many (300 by default),
 * TORC_TEARDOWN_SEED from which seed; one that fails is run again alone by its seed and TORC_TEARDOWNS=1. */
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <torc/torc.h>

#include "support/certs.h"
#include "support/cmocka.h"
#include "support/mesh_kit.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"

/* libcrypto and libuv are not built with the sanitizer: it does not see them open and close, and takes a descriptor for
 * an earlier one of the same number. */
#ifdef __SANITIZE_THREAD__
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:OPENSSL_DIR_end\nrace:epoll_create1\nrace:epoll_wait\n";
}
#endif

#define CHANNELS 3
#define CALLS 6
#define HANG_S 120
#define SETTLE_NS (20 * TC_NS_PER_S)

enum { PLAIN_A, PLAIN_B, HELD, SECURE, BACKENDS };

static struct mesh_kit *k;
static struct tc_cert ca, server_cert;
static torc_credentials *creds;
static uint64_t seed_now;

/* A call, and what became of it; under the lock. */
struct call {
    struct world *w;
    torc_call *handle;
    bool streaming, started, given_up;
    unsigned done;
};

/* What one teardown is about. */
struct world {
    struct tc_rng rng; /* the main thread's */
    pthread_mutex_t lock;
    torc_runtime *rt;
    bool own_loop;
    torc_channel *channels[CHANNELS]; /* under the lock, as is what follows */
    struct call calls[CALLS];
    size_t n_calls;
    unsigned callbacks, act_at; /* something is given up inside that callback */
    unsigned act_what;
};

static unsigned chance(struct world *w, unsigned n)
{
    return (unsigned)tc_rng_below(&w->rng, n);
}

/* --- giving up --- */

static torc_call *take_call(struct world *w, size_t i)
{
    pthread_mutex_lock(&w->lock);
    torc_call *handle = w->calls[i].handle;
    w->calls[i].handle = NULL;
    w->calls[i].given_up |= handle != NULL;
    pthread_mutex_unlock(&w->lock);
    return handle;
}

static torc_channel *take_channel(struct world *w, size_t i)
{
    pthread_mutex_lock(&w->lock);
    torc_channel *ch = w->channels[i];
    w->channels[i] = NULL;
    pthread_mutex_unlock(&w->lock);
    return ch;
}

static void give_up(struct world *w, unsigned what)
{
    if (what < CALLS)
        torc_call_free(take_call(w, what));
    else if (what < CALLS + CHANNELS)
        torc_channel_free(take_channel(w, what - CALLS));
}

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

static void on_headers(torc_call *call, const torc_metadata *headers, void *arg)
{
    (void)call, (void)headers;
    in_callback(((struct call *)arg)->w);
}

static void on_message(torc_call *call, torc_message *message, void *arg)
{
    (void)call, (void)message;
    in_callback(((struct call *)arg)->w);
}

static void on_written(torc_call *call, void *arg)
{
    (void)call;
    in_callback(((struct call *)arg)->w);
}

static void ended(struct call *c, const struct torc_result *r)
{
    assert_non_null(r->message);
    pthread_mutex_lock(&c->w->lock);
    c->done++;
    pthread_mutex_unlock(&c->w->lock);
    in_callback(c->w);
}

static void on_done(torc_call *call, const struct torc_result *result, void *arg)
{
    (void)call;
    ended(arg, result);
}

static void on_unary(const struct torc_result *result, void *arg)
{
    ended(arg, result);
}

static const struct torc_call_events events = {
    .on_headers = on_headers, .on_message = on_message, .on_written = on_written, .on_done = on_done};

static void on_channel_state(torc_channel *channel, enum torc_connectivity state, const char *text, void *arg)
{
    (void)channel, (void)state, (void)text;
    in_callback(arg);
}

static void start_call(struct world *w)
{
    static const char *const methods[] = {"a.B/C", "a.B/Chat", "torc.test.Backend/Hang", "torc.test.Backend/Fail"};
    size_t at = chance(w, CHANNELS);
    if (w->n_calls == CALLS)
        return;
    /* A channel that a callback frees meanwhile would be used after its end by us. */
    torc_channel *ch = take_channel(w, at);
    if (!ch)
        return;
    struct call *c = &w->calls[w->n_calls++];
    c->w = w;
    c->streaming = chance(w, 2);
    bool keep = chance(w, 2);
    struct torc_call_options o;
    torc_call_options_init(&o);
    o.wait_for_ready = chance(w, 2);
    o.timeout_ms = chance(w, 2) ? (int64_t)chance(w, 20) : -1;
    o.explain = chance(w, 4) == 0;
    const char *method = methods[chance(w, TC_ARRAY_LEN(methods))];
    torc_call *handle = NULL;
    int rc = 0;
    if (c->streaming)
        handle = torc_call_start(ch, method, &o, &events, c, &rc);
    else if (chance(w, 5) == 0)
        rc = torc_call_explain_async(ch, method, &o, on_unary, c, keep ? &handle : NULL);
    else
        rc = torc_call_unary_async(ch, method, "14", 2, &o, on_unary, c, keep ? &handle : NULL);
    assert_int_equal(rc, 0);
    if (c->streaming) {
        torc_call_read(handle);
        torc_call_write(handle, "hello", 5, chance(w, 2));
        if (chance(w, 2))
            torc_call_read(handle);
    }
    pthread_mutex_lock(&w->lock);
    c->handle = handle;
    c->started = true;
    w->channels[at] = ch;
    pthread_mutex_unlock(&w->lock);
}

/* --- channels --- */

static const char retries[] =
    "{\"loadBalancingConfig\":[{\"round_robin\":{}}],\"methodConfig\":[{\"name\":[{}],\"retryPolicy\":{\"maxAttempts\":"
    "3,"
    "\"initialBackoff\":\"0.002s\",\"maxBackoff\":\"0.01s\",\"backoffMultiplier\":2,\"retryableStatusCodes\":["
    "\"UNAVAILABLE\"]}}]}";
static const char hedges[] =
    "{\"methodConfig\":[{\"name\":[{}],\"hedgingPolicy\":{\"maxAttempts\":3,\"hedgingDelay\":\"0.001s\","
    "\"nonFatalStatusCodes\":[\"UNAVAILABLE\"]}}]}";

static void open_channel(struct world *w, size_t at)
{
    static const char *const names[] = {"ring", "aggregate", "dns", "filtered", "gone"};
    struct torc_channel_options o;
    torc_channel_options_init(&o);
    o.xds_bootstrap_json = mesh_kit_bootstrap(k);
    o.backoff_initial_ms = 5;
    o.backoff_max_ms = 20;
    o.connect_timeout_ms = chance(w, 2) ? 5 : 20000;
    char *target = NULL;
    unsigned which = chance(w, 12);
    const char *a = mesh_kit_address(k, PLAIN_A), *b = mesh_kit_address(k, PLAIN_B);
    if (which < 6) {
        target = tc_asprintf("xds:///%s", names[which % TC_ARRAY_LEN(names)]);
    } else if (which == 6) {
        o.service_config_json = retries;
        target = tc_asprintf("ipv4:%s,%s,127.0.0.1:1", a, b);
    } else if (which == 7) {
        o.service_config_json = hedges;
        target = tc_asprintf("ipv4:%s", a);
    } else if (which == 8) {
        target = tc_asprintf("dns:///localhost:%s", strrchr(b, ':') + 1);
    } else if (which == 9) {
        target = tc_asprintf("ipv4:%s", mesh_kit_address(k, HELD));
    } else if (which == 10) {
        o.credentials = creds;
        target = tc_asprintf("ipv4:%s", mesh_kit_address(k, SECURE));
    } else {
        target = tc_strdup("ipv4:127.0.0.1:1");
    }
    w->channels[at] = torc_channel_new(w->rt, target, &o, NULL);
    assert_non_null(w->channels[at]);
    tc_free(target);
}

/* --- one teardown --- */

static void pass_time(struct world *w)
{
    if (w->own_loop)
        assert_true(torc_runtime_poll(w->rt, (int)chance(w, 2)) >= 0);
    else
        (void)poll(NULL, 0, (int)chance(w, 3)); /* a moment of chance: nothing is waited for */
}

/* Something happens, besides the passing of time. */
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
        torc_call *call = take_call(w, i);
        if (call)
            torc_call_cancel(call);
        torc_call_free(call);
        break;
    }
    case 6:
        if (chance(w, 8) == 0)
            mesh_kit_goaway(k, chance(w, 2) ? PLAIN_A : PLAIN_B);
        break;
    case 7:
        if (chance(w, 8) == 0)
            mesh_kit_put_endpoints(k, "ring", chance(w, 2) ? "0/a: 0, 1" : "0/a: 1; 1/b: 0", NULL);
        break;
    case 8:
        if (chance(w, 16) == 0) {
            mesh_kit_stop(k, PLAIN_B);
            mesh_kit_start(k, PLAIN_B);
        }
        break;
    default:
        break;
    }
}

/* Everything ends, in an order of chance. */
static void tear_down(struct world *w)
{
    unsigned order[CALLS + CHANNELS + 1];
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
    struct torc_runtime_options o;
    torc_runtime_options_init(&o);
    w->own_loop = chance(w, 3) != 0;
    o.mode = w->own_loop ? TORC_RUNTIME_CALLER : TORC_RUNTIME_THREAD;
    if (chance(w, 4) == 0)
        o.max_idle_connections = 0;
    w->rt = torc_runtime_new(&o);
    assert_non_null(w->rt);
    w->act_at = chance(w, 3) ? 0 : 1 + chance(w, 6);
    w->act_what = chance(w, CALLS + CHANNELS);
    size_t n = 1 + chance(w, CHANNELS);
    for (size_t i = 0; i < n; i++)
        open_channel(w, i);
    start_call(w);
    unsigned steps = chance(w, 4) ? chance(w, 12) : chance(w, 80);
    for (unsigned i = 0; i < steps; i++) {
        pass_time(w);
        stir(w);
    }
    tear_down(w);
    for (size_t i = 0; i < w->n_calls; i++) {
        const struct call *c = &w->calls[i];
        if (c->done > 1 || (c->done == 0 && !c->given_up))
            fail_msg("seed %llu: call %zu ended %u times", (unsigned long long)seed, i, c->done);
    }
    pthread_mutex_destroy(&w->lock);
    tc_free(w);
}

/* --- the campaign --- */

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

/* The servers see a moment later what is closed. */
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

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void teardowns(void **state)
{
    (void)state;
    uint64_t n = number("TORC_TEARDOWNS", 300), first = number("TORC_TEARDOWN_SEED", 1);
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
}

static int open_world(void **state)
{
    (void)state;
    ca = tc_cert_make(&(struct tc_cert_opts){.common_name = "ca", .ca = true});
    server_cert = tc_cert_make(&(struct tc_cert_opts){.common_name = "server", .sans = "IP:127.0.0.1", .issuer = &ca});
    struct tc_tls_opts opts = {
        .server = true, .certificate_pem = tc_cert_pem(&server_cert), .private_key_pem = tc_cert_key(&server_cert)};
    struct torc_tls_options t;
    torc_tls_options_init(&t);
    t.roots_pem = ca.cert_pem;
    creds = torc_credentials_tls(&t, NULL);
    assert_non_null(creds);
    k = mesh_kit_new(BACKENDS);
    mesh_kit_hold(k, HELD);
    mesh_kit_secure(k, SECURE, &opts);
    mesh_kit_put_endpoints(k, "ring", "0/a: 0, 1", NULL);
    mesh_kit_put_endpoints(k, "held", "0/a: 2", NULL);
    mesh_kit_put_cluster(k, "ring", NULL);
    mesh_kit_put_cluster(k, "held", "lb_policy: ROUND_ROBIN");
    mesh_kit_put_dns(k, "dns", "localhost", strrchr(mesh_kit_address(k, PLAIN_A), ':') + 1, "ROUND_ROBIN");
    mesh_kit_put_aggregate(k, "aggregate", "held, ring");
    mesh_kit_put_listener(k, "ring", "ring", NULL);
    mesh_kit_put_listener(k, "dns", "dns", NULL);
    mesh_kit_put_listener(k, "aggregate", "aggregate", NULL);
    mesh_kit_put_filtered(
        k, "filtered",
        "{name: fault, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault, "
        "delay: {fixed_delay: 0.003s, percentage: {numerator: 50}}}},",
        "{match: {prefix: \"/\"}, route: {cluster: ring, retry_policy: {retry_on: unavailable, num_retries: 2}}}");
    torc_channel *ch = mesh_kit_channel(k, "ring", NULL);
    mesh_kit_calls(ch, NULL, 1);
    torc_channel_free(ch);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    mesh_kit_free(k);
    torc_credentials_unref(creds);
    tc_cert_fini(&server_cert);
    tc_cert_fini(&ca);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(teardowns)};
    return cmocka_run_group_tests(tests, open_world, close_world);
}
