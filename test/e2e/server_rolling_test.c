/* A rolling restart: ten servers are stopped gracefully and started again, one after the other, while a client makes
 * 2,000 RPCs a second through round_robin over all of them. No RPC fails.
 *
 * The test's thread makes the RPCs, and restarts server i:
 *
 *   1. waits until server i and the server before it have each received 20 RPCs since their start
 *   2. starts the stop of server i
 *   3. when server i has stopped, frees it and starts another on its port
 *
 * Every second RPC of a server is answered 50 ms later, so that stops find RPCs that run. The servers share a runtime,
 * whose thread calls the handlers; the channel has another, whose thread gets the results.
 *
 * TORC_ROLLING_ROUNDS: how often each server is restarted (once by default). */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <torc/torc.h>

#include "base/clock.h"
#include "base/common.h"
#include "support/cmocka.h"
#include "support/net/port.h"
#include "support/number.h"

enum {
    SERVERS = 10,
    CALLS_PER_S = 2000,
    SERVED_AGAIN = 20,
    LATER = 2,
    LATER_MS = 50,
    GRACE_MS = 10000,
    MOST_S_PER_RESTART = 60
};

/* Server i of the head, over its restarts: the servers that have its port, one after the other. */
struct node {
    torc_server *server;
    char address[32];   /* "127.0.0.1:PORT", for all servers of the node */
    atomic_uint served; /* RPCs that the server has received */
    int held_port;      /* the socket of port_hold, which keeps the port between two servers */
};

static torc_runtime *server_rt, *client_rt;
static struct node nodes[SERVERS];
static atomic_uint calls_done, calls_failed, stops;
static char first_failure[256];

/* RPCs that the test's thread answers, the oldest first. */
static struct {
    pthread_mutex_t mutex;
    struct {
        torc_server_call *call;
        uint64_t due_ns;
    } calls[4096];
    unsigned begin, end;
} later = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void on_call(torc_server_call *call, const torc_message *request, void *arg)
{
    struct node *n = arg;
    bool waits = false;
    if (atomic_fetch_add(&n->served, 1) % LATER == 0) {
        pthread_mutex_lock(&later.mutex);
        waits = later.end - later.begin < TC_ARRAY_LEN(later.calls);
        if (waits) {
            later.calls[later.end % TC_ARRAY_LEN(later.calls)].call = call;
            later.calls[later.end++ % TC_ARRAY_LEN(later.calls)].due_ns =
                tc_system_clock.monotonic_ns(NULL) + LATER_MS * TC_NS_PER_MS;
        }
        pthread_mutex_unlock(&later.mutex);
    }
    if (!waits)
        torc_server_call_reply(call, torc_message_data(request), torc_message_size(request));
}

/* Answers the calls in `later` that are due at until_ns (of tc_system_clock). */
static void answer_due_ones(uint64_t until_ns)
{
    pthread_mutex_lock(&later.mutex);
    for (; later.begin != later.end; later.begin++) {
        if (later.calls[later.begin % TC_ARRAY_LEN(later.calls)].due_ns > until_ns)
            break;
        torc_server_call_reply(later.calls[later.begin % TC_ARRAY_LEN(later.calls)].call, "late", 4);
    }
    pthread_mutex_unlock(&later.mutex);
}

static void node_start(struct node *n)
{
    const struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = server_rt};
    const struct torc_handler handler = {TORC_SIZE(torc_handler), .unary = on_call, .arg = n};
    torc_error *error = NULL;
    n->server = torc_server_new(&o, &error);
    atomic_store(&n->served, 0);
    torc_server_add_method(n->server, "t.T/Echo", &handler, &error);
    torc_server_listen(n->server, n->address, torc_credentials_insecure(), NULL, &error);
    torc_server_start(n->server, &error);
    if (error)
        fail_msg("%s", torc_error_text(error));
}

static void on_result(const torc_result *r, void *arg)
{
    (void)arg;
    if (torc_result_code(r) != TORC_STATUS_OK && atomic_fetch_add(&calls_failed, 1) == 0)
        snprintf(first_failure, sizeof(first_failure), "%s: %s", torc_status_code_name(torc_result_code(r)),
                 torc_result_text(r));
    atomic_fetch_add(&calls_done, 1);
}

static void on_stopped(void *arg)
{
    (void)arg;
    atomic_fetch_add(&stops, 1);
}

static torc_channel *channel_open(void)
{
    char target[SERVERS * 32] = "ipv4:";
    for (int i = 0; i < SERVERS; i++)
        snprintf(target + strlen(target), sizeof(target) - strlen(target), "%s%s", i ? "," : "", nodes[i].address);
    const struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                           .backoff_initial_ms = 50, .backoff_max_ms = 200,
                                           .service_config_json = "{\"loadBalancingConfig\":[{\"round_robin\":{}}]}"};
    torc_channel *ch = torc_channel_new(client_rt, target, &o, NULL);
    assert_non_null(ch);
    assert_int_equal(torc_channel_connect(ch, 60000), 0);
    return ch;
}

/* Makes the RPCs that are due, answers the calls in `later` that are due, and waits a millisecond. RPCs are due at a
 * steady rate from since_ns on, and `made` of them were made before. Returns how many were made in all. */
static unsigned keep_pace(torc_channel *ch, uint64_t since_ns, unsigned made)
{
    uint64_t due = (tc_system_clock.monotonic_ns(NULL) - since_ns) * CALLS_PER_S / TC_NS_PER_S;
    for (; made < due; made++) {
        const struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 60000};
        assert_int_equal(torc_unary_async(ch, "t.T/Echo", "ping", 4, &o, on_result, NULL, NULL, NULL), 0);
    }
    answer_due_ones(tc_system_clock.monotonic_ns(NULL));
    poll(NULL, 0, 1);
    return made;
}

static void rolling_restart(void **state)
{
    (void)state;
    unsigned restarts = SERVERS * (unsigned)tc_env_number("TORC_ROLLING_ROUNDS", 1), restarted = 0, made = 0;
    bool stopping = false;
    torc_channel *ch = channel_open();
    uint64_t since_ns = tc_system_clock.monotonic_ns(NULL), step_ns = since_ns;
    while (restarted < restarts) {
        struct node *n = &nodes[restarted % SERVERS];
        made = keep_pace(ch, since_ns, made);
        if (tc_system_clock.monotonic_ns(NULL) - step_ns > MOST_S_PER_RESTART * TC_NS_PER_S)
            fail_msg("server %u: %s for too long", restarted % SERVERS, stopping ? "stops" : "is not reached");
        if (stopping && atomic_load(&stops) > restarted) {
            torc_server_free(n->server);
            node_start(n);
            stopping = false;
            restarted++;
            step_ns = tc_system_clock.monotonic_ns(NULL);
        } else if (!stopping) {
            const struct node *last = &nodes[(restarted + SERVERS - 1) % SERVERS];
            stopping = atomic_load(&last->served) >= SERVED_AGAIN && atomic_load(&n->served) >= SERVED_AGAIN;
            if (stopping)
                assert_int_equal(torc_server_stop_async(n->server, GRACE_MS, on_stopped, NULL), 0);
        }
    }
    while (atomic_load(&nodes[SERVERS - 1].served) < SERVED_AGAIN)
        made = keep_pace(ch, since_ns, made);
    double seconds = (double)(tc_system_clock.monotonic_ns(NULL) - since_ns) / TC_NS_PER_S;
    while (atomic_load(&calls_done) < made) {
        answer_due_ones(tc_system_clock.monotonic_ns(NULL));
        poll(NULL, 0, 1);
    }
    print_message("%u restarts in %.1f s, %u RPCs, %u failed\n", restarts, seconds, made, atomic_load(&calls_failed));
    if (atomic_load(&calls_failed))
        fail_msg("%u of %u RPCs failed, the first with %s", atomic_load(&calls_failed), made, first_failure);
    torc_channel_free(ch);
}

static int setup(void **state)
{
    (void)state;
    server_rt = torc_runtime_new(NULL, NULL);
    client_rt = torc_runtime_new(NULL, NULL);
    for (int i = 0; i < SERVERS; i++) {
        uint16_t port;
        nodes[i].held_port = port_hold(&port);
        snprintf(nodes[i].address, sizeof(nodes[i].address), "127.0.0.1:%u", port);
        node_start(&nodes[i]);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < SERVERS; i++) {
        torc_server_free(nodes[i].server);
        close(nodes[i].held_port);
    }
    answer_due_ones(UINT64_MAX);
    return torc_runtime_free(client_rt) + torc_runtime_free(server_rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(rolling_restart, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
