/* xds credentials (A29): each cluster's own security, and a fallback where the control plane gives none. */
#include "creds/xds.h"

#include "base/mem.h"
#include "base/status.h"
#include "creds/handshake.h"

struct xds_credentials {
    torc_credentials base;
    torc_credentials *fallback; /* a reference */
};

static torc_credentials *fallback_of(const torc_credentials *c)
{
    return TC_CONTAINER_OF((torc_credentials *)(uintptr_t)c, struct xds_credentials, base)->fallback;
}

/* Channels never start a handshake here: they take the fallback out (tc_credentials_xds_fallback). Any other user gets
 * the fallback's handshake. */
static struct tc_creds_handshake *xds_start(torc_credentials *c, struct tc_loop *loop, struct tc_bytestream *bs,
                                            const struct tc_creds_peer *peer, tc_creds_fn fn, void *arg)
{
    torc_credentials *fallback = fallback_of(c);
    return fallback->ops->start(fallback, loop, bs, peer, fn, arg);
}

static void xds_free(torc_credentials *c)
{
    torc_credentials_unref(fallback_of(c));
    tc_rstr_unref(c->key);
    tc_free(TC_CONTAINER_OF(c, struct xds_credentials, base));
}

/* Returns why `fallback`, which may be NULL, cannot be a fallback, as a static text. Returns NULL if it can. */
static const char *fallback_fault(const torc_credentials *fallback)
{
    if (!fallback)
        return "fallback: it is NULL; for plaintext give torc_credentials_insecure()";
    if (fallback->call)
        return "fallback: it has call credentials; put those around the xds credentials";
    if (fallback->for_servers)
        return "fallback: these credentials are for servers";
    return tc_credentials_xds_fallback(fallback) ? "fallback: it is xds credentials itself" : NULL;
}

torc_credentials *torc_credentials_xds(torc_credentials *fallback, torc_error **error)
{
    if (tc_error_pending(error))
        return NULL;
    const char *fault = fallback_fault(fallback);
    if (fault) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s", fault);
        return NULL;
    }
    struct xds_credentials *c = TC_NEW(struct xds_credentials);
    static const struct tc_creds_ops ops = {
        .type = TC_CREDS_XDS, .start = xds_start, .cancel = tc_creds_handshake_cancel, .free = xds_free};
    tc_ref_init(&c->base.ref);
    c->base.ops = &ops;
    c->base.scheme = fallback->scheme;
    c->base.key = tc_rstr_printf("xds:%s", fallback->key->data);
    c->fallback = torc_credentials_ref(fallback);
    return &c->base;
}

torc_credentials *tc_credentials_xds_fallback(const torc_credentials *c)
{
    return strcmp(c->ops->type, TC_CREDS_XDS) == 0 ? fallback_of(c) : NULL;
}
