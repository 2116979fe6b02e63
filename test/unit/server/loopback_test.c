/* Unary RPCs of an HTTP/2 client to a server that echoes them, over real sockets: TCP, a Unix socket, and TLS. Also
 * TCP_USER_TIMEOUT of the connections that a server accepts.
 *
 * Client and server share one real loop, which the test's thread turns. Two functions are a whole scene each, and free
 * what they make. `run` makes the server and one connection, starts an RPC in each of 64 slots, and starts the next RPC
 * in a slot when the slot's RPC ends, until `total` RPCs have ended. It asserts that each got OK and its own message.
 * user_timeout_of connects without HTTP/2, and reads the option from the accepted socket. */
#include <netinet/tcp.h>
#include <stdio.h>
#include <unistd.h>

#include "http2/client_stream.h"
#include "io/connect.h"
#include "io/reuse_port.h"
#include "io/socket.h"
#include "server/call.h"
#include "server/server.h"
#include "support/cmocka.h"
#include "support/kits/cert.h"
#include "tls/tls.h"

#define OUTSTANDING 64

struct bench {
    struct tc_loop *loop;
    struct tc_h2_conn *conn;
    unsigned started, ended, failed, total; /* RPCs */
    size_t message_len;                     /* bytes */
    const char *message;                    /* what each RPC sends */
};

/* A place for one RPC at a time. */
struct slot {
    struct bench *b;
    struct tc_h2_stream *stream; /* NULL: the RPC has ended */
    struct tc_arena arena;       /* of the RPC; reset for the next one */
    unsigned messages;           /* that came and equal the message that was sent */
};

/* Starts an RPC in a slot whose last RPC has ended. */
static void start(struct slot *s);

static void on_message(void *arg, struct tc_rstr *message)
{
    struct slot *s = arg;
    s->messages += tc_slice_eq(tc_rstr_slice(message), tc_slice_of(s->b->message, s->b->message_len));
    tc_rstr_unref(message);
}

static void on_done(void *arg, const struct tc_h2_outcome *outcome)
{
    struct slot *s = arg;
    s->b->ended++;
    s->b->failed += outcome->status.code != 0 || s->messages != 1;
    s->stream = NULL;
    if (s->b->started < s->b->total)
        start(s);
}

static const struct tc_h2_client_events call_events = {.stream = {.on_message = on_message}, .on_done = on_done};

static void start(struct slot *s)
{
    static const struct tc_h2_request request = {.path = {"/t/Echo", 7},
                                                 .authority = {"localhost", 9},
                                                 .user_agent = {"torc", 4},
                                                 .timeout_ns = 20 * TC_NS_PER_S};
    int error;
    tc_arena_reset(&s->arena);
    s->messages = 0;
    s->b->started++;
    s->stream = tc_h2_client_stream_open(s->b->conn, &request, &s->arena, &call_events, s, &error);
    assert_non_null(s->stream);
    tc_h2_stream_send(s->stream, tc_slice_of(s->b->message, s->b->message_len), false, true);
    tc_h2_stream_read(s->stream);
}

static void on_ready(void *arg)
{
    *(bool *)arg = true;
}

static const struct tc_h2_conn_events conn_events = {.on_ready = on_ready};

static void on_connect(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    if (error)
        fail_msg("%s", tc_status_text(error));
    *(struct tc_bytestream **)arg = bs;
}

static void on_echo(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    (void)arg;
    tc_server_call_reply(call, tc_rstr_slice(request));
}

/* Listens on `address`. server_opts NULL: the defaults; client_tls NULL: plaintext. Both are borrowed. */
static void run(const char *address, const struct tc_server_opts *server_opts, struct tc_tls_context *client_tls,
                unsigned total, size_t message_len)
{
    struct bench b = {.total = total, .message_len = message_len};
    struct tc_status error;
    struct tc_addr addr, bound;
    struct tc_bytestream *bs = NULL;
    struct slot slots[OUTSTANDING];
    bool ready = false;
    char *message = test_malloc(message_len);
    for (size_t i = 0; i < message_len; i++)
        message[i] = (char)(i / 4 >> 8 * (i % 4)); /* each four bytes are their number: a lost or moved frame shows */
    b.message = message;
    b.loop = tc_loop_new(NULL);
    struct tc_server *server = tc_server_new(b.loop, server_opts);
    tc_server_add_unary(server, "/t/Echo", on_echo, NULL);
    assert_int_equal(tc_addr_parse(&addr, tc_slice_str(address)), 0);
    assert_int_equal(tc_server_listen(server, &addr, &bound, &error), 0);
    tc_connect_start(b.loop, &bound, &(struct tc_connect_opts){.timeout_ms = 5000}, on_connect, &bs);
    while (!bs)
        tc_loop_turn(b.loop, 1000);
    if (client_tls) {
        struct tc_bytestream *plain = bs;
        bs = NULL;
        tc_tls_handshake(b.loop, client_tls, plain, tc_slice_str("a.test"), 5000, on_connect, &bs);
        while (!bs)
            tc_loop_turn(b.loop, 1000);
    }
    struct tc_h2_opts opts;
    tc_h2_opts_init(&opts, false);
    b.conn = tc_h2_conn_new(b.loop, bs, &opts, &conn_events, &ready);
    while (!ready)
        tc_loop_turn(b.loop, 1000);
    assert_int_equal(tc_h2_conn_secure(b.conn), client_tls != NULL);
    for (size_t i = 0; i < OUTSTANDING; i++) {
        slots[i] = (struct slot){.b = &b};
        tc_arena_init(&slots[i].arena, 0, 0);
        start(&slots[i]);
    }
    while (b.ended < b.total)
        assert_true(tc_loop_turn(b.loop, 20000));
    assert_int_equal(b.failed, 0);
    struct tc_server_counts counts;
    tc_server_counts(server, &counts);
    assert_int_equal(counts.requests, total);
    tc_h2_conn_close(b.conn);
    tc_server_free(server);
    for (size_t i = 0; i < OUTSTANDING; i++)
        tc_arena_fini(&slots[i].arena);
    tc_addr_fini(&addr);
    tc_addr_fini(&bound);
    tc_loop_free(b.loop);
    test_free(message);
}

static void small_messages(void **state)
{
    (void)state;
    run("127.0.0.1:0", NULL, NULL, 5000, 20);
}

static void large_messages(void **state)
{
    (void)state;
    run("127.0.0.1:0", NULL, NULL, 200, 300000);
}

static void unix_socket(void **state)
{
    (void)state;
    char name[64];
    snprintf(name, sizeof(name), "unix-abstract:torc-loopback-%d", (int)getpid());
    run(name, NULL, NULL, 1000, 3000);
}

static void tls(void **state)
{
    (void)state;
    struct tc_status error;
    struct kit_cert ca = kit_cert_make(&(struct kit_cert_opts){.common_name = "test CA", .ca = true});
    struct kit_cert cert =
        kit_cert_make(&(struct kit_cert_opts){.common_name = "a.test", .sans = "DNS:a.test", .issuer = &ca});
    struct tc_server_opts opts;
    tc_server_opts_init(&opts);
    opts.tls = tc_tls_context_new(&(struct tc_tls_opts){.server = true,
                                                        .verify = TC_TLS_VERIFY_NONE,
                                                        .certificate_pem = kit_cert_pem(&cert),
                                                        .private_key_pem = kit_cert_key(&cert)},
                                  &error);
    assert_non_null(opts.tls);
    struct tc_tls_context *client = tc_tls_context_new(&(struct tc_tls_opts){.roots_pem = kit_cert_pem(&ca)}, &error);
    assert_non_null(client);
    run("127.0.0.1:0", &opts, client, 1000, 20);
    run("127.0.0.1:0", &opts, client, 100, 200000);
    tc_tls_context_unref(opts.tls);
    tc_tls_context_unref(client);
    kit_cert_fini(&cert);
    kit_cert_fini(&ca);
}

/* Takes an accepted connection off the server, stores its TCP_USER_TIMEOUT in the int at `owner`, and closes it. */
static bool read_user_timeout(void *owner, struct tc_bytestream *bs, torc_credentials *credentials)
{
    int fd = tc_socket_detach(bs), *ms = owner;
    socklen_t len = sizeof(*ms);
    (void)credentials;
    *ms = 0;
    getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ms, &len); /* fails for Unix sockets */
    close(fd);
    return true;
}

/* Listens on the address. With `adopt` the server gets a socket that listens already. Returns TCP_USER_TIMEOUT of the
 * connection that is accepted. */
static int user_timeout_of(const char *address, bool adopt, uint64_t keepalive_ms, uint64_t timeout_ms)
{
    int seen = -1;
    struct tc_status error = {0};
    struct tc_addr addr, bound;
    struct tc_bytestream *bs = NULL;
    struct tc_loop *loop = tc_loop_new(NULL);
    struct tc_server_opts opts;
    tc_server_opts_init(&opts);
    opts.http2.keepalive.time_ms = keepalive_ms;
    opts.http2.keepalive.timeout_ms = timeout_ms;
    opts.owner = &seen;
    opts.route = read_user_timeout;
    struct tc_server *server = tc_server_new(loop, &opts);
    assert_int_equal(tc_addr_parse(&addr, tc_slice_str(address)), 0);
    int fd = adopt ? tc_reuse_port_listen(&addr, &bound, &error) : -1;
    int rc = adopt ? tc_server_listen_with(server, NULL, fd, NULL, NULL, &error)
                   : tc_server_listen(server, &addr, &bound, &error);
    if (rc != 0)
        fail_msg("%s", tc_status_text(&error));
    tc_connect_start(loop, &bound, &(struct tc_connect_opts){.timeout_ms = 5000}, on_connect, &bs);
    while (!bs || seen < 0)
        tc_loop_turn(loop, 1000);
    bs->ops->close(bs);
    tc_server_free(server);
    tc_addr_fini(&addr);
    tc_addr_fini(&bound);
    tc_loop_free(loop);
    return seen;
}

/* A18: while keepalive is on, accepted TCP connections have its timeout as TCP_USER_TIMEOUT. */
static void user_timeout(void **state)
{
    (void)state;
    char name[64];
    snprintf(name, sizeof(name), "unix-abstract:torc-user-timeout-%d", (int)getpid());
    assert_int_equal(user_timeout_of("127.0.0.1:0", false, 7200000, 20000), 20000);
    assert_int_equal(user_timeout_of("127.0.0.1:0", true, 7200000, 3000), 3000);
    assert_int_equal(user_timeout_of("127.0.0.1:0", false, 0, 20000), 0);
    assert_int_equal(user_timeout_of(name, false, 7200000, 20000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_messages), cmocka_unit_test(large_messages),
        cmocka_unit_test(unix_socket),    cmocka_unit_test(tls),
        cmocka_unit_test(user_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
