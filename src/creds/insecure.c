/* Insecure credentials: no handshake. One object serves the defaults of channel options and every application. */
#include "creds/creds.h"
#include "creds/handshake.h"

static struct tc_creds_handshake *insecure_start(torc_credentials *c TC_UNUSED, struct tc_loop *loop,
                                                 struct tc_bytestream *bs, const struct tc_creds_peer *peer TC_UNUSED,
                                                 tc_creds_fn fn, void *arg)
{
    return tc_creds_handshake_none(loop, bs, fn, arg);
}

/* There is one object, which is never freed: an application may unref what it found in its options. */
static void insecure_keep(torc_credentials *c TC_UNUSED) {}

torc_credentials *tc_creds_default(void)
{
    static const struct tc_creds_ops ops = {
        .type = "insecure", .start = insecure_start, .cancel = tc_creds_handshake_cancel, .free = insecure_keep};
    static struct tc_rstr key = {.ref = {1}, .len = 8, .data = "insecure"};
    static torc_credentials c = {.ref = {1}, .ops = &ops, .scheme = "http", .key = &key};
    return &c;
}

torc_credentials *torc_credentials_insecure(void)
{
    return torc_credentials_ref(tc_creds_default());
}
