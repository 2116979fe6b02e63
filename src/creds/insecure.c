/* Insecure credentials: no handshake. There is one object, which lives as long as the process. */
#include "creds/creds.h"
#include "creds/handshake.h"

static struct tc_creds_handshake *insecure_start(torc_credentials *c TC_UNUSED, struct tc_loop *loop,
                                                 struct tc_bytestream *bs, const struct tc_creds_peer *peer TC_UNUSED,
                                                 tc_creds_fn fn, void *arg)
{
    return tc_creds_handshake_none(loop, bs, fn, arg);
}

torc_credentials *torc_credentials_insecure(void)
{
    /* Without `free`, references are not counted. */
    static const struct tc_creds_ops ops = {
        .type = "insecure", .start = insecure_start, .cancel = tc_creds_handshake_cancel};
    static struct tc_rstr key = {.ref = {1}, .len = 8, .data = "insecure"};
    static torc_credentials c = {.ref = {1}, .ops = &ops, .scheme = "http", .key = &key};
    return &c;
}
