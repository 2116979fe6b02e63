/* TLS over the pipe of the tests: both sides run here, on a manual loop. */
#include "tls/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/mem.h"
#include "support/certs.h"
#include "support/cmocka.h"
#include "support/pipe.h"

static struct tc_cert root, other_root, server_cert, expired_cert, client_cert, cn_only_cert;

struct side {
    struct tc_loop *loop;
    struct tc_tls_handshake *handshake;
    struct tc_bytestream *bs;
    struct tc_status error;
    struct tc_buf received;
    struct tc_buf to_send;
    bool called, ended;
    ssize_t read_error;
};

struct fixture {
    struct tc_loop *loop;
    struct tc_pipe *pipe;
    struct side client, server;
};

static void send_rest(struct side *s)
{
    while (s->to_send.len > 0) {
        /* In two pieces, as frames come. */
        size_t half = s->to_send.len / 2;
        struct iovec iov[2] = {{s->to_send.data, half}, {s->to_send.data + half, s->to_send.len - half}};
        ssize_t n = s->bs->ops->writev(s->bs, iov, 2);
        if (n == TORC_EAGAIN)
            return;
        assert_true(n > 0);
        tc_buf_consume(&s->to_send, (size_t)n);
    }
}

static void on_event(void *arg, unsigned events)
{
    struct side *s = arg;
    if (events & TC_BS_WRITABLE)
        send_rest(s);
    while ((events & TC_BS_READABLE) && !s->ended && s->read_error == 0) {
        char buf[3000];
        ssize_t n = s->bs->ops->read(s->bs, buf, sizeof(buf));
        if (n > 0)
            tc_buf_append(&s->received, buf, (size_t)n);
        else if (n == 0)
            s->ended = true;
        else if (n == TORC_EAGAIN)
            break;
        else
            s->read_error = n;
    }
}

static void on_handshake(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct side *s = arg;
    assert_false(s->called);
    s->called = true;
    s->handshake = NULL;
    s->bs = bs;
    assert_true((bs == NULL) == (error != NULL));
    if (error)
        s->error = tc_status_ref(error);
    if (bs)
        tc_bytestream_set_handler(bs, on_event, s);
}

static int setup(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    f->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true});
    f->pipe = tc_pipe_new(f->loop);
    f->client.loop = f->server.loop = f->loop;
    *state = f;
    return 0;
}

static void fini_side(struct side *s)
{
    if (s->handshake)
        tc_tls_handshake_cancel(s->handshake);
    if (s->bs)
        s->bs->ops->close(s->bs);
    tc_status_fini(&s->error);
    tc_buf_fini(&s->received);
    tc_buf_fini(&s->to_send);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    fini_side(&f->client);
    fini_side(&f->server);
    tc_loop_drain(f->loop);
    tc_pipe_free(f->pipe);
    tc_loop_free(f->loop);
    tc_free(f);
    return ERR_peek_error() == 0 ? 0 : -1; /* OpenSSL's queue is left clean */
}

static struct tc_tls_opts client_opts(void)
{
    return (struct tc_tls_opts){.roots_pem = tc_cert_pem(&root)};
}

static struct tc_tls_opts server_opts(const struct tc_cert *cert)
{
    return (struct tc_tls_opts){.server = true,
                                .verify = TC_TLS_VERIFY_NONE,
                                .certificate_pem = tc_cert_pem(cert),
                                .private_key_pem = tc_cert_key(cert)};
}

static struct tc_tls_context *make_context(const struct tc_tls_opts *opts)
{
    struct tc_status error = {0};
    struct tc_tls_context *ctx = tc_tls_context_new(opts, &error);
    if (!ctx)
        print_error("%s\n", tc_status_text(&error));
    assert_non_null(ctx);
    return ctx;
}

static void start_client(struct fixture *f, const struct tc_tls_opts *opts, const char *name)
{
    struct tc_tls_context *ctx = make_context(opts);
    f->client.handshake =
        tc_tls_handshake(f->loop, ctx, tc_pipe_end(f->pipe, 0), tc_slice_str(name), 5000, on_handshake, &f->client);
    tc_tls_context_unref(ctx);
}

static void start_server(struct fixture *f, const struct tc_tls_opts *opts)
{
    struct tc_tls_context *ctx = make_context(opts);
    f->server.handshake =
        tc_tls_handshake(f->loop, ctx, tc_pipe_end(f->pipe, 1), tc_slice_str(""), 5000, on_handshake, &f->server);
    tc_tls_context_unref(ctx);
}

static void shake(struct fixture *f, const struct tc_tls_opts *client, const char *name,
                  const struct tc_tls_opts *server)
{
    start_client(f, client, name);
    start_server(f, server);
    assert_false(f->client.called); /* never from inside */
    tc_loop_drain(f->loop);
}

static void assert_text(const struct side *s, const char *part)
{
    assert_true(s->called);
    assert_null(s->bs);
    assert_int_equal(s->error.code, TORC_STATUS_UNAVAILABLE);
    if (!strstr(tc_status_text(&s->error), part))
        fail_msg("\"%s\" is not in \"%s\"", part, tc_status_text(&s->error));
}

static void assert_both_up(const struct fixture *f)
{
    if (f->client.called && !f->client.bs)
        print_error("%s\n", tc_status_text(&f->client.error));
    if (f->server.called && !f->server.bs)
        print_error("%s\n", tc_status_text(&f->server.error));
    assert_non_null(f->client.bs);
    assert_non_null(f->server.bs);
}

static void send_and_compare(struct fixture *f, struct side *from, struct side *to, size_t len)
{
    struct tc_buf expected = {0};
    for (size_t i = 0; i < len; i++)
        tc_buf_append_char(&expected, (char)(i * 31 + i / 251));
    tc_buf_clear(&to->received);
    tc_buf_append(&from->to_send, expected.data, len);
    send_rest(from);
    tc_loop_drain(f->loop);
    assert_int_equal(from->to_send.len, 0);
    assert_int_equal(to->received.len, len);
    assert_memory_equal(to->received.data, expected.data, len);
    tc_buf_fini(&expected);
}

static void a_good_handshake_gives_a_secure_stream(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    shake(f, &client, "backend.test", &server);
    assert_both_up(f);
    assert_true(f->client.bs->secure);
    assert_string_equal(f->client.bs->alpn, "h2");
    assert_string_equal(f->server.bs->alpn, "h2");
    assert_true(tc_addr_eq(&f->client.bs->peer, &tc_pipe_end(f->pipe, 0)->peer));
    send_and_compare(f, &f->client, &f->server, 1);
    send_and_compare(f, &f->server, &f->client, 300000);
    /* What passes is not what was sent. */
    tc_buf_append_str(&f->client.to_send, "in the clear");
    send_rest(&f->client);
    assert_int_equal(tc_slice_find(tc_pipe_unread(f->pipe, 1), tc_slice_str("in the clear")), -1);
}

static void names_are_matched_by_rfc_9525(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    shake(f, &client, "a.wild.test.", &server);
    assert_both_up(f);
}

static void ip_literals_are_matched(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    shake(f, &client, "[::1]", &server);
    assert_both_up(f);
}

static void one_byte_at_a_time(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    tc_pipe_set_read_chunk(f->pipe, 1);
    tc_pipe_set_write_chunk(f->pipe, 7);
    tc_pipe_set_capacity(f->pipe, 11);
    shake(f, &client, "127.0.0.1", &server);
    assert_both_up(f);
    send_and_compare(f, &f->client, &f->server, 70000);
    send_and_compare(f, &f->server, &f->client, 20000);
}

static void a_blocked_writer_is_told_when_it_can_go_on(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    shake(f, &client, "backend.test", &server);
    assert_both_up(f);
    f->server.bs->ops->set_reading(f->server.bs, false);
    tc_pipe_set_capacity(f->pipe, 30000);
    char *zeros = tc_calloc(1, 500000);
    tc_buf_append(&f->client.to_send, zeros, 500000);
    send_rest(&f->client);
    tc_loop_drain(f->loop);
    assert_true(f->client.to_send.len > 400000);
    assert_int_equal(f->server.received.len, 0);
    f->server.bs->ops->set_reading(f->server.bs, true);
    tc_loop_drain(f->loop);
    assert_int_equal(f->client.to_send.len, 0);
    assert_int_equal(f->server.received.len, 500000);
    tc_free(zeros);
}

static void a_wrong_name_is_refused(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    shake(f, &client, "other.test", &server);
    assert_text(&f->client, "TLS handshake with \"other.test\" (192.0.2.1:1001) failed: certificate verify failed: "
                            "hostname mismatch: the certificate is not valid for \"other.test\"");
    assert_text(&f->server, "alert bad certificate");
    assert_true(tc_pipe_closed(f->pipe, 0));
}

static void a_wrong_ip_is_refused(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    shake(f, &client, "127.0.0.2", &server);
    assert_text(&f->client, "IP address mismatch: the certificate is not valid for \"127.0.0.2\"");
}

static void a_wildcard_is_one_label(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    shake(f, &client, "a.b.wild.test", &server);
    assert_text(&f->client, "hostname mismatch");
}

static void a_common_name_is_no_name(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&cn_only_cert);
    shake(f, &client, "backend.test", &server);
    assert_text(&f->client, "hostname mismatch");
}

static void an_empty_name_is_refused(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    shake(f, &client, "", &server);
    assert_text(&f->client, "there is no server name to verify");
}

static void chain_only_does_not_look_at_the_name(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    client.verify = TC_TLS_VERIFY_CHAIN;
    shake(f, &client, "other.test", &server);
    assert_both_up(f);
}

static void an_unknown_root_is_refused(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    client.roots_pem = tc_cert_pem(&other_root);
    shake(f, &client, "backend.test", &server);
    assert_text(&f->client, "certificate verify failed: unable to get local issuer certificate");
    assert_text(&f->server, "alert unknown ca");
}

static void chain_only_still_needs_a_known_root(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    client.roots_pem = tc_cert_pem(&other_root);
    client.verify = TC_TLS_VERIFY_CHAIN;
    shake(f, &client, "backend.test", &server);
    assert_text(&f->client, "unable to get local issuer certificate");
}

static void without_verification_anything_goes(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&expired_cert);
    client.verify = TC_TLS_VERIFY_NONE;
    shake(f, &client, "", &server);
    assert_both_up(f);
}

static void an_expired_certificate_is_refused(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&expired_cert);
    shake(f, &client, "backend.test", &server);
    assert_text(&f->client, "certificate verify failed: certificate has expired");
}

static struct tc_tls_opts mutual_server(enum tc_tls_verify verify)
{
    struct tc_tls_opts server = server_opts(&server_cert);
    server.verify = verify;
    server.roots_pem = tc_cert_pem(&root);
    return server;
}

static void a_client_certificate_is_accepted(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = mutual_server(TC_TLS_VERIFY_FULL);
    client.certificate_pem = tc_cert_pem(&client_cert);
    client.private_key_pem = tc_cert_key(&client_cert);
    shake(f, &client, "backend.test", &server);
    assert_both_up(f);
    send_and_compare(f, &f->client, &f->server, 1000);
}

static void a_missing_client_certificate_is_refused(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = mutual_server(TC_TLS_VERIFY_FULL);
    shake(f, &client, "backend.test", &server);
    assert_text(&f->server, "peer did not return a certificate");
    /* With TLS 1.3 the client is through before the server has looked. */
    assert_non_null(f->client.bs);
    assert_int_equal(f->client.read_error, TORC_EPROTO);
    assert_non_null(strstr(tc_status_text(&f->client.bs->error), "alert certificate required"));
}

static void an_optional_client_certificate_may_be_missing(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = mutual_server(TC_TLS_VERIFY_OPTIONAL);
    shake(f, &client, "backend.test", &server);
    assert_both_up(f);
}

static bool refuse_backend(void *arg, struct x509_st *leaf, const char *name, struct tc_buf *why)
{
    int *calls = arg;
    (*calls)++;
    assert_non_null(leaf);
    tc_buf_printf(why, "%s is not wanted here", name);
    return false;
}

static bool accept_backend(void *arg, struct x509_st *leaf, const char *name, struct tc_buf *why)
{
    int *calls = arg;
    (*calls)++;
    (void)leaf, (void)name, (void)why;
    return true;
}

static void the_verify_callback_can_refuse(void **state)
{
    struct fixture *f = *state;
    int calls = 0;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    client.verify = TC_TLS_VERIFY_CHAIN;
    client.verify_fn = refuse_backend;
    client.verify_arg = &calls;
    shake(f, &client, "any.test", &server);
    assert_text(&f->client, "certificate verify failed: any.test is not wanted here");
    assert_int_equal(calls, 1);
}

static void the_verify_callback_cannot_overrule_the_chain(void **state)
{
    struct fixture *f = *state;
    int calls = 0;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    client.roots_pem = tc_cert_pem(&other_root);
    client.verify_fn = accept_backend;
    client.verify_arg = &calls;
    shake(f, &client, "backend.test", &server);
    assert_text(&f->client, "unable to get local issuer certificate");
    assert_int_equal(calls, 0);
}

/* A peer that is OpenSSL alone, with memory BIOs on end 1 of the pipe. */

struct raw_peer {
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in, *out;
};

static struct raw_peer raw_new(bool server)
{
    struct raw_peer p = {.ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method())};
    if (server) {
        SSL_CTX_use_certificate(p.ctx, server_cert.x509);
        SSL_CTX_use_PrivateKey(p.ctx, server_cert.key);
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

static void raw_pump(struct raw_peer *p, struct fixture *f)
{
    for (int i = 0; i < 10; i++) {
        tc_loop_drain(f->loop);
        struct tc_slice got = tc_pipe_unread(f->pipe, 1);
        BIO_write(p->in, got.data, (int)got.len);
        tc_pipe_take(f->pipe, 1, got.len);
        if (!SSL_is_init_finished(p->ssl))
            SSL_do_handshake(p->ssl);
        ERR_clear_error();
        char buf[4096];
        int n;
        while ((n = BIO_read(p->out, buf, sizeof(buf))) > 0)
            tc_pipe_put(f->pipe, 1, buf, (size_t)n);
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
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts();
    struct raw_peer peer = raw_new(true);
    start_client(f, &client, "backend.test");
    raw_pump(&peer, f);
    assert_text(&f->client, "peer did not negotiate h2 by ALPN");
    raw_free(&peer);
}

static void start_server_on_end_0(struct fixture *f)
{
    struct tc_tls_opts server = server_opts(&server_cert);
    struct tc_tls_context *ctx = make_context(&server);
    f->server.handshake =
        tc_tls_handshake(f->loop, ctx, tc_pipe_end(f->pipe, 0), tc_slice_str(""), 5000, on_handshake, &f->server);
    tc_tls_context_unref(ctx);
}

static void raw_put(struct raw_peer *p, struct fixture *f)
{
    char buf[4096];
    int n;
    while ((n = BIO_read(p->out, buf, sizeof(buf))) > 0)
        tc_pipe_put(f->pipe, 1, buf, (size_t)n);
}

static void bytes_that_come_with_the_handshake_are_not_lost(void **state)
{
    struct fixture *f = *state;
    struct raw_peer peer = raw_new(false);
    SSL_set_alpn_protos(peer.ssl, (const unsigned char *)"\x02h2", 3);
    start_server_on_end_0(f);
    SSL_do_handshake(peer.ssl);
    raw_put(&peer, f);
    tc_loop_drain(f->loop);
    struct tc_slice flight = tc_pipe_unread(f->pipe, 1);
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
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts();
    struct raw_peer peer = raw_new(true);
    SSL_set_security_level(peer.ssl, 0);
    SSL_set_min_proto_version(peer.ssl, TLS1_VERSION);
    SSL_set_max_proto_version(peer.ssl, TLS1_1_VERSION);
    start_client(f, &client, "backend.test");
    raw_pump(&peer, f);
    assert_text(&f->client, "protocol version");
    raw_free(&peer);
}

static void tls_1_2_is_accepted_without_renegotiation(void **state)
{
    struct fixture *f = *state;
    struct raw_peer peer = raw_new(false);
    SSL_set_max_proto_version(peer.ssl, TLS1_2_VERSION);
    SSL_set_alpn_protos(peer.ssl, (const unsigned char *)"\x02h2\x08http/1.1", 12);
    start_server_on_end_0(f);
    raw_pump(&peer, f);
    assert_non_null(f->server.bs);
    assert_int_equal(SSL_version(peer.ssl), TLS1_2_VERSION);
    assert_int_equal(SSL_renegotiate(peer.ssl), 1);
    SSL_do_handshake(peer.ssl);
    raw_pump(&peer, f);
    assert_false(SSL_is_init_finished(peer.ssl)); /* it asked, and got no handshake */
    raw_free(&peer);
}

static void a_client_that_offers_other_protocols_is_refused(void **state)
{
    struct fixture *f = *state;
    struct raw_peer peer = raw_new(false);
    SSL_set_alpn_protos(peer.ssl, (const unsigned char *)"\x08http/1.1", 9);
    start_server_on_end_0(f);
    raw_pump(&peer, f);
    assert_text(&f->server, "peer did not negotiate h2 by ALPN");
    raw_free(&peer);
}

static void a_client_without_alpn_is_refused(void **state)
{
    struct fixture *f = *state;
    struct raw_peer peer = raw_new(false);
    start_server_on_end_0(f);
    raw_pump(&peer, f);
    assert_text(&f->server, "peer did not negotiate h2 by ALPN");
    raw_free(&peer);
}

static void key_update_answers_to_a_peer_that_does_not_read_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts();
    struct raw_peer peer = raw_new(true);
    SSL_CTX_set_alpn_select_cb(peer.ctx, choose_h2, NULL);
    start_client(f, &client, "backend.test");
    raw_pump(&peer, f);
    assert_non_null(f->client.bs);
    tc_pipe_set_capacity(f->pipe, 0);
    /* Each asks for an answer of some 22 bytes; none can leave. */
    for (int i = 0; i < 40000 && f->client.read_error == 0; i++) {
        char buf[256];
        int n;
        assert_int_equal(SSL_key_update(peer.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        SSL_do_handshake(peer.ssl);
        while ((n = BIO_read(peer.out, buf, sizeof(buf))) > 0)
            tc_pipe_put(f->pipe, 1, buf, (size_t)n);
        tc_loop_drain(f->loop);
    }
    /* At some point we stop reading instead of queueing more: the rest waits in the pipe. */
    assert_int_equal(f->client.read_error, 0);
    assert_true(tc_pipe_unread(f->pipe, 0).len > 100000);
    tc_pipe_set_capacity(f->pipe, SIZE_MAX);
    tc_loop_drain(f->loop);
    assert_int_equal(tc_pipe_unread(f->pipe, 0).len, 0); /* and we go on when it reads */
    assert_int_equal(f->client.read_error, 0);
    ERR_clear_error();
    raw_free(&peer);
}

static void a_silent_peer_times_out(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts();
    start_client(f, &client, "backend.test");
    tc_loop_advance(f->loop, 4999);
    assert_false(f->client.called);
    tc_loop_advance(f->loop, 1);
    assert_text(&f->client, "timed out after 5000 ms");
    assert_true(tc_pipe_closed(f->pipe, 0));
}

static void a_peer_that_goes_away_fails_the_handshake(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts();
    start_client(f, &client, "backend.test");
    tc_loop_drain(f->loop);
    tc_pipe_finish(f->pipe, 1);
    tc_loop_drain(f->loop);
    assert_text(&f->client, "the peer closed the connection");
}

static void an_error_below_fails_the_handshake(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts();
    start_client(f, &client, "backend.test");
    tc_loop_drain(f->loop);
    tc_pipe_fail(f->pipe, 0, TORC_EIO, "the wire broke", false);
    tc_loop_drain(f->loop);
    assert_text(&f->client, "the wire broke");
}

static void a_peer_without_tls_is_named(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts();
    start_client(f, &client, "backend.test");
    const char answer[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    tc_pipe_put(f->pipe, 1, answer, sizeof(answer) - 1);
    tc_loop_drain(f->loop);
    assert_text(&f->client, "failed: ");
    assert_non_null(strstr(tc_status_text(&f->client.error), "wrong version number"));
}

static void cancel_closes_without_callback(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts();
    start_client(f, &client, "backend.test");
    tc_loop_drain(f->loop);
    tc_tls_handshake_cancel(f->client.handshake);
    f->client.handshake = NULL;
    assert_true(tc_pipe_closed(f->pipe, 0));
    tc_loop_advance(f->loop, 10000);
    assert_false(f->client.called);
}

static void close_sends_close_notify(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    shake(f, &client, "backend.test", &server);
    assert_both_up(f);
    size_t before = tc_pipe_unread(f->pipe, 1).len;
    f->client.bs->ops->close(f->client.bs);
    f->client.bs = NULL;
    assert_true(tc_pipe_unread(f->pipe, 1).len > before);
    tc_loop_drain(f->loop);
    assert_true(f->server.ended);
    struct iovec iov = {(void *)(uintptr_t) "x", 1};
    assert_int_equal(f->server.bs->ops->writev(f->server.bs, &iov, 1), TORC_ECLOSED);
}

static void an_error_below_comes_out_of_read_and_write(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    shake(f, &client, "backend.test", &server);
    assert_both_up(f);
    tc_pipe_fail(f->pipe, 0, TORC_EIO, "the wire broke", false);
    tc_loop_drain(f->loop);
    assert_int_equal(f->client.read_error, TORC_EIO);
    assert_string_equal(tc_status_text(&f->client.bs->error), "the wire broke");
    struct iovec iov = {(void *)(uintptr_t) "x", 1};
    assert_int_equal(f->client.bs->ops->writev(f->client.bs, &iov, 1), TORC_EIO);
}

static void a_tampered_record_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct tc_tls_opts client = client_opts(), server = server_opts(&server_cert);
    shake(f, &client, "backend.test", &server);
    assert_both_up(f);
    const char forged[] = "\x17\x03\x03\x00\x14"
                          "01234567890123456789";
    tc_pipe_put(f->pipe, 1, forged, 25);
    tc_loop_drain(f->loop);
    assert_int_equal(f->client.read_error, TORC_EPROTO);
    assert_non_null(strstr(tc_status_text(&f->client.bs->error), "bad record mac"));
}

/* Contexts. */

static void assert_refused(const struct tc_tls_opts *opts, const char *text)
{
    struct tc_status error = {0};
    assert_null(tc_tls_context_new(opts, &error));
    assert_int_equal(error.code, TORC_STATUS_INVALID_ARGUMENT);
    if (!strstr(tc_status_text(&error), text))
        fail_msg("\"%s\" is not in \"%s\"", text, tc_status_text(&error));
    tc_status_fini(&error);
    assert_int_equal(ERR_peek_error(), 0);
}

static void bad_material_is_refused_with_its_name(void **state)
{
    (void)state;
    struct tc_tls_opts opts = client_opts();
    opts.roots_pem = tc_slice_str("no certificate");
    assert_refused(&opts, "root certificates: no PEM certificate found");
    opts.roots_pem = tc_slice_str("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    assert_refused(&opts, "root certificates: ");
    opts = client_opts();
    opts.certificate_pem = tc_cert_pem(&client_cert);
    assert_refused(&opts, "certificate and private key must be given together");
    opts.private_key_pem = tc_cert_key(&server_cert);
    assert_refused(&opts, "private key: key values mismatch");
    opts.private_key_pem = tc_slice_str("");
    assert_refused(&opts, "private key: ");
    opts.certificate_pem = tc_slice_str("");
    assert_refused(&opts, "certificate chain: no PEM certificate found");
    opts = (struct tc_tls_opts){.server = true};
    assert_refused(&opts, "a server needs a certificate");
}

static void make_certs(void)
{
    root = tc_cert_make(&(struct tc_cert_opts){.common_name = "root", .ca = true});
    other_root = tc_cert_make(&(struct tc_cert_opts){.common_name = "other root", .ca = true});
    const char *sans = "DNS:backend.test,DNS:*.wild.test,IP:127.0.0.1,IP:::1";
    server_cert = tc_cert_make(&(struct tc_cert_opts){.common_name = "server", .sans = sans, .issuer = &root});
    expired_cert = tc_cert_make(&(struct tc_cert_opts){
        .common_name = "expired", .sans = sans, .issuer = &root, .valid_from_s = -7200, .valid_to_s = -3600});
    client_cert = tc_cert_make(&(struct tc_cert_opts){.common_name = "client", .issuer = &root});
    cn_only_cert = tc_cert_make(&(struct tc_cert_opts){.common_name = "backend.test", .issuer = &root});
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    make_certs();
    const struct CMUnitTest tests[] = {
        T(a_good_handshake_gives_a_secure_stream),
        T(names_are_matched_by_rfc_9525),
        T(ip_literals_are_matched),
        T(one_byte_at_a_time),
        T(a_blocked_writer_is_told_when_it_can_go_on),
        T(a_wrong_name_is_refused),
        T(a_wrong_ip_is_refused),
        T(a_wildcard_is_one_label),
        T(a_common_name_is_no_name),
        T(an_empty_name_is_refused),
        T(chain_only_does_not_look_at_the_name),
        T(an_unknown_root_is_refused),
        T(chain_only_still_needs_a_known_root),
        T(without_verification_anything_goes),
        T(an_expired_certificate_is_refused),
        T(a_client_certificate_is_accepted),
        T(a_missing_client_certificate_is_refused),
        T(an_optional_client_certificate_may_be_missing),
        T(the_verify_callback_can_refuse),
        T(the_verify_callback_cannot_overrule_the_chain),
        T(a_server_without_alpn_is_refused),
        T(bytes_that_come_with_the_handshake_are_not_lost),
        T(tls_1_1_is_refused),
        T(tls_1_2_is_accepted_without_renegotiation),
        T(a_client_that_offers_other_protocols_is_refused),
        T(a_client_without_alpn_is_refused),
        T(key_update_answers_to_a_peer_that_does_not_read_are_bounded),
        T(a_silent_peer_times_out),
        T(a_peer_that_goes_away_fails_the_handshake),
        T(an_error_below_fails_the_handshake),
        T(a_peer_without_tls_is_named),
        T(cancel_closes_without_callback),
        T(close_sends_close_notify),
        T(an_error_below_comes_out_of_read_and_write),
        T(a_tampered_record_is_an_error),
        cmocka_unit_test(bad_material_is_refused_with_its_name),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    struct tc_cert *certs[] = {&root, &other_root, &server_cert, &expired_cert, &client_cert, &cn_only_cert};
    for (size_t i = 0; i < TC_ARRAY_LEN(certs); i++)
        tc_cert_fini(certs[i]);
    return failed;
}
