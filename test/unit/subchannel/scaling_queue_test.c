/* Further connections of subchannels (A105) in the connect queue: each needs a descriptor besides the first one's.
 *
 * 100 servers allow no stream on the first connection, and never answer the attempt to have a further one. Each server
 * has one RPC that waits for a stream, so each subchannel wants a further connection. With 128 descriptors the queue
 * lets 64 further connections of one channel and locality be attempted at a time.
 *
 * setup and teardown own the loop, the pool, the credentials, the servers, their subchannels and the waits. Each test
 * frees its configs. The loop is manual, on virtual time, and the test's thread turns it. */
#include <stdio.h>
#include <sys/resource.h>

#include "subchannel/connection.h"
#include "subchannel/subchannel.h"

#include "base/mem.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/h2.h"

enum { SERVERS = 100, DESCRIPTORS = 128, UNDER_WAY = DESCRIPTORS / 2 };

/* An attempt to connect, which the test grants or leaves open. */
struct tc_connect {
    struct tc_link link;
    tc_connect_fn fn;
    void *arg;
};

static struct tc_loop *loop;
static struct tc_pool *pool;
static torc_credentials *creds;
static struct tc_link attempts; /* under way, the oldest first */
static size_t n_attempts;
static struct fake_pipe *pipes[SERVERS];
static struct fake_h2 *peers[SERVERS];
static struct tc_subchannel *subchannels[SERVERS];
static struct tc_capacity_wait waits[SERVERS];
static struct tc_scaling scaling;
static struct rlimit before; /* the limit of descriptors, which the teardown restores */

/* Moves time by `ms`, and turns the loop until nothing is left to do: the connect queue begins at most 16 connections
 * in each turn. */
static void run(uint64_t ms)
{
    tc_loop_advance(loop, ms);
    tc_loop_drain(loop);
}

static void attempt_free(struct tc_connect *c)
{
    tc_list_remove(&c->link);
    n_attempts--;
    tc_free(c);
}

static struct tc_connect *start(struct tc_loop *l, const struct tc_addr *addr, const struct tc_connect_opts *opts,
                                tc_connect_fn fn, void *arg)
{
    (void)l, (void)addr, (void)opts;
    struct tc_connect *c = TC_NEW(struct tc_connect);
    c->fn = fn;
    c->arg = arg;
    tc_list_append(&attempts, &c->link);
    n_attempts++;
    return c;
}

static int setup(void **state)
{
    static const struct tc_connector connector = {.start = start, .cancel = attempt_free};
    (void)state;
    loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true});
    pool = tc_pool_new(loop, 30000, 1000);
    tc_pool_set_connector(pool, &connector);
    creds = torc_credentials_insecure();
    tc_list_init(&attempts);
    tc_scaling_init(&scaling);
    tc_scaling_set(&scaling, 2);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit few = {DESCRIPTORS, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = 0; i < SERVERS; i++) {
        if (waits[i].link.next)
            tc_list_remove(&waits[i].link);
        if (subchannels[i])
            tc_subchannel_release(subchannels[i]);
        waits[i] = (struct tc_capacity_wait){0};
        subchannels[i] = NULL;
    }
    tc_pool_shutdown(pool);
    run(1);
    for (int i = 0; i < SERVERS; i++) {
        if (peers[i]) {
            fake_h2_free(peers[i]);
            fake_pipe_free(pipes[i]);
        }
        peers[i] = NULL;
    }
    torc_credentials_unref(creds);
    tc_loop_free(loop);
    tc_pool_free(pool);
    assert_int_equal(n_attempts, 0);
    return 0;
}

/* Returns a channel's config, which the caller frees by tc_conn_config_unref. */
static struct tc_conn_config *channel_new(void)
{
    struct tc_conn_config *c = TC_NEW(struct tc_conn_config);
    tc_ref_init(&c->ref);
    c->creds = torc_credentials_ref(creds);
    c->server_name = tc_rstr_str("name");
    c->backoff = tc_backoff_default;
    c->connect_timeout_ms = 20000;
    c->max_header_list_bytes = 16384;
    c->max_request_header_bytes = 1048576;
    c->max_connections = 10;
    return c;
}

static void on_state(void *arg, enum torc_connectivity state, const struct tc_status *status)
{
    (void)arg, (void)state, (void)status;
}

/* Makes the channel's subchannel to 10.0.0.(server + 1), and asks it to connect. The caller releases it. */
static struct tc_subchannel *subchannel_new(struct tc_conn_config *channel, unsigned server)
{
    char text[32];
    struct tc_addr addr;
    snprintf(text, sizeof(text), "10.0.0.%u:80", server + 1);
    tc_addr_parse(&addr, tc_slice_str(text));
    struct tc_endpoint *endpoint = tc_endpoint_new(&addr, 1);
    struct tc_subchannel *sc =
        tc_subchannel_new(pool, channel, endpoint, &endpoint->addrs[0], on_state, NULL, NULL, NULL);
    tc_scaling_add(&scaling, sc);
    tc_endpoint_unref(endpoint);
    tc_addr_fini(&addr);
    tc_subchannel_connect(sc);
    run(1);
    return sc;
}

/* Server i accepts the oldest attempt, and allows no streams. */
static void grant(int i)
{
    struct tc_connect *c = TC_CONTAINER_OF(attempts.next, struct tc_connect, link);
    pipes[i] = fake_pipe_new(loop);
    peers[i] = fake_h2_new(pipes[i], 1, true);
    c->fn(c->arg, fake_pipe_end(pipes[i], 0), NULL);
    attempt_free(c);
    fake_h2_setting(peers[i], 3, 0);
    run(1);
}

static void on_capacity(struct tc_capacity_wait *wait, struct tc_transport *t)
{
    (void)wait, (void)t;
}

/* Connects to each server, then has one RPC for each server wait for a stream. */
static void servers_starve(struct tc_conn_config *channel)
{
    for (int i = 0; i < SERVERS; i++) {
        subchannels[i] = subchannel_new(channel, (unsigned)i);
        assert_int_equal(n_attempts, 1);
        grant(i);
        assert_int_equal(n_attempts, 0);
    }
    for (int i = 0; i < SERVERS; i++) {
        waits[i].fn = on_capacity;
        tc_list_init(&waits[i].link);
        tc_transport_wait(tc_subchannel_transport(subchannels[i]), &waits[i]);
    }
    run(1);
}

static void further_connections_leave_descriptors_to_others(void **state)
{
    TC_CASE(CS11);
    (void)state;
    struct tc_conn_config *channel = channel_new(), *other = channel_new();
    servers_starve(channel);
    assert_int_equal(n_attempts, UNDER_WAY);
    struct tc_subchannel *sc = subchannel_new(other, SERVERS);
    assert_int_equal(n_attempts, UNDER_WAY + 1);
    tc_subchannel_release(sc);
    tc_conn_config_unref(channel);
    tc_conn_config_unref(other);
}

/* The first connection to a server is lost while the further one waits for its turn. The descriptor is free again, so
 * the attempt begins at once. */
static void a_lost_connection_does_not_wait(void **state)
{
    TC_CASE(CS11);
    (void)state;
    struct tc_conn_config *channel = channel_new();
    servers_starve(channel);
    assert_int_equal(n_attempts, UNDER_WAY);
    fake_pipe_finish(pipes[SERVERS - 1], 1);
    run(1);
    assert_int_equal(n_attempts, UNDER_WAY + 1);
    tc_conn_config_unref(channel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(further_connections_leave_descriptors_to_others, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lost_connection_does_not_wait, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
