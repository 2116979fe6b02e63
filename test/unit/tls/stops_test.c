/* Servers that stop within the handshake: they fall silent, close, or send garbage. Servers that close an established
 * connection before, within or after a record.
 *
 * Torc's client is on end 0 of a pipe (kits/tls_pair), the server on end 1. `pass_on` passes the server's bytes on, and
 * stops after any number of them, so that each case ends at a chosen byte. In a handshake the client must then fail
 * with a reason; on a connection it must tell an end with close_notify from an end without it (`cut`).
 *
 * Each case makes and frees its own pair and its own server. The certificates are made once for all tests. Everything
 * runs on the test's thread, on a manual loop. */
#include "tls/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/mem.h"
#include "support/cmocka.h"
#include "support/kits/tls_pair.h"

/* A server that is OpenSSL alone. `ssl` owns the BIOs: `in` has what the client sent, `out` what the server sends. */
struct server {
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in, *out;
    size_t sent; /* bytes that pass_on has passed on to the client */
};

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
                     unsigned in_len, void *arg)
{
    (void)ssl, (void)in, (void)in_len, (void)arg;
    *out = (const unsigned char *)"h2";
    *out_len = 2;
    return SSL_TLSEXT_ERR_OK;
}

/* Returns a server for server_free, with TLS of this version at most. */
static struct server server_new(int version)
{
    struct server s = {.ctx = SSL_CTX_new(TLS_server_method())};
    SSL_CTX_use_certificate(s.ctx, kit_tls_pair_certs.server.x509);
    SSL_CTX_use_PrivateKey(s.ctx, kit_tls_pair_certs.server.key);
    SSL_CTX_set_max_proto_version(s.ctx, version);
    SSL_CTX_set_alpn_select_cb(s.ctx, choose_h2, NULL);
    s.ssl = SSL_new(s.ctx);
    s.in = BIO_new(BIO_s_mem());
    s.out = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(s.in, -1);
    SSL_set_bio(s.ssl, s.in, s.out);
    SSL_set_accept_state(s.ssl);
    return s;
}

static void server_free(struct server *s)
{
    SSL_free(s->ssl);
    SSL_CTX_free(s->ctx);
}

/* Passes bytes both ways, until the client was sent `most` bytes of the server in all, or no side has more to send.
 * Returns false if the server has fewer than `most`. */
static bool pass_on(struct server *s, struct kit_tls_pair *f, size_t most)
{
    for (bool more = true; more && s->sent < most;) {
        tc_loop_drain(f->loop);
        struct tc_slice got = fake_pipe_unread(f->pipe, 1);
        BIO_write(s->in, got.data, (int)got.len);
        fake_pipe_take(f->pipe, 1, got.len);
        char buf[4096];
        if (SSL_is_init_finished(s->ssl))
            (void)SSL_read(s->ssl, buf, sizeof(buf));
        else
            (void)SSL_do_handshake(s->ssl);
        ERR_clear_error();
        int n = BIO_read(s->out, buf, (int)TC_MIN(sizeof(buf), most - s->sent));
        more = n > 0 || got.len > 0;
        if (n > 0)
            fake_pipe_put(f->pipe, 1, buf, (size_t)n);
        s->sent += n > 0 ? (size_t)n : 0;
    }
    tc_loop_drain(f->loop);
    return s->sent == most;
}

enum end { SILENT, CLOSED, GARBAGE, N_ENDS }; /* what follows the server's last bytes */

/* Stops the server after `most` bytes and asserts that the client fails. Returns false if the client was connected by
 * then, or the server had fewer bytes to send. */
static bool stop_at(int version, size_t most, enum end end)
{
    void *state;
    kit_tls_pair_setup(&state);
    struct kit_tls_pair *f = state;
    struct tc_tls_opts client = kit_tls_pair_client_opts();
    struct server s = server_new(version);
    kit_tls_pair_start_client(f, &client, "backend.test");
    bool enough = pass_on(&s, f, most) && !f->client.bs;
    if (enough) {
        static const char garbage[600] = {0x17, 0x20};
        assert_false(f->client.called);
        if (end == CLOSED)
            fake_pipe_finish(f->pipe, 1);
        if (end == GARBAGE)
            fake_pipe_put(f->pipe, 1, garbage, sizeof(garbage));
        tc_loop_drain(f->loop);
        tc_loop_advance(f->loop, 5000);
        tc_loop_drain(f->loop);
        kit_tls_pair_assert_failed(&f->client, end == SILENT   ? "timed out after 5000 ms"
                                               : end == CLOSED ? "the peer closed the connection"
                                                               : "TLS handshake with \"backend.test\"");
        assert_true(fake_pipe_closed(f->pipe, 0));
    }
    server_free(&s);
    assert_int_equal(kit_tls_pair_teardown(&state), 0);
    return enough;
}

/* Stops after 0 to 12 bytes, where the first headers of a record and a message are, and then at every 61st byte, until
 * the client is connected. The three kinds of end take turns. */
static void stops_within_the_handshake(void **state)
{
    (void)state;
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t v = 0; v < TC_ARRAY_LEN(versions); v++) {
        size_t tried = 0;
        for (size_t at = 0; stop_at(versions[v], at, (enum end)(tried % N_ENDS)); at += at < 12 ? 1 : 61)
            tried++;
        assert_true(tried > 15);
    }
}

/* The connection ends before a record, within the record, after it, or after a close_notify behind the record. The
 * stream is marked as cut unless close_notify came. */
static void an_end_without_close_notify_is_said(void **state)
{
    (void)state;
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    static const char data[40];
    static const size_t parts[] = {0, 1, 4, 5, 6, 30, 60}; /* the record has 61 bytes at least: 40 of data */
    for (size_t i = 0; i < 2 * (TC_ARRAY_LEN(parts) + 2); i++) {
        void *fixture;
        size_t k = i / 2;
        bool partly = k < TC_ARRAY_LEN(parts);
        kit_tls_pair_setup(&fixture);
        struct kit_tls_pair *f = fixture;
        struct tc_tls_opts client = kit_tls_pair_client_opts();
        struct server s = server_new(versions[i % 2]);
        kit_tls_pair_start_client(f, &client, "backend.test");
        (void)pass_on(&s, f, SIZE_MAX);
        assert_non_null(f->client.bs);
        assert_int_equal(SSL_write(s.ssl, data, sizeof(data)), sizeof(data));
        if (k > TC_ARRAY_LEN(parts))
            SSL_shutdown(s.ssl);
        size_t before = s.sent;
        (void)pass_on(&s, f, partly ? before + parts[k] : SIZE_MAX);
        fake_pipe_finish(f->pipe, 1);
        tc_loop_drain(f->loop);
        assert_true(f->client.ended);
        assert_int_equal(f->client.received.len, partly ? 0 : sizeof(data));
        assert_int_equal(f->client.bs->cut, k <= TC_ARRAY_LEN(parts));
        server_free(&s);
        assert_int_equal(kit_tls_pair_teardown(&fixture), 0);
    }
}

static int make_certs(void **state)
{
    (void)state;
    kit_tls_pair_certs_make();
    return 0;
}

static int free_certs(void **state)
{
    (void)state;
    kit_tls_pair_certs_free();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stops_within_the_handshake),
        cmocka_unit_test(an_end_without_close_notify_is_said),
    };
    return cmocka_run_group_tests(tests, make_certs, free_certs);
}
