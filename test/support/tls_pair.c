#include "support/tls_pair.h"

#include <openssl/err.h>

#include "base/mem.h"
#include "support/cmocka.h"

struct tc_certs tc_certs;

void tc_certs_make(void)
{
    tc_certs.root = tc_cert_make(&(struct tc_cert_opts){.common_name = "root", .ca = true});
    tc_certs.other_root = tc_cert_make(&(struct tc_cert_opts){.common_name = "other root", .ca = true});
    const char *sans = "DNS:backend.test,DNS:*.wild.test,IP:127.0.0.1,IP:::1";
    tc_certs.server =
        tc_cert_make(&(struct tc_cert_opts){.common_name = "server", .sans = sans, .issuer = &tc_certs.root});
    tc_certs.expired = tc_cert_make(&(struct tc_cert_opts){
        .common_name = "expired", .sans = sans, .issuer = &tc_certs.root, .valid_from_s = -7200, .valid_to_s = -3600});
    tc_certs.client = tc_cert_make(&(struct tc_cert_opts){.common_name = "client", .issuer = &tc_certs.root});
    tc_certs.cn_only = tc_cert_make(&(struct tc_cert_opts){.common_name = "backend.test", .issuer = &tc_certs.root});
}

void tc_certs_free(void)
{
    struct tc_cert *certs[] = {&tc_certs.root,    &tc_certs.other_root, &tc_certs.server,
                               &tc_certs.expired, &tc_certs.client,     &tc_certs.cn_only};
    for (size_t i = 0; i < TC_ARRAY_LEN(certs); i++)
        tc_cert_fini(certs[i]);
}

void tc_tls_side_send(struct tc_tls_side *s)
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
    struct tc_tls_side *s = arg;
    if (events & TC_BS_WRITABLE)
        tc_tls_side_send(s);
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

void tc_tls_side_on_handshake(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct tc_tls_side *s = arg;
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

int tc_tls_pair_setup(void **state)
{
    struct tc_tls_pair *f = TC_NEW(struct tc_tls_pair);
    f->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true});
    f->pipe = tc_pipe_new(f->loop);
    f->client.loop = f->server.loop = f->loop;
    *state = f;
    return 0;
}

static void fini_side(struct tc_tls_side *s)
{
    if (s->handshake)
        tc_tls_handshake_cancel(s->handshake);
    if (s->bs)
        s->bs->ops->close(s->bs);
    tc_status_fini(&s->error);
    tc_buf_fini(&s->received);
    tc_buf_fini(&s->to_send);
}

int tc_tls_pair_teardown(void **state)
{
    struct tc_tls_pair *f = *state;
    fini_side(&f->client);
    fini_side(&f->server);
    tc_loop_drain(f->loop);
    tc_pipe_free(f->pipe);
    tc_loop_free(f->loop);
    tc_free(f);
    return ERR_peek_error() == 0 ? 0 : -1; /* OpenSSL's queue is left clean */
}

struct tc_tls_opts tc_tls_client_opts(void)
{
    return (struct tc_tls_opts){.roots_pem = tc_cert_pem(&tc_certs.root)};
}

struct tc_tls_opts tc_tls_server_opts(const struct tc_cert *cert)
{
    return (struct tc_tls_opts){.server = true,
                                .verify = TC_TLS_VERIFY_NONE,
                                .certificate_pem = tc_cert_pem(cert),
                                .private_key_pem = tc_cert_key(cert)};
}

struct tc_tls_context *tc_tls_make_context(const struct tc_tls_opts *opts)
{
    struct tc_status error = {0};
    struct tc_tls_context *ctx = tc_tls_context_new(opts, &error);
    if (!ctx)
        print_error("%s\n", tc_status_text(&error));
    assert_non_null(ctx);
    return ctx;
}

void tc_tls_pair_start_client(struct tc_tls_pair *f, const struct tc_tls_opts *opts, const char *name)
{
    struct tc_tls_context *ctx = tc_tls_make_context(opts);
    f->client.handshake = tc_tls_handshake(f->loop, ctx, tc_pipe_end(f->pipe, 0), tc_slice_str(name), 5000,
                                           tc_tls_side_on_handshake, &f->client);
    tc_tls_context_unref(ctx);
}

void tc_tls_pair_start_server(struct tc_tls_pair *f, const struct tc_tls_opts *opts)
{
    struct tc_tls_context *ctx = tc_tls_make_context(opts);
    f->server.handshake = tc_tls_handshake(f->loop, ctx, tc_pipe_end(f->pipe, 1), tc_slice_str(""), 5000,
                                           tc_tls_side_on_handshake, &f->server);
    tc_tls_context_unref(ctx);
}

void tc_tls_pair_shake(struct tc_tls_pair *f, const struct tc_tls_opts *client, const char *name,
                       const struct tc_tls_opts *server)
{
    tc_tls_pair_start_client(f, client, name);
    tc_tls_pair_start_server(f, server);
    assert_false(f->client.called); /* never from inside */
    tc_loop_drain(f->loop);
}

void tc_tls_assert_failed(const struct tc_tls_side *s, const char *part)
{
    assert_true(s->called);
    assert_null(s->bs);
    assert_int_equal(s->error.code, TORC_STATUS_UNAVAILABLE);
    if (!strstr(tc_status_text(&s->error), part))
        fail_msg("\"%s\" is not in \"%s\"", part, tc_status_text(&s->error));
}

void tc_tls_assert_both_up(const struct tc_tls_pair *f)
{
    if (f->client.called && !f->client.bs)
        print_error("%s\n", tc_status_text(&f->client.error));
    if (f->server.called && !f->server.bs)
        print_error("%s\n", tc_status_text(&f->server.error));
    assert_non_null(f->client.bs);
    assert_non_null(f->server.bs);
}

void tc_tls_send_and_compare(struct tc_tls_pair *f, struct tc_tls_side *from, struct tc_tls_side *to, size_t len)
{
    struct tc_buf expected = {0};
    for (size_t i = 0; i < len; i++)
        tc_buf_append_char(&expected, (char)(i * 31 + i / 251));
    tc_buf_clear(&to->received);
    tc_buf_append(&from->to_send, expected.data, len);
    tc_tls_side_send(from);
    tc_loop_drain(f->loop);
    assert_int_equal(from->to_send.len, 0);
    assert_int_equal(to->received.len, len);
    assert_memory_equal(to->received.data, expected.data, len);
    tc_buf_fini(&expected);
}
