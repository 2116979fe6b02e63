/* A TLS client and server over fakes/pipe, with certificates made once for a group of tests.
 *
 * Both sides are byte streams of src/tls on one manual loop; kit_tls_pair_side records the bytes that a side receives
 * and the outcome of its handshake. The certificates cover the usual cases: the right names, another root, an
 * expired certificate, a common name only. kit_tls_pair_shake asserts that the client's callback does not come from
 * inside the calls that start the handshakes. A pair belongs to one test: its setup makes the pair, its teardown frees
 * the pair with what both sides own. Everything runs on the test's thread. */
#include "support/kits/tls_pair.h"

#include <openssl/err.h>

#include "base/mem.h"
#include "support/cmocka.h"

struct kit_tls_pair_certs kit_tls_pair_certs;

void kit_tls_pair_certs_make(void)
{
    kit_tls_pair_certs.root = kit_cert_make(&(struct kit_cert_opts){.common_name = "root", .ca = true});
    kit_tls_pair_certs.other_root = kit_cert_make(&(struct kit_cert_opts){.common_name = "other root", .ca = true});
    const char *sans = "DNS:backend.test,DNS:*.wild.test,IP:127.0.0.1,IP:::1";
    kit_tls_pair_certs.server = kit_cert_make(
        &(struct kit_cert_opts){.common_name = "server", .sans = sans, .issuer = &kit_tls_pair_certs.root});
    kit_tls_pair_certs.expired = kit_cert_make(&(struct kit_cert_opts){.common_name = "expired",
                                                                       .sans = sans,
                                                                       .issuer = &kit_tls_pair_certs.root,
                                                                       .valid_from_s = -7200,
                                                                       .valid_to_s = -3600});
    kit_tls_pair_certs.client =
        kit_cert_make(&(struct kit_cert_opts){.common_name = "client", .issuer = &kit_tls_pair_certs.root});
    kit_tls_pair_certs.cn_only =
        kit_cert_make(&(struct kit_cert_opts){.common_name = "backend.test", .issuer = &kit_tls_pair_certs.root});
}

void kit_tls_pair_certs_free(void)
{
    struct kit_cert *certs[] = {&kit_tls_pair_certs.root,   &kit_tls_pair_certs.other_root,
                                &kit_tls_pair_certs.server, &kit_tls_pair_certs.expired,
                                &kit_tls_pair_certs.client, &kit_tls_pair_certs.cn_only};
    for (size_t i = 0; i < TC_ARRAY_LEN(certs); i++)
        kit_cert_fini(certs[i]);
}

void kit_tls_pair_side_send(struct kit_tls_pair_side *s)
{
    while (s->to_send.len > 0) {
        /* Two pieces, so that writev has more than one. */
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
    struct kit_tls_pair_side *s = arg;
    if (events & TC_BS_WRITABLE)
        kit_tls_pair_side_send(s);
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

void kit_tls_pair_side_on_handshake(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct kit_tls_pair_side *s = arg;
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

int kit_tls_pair_setup(void **state)
{
    struct kit_tls_pair *f = TC_NEW(struct kit_tls_pair);
    f->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true});
    f->pipe = fake_pipe_new(f->loop);
    f->client.loop = f->server.loop = f->loop;
    *state = f;
    return 0;
}

static void fini_side(struct kit_tls_pair_side *s)
{
    if (s->handshake)
        tc_tls_handshake_cancel(s->handshake);
    if (s->bs)
        s->bs->ops->close(s->bs);
    tc_status_fini(&s->error);
    tc_buf_fini(&s->received);
    tc_buf_fini(&s->to_send);
}

int kit_tls_pair_teardown(void **state)
{
    struct kit_tls_pair *f = *state;
    fini_side(&f->client);
    fini_side(&f->server);
    tc_loop_drain(f->loop);
    fake_pipe_free(f->pipe);
    tc_loop_free(f->loop);
    tc_free(f);
    return ERR_peek_error() == 0 ? 0 : -1; /* OpenSSL's queue is left clean */
}

struct tc_tls_opts kit_tls_pair_client_opts(void)
{
    return (struct tc_tls_opts){.roots_pem = kit_cert_pem(&kit_tls_pair_certs.root)};
}

struct tc_tls_opts kit_tls_pair_server_opts(const struct kit_cert *cert)
{
    return (struct tc_tls_opts){.server = true,
                                .verify = TC_TLS_VERIFY_NONE,
                                .certificate_pem = kit_cert_pem(cert),
                                .private_key_pem = kit_cert_key(cert)};
}

struct tc_tls_context *kit_tls_pair_make_context(const struct tc_tls_opts *opts)
{
    struct tc_status error = {0};
    struct tc_tls_context *ctx = tc_tls_context_new(opts, &error);
    if (!ctx)
        print_error("%s\n", tc_status_text(&error));
    assert_non_null(ctx);
    return ctx;
}

void kit_tls_pair_start_client(struct kit_tls_pair *f, const struct tc_tls_opts *opts, const char *name)
{
    struct tc_tls_context *ctx = kit_tls_pair_make_context(opts);
    f->client.handshake = tc_tls_handshake(f->loop, ctx, fake_pipe_end(f->pipe, 0), tc_slice_str(name), 5000,
                                           kit_tls_pair_side_on_handshake, &f->client);
    tc_tls_context_unref(ctx);
}

void kit_tls_pair_start_server(struct kit_tls_pair *f, const struct tc_tls_opts *opts)
{
    struct tc_tls_context *ctx = kit_tls_pair_make_context(opts);
    f->server.handshake = tc_tls_handshake(f->loop, ctx, fake_pipe_end(f->pipe, 1), tc_slice_str(""), 5000,
                                           kit_tls_pair_side_on_handshake, &f->server);
    tc_tls_context_unref(ctx);
}

void kit_tls_pair_shake(struct kit_tls_pair *f, const struct tc_tls_opts *client, const char *name,
                        const struct tc_tls_opts *server)
{
    kit_tls_pair_start_client(f, client, name);
    kit_tls_pair_start_server(f, server);
    assert_false(f->client.called); /* never from inside the call */
    tc_loop_drain(f->loop);
}

void kit_tls_pair_assert_failed(const struct kit_tls_pair_side *s, const char *part)
{
    assert_true(s->called);
    assert_null(s->bs);
    assert_int_equal(s->error.code, TORC_STATUS_UNAVAILABLE);
    if (!strstr(tc_status_text(&s->error), part))
        fail_msg("\"%s\" is not in \"%s\"", part, tc_status_text(&s->error));
}

void kit_tls_pair_assert_both_up(const struct kit_tls_pair *f)
{
    if (f->client.called && !f->client.bs)
        print_error("%s\n", tc_status_text(&f->client.error));
    if (f->server.called && !f->server.bs)
        print_error("%s\n", tc_status_text(&f->server.error));
    assert_non_null(f->client.bs);
    assert_non_null(f->server.bs);
}

void kit_tls_pair_send_and_compare(struct kit_tls_pair *f, struct kit_tls_pair_side *from, struct kit_tls_pair_side *to,
                                   size_t len)
{
    struct tc_buf expected = {0};
    for (size_t i = 0; i < len; i++)
        tc_buf_append_char(&expected, (char)(i * 31 + i / 251));
    tc_buf_clear(&to->received);
    tc_buf_append(&from->to_send, expected.data, len);
    kit_tls_pair_side_send(from);
    tc_loop_drain(f->loop);
    assert_int_equal(from->to_send.len, 0);
    assert_int_equal(to->received.len, len);
    assert_memory_equal(to->received.data, expected.data, len);
    tc_buf_fini(&expected);
}
