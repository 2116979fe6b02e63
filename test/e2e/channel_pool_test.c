/* The subchannel pool on real sockets: channels without calls go IDLE, connections that no policy holds are kept or
 * closed, and a new channel does not wait for the backoff of a freed one. Asserts the channel's state, and how many
 * connections the echo servers (kits/backends.h) have had and have open.
 *
 * Each test has four servers of its own. open_runtime makes a client's runtime, and sets for how long unused
 * connections are kept, and how many. test_left_closes_first makes one runtime after another, and frees them; the other
 * tests make one, which teardown frees. The test's thread drives the client. */
#include <stdio.h>
#include <string.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"

static struct kit_backends *kit;
static torc_runtime *rt;

static void open_runtime(int64_t idle_connection_ms, int64_t max_idle)
{
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER,
                                     .idle_connection_ms = idle_connection_ms, .max_idle_connections = max_idle};
    rt = torc_runtime_new(&o, NULL);
    assert_non_null(rt);
}

static int setup(void **state)
{
    (void)state;
    kit = kit_backends_new(4, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_backends_free(kit);
    return torc_runtime_free(rt);
}

static torc_channel *open_one(size_t i, const struct torc_channel_options *options)
{
    char target[64];
    snprintf(target, sizeof(target), "ipv4:%s", kit_backends_address(kit, i));
    torc_channel *ch = torc_channel_new(rt, target, options, NULL);
    assert_non_null(ch);
    return ch;
}

static void call_ok(torc_channel *ch)
{
    torc_result *r = torc_unary(ch, "a/b", "x", 1, NULL);
    assert_string_equal(torc_result_text(r), "");
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
}

/* Waits until server i has `want` open connections. */
static void wait_open(size_t i, size_t want)
{
    while (kit_backends_counts(kit, i).open_connections != want)
        torc_runtime_poll(rt, 10);
}

static void on_unary(const torc_result *result, void *arg)
{
    *(int *)arg = torc_result_code(result);
}

/* Without calls the channel goes IDLE. The next call wakes the channel and uses the kept connection. */
static void test_idle_timeout(void **state)
{
    (void)state;
    open_runtime(30000, 1000);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .idle_timeout_ms = 40};
    torc_channel *ch = open_one(0, &o);
    call_ok(ch);
    assert_int_equal(torc_channel_state(ch, false), TORC_CONNECTIVITY_READY);
    enum torc_connectivity now;
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_READY, 60000, &now), 0);
    assert_int_equal(now, TORC_CONNECTIVITY_IDLE);
    call_ok(ch);
    assert_int_equal(kit_backends_counts(kit, 0).connections, 1);

    /* A running call keeps the channel awake, even if no message comes. */
    int code = -1;
    torc_stream *call = NULL;
    assert_int_equal(torc_unary_async(ch, "torc.test.Backend/Hang", "", 0, NULL, on_unary, &code, &call, NULL), 0);
    while (kit_backends_counts(kit, 0).open_calls == 0)
        torc_runtime_poll(rt, 10);
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_READY, 200, &now), TORC_ETIMEDOUT);
    torc_stream_free(call);
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_READY, 60000, &now), 0);
    assert_int_equal(now, TORC_CONNECTIVITY_IDLE);
    torc_channel_free(ch);
}

/* An unused connection closes after its retention time. channel_transport_test.c tests that until then a new channel
 * uses the connection. */
static void test_retention(void **state)
{
    (void)state;
    open_runtime(1000, 1000);
    torc_channel *ch = open_one(0, NULL);
    call_ok(ch);
    torc_channel_free(ch);
    wait_open(0, 0);
    ch = open_one(0, NULL);
    call_ok(ch);
    assert_int_equal(kit_backends_counts(kit, 0).connections, 2);
    torc_channel_free(ch);
}

/* A resolver whose list the test sets. */
struct names {
    torc_resolver_listener *listener;
    size_t n;
};

static void report(struct names *names)
{
    const char *addresses[4];
    struct torc_endpoint endpoints[4];
    for (size_t i = 0; i < names->n; i++) {
        addresses[i] = kit_backends_address(kit, i);
        endpoints[i] = (struct torc_endpoint){TORC_SIZE(torc_endpoint), .addresses = &addresses[i], .n_addresses = 1};
    }
    assert_int_equal(torc_resolver_report(names->listener, endpoints, names->n, NULL), 0);
}

static void *names_start(const char *rest, torc_resolver_listener *listener, void *arg)
{
    (void)rest;
    struct names *names = arg;
    names->listener = listener;
    report(names);
    return names;
}

static void names_stop(void *state)
{
    ((struct names *)state)->listener = NULL;
}

/* The pool has room for one unused connection. When there are two, the connection whose endpoint has left the
 * resolver's list closes. The connection of a freed channel stays, although it has been unused for longer. */
static void test_left_closes_first(void **state)
{
    (void)state;
    static const char *const policies[] = {"{\"round_robin\":{}}", "{\"ring_hash\":{\"requestHashHeader\":\"key\"}}",
                                           "{\"pick_first\":{}}"};
    for (size_t i = 0; i < 3; i++) {
        open_runtime(30000, 1);
        char config[96];
        snprintf(config, sizeof(config), "{\"loadBalancingConfig\":[%s]}", policies[i]);
        struct names names = {.n = i == 2 ? 1 : 3};
        const struct torc_resolver_factory factory = {
            .size = sizeof(factory), .scheme = "names", .start = names_start, .stop = names_stop, .arg = &names};
        const struct torc_resolver_factory *list[] = {&factory, NULL};
        struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                         .resolvers = list, .service_config_json = config};
        size_t before = kit_backends_counts(kit, 3).connections;
        torc_channel *ch = torc_channel_new(rt, "names:all", &o, NULL);
        torc_channel *other = open_one(3, NULL);
        call_ok(other);
        /* Waits until the last endpoint of the list is connected. */
        size_t last = names.n - 1;
        while (kit_backends_counts(kit, last).open_connections == 0)
            call_ok(ch);
        torc_channel_free(other);
        assert_int_equal(kit_backends_counts(kit, 3).open_connections, 1);
        if (names.n == 1) {
            /* pick_first: the new list lacks the connected address. */
            const char *address = kit_backends_address(kit, 1);
            struct torc_endpoint moved = {TORC_SIZE(torc_endpoint), .addresses = &address, .n_addresses = 1};
            assert_int_equal(torc_resolver_report(names.listener, &moved, 1, NULL), 0);
        } else {
            names.n--;
            report(&names);
        }
        wait_open(last, 0);
        assert_int_equal(kit_backends_counts(kit, 3).open_connections, 1);
        other = open_one(3, NULL);
        call_ok(other);
        assert_int_equal(kit_backends_counts(kit, 3).connections, before + 1);
        torc_channel_free(other);
        torc_channel_free(ch);
        assert_int_equal(torc_runtime_free(rt), 0);
        rt = NULL;
        for (size_t j = 0; j < 4; j++)
            while (kit_backends_counts(kit, j).open_connections)
                ;
    }
}

/* A channel whose connection was refused is freed. The next channel to the address does not wait for the backoff of the
 * freed channel, which is about an hour. */
static void test_a_new_channel_begins_afresh(void **state)
{
    (void)state;
    open_runtime(30000, 1000);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    o.backoff_initial_ms = o.backoff_max_ms = 3600000;
    kit_backends_stop(kit, 0);
    torc_channel *ch = open_one(0, &o);
    torc_result *r = torc_unary(ch, "a/b", "x", 1, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    torc_result_free(r);
    kit_backends_restart(kit, 0);
    torc_channel_free(ch);
    ch = open_one(0, &o);
    call_ok(ch);
    torc_channel_free(ch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_idle_timeout, setup, teardown),
        cmocka_unit_test_setup_teardown(test_retention, setup, teardown),
        cmocka_unit_test_setup_teardown(test_left_closes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_new_channel_begins_afresh, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
