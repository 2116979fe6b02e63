/* TLS in a library that was built without it (TORC_TLS off): no context can be made, so no handshake starts. */
#include "base/mem.h"
#include "base/status.h"
#include "tls/identity.h"

struct tc_tls_context *tc_tls_context_new(const struct tc_tls_opts *opts TC_UNUSED, struct tc_status *error)
{
    tc_status_set(error, tc_status_make(TORC_STATUS_UNIMPLEMENTED, TORC_LAYER_TLS, "Torc was built without TLS"));
    return NULL;
}

bool tc_tls_check(torc_error **error)
{
    return tc_error_set(error, TORC_EUNSUPPORTED, TORC_LAYER_TLS, "Torc was built without TLS");
}

struct tc_tls_context *tc_tls_context_ref(struct tc_tls_context *ctx)
{
    return ctx;
}

void tc_tls_context_unref(struct tc_tls_context *ctx TC_UNUSED) {}

struct tc_tls_handshake *tc_tls_handshake(struct tc_loop *loop TC_UNUSED, struct tc_tls_context *ctx TC_UNUSED,
                                          struct tc_bytestream *bs, struct tc_slice server_name TC_UNUSED,
                                          uint64_t timeout_ms TC_UNUSED, tc_tls_fn fn TC_UNUSED, void *arg TC_UNUSED)
{
    bs->ops->close(bs); /* not reached: there is no context */
    return NULL;
}

void tc_tls_handshake_cancel(struct tc_tls_handshake *h TC_UNUSED) {}

struct tc_tls_identity *tc_tls_identify(struct tc_bytestream *bs TC_UNUSED, struct tc_buf *why)
{
    tc_buf_append_str(why, "Torc was built without TLS");
    return NULL;
}

bool tc_san_find(struct x509_st *cert TC_UNUSED, tc_san_fn fn TC_UNUSED, void *arg TC_UNUSED, size_t *n)
{
    if (n)
        *n = 0;
    return false;
}

bool tc_san_is_host(struct tc_slice host TC_UNUSED)
{
    return false;
}

bool tc_san_covers(struct tc_slice pattern TC_UNUSED, struct tc_slice host TC_UNUSED)
{
    return false;
}

struct tc_tls_identity *tc_tls_identity_ref(struct tc_tls_identity *id)
{
    return id;
}

void tc_tls_identity_unref(struct tc_tls_identity *id TC_UNUSED) {}
