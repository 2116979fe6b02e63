/* Connections whose credentials change: the connection makes a new transport while the old one serves, and then lets
 * the old one go.
 *
 * The handshake of the test's credentials passes the byte stream on unchanged, in the loop's next turn. The credentials
 * change when the test raises `epoch`, which a connection looks at after a quarter to a half of refresh_ns (8 s): the
 * first look comes after 2 to 4 s. The connector allows one open attempt at a time, until the test grants or refuses
 * it, or the pool cancels it. The test plays the server at end 1 of each pipe.
 *
 * setup and teardown own the loop, the pool, the config, the endpoint and the pipes. Each test releases its
 * subchannels; the pool keeps a READY connection until the teardown. The loop is manual, on virtual time, and the
 * test's thread turns it. */
#include "subchannel/connection.h"

#include <stdio.h>

#include "base/mem.h"
#include "creds/handshake.h"
#include "subchannel/subchannel.h"
#include "support/cmocka.h"
#include "support/fakes/h2.h"
#include "support/fakes/pipe.h"

/* An empty SETTINGS frame, which makes a client's connection ready. */
static const char settings[9] = {0, 0, 0, 4, 0, 0, 0, 0, 0};

struct tc_connect {
    tc_connect_fn fn;
    void *arg;
};

static struct tc_connect *attempt; /* the one that is open; NULL: none */
static int attempts;               /* started since setup */
static struct tc_loop *loop;
static struct tc_pool *pool;
static struct tc_conn_config *config;
static struct tc_endpoint *endpoint;
static struct fake_pipe *pipes[4];
static size_t n_pipes;
static uint64_t epoch;
static torc_credentials creds;

static struct tc_connect *start(struct tc_loop *l, const struct tc_addr *addr, const struct tc_connect_opts *opts,
                                tc_connect_fn fn, void *arg)
{
    (void)l, (void)addr, (void)opts;
    assert_null(attempt);
    attempt = TC_NEW(struct tc_connect);
    *attempt = (struct tc_connect){fn, arg};
    attempts++;
    return attempt;
}

static void cancel(struct tc_connect *c)
{
    assert_ptr_equal(c, attempt);
    attempt = NULL;
    tc_free(c);
}

/* Ends the open attempt with this connection, which the caller's pipe owns; NULL: refuses it. */
static void end_attempt(struct tc_bytestream *bs)
{
    struct tc_connect *c = attempt;
    struct tc_status why = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "refused by the test");
    assert_non_null(c);
    attempt = NULL;
    c->fn(c->arg, bs, bs ? NULL : &why);
    tc_status_fini(&why);
    tc_free(c);
    tc_loop_drain(loop);
}

/* Grants the open attempt. Returns the new connection's pipe, which the teardown frees. */
static struct fake_pipe *grant(void)
{
    struct fake_pipe *p = pipes[n_pipes++] = fake_pipe_new(loop);
    end_attempt(fake_pipe_end(p, 0));
    return p;
}

/* The server sends its SETTINGS, which ends the attempt over this pipe. */
static void settle(struct fake_pipe *p)
{
    fake_pipe_put(p, 1, settings, sizeof(settings));
    tc_loop_drain(loop);
    tc_loop_advance(loop, 1);
}

static struct tc_creds_handshake *creds_start(torc_credentials *c, struct tc_loop *l, struct tc_bytestream *bs,
                                              const struct tc_creds_peer *peer, tc_creds_fn fn, void *arg)
{
    (void)c, (void)peer;
    return tc_creds_handshake_none(l, bs, fn, arg);
}

static uint64_t creds_epoch(torc_credentials *c)
{
    (void)c;
    return epoch;
}

static bool freed; /* credentials of the test were freed */

static void creds_free(torc_credentials *c)
{
    freed = true;
    tc_rstr_unref(c->key);
}

static const struct tc_creds_ops creds_ops = {.type = "test",
                                              .start = creds_start,
                                              .cancel = tc_creds_handshake_cancel,
                                              .epoch = creds_epoch,
                                              .free = creds_free};

static int setup(void **state)
{
    (void)state;
    static const struct tc_connector connector = {.start = start, .cancel = cancel};
    loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true});
    pool = tc_pool_new(loop, 30000, 1000);
    tc_pool_set_connector(pool, &connector);
    tc_ref_init(&creds.ref);
    creds.ops = &creds_ops;
    creds.scheme = "https";
    creds.key = tc_rstr_str("test");
    creds.refresh_ns = 8 * TC_NS_PER_S;
    config = TC_NEW(struct tc_conn_config);
    tc_ref_init(&config->ref);
    config->creds = &creds;
    config->server_name = tc_rstr_str("name");
    config->backoff = tc_backoff_default;
    config->connect_timeout_ms = 20000;
    config->max_header_list_bytes = 16384;
    config->max_request_header_bytes = 1048576;
    struct tc_addr addr;
    tc_addr_parse(&addr, tc_slice_str("10.0.0.1:80"));
    endpoint = tc_endpoint_new(&addr, 1);
    tc_addr_fini(&addr);
    attempts = 0;
    n_pipes = 0;
    epoch = 1;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tc_pool_shutdown(pool);
    tc_loop_drain(loop);
    tc_endpoint_unref(endpoint);
    tc_conn_config_unref(config);
    tc_loop_advance(loop, 1);
    for (size_t i = 0; i < n_pipes; i++)
        fake_pipe_free(pipes[i]);
    tc_loop_free(loop);
    tc_pool_free(pool);
    assert_null(attempt);
    return 0;
}

static enum torc_connectivity last;
static int changes;

static void on_state(void *arg, enum torc_connectivity state, const struct tc_status *status)
{
    (void)arg, (void)status;
    last = state;
    changes++;
}

/* Makes a subchannel that is READY over the first pipe. */
static struct tc_subchannel *open_first(void)
{
    struct tc_subchannel *sc =
        tc_subchannel_new(pool, config, endpoint, &endpoint->addrs[0], on_state, NULL, NULL, NULL);
    tc_subchannel_connect(sc);
    settle(grant());
    assert_int_equal(last, TORC_CONNECTIVITY_READY);
    changes = 0;
    return sc;
}

/* Credentials that do not change replace nothing, however long they are used. */
static void a_connection_stays_while_its_credentials_do(void **state)
{
    (void)state;
    struct tc_subchannel *sc = open_first();
    tc_loop_advance(loop, 3600000);
    assert_int_equal(attempts, 1);
    assert_int_equal(changes, 0);
    tc_subchannel_release(sc);
}

static void a_connection_is_replaced(void **state)
{
    (void)state;
    struct tc_subchannel *sc = open_first();
    struct tc_transport *old = tc_subchannel_transport(sc);
    epoch = 2;
    tc_loop_advance(loop, 1900);
    assert_int_equal(attempts, 1); /* not before a quarter of the interval */
    tc_loop_advance(loop, 2200);
    assert_int_equal(attempts, 2); /* by half of it */
    struct fake_pipe *second = grant();
    assert_ptr_equal(tc_subchannel_transport(sc), old);
    assert_false(fake_pipe_closed(pipes[0], 0));
    settle(second);
    assert_non_null(tc_subchannel_transport(sc));
    assert_ptr_not_equal(tc_subchannel_transport(sc), old);
    assert_true(fake_pipe_closed(pipes[0], 0)); /* no RPC was on it */
    assert_int_equal(changes, 0);               /* no policy was told of a change */
    /* One change of credentials replaces the transport once. */
    tc_loop_advance(loop, 60000);
    assert_int_equal(attempts, 2);
    /* The state follows the new transport from now on. */
    fake_pipe_finish(second, 1);
    tc_loop_drain(loop);
    tc_loop_advance(loop, 1);
    assert_int_equal(last, TORC_CONNECTIVITY_IDLE);
    assert_null(tc_subchannel_transport(sc));
    tc_subchannel_release(sc);
}

static void request_nothing(const struct tc_link *watches, struct tc_buf *out)
{
    (void)watches, (void)out;
}

static void ignore_message(struct tc_side_watch *w, struct tc_slice message)
{
    (void)w, (void)message;
}

/* Returns the number of requests on pipe i since the last call. Asserts that each has this authority. Makes peers[i] if
 * it is NULL; the caller frees peers[i]. */
static size_t requests_on(struct fake_h2 **peers, size_t i, const char *authority)
{
    size_t n = 0;
    char wanted[64];
    const struct fake_h2_frame *f;
    snprintf(wanted, sizeof(wanted), ":authority: %s\n", authority);
    tc_loop_advance(loop, 1);
    if (!peers[i])
        peers[i] = fake_h2_new(pipes[i], 1, true);
    tc_loop_drain(loop);
    for (; (f = fake_h2_expect(peers[i], FAKE_H2_HEADERS, 0)); n++)
        assert_non_null(strstr(f->headers, wanted));
    return n;
}

/* A side stream moves to the new transport: otherwise the old transport would drain for ever. The side stream ends
 * with the connection. `name` is the channel's server name, and `authority` what the requests must have then. */
static void follow_the_transport(const char *name, const char *authority)
{
    static const struct tc_side_kind kind = {"/test.Side/Watch", "nothing", 100, request_nothing};
    struct tc_side_watch watch = {.kind = &kind, .on_message = ignore_message};
    struct fake_h2 *peers[2] = {NULL};
    tc_rstr_unref(config->server_name);
    config->server_name = tc_rstr_str(name);
    struct tc_subchannel *sc = open_first();
    assert_int_equal(requests_on(peers, 0, authority), 0);
    tc_subchannel_watch_side(sc, &watch);
    assert_int_equal(requests_on(peers, 0, authority), 1);
    fake_h2_headers(peers[0], 1, ":status: 200\ncontent-type: application/grpc\ngrpc-status: 14\n", true);
    assert_int_equal(requests_on(peers, 0, authority), 0);
    tc_subchannel_reset_backoff(sc);
    assert_int_equal(requests_on(peers, 0, authority), 1);
    epoch = 2;
    tc_loop_advance(loop, 4100);
    settle(grant());
    assert_true(fake_pipe_closed(pipes[0], 0));
    assert_int_equal(requests_on(peers, 1, authority), 1);
    fake_h2_goaway(peers[1], 1, 0, "");
    tc_loop_drain(loop);
    tc_loop_advance(loop, 10000);
    assert_int_equal(last, TORC_CONNECTIVITY_IDLE);
    assert_true(fake_pipe_closed(pipes[1], 0));
    tc_subchannel_release(sc);
    tc_side_watch_end(&watch);
    assert_null(watch.stream);
    fake_h2_free(peers[0]);
    fake_h2_free(peers[1]);
}

static void side_streams_follow_the_transport(void **state)
{
    (void)state;
    follow_the_transport("name", "name");
}

static void without_a_name_the_authority_is_the_address(void **state)
{
    (void)state;
    follow_the_transport("", "10.0.0.1:80");
}

/* A replacement is refused, silent, or gone before it was ready: the old transport stays, and another replacement is
 * tried. */
static void a_replacement_that_fails_harms_nothing(void **state)
{
    (void)state;
    struct tc_subchannel *sc = open_first();
    struct tc_transport *old = tc_subchannel_transport(sc);
    epoch = 2;
    tc_loop_advance(loop, 4100);
    assert_int_equal(attempts, 2);
    end_attempt(NULL);
    assert_ptr_equal(tc_subchannel_transport(sc), old);
    tc_loop_advance(loop, 4100);
    assert_int_equal(attempts, 3);
    struct fake_pipe *gone = grant();
    fake_pipe_finish(gone, 1);
    tc_loop_drain(loop);
    tc_loop_advance(loop, 4100);
    assert_int_equal(attempts, 4);
    struct fake_pipe *silent = grant();
    tc_loop_advance(loop, 20100);
    assert_true(fake_pipe_closed(silent, 0));
    assert_ptr_equal(tc_subchannel_transport(sc), old);
    assert_int_equal(changes, 0);
    tc_loop_advance(loop, 4100);
    assert_int_equal(attempts, 5);
    settle(grant());
    assert_ptr_not_equal(tc_subchannel_transport(sc), old);
    assert_int_equal(changes, 0);
    tc_subchannel_release(sc);
}

/* The age of a transport counts from the attempt that made it, not from a replacement that failed. A transport that
 * lasted for seconds is not barren (subchannel/connection.c), so the pool does not keep its connection. */
static void a_failed_replacement_makes_no_connection_young(void **state)
{
    (void)state;
    struct tc_subchannel *sc = open_first();
    epoch = 2;
    for (int i = 0; i < 400 && !attempt; i++)
        tc_loop_advance(loop, 100);
    end_attempt(NULL);
    fake_pipe_finish(pipes[0], 1);
    tc_loop_drain(loop);
    tc_loop_advance(loop, 1);
    assert_int_equal(last, TORC_CONNECTIVITY_IDLE);
    tc_subchannel_release(sc);
    assert_int_equal(tc_pool_idle_count(pool), 0);
}

/* The old transport is lost during the attempt to replace it. The attempt is cancelled; the policy connects again. */
static void the_old_connection_goes_first(void **state)
{
    (void)state;
    struct tc_subchannel *sc = open_first();
    epoch = 2;
    tc_loop_advance(loop, 4100);
    assert_int_equal(attempts, 2);
    assert_non_null(attempt);
    fake_pipe_finish(pipes[0], 1);
    tc_loop_drain(loop);
    tc_loop_advance(loop, 1);
    assert_int_equal(last, TORC_CONNECTIVITY_IDLE);
    assert_null(attempt);
    tc_subchannel_connect(sc);
    settle(grant());
    assert_int_equal(last, TORC_CONNECTIVITY_READY);
    /* The subchannel is released during another replacement. */
    epoch = 3;
    tc_loop_advance(loop, 4100);
    assert_non_null(attempt);
    tc_subchannel_release(sc);
}

/* A connection that no policy holds is not replaced. */
static void idle_connections_are_left_alone(void **state)
{
    (void)state;
    struct tc_subchannel *sc = open_first();
    tc_subchannel_release(sc);
    assert_int_equal(tc_pool_idle_count(pool), 1);
    epoch = 2;
    tc_loop_advance(loop, 20000);
    assert_int_equal(attempts, 1);
}

/* During a handshake the channel that made the connection releases it, then the last other channel does. The
 * handshake's credentials stay until the handshake is over. */
static void a_handshake_keeps_its_credentials(void **state)
{
    (void)state;
    static torc_credentials alike;
    alike = (torc_credentials){
        .ops = &creds_ops, .scheme = "https", .key = tc_rstr_str("test"), .refresh_ns = creds.refresh_ns};
    tc_ref_init(&alike.ref);
    struct tc_conn_config *other = tc_conn_config_secured(config, &alike, config->server_name);
    tc_conn_config_unref(other->channel);
    other->channel = NULL;
    torc_credentials_unref(&alike);
    struct tc_subchannel *first = open_first();
    struct tc_subchannel *second =
        tc_subchannel_new(pool, other, endpoint, &endpoint->addrs[0], on_state, NULL, NULL, NULL);
    assert_int_equal(tc_pool_count(pool), 1);
    freed = false;
    epoch = 2;
    tc_loop_advance(loop, 4100);
    struct tc_connect *c = attempt;
    assert_non_null(c);
    attempt = NULL;
    pipes[n_pipes++] = fake_pipe_new(loop);
    c->fn(c->arg, fake_pipe_end(pipes[n_pipes - 1], 0), NULL); /* the handshake ends in the loop's next turn */
    tc_free(c);
    tc_subchannel_release(first);
    tc_conn_config_unref(config);
    tc_subchannel_release(second);
    assert_false(freed);
    tc_loop_drain(loop);
    assert_true(freed);
    config = other; /* for the teardown */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_connection_stays_while_its_credentials_do),
        TEST(a_connection_is_replaced),
        TEST(side_streams_follow_the_transport),
        TEST(without_a_name_the_authority_is_the_address),
        TEST(a_replacement_that_fails_harms_nothing),
        TEST(a_failed_replacement_makes_no_connection_young),
        TEST(the_old_connection_goes_first),
        TEST(idle_connections_are_left_alone),
        TEST(a_handshake_keeps_its_credentials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
