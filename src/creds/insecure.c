#include "base/mem.h"
#include "creds/creds.h"
#include "creds/handshake.h"

static struct tc_creds_handshake *insecure_start(torc_credentials *c, struct tc_loop *loop, struct tc_bytestream *bs,
                                                 const struct tc_creds_peer *peer, tc_creds_fn fn, void *arg)
{
    (void)c;
    (void)peer;
    return tc_creds_handshake_none(loop, bs, fn, arg);
}

static void insecure_free(torc_credentials *c)
{
    tc_rstr_unref(c->key);
    tc_free(c);
}

static const struct tc_creds_ops insecure_ops = {
    .type = "insecure",
    .start = insecure_start,
    .cancel = tc_creds_handshake_cancel,
    .free = insecure_free,
};

/* An application may give up what it found in its options. */
static void keep(torc_credentials *c)
{
    (void)c;
}

torc_credentials *tc_creds_default(void)
{
    static const struct tc_creds_ops ops = {
        .type = "insecure", .start = insecure_start, .cancel = tc_creds_handshake_cancel, .free = keep};
    static struct tc_rstr key = {.ref = {1}, .len = 8, .data = "insecure"};
    static torc_credentials c = {.ref = {1}, .ops = &ops, .scheme = "http", .key = &key};
    return &c;
}

torc_credentials *torc_credentials_insecure(void)
{
    torc_credentials *c = TC_NEW(torc_credentials);
    tc_ref_init(&c->ref);
    c->ops = &insecure_ops;
    c->scheme = "http";
    c->key = tc_rstr_str("insecure");
    return c;
}
