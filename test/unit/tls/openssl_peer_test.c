/* TLS of Torc's client or server with a peer that is OpenSSL alone: what the peer may negotiate and send.
 *
 * Torc's side is on end 0 of the fixture's pipe (kits/tls_pair): f->client, or f->server after start_server_on_end_0.
 * End 1 has no owner: struct raw_peer plays it, with memory BIOs whose bytes raw_exchange and raw_put pass to the pipe.
 * So a test decides what the peer sends, and how many of its messages Torc finds in the pipe at once.
 *
 * Bounds shown: the certificates of a peer; handshake messages without data; the bytes that one read takes; the answers
 * that are queued for a peer that does not read.
 *
 * The fixture frees Torc's side and the pipe. Each test frees its peer with raw_free. OpenSSL's error queue must be
 * empty at the end of a test. Everything runs on the test's thread, on a manual loop. */
#include "tls/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/mem.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/tls_pair.h"
#include "support/openssl_1_1.h"

/* The peer on end 1 of the pipe. `ssl` owns the BIOs: OpenSSL reads what Torc sent from `in`, and writes to `out`. */
struct raw_peer {
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in, *out;
};

/* Returns a peer that has not begun its handshake, for raw_free. A server has the pair's server certificate. */
static struct raw_peer raw_new(bool server)
{
    struct raw_peer p = {.ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method())};
    if (server) {
        SSL_CTX_use_certificate(p.ctx, kit_tls_pair_certs.server.x509);
        SSL_CTX_use_PrivateKey(p.ctx, kit_tls_pair_certs.server.key);
    }
    p.ssl = SSL_new(p.ctx);
    p.in = BIO_new(BIO_s_mem());
    p.out = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(p.in, -1);
    SSL_set_bio(p.ssl, p.in, p.out);
    if (server)
        SSL_set_accept_state(p.ssl);
    else
        SSL_set_connect_state(p.ssl);
    return p;
}

/* Passes bytes both ways, in ten rounds, and goes on with the peer's handshake until it is finished. After that, the
 * bytes of Torc's side stay unread in `in`. */
static void raw_exchange(struct raw_peer *p, struct kit_tls_pair *f)
{
    for (int i = 0; i < 10; i++) {
        tc_loop_drain(f->loop);
        struct tc_slice got = fake_pipe_unread(f->pipe, 1);
        BIO_write(p->in, got.data, (int)got.len);
        fake_pipe_take(f->pipe, 1, got.len);
        if (!SSL_is_init_finished(p->ssl))
            SSL_do_handshake(p->ssl);
        ERR_clear_error();
        char buf[4096];
        int n;
        while ((n = BIO_read(p->out, buf, sizeof(buf))) > 0)
            fake_pipe_put(f->pipe, 1, buf, (size_t)n);
    }
}

static void raw_free(struct raw_peer *p)
{
    SSL_free(p->ssl);
    SSL_CTX_free(p->ctx);
}

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
                     unsigned in_len, void *arg)
{
    (void)ssl, (void)in, (void)in_len, (void)arg;
    *out = (const unsigned char *)"h2";
    *out_len = 2;
    return SSL_TLSEXT_ERR_OK;
}

static void a_server_without_alpn_is_refused(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts();
    struct raw_peer peer = raw_new(true);
    kit_tls_pair_start_client(f, &client, "backend.test");
    raw_exchange(&peer, f);
    kit_tls_pair_assert_failed(&f->client, "peer did not negotiate h2 by ALPN");
    raw_free(&peer);
}

/* Starts Torc's server on end 0, where kits/tls_pair has the client. */
static void start_server_on_end_0(struct kit_tls_pair *f)
{
    struct tc_tls_opts server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    struct tc_tls_context *ctx = kit_tls_pair_make_context(&server);
    f->server.handshake = tc_tls_handshake(f->loop, ctx, fake_pipe_end(f->pipe, 0), tc_slice_str(""), 5000,
                                           kit_tls_pair_side_on_handshake, &f->server);
    tc_tls_context_unref(ctx);
}

/* Moves what the peer has written into the pipe, without running the loop. */
static void raw_put(struct raw_peer *p, struct kit_tls_pair *f)
{
    char buf[4096];
    int n;
    while ((n = BIO_read(p->out, buf, sizeof(buf))) > 0)
        fake_pipe_put(f->pipe, 1, buf, (size_t)n);
}

static void bytes_that_come_with_the_handshake_are_not_lost(void **state)
{
    struct kit_tls_pair *f = *state;
    struct raw_peer peer = raw_new(false);
    SSL_set_alpn_protos(peer.ssl, (const unsigned char *)"\x02h2", 3);
    start_server_on_end_0(f);
    SSL_do_handshake(peer.ssl);
    raw_put(&peer, f);
    tc_loop_drain(f->loop);
    struct tc_slice flight = fake_pipe_unread(f->pipe, 1);
    BIO_write(peer.in, flight.data, (int)flight.len);
    assert_int_equal(SSL_do_handshake(peer.ssl), 1);
    assert_int_equal(SSL_write(peer.ssl, "preface", 7), 7);
    assert_false(f->server.called);
    raw_put(&peer, f); /* Finished and the first bytes in one read */
    tc_loop_drain(f->loop);
    assert_non_null(f->server.bs);
    assert_int_equal(f->server.received.len, 7);
    raw_free(&peer);
}

static void tls_1_1_is_refused(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts();
    struct raw_peer peer = raw_new(true);
    SSL_set_security_level(peer.ssl, 0);
    SSL_set_min_proto_version(peer.ssl, TLS1_VERSION);
    SSL_set_max_proto_version(peer.ssl, TLS1_1_VERSION);
    kit_tls_pair_start_client(f, &client, "backend.test");
    raw_exchange(&peer, f);
    kit_tls_pair_assert_failed(&f->client, "protocol version");
    raw_free(&peer);
}

static void tls_1_2_is_accepted_without_renegotiation(void **state)
{
    struct kit_tls_pair *f = *state;
    struct raw_peer peer = raw_new(false);
    SSL_set_max_proto_version(peer.ssl, TLS1_2_VERSION);
    SSL_set_alpn_protos(peer.ssl, (const unsigned char *)"\x02h2\x08http/1.1", 12);
    start_server_on_end_0(f);
    raw_exchange(&peer, f);
    assert_non_null(f->server.bs);
    assert_int_equal(SSL_version(peer.ssl), TLS1_2_VERSION);
    assert_int_equal(SSL_renegotiate(peer.ssl), 1);
    SSL_do_handshake(peer.ssl);
    raw_exchange(&peer, f);
    assert_false(SSL_is_init_finished(peer.ssl)); /* the renegotiation did not complete */
    raw_free(&peer);
}

static void a_client_that_offers_other_protocols_is_refused(void **state)
{
    struct kit_tls_pair *f = *state;
    struct raw_peer peer = raw_new(false);
    SSL_set_alpn_protos(peer.ssl, (const unsigned char *)"\x08http/1.1", 9);
    start_server_on_end_0(f);
    raw_exchange(&peer, f);
    kit_tls_pair_assert_failed(&f->server, "peer did not negotiate h2 by ALPN");
    raw_free(&peer);
}

static void a_client_without_alpn_is_refused(void **state)
{
    TC_CASE(SV28);
    struct kit_tls_pair *f = *state;
    struct raw_peer peer = raw_new(false);
    start_server_on_end_0(f);
    raw_exchange(&peer, f);
    kit_tls_pair_assert_failed(&f->server, "peer did not negotiate h2 by ALPN");
    raw_free(&peer);
}

static void put_key_update(struct raw_peer *p, struct kit_tls_pair *f, int type)
{
    assert_int_equal(SSL_key_update(p->ssl, type), 1);
    SSL_do_handshake(p->ssl);
    raw_put(p, f);
}

static void put_ticket(struct raw_peer *p, struct kit_tls_pair *f)
{
    assert_int_equal(SSL_new_session_ticket(p->ssl), 1);
    SSL_do_handshake(p->ssl);
    raw_put(p, f);
}

static void put_data(struct raw_peer *p, struct kit_tls_pair *f)
{
    assert_int_equal(SSL_write(p->ssl, "x", 1), 1);
    raw_put(p, f);
}

/* Connects a Torc client to a server that is OpenSSL alone, with TLS of this version at most. The server sends one
 * byte, which the client receives. Returns the server, for raw_free. */
static struct raw_peer raw_server_up(struct kit_tls_pair *f, int version)
{
    struct tc_tls_opts client = kit_tls_pair_client_opts();
    struct raw_peer peer = raw_new(true);
    SSL_CTX_set_alpn_select_cb(peer.ctx, choose_h2, NULL);
    SSL_set_max_proto_version(peer.ssl, version);
    kit_tls_pair_start_client(f, &client, "backend.test");
    raw_exchange(&peer, f);
    assert_non_null(f->client.bs);
    put_data(&peer, f); /* so the tickets of the handshake no longer count */
    tc_loop_drain(f->loop);
    assert_int_equal(f->client.received.len, 1);
    return peer;
}

static void assert_too_many_messages(struct kit_tls_pair *f)
{
    assert_int_equal(f->client.read_error, TORC_EPROTO);
    assert_non_null(strstr(tc_status_text(&f->client.bs->error), "too many TLS messages without data (more than 64)"));
}

static void key_updates_without_data_are_bounded(void **state)
{
    struct kit_tls_pair *f = *state;
    struct raw_peer peer = raw_server_up(f, TLS1_3_VERSION);
    for (size_t round = 2; round < 5; round++) {
        for (int i = 0; i < 64; i++)
            put_key_update(&peer, f, SSL_KEY_UPDATE_NOT_REQUESTED);
        tc_loop_drain(f->loop);
        put_data(&peer, f);
        tc_loop_drain(f->loop);
        assert_int_equal(f->client.received.len, round);
    }
    for (int i = 0; i < 1000; i++)
        put_key_update(&peer, f, SSL_KEY_UPDATE_NOT_REQUESTED);
    size_t sent = fake_pipe_unread(f->pipe, 0).len;
    tc_loop_drain(f->loop);
    assert_too_many_messages(f);
    assert_true(fake_pipe_unread(f->pipe, 0).len > sent / 4); /* the client stopped reading */
    raw_free(&peer);
}

static void tickets_without_data_are_bounded(void **state)
{
    if (OPENSSL_VERSION_NUMBER < 0x30000000L)
        skip(); /* OpenSSL before 3.0 sends tickets at the handshake alone */
    struct kit_tls_pair *f = *state;
    struct raw_peer peer = raw_server_up(f, TLS1_3_VERSION);
    for (int i = 0; i < 64; i++)
        put_ticket(&peer, f);
    tc_loop_drain(f->loop);
    assert_int_equal(f->client.read_error, 0);
    put_ticket(&peer, f);
    tc_loop_drain(f->loop);
    assert_too_many_messages(f);
    raw_free(&peer);
}

static void renegotiations_without_data_are_bounded(void **state)
{
    struct kit_tls_pair *f = *state;
    struct raw_peer peer = raw_server_up(f, TLS1_2_VERSION);
    /* The client refuses a renegotiation with an alert, which counts as a message. Some versions of OpenSSL report the
     * request as a message too. So more than 64 messages are 33 to 65 renegotiations. */
    for (int i = 0; i < 65; i++) {
        assert_true(f->client.read_error == 0 || i > 32);
        SSL_renegotiate(peer.ssl);
        SSL_do_handshake(peer.ssl);
        raw_put(&peer, f);
        tc_loop_drain(f->loop);
    }
    assert_too_many_messages(f);
    ERR_clear_error();
    raw_free(&peer);
}

/* A task that finds out how much the client has not read when the loop comes to the task. */
struct witness {
    struct tc_task task;
    struct kit_tls_pair *f; /* borrowed */
    size_t unread;          /* bytes */
};

static void note_unread(struct tc_task *task)
{
    struct witness *w = TC_CONTAINER_OF(task, struct witness, task);
    w->unread = fake_pipe_unread(w->f->pipe, 0).len;
}

static void one_read_takes_a_bounded_part_of_large_tickets(void **state)
{
    if (OPENSSL_VERSION_NUMBER < 0x30000000L)
        skip(); /* OpenSSL before 3.0 sends tickets at the handshake alone */
    struct kit_tls_pair *f = *state;
    struct raw_peer peer = raw_server_up(f, TLS1_3_VERSION);
    char *zeros = tc_calloc(1, 40000);
    assert_int_equal(SSL_SESSION_set1_ticket_appdata(SSL_get_session(peer.ssl), zeros, 40000), 1);
    tc_free(zeros);
    for (int i = 0; i < 30; i++)
        put_ticket(&peer, f);
    put_data(&peer, f);
    size_t sent = fake_pipe_unread(f->pipe, 0).len;
    assert_true(sent > 30 * 40000);
    struct witness w = {.f = f};
    tc_task_init(&w.task, note_unread);
    char buf[16];
    assert_int_equal(f->client.bs->ops->read(f->client.bs, buf, sizeof(buf)), TORC_EAGAIN);
    size_t taken = sent - fake_pipe_unread(f->pipe, 0).len;
    assert_in_range(taken, 256 * 1024, 274 * 1024);
    /* While reading is off nothing more is read. When it is on again the rest comes, but other tasks of the loop run
     * in between. */
    f->client.bs->ops->set_reading(f->client.bs, false);
    tc_loop_drain(f->loop);
    assert_int_equal(fake_pipe_unread(f->pipe, 0).len, sent - taken);
    f->client.bs->ops->set_reading(f->client.bs, true);
    tc_loop_defer(f->loop, &w.task);
    tc_loop_drain(f->loop);
    assert_true(w.unread > sent / 4);
    assert_int_equal(f->client.read_error, 0);
    assert_int_equal(f->client.received.len, 2);
    raw_free(&peer);
}

static void certificates_of_a_peer_are_bounded(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts();
    struct raw_peer peer = raw_new(true);
    SSL_CTX_set_alpn_select_cb(peer.ctx, choose_h2, NULL);
    for (int i = 0; i < 400; i++)
        assert_int_equal(SSL_add1_chain_cert(peer.ssl, kit_tls_pair_certs.root.x509), 1);
    kit_tls_pair_start_client(f, &client, "backend.test");
    raw_exchange(&peer, f);
    kit_tls_pair_assert_failed(&f->client, "excessive message size");
    raw_free(&peer);
}

static void key_update_answers_to_a_peer_that_does_not_read_are_bounded(void **state)
{
    struct kit_tls_pair *f = *state;
    struct raw_peer peer = raw_server_up(f, TLS1_3_VERSION);
    fake_pipe_set_capacity(f->pipe, 0);
    /* Each key update asks for an answer, a record of 27 bytes, which cannot be sent. */
    for (int i = 0; i < 40000 && f->client.read_error == 0; i++) {
        if (i % 32 == 0)
            assert_int_equal(SSL_write(peer.ssl, "x", 1), 1); /* otherwise too many messages come without data */
        put_key_update(&peer, f, SSL_KEY_UPDATE_REQUESTED);
        tc_loop_drain(f->loop);
    }
    /* The client stops reading instead of queueing more answers: the rest waits in the pipe. */
    assert_int_equal(f->client.read_error, 0);
    assert_true(fake_pipe_unread(f->pipe, 0).len > 100000);
    fake_pipe_set_capacity(f->pipe, SIZE_MAX);
    tc_loop_drain(f->loop);
    assert_int_equal(fake_pipe_unread(f->pipe, 0).len, 0); /* the client goes on when the peer reads */
    assert_int_equal(f->client.read_error, 0);
    ERR_clear_error();
    raw_free(&peer);
}

#define T(f) cmocka_unit_test_setup_teardown(f, kit_tls_pair_setup, kit_tls_pair_teardown)

int main(void)
{
    kit_tls_pair_certs_make();
    const struct CMUnitTest tests[] = {
        T(a_server_without_alpn_is_refused),
        T(bytes_that_come_with_the_handshake_are_not_lost),
        T(tls_1_1_is_refused),
        T(tls_1_2_is_accepted_without_renegotiation),
        T(a_client_that_offers_other_protocols_is_refused),
        T(a_client_without_alpn_is_refused),
        T(key_updates_without_data_are_bounded),
        T(tickets_without_data_are_bounded),
        T(renegotiations_without_data_are_bounded),
        T(one_read_takes_a_bounded_part_of_large_tickets),
        T(certificates_of_a_peer_are_bounded),
        T(key_update_answers_to_a_peer_that_does_not_read_are_bounded),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kit_tls_pair_certs_free();
    return failed;
}
