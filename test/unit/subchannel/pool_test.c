/* The subchannel pool: states, backoffs, keys and the connect queue. No connection is ever made: an attempt is refused
 * by the test, times out, or is cancelled.
 *
 * There are two connectors. `start`, which setup gives to the pool, allows one open attempt at a time, until the test
 * refuses it or the pool cancels it. start_and_wait is for the tests of the connect queue: it allows any number of
 * attempts, which stay open until the pool cancels them. Some of these tests also change the process's limit of
 * descriptors, on which the queue's limits depend.
 *
 * setup and teardown own the loop, the pool, the config and the endpoint. Each test releases its subchannels. The loop
 * is manual, on virtual time, and the test's thread turns it. */
#include "subchannel/connection.h"
#include "subchannel/subchannel.h"

#include <sys/resource.h>

#include "base/mem.h"
#include "base/vec.h"
#include "support/cmocka.h"

/* An attempt to connect, which the test or the pool ends. */
struct tc_connect {
    tc_connect_fn fn;
    void *arg;
};

static struct tc_connect *attempt; /* the one that is open; NULL: none */
static int attempts, cancels;

static struct tc_connect *start(struct tc_loop *loop, const struct tc_addr *addr, const struct tc_connect_opts *opts,
                                tc_connect_fn fn, void *arg)
{
    (void)loop, (void)addr, (void)opts;
    assert_null(attempt);
    attempt = TC_NEW(struct tc_connect);
    attempt->fn = fn;
    attempt->arg = arg;
    attempts++;
    return attempt;
}

static void cancel(struct tc_connect *c)
{
    assert_ptr_equal(c, attempt);
    attempt = NULL;
    cancels++;
    tc_free(c);
}

static void refuse(void)
{
    struct tc_connect *c = attempt;
    attempt = NULL;
    struct tc_status why = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "refused by the test");
    c->fn(c->arg, NULL, &why);
    tc_status_fini(&why);
    tc_free(c);
}

static struct tc_loop *loop;
static struct tc_pool *pool;
static struct tc_conn_config *config;
static struct tc_endpoint *endpoint;

static int setup(void **state)
{
    (void)state;
    static const struct tc_connector connector = {.start = start, .cancel = cancel};
    loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true});
    pool = tc_pool_new(loop, 30000, 1000);
    tc_pool_set_connector(pool, &connector);
    config = TC_NEW(struct tc_conn_config);
    tc_ref_init(&config->ref);
    config->creds = torc_credentials_insecure();
    config->server_name = tc_rstr_str("name");
    config->backoff = tc_backoff_default;
    config->connect_timeout_ms = 20000;
    struct tc_addr addr;
    tc_addr_parse(&addr, tc_slice_str("10.0.0.1:80"));
    endpoint = tc_endpoint_new(&addr, 1);
    tc_addr_fini(&addr);
    attempts = cancels = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tc_pool_shutdown(pool);
    tc_endpoint_unref(endpoint);
    tc_conn_config_unref(config);
    tc_loop_free(loop);
    tc_pool_free(pool);
    assert_null(attempt);
    return 0;
}

/* The states that a subchannel told its policy. `fini` frees them. */
struct seen {
    TC_VEC(enum torc_connectivity) states; /* since the last EXPECT, the oldest first */
    char *text;                            /* of the last status; NULL: no state has come */
};

static void on_state(void *arg, enum torc_connectivity state, const struct tc_status *status)
{
    struct seen *s = arg;
    *tc_vec_push(&s->states) = state;
    tc_free(s->text);
    s->text = tc_strdup(tc_status_text(status));
}

static void expect_states(struct seen *s, const enum torc_connectivity *want, size_t n)
{
    assert_int_equal(s->states.len, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(s->states.data[i], want[i]);
    s->states.len = 0;
}

/* Asserts that these states, and no others, have come since the last EXPECT. */
#define EXPECT(seen, ...)                                                                                              \
    expect_states(seen, (enum torc_connectivity[]){__VA_ARGS__},                                                       \
                  sizeof((enum torc_connectivity[]){__VA_ARGS__}) / sizeof(enum torc_connectivity))

static struct tc_subchannel *make(struct seen *seen)
{
    return tc_subchannel_new(pool, config, endpoint, &endpoint->addrs[0], on_state, seen, NULL, NULL);
}

static void fini(struct seen *s)
{
    tc_vec_fini(&s->states);
    tc_free(s->text);
}

static void test_backoff(void **state)
{
    (void)state;
    struct seen s = {0};
    struct tc_subchannel *sc = make(&s);
    assert_int_equal(s.states.len, 0); /* states come by the serial queue */
    tc_loop_drain(loop);
    EXPECT(&s, TORC_CONNECTIVITY_IDLE);
    double expected = 1000;
    for (int round = 0; round < 12; round++) {
        tc_subchannel_connect(sc);
        tc_subchannel_connect(sc);
        tc_loop_drain(loop);
        EXPECT(&s, TORC_CONNECTIVITY_CONNECTING);
        refuse();
        tc_loop_drain(loop);
        EXPECT(&s, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
        assert_string_equal(s.text, "refused by the test");
        uint64_t began = tc_loop_now_ms(loop);
        tc_subchannel_connect(sc); /* no attempt before the backoff is over */
        assert_null(attempt);
        while (s.states.len == 0)
            tc_loop_advance(loop, 1);
        double waited = (double)(tc_loop_now_ms(loop) - began);
        assert_true(waited >= expected * 0.8 - 2 && waited <= expected * 1.2 + 2);
        EXPECT(&s, TORC_CONNECTIVITY_IDLE);
        expected = expected * 1.6 > 120000 ? 120000 : expected * 1.6;
    }
    assert_int_equal(attempts, 12);
    tc_subchannel_release(sc);
    fini(&s);
}

static void test_reset_backoff(void **state)
{
    (void)state;
    struct seen s = {0};
    struct tc_subchannel *sc = make(&s);
    tc_subchannel_connect(sc);
    refuse();
    tc_subchannel_reset_backoff(sc);
    tc_loop_drain(loop);
    EXPECT(&s, TORC_CONNECTIVITY_IDLE, TORC_CONNECTIVITY_CONNECTING, TORC_CONNECTIVITY_TRANSIENT_FAILURE,
           TORC_CONNECTIVITY_IDLE);
    tc_subchannel_release(sc);
    fini(&s);
}

static void test_connect_timeout(void **state)
{
    (void)state;
    struct seen s = {0};
    struct tc_subchannel *sc = make(&s);
    tc_subchannel_connect(sc);
    tc_loop_advance(loop, 19999);
    EXPECT(&s, TORC_CONNECTIVITY_IDLE, TORC_CONNECTIVITY_CONNECTING);
    tc_loop_advance(loop, 2);
    /* The backoff counts from the attempt's start, and is over when the attempt times out. */
    EXPECT(&s, TORC_CONNECTIVITY_TRANSIENT_FAILURE, TORC_CONNECTIVITY_IDLE);
    assert_non_null(strstr(s.text, "failed to connect to 10.0.0.1:80: timed out after 20000 ms"));
    assert_int_equal(cancels, 1);
    tc_subchannel_release(sc);
    fini(&s);
}

/* Subchannels that share a connection see the states after their own connect, in order. */
static void test_sharing(void **state)
{
    (void)state;
    struct seen a = {0}, b = {0};
    struct tc_subchannel *one = make(&a), *two = make(&b);
    tc_loop_drain(loop);
    assert_int_equal(tc_pool_count(pool), 1);
    tc_subchannel_connect(one);
    tc_loop_drain(loop);
    EXPECT(&a, TORC_CONNECTIVITY_IDLE, TORC_CONNECTIVITY_CONNECTING);
    EXPECT(&b, TORC_CONNECTIVITY_IDLE);
    tc_subchannel_connect(two);
    tc_loop_drain(loop);
    EXPECT(&b, TORC_CONNECTIVITY_CONNECTING);
    assert_int_equal(attempts, 1);
    refuse();
    tc_loop_drain(loop);
    EXPECT(&a, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    EXPECT(&b, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    /* A subchannel that connects during the backoff hears of the failure at once. */
    struct seen c = {0};
    struct tc_subchannel *three = make(&c);
    tc_subchannel_connect(three);
    tc_loop_drain(loop);
    EXPECT(&c, TORC_CONNECTIVITY_IDLE, TORC_CONNECTIVITY_CONNECTING, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(c.text, "refused by the test");
    /* Released subchannels are silent; the attempt is cancelled with the last subchannel. */
    tc_subchannel_release(two);
    tc_subchannel_release(three);
    tc_loop_advance(loop, 5000);
    EXPECT(&a, TORC_CONNECTIVITY_IDLE);
    tc_subchannel_connect(one);
    tc_subchannel_release(one);
    assert_int_equal(cancels, 1);
    tc_loop_drain(loop);
    assert_int_equal(a.states.len + b.states.len + c.states.len, 0);
    assert_int_equal(tc_pool_count(pool), 0);
    fini(&a);
    fini(&b);
    fini(&c);
}

/* A policy that comes back to an address during the address's backoff waits for the rest of the backoff. */
static void test_backoff_outlives_its_policy(void **state)
{
    (void)state;
    struct seen s = {0};
    struct tc_subchannel *sc = make(&s);
    tc_subchannel_connect(sc);
    refuse();
    tc_subchannel_release(sc);
    assert_int_equal(tc_pool_count(pool), 1);
    tc_loop_advance(loop, 500);
    s.states.len = 0;
    sc = make(&s);
    tc_subchannel_connect(sc);
    tc_loop_drain(loop);
    EXPECT(&s, TORC_CONNECTIVITY_IDLE, TORC_CONNECTIVITY_CONNECTING, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_int_equal(attempts, 1);
    /* After 1.25 s the first backoff is over, which lasts 1.2 s at most. A new backoff would last 0.8 s at least. */
    tc_loop_advance(loop, 750);
    EXPECT(&s, TORC_CONNECTIVITY_IDLE);
    tc_subchannel_connect(sc);
    assert_int_equal(attempts, 2);
    refuse();
    tc_subchannel_release(sc);
    assert_int_equal(tc_pool_count(pool), 1);
    tc_loop_advance(loop, 30001);
    assert_int_equal(tc_pool_count(pool), 0);
    fini(&s);
}

/* A backoff binds the other channels that share the address. The pool forgets the backoff with the channel that used
 * the connection last. */
static void test_backoff_ends_with_its_channel(void **state)
{
    (void)state;
    struct seen s = {0};
    struct tc_conn_config *other = TC_NEW(struct tc_conn_config);
    *other = *config;
    tc_ref_init(&other->ref);
    torc_credentials_ref(other->creds);
    tc_rstr_ref(other->server_name);
    struct tc_subchannel *one = make(&s);
    tc_subchannel_connect(one);
    refuse();
    tc_subchannel_release(one);
    struct tc_subchannel *two = tc_subchannel_new(pool, other, endpoint, &endpoint->addrs[0], on_state, &s, NULL, NULL);
    tc_subchannel_connect(two);
    tc_loop_drain(loop);
    assert_int_equal(attempts, 1);
    /* `two` holds the connection, and once it is released its channel is the last user of the connection. So the end of
     * the first channel changes nothing in either case. */
    tc_pool_channel_gone(pool, config);
    assert_int_equal(tc_pool_count(pool), 1);
    tc_subchannel_release(two);
    tc_pool_channel_gone(pool, config);
    assert_int_equal(tc_pool_idle_count(pool), 1);
    tc_pool_channel_gone(pool, other);
    assert_int_equal(tc_pool_count(pool), 0);
    assert_int_equal(tc_pool_idle_count(pool), 0);
    one = make(&s);
    tc_subchannel_connect(one);
    assert_int_equal(attempts, 2);
    /* A subchannel that outlives its channel leaves no backoff either. */
    refuse();
    tc_subchannel_release(one);
    assert_int_equal(tc_pool_count(pool), 0);
    /* A config secured by the cluster belongs to its channel all the same. */
    struct tc_conn_config *secured = tc_conn_config_secured(other, other->creds, other->server_name);
    tc_conn_config_unref(other);
    one = tc_subchannel_new(pool, secured, endpoint, &endpoint->addrs[0], on_state, &s, NULL, NULL);
    tc_conn_config_unref(secured);
    tc_subchannel_connect(one);
    refuse();
    tc_subchannel_release(one);
    assert_int_equal(tc_pool_count(pool), 0);
    fini(&s);
}

/* Configs with different keepalive times do not share a connection. */
static void test_keys(void **state)
{
    (void)state;
    struct seen s = {0};
    struct tc_subchannel *plain = make(&s);
    struct tc_conn_config other = *config;
    other.keepalive_time_ms = 60000;
    struct tc_conn_config *heap = TC_NEW(struct tc_conn_config);
    *heap = other;
    tc_ref_init(&heap->ref);
    torc_credentials_ref(heap->creds);
    tc_rstr_ref(heap->server_name);
    struct tc_subchannel *kept = tc_subchannel_new(pool, heap, endpoint, &endpoint->addrs[0], on_state, &s, NULL, NULL);
    assert_int_equal(tc_pool_count(pool), 2);
    assert_null(tc_subchannel_transport(plain));
    tc_subchannel_release(plain);
    tc_subchannel_release(kept);
    assert_int_equal(tc_pool_count(pool), 0);
    tc_conn_config_unref(heap);
    fini(&s);
}

/* Starts an attempt that stays open until the pool cancels it. */
static struct tc_connect *start_and_wait(struct tc_loop *of, const struct tc_addr *addr,
                                         const struct tc_connect_opts *opts, tc_connect_fn fn, void *arg)
{
    (void)of, (void)addr, (void)opts, (void)fn, (void)arg;
    attempts++;
    return TC_NEW(struct tc_connect);
}

static void cancel_waiting(struct tc_connect *c)
{
    cancels++;
    tc_free(c);
}

/* Makes a subchannel to 10.0.1.i, in this locality (NULL: none), and asks it to connect. The caller releases it. */
static struct tc_subchannel *make_in(struct tc_locality *locality, int i, struct seen *seen)
{
    struct tc_addr addr;
    char *text = tc_asprintf("10.0.1.%d:80", i);
    tc_addr_parse(&addr, tc_slice_str(text));
    struct tc_endpoint *e = tc_endpoint_new(&addr, 1);
    e->locality = locality ? tc_locality_ref(locality) : NULL;
    struct tc_subchannel *sc = tc_subchannel_new(pool, config, e, &e->addrs[0], on_state, seen, NULL, NULL);
    tc_subchannel_connect(sc);
    tc_endpoint_unref(e);
    tc_addr_fini(&addr);
    tc_free(text);
    return sc;
}

static struct tc_subchannel *make_numbered(int i, struct seen *seen)
{
    return make_in(NULL, i, seen);
}

/* Connecting to many endpoints is spread over loop turns. */
static void test_many_attempts(void **state)
{
    (void)state;
    enum { N = 200, AT_ONCE = 16 };
    static const struct tc_connector connector = {.start = start_and_wait, .cancel = cancel_waiting};
    struct tc_subchannel *sc[N];
    struct seen s[N] = {{.text = NULL}};
    tc_pool_set_connector(pool, &connector);
    for (int i = 0; i < N; i++)
        sc[i] = make_numbered(i, &s[i]);
    assert_int_equal(attempts, AT_ONCE);
    int most = attempts, turns = 0;
    for (; attempts < N; turns++) {
        int before = attempts;
        assert_true(tc_loop_turn(loop, 0));
        most = TC_MAX(most, attempts - before);
    }
    assert_int_equal(most, AT_ONCE);
    assert_in_range(turns, N / AT_ONCE - 1, N / AT_ONCE + 1);
    tc_loop_drain(loop);
    for (int i = 0; i < N; i++) {
        EXPECT(&s[i], TORC_CONNECTIVITY_IDLE, TORC_CONNECTIVITY_CONNECTING);
        tc_subchannel_release(sc[i]);
        fini(&s[i]);
    }
    tc_pool_shutdown(pool);
    assert_int_equal(cancels, N);
}

static struct rlimit unlimited; /* the limits before limit_descriptors; rlim_max 0: not changed */

/* Limits the process to `most` descriptors, or to the hard limit if that is less, until unlimit_descriptors. */
static void limit_descriptors(rlim_t most)
{
    if (!unlimited.rlim_max)
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &unlimited), 0);
    struct rlimit limit = {TC_MIN(most, unlimited.rlim_max), unlimited.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void unlimit_descriptors(void)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &unlimited), 0);
    unlimited.rlim_max = 0;
}

/* The attempts of a channel to endpoints of one locality leave the process half of its descriptors. An attempt to
 * connect to a control plane does not wait for them. */
static void test_silent_endpoints(void **state)
{
    (void)state;
    enum { N = 200, MOST = 80 };
    static const struct tc_connector connector = {.start = start_and_wait, .cancel = cancel_waiting};
    struct tc_subchannel *sc[N];
    struct seen s = {.text = NULL};
    limit_descriptors(MOST * 2);
    tc_pool_set_connector(pool, &connector);
    for (int i = 0; i < N; i++)
        sc[i] = make_numbered(i, &s);
    tc_loop_drain(loop);
    assert_int_equal(attempts, MOST);
    /* Ten attempts are cancelled, and ten others begin. Later all attempts that are under way time out. */
    for (int i = 0; i < 10; i++)
        tc_subchannel_release(sc[i]);
    tc_loop_drain(loop);
    assert_int_equal(attempts, MOST + 10);
    assert_int_equal(cancels, 10);
    tc_loop_advance(loop, config->connect_timeout_ms);
    assert_int_equal(cancels, MOST + 10);
    assert_int_equal(attempts, 2 * MOST + 10); /* the next attempts began in their places */
    /* A connection to a control plane does not wait. */
    config->is_private = true;
    struct tc_subchannel *control_plane = make_numbered(N, &s);
    assert_int_equal(attempts, 2 * MOST + 11);
    limit_descriptors(1000);
    tc_subchannel_release(control_plane);
    tc_loop_drain(loop);
    assert_int_equal(attempts, N + 1);
    for (int i = 10; i < N; i++)
        tc_subchannel_release(sc[i]);
    tc_pool_shutdown(pool);
    assert_int_equal(cancels, attempts);
    unlimit_descriptors();
    fini(&s);
}

/* Does what make_numbered does, with the config `of`. */
static struct tc_subchannel *make_of(struct tc_conn_config *of, int i, struct seen *seen)
{
    struct tc_conn_config *mine = config;
    config = of;
    struct tc_subchannel *sc = make_numbered(i, seen);
    config = mine;
    return sc;
}

/* A channel's silent endpoints do not keep other channels waiting. (pool_idle_test.c has the channel's own endpoints
 * that were connected before.) */
static void test_channels_take_turns(void **state)
{
    (void)state;
    enum { N = 200, MOST = 80, OTHERS = 20, OWN = 8 };
    static const struct tc_connector connector = {.start = start_and_wait, .cancel = cancel_waiting};
    struct tc_subchannel *sc[N], *other[OTHERS];
    struct seen s = {.text = NULL};
    struct tc_conn_config *second = tc_conn_config_secured(config, config->creds, config->server_name);
    tc_conn_config_unref(second->channel); /* a second channel, with its own connections */
    second->channel = NULL;
    second->keepalive_time_ms = 60000;
    limit_descriptors(MOST * 2);
    tc_pool_set_connector(pool, &connector);
    for (int i = 0; i < N; i++)
        sc[i] = make_numbered(i, &s);
    tc_loop_drain(loop);
    assert_int_equal(attempts, MOST);
    for (int i = 0; i < OTHERS; i++)
        other[i] = make_of(second, i, &s);
    tc_loop_drain(loop);
    assert_int_equal(attempts, MOST + OWN);
    /* When attempts end, channels take turns. */
    for (int i = 0; i < 2 * OWN; i++)
        tc_subchannel_release(sc[i]);
    tc_loop_drain(loop);
    assert_int_equal(attempts, MOST + 2 * OWN);
    for (int i = 0; i < OTHERS; i++)
        tc_subchannel_release(other[i]);
    tc_loop_drain(loop);
    assert_int_equal(cancels, 2 * OWN + OWN + OWN / 2);
    for (int i = 2 * OWN; i < N; i++)
        tc_subchannel_release(sc[i]);
    tc_pool_shutdown(pool);
    assert_int_equal(cancels, attempts);
    unlimit_descriptors();
    tc_conn_config_unref(second);
    fini(&s);
}

/* A locality's silent endpoints do not keep the channel's other localities waiting: failover needs them. */
static void test_localities_take_turns(void **state)
{
    (void)state;
    enum { N = 200, MOST = 80, LOCALITIES = 30 };
    static const struct tc_connector connector = {.start = start_and_wait, .cancel = cancel_waiting};
    struct tc_subchannel *sc[N];
    struct tc_locality *localities[LOCALITIES];
    struct seen s = {.text = NULL};
    limit_descriptors(MOST * 2);
    tc_pool_set_connector(pool, &connector);
    for (size_t i = 0; i < LOCALITIES; i++)
        localities[i] = tc_locality_new(tc_slice_str("region"), tc_slice_str("zone"), tc_slice_str(""));
    for (int i = 0; i < N - LOCALITIES; i++)
        sc[i] = make_in(localities[0], i, &s);
    tc_loop_drain(loop);
    assert_int_equal(attempts, MOST);
    sc[N - LOCALITIES] = make_in(localities[1], N - LOCALITIES, &s);
    tc_loop_drain(loop);
    assert_int_equal(attempts, MOST + 1);
    /* One attempt of each locality, up to 5/8 of the descriptors. */
    for (int i = 1; i < LOCALITIES; i++)
        sc[N - LOCALITIES + i] = make_in(localities[i], N - LOCALITIES + i, &s);
    tc_loop_drain(loop);
    assert_int_equal(attempts, MOST + MOST / 4);
    /* When attempts end, localities take turns. */
    for (int i = 0; i < MOST; i++)
        tc_subchannel_release(sc[i]);
    tc_loop_drain(loop);
    assert_int_equal(attempts, 2 * MOST);
    for (int i = N - LOCALITIES; i < N; i++)
        tc_subchannel_release(sc[i]);
    assert_int_equal(cancels, MOST + LOCALITIES); /* all of these had begun: each release cancelled one */
    for (int i = MOST; i < N - LOCALITIES; i++)
        tc_subchannel_release(sc[i]);
    tc_pool_shutdown(pool);
    assert_int_equal(cancels, attempts);
    unlimit_descriptors();
    for (size_t i = 0; i < LOCALITIES; i++)
        tc_locality_unref(localities[i]);
    fini(&s);
}

/* The pool ends while connections wait for their turn: none of them begins, and the attempts under way are
 * cancelled. */
static void test_end_of_many_attempts(void **state)
{
    (void)state;
    enum { N = 200 };
    static const struct tc_connector connector = {.start = start_and_wait, .cancel = cancel_waiting};
    tc_pool_set_connector(pool, &connector);
    struct tc_subchannel *sc[N];
    struct seen s = {.text = NULL};
    for (int i = 0; i < N; i++)
        sc[i] = make_numbered(i, &s);
    int begun = attempts;
    assert_in_range(begun, 1, N - 1);
    assert_int_equal(cancels, 0);
    tc_pool_shutdown(pool);
    tc_loop_drain(loop);
    assert_int_equal(attempts, begun);
    assert_int_equal(cancels, begun);
    for (int i = 0; i < N; i++)
        tc_subchannel_release(sc[i]);
    fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_backoff, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reset_backoff, setup, teardown),
        cmocka_unit_test_setup_teardown(test_connect_timeout, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sharing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_backoff_outlives_its_policy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_backoff_ends_with_its_channel, setup, teardown),
        cmocka_unit_test_setup_teardown(test_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_attempts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_silent_endpoints, setup, teardown),
        cmocka_unit_test_setup_teardown(test_channels_take_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(test_localities_take_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(test_end_of_many_attempts, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
