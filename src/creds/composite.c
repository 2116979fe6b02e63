/* Channel credentials with call credentials. Connections are made with the channel's part alone (tc_creds_channel):
 * channels with different call credentials share connections. A composite of a composite is flat: it takes the
 * channel's part of the inner one, and joins the call credentials of both. */
#include "base/mem.h"
#include "base/status.h"
#include "creds/call/call.h"
#include "creds/creds.h"

static void composite_free(torc_credentials *c)
{
    torc_credentials_unref(c->channel);
    torc_call_credentials_unref(c->call);
    tc_rstr_unref(c->key);
    tc_free(c);
}

static const struct tc_creds_ops composite_ops = {.type = "composite", .free = composite_free};

torc_credentials *torc_credentials_composite(torc_credentials *channel, torc_call_credentials *call, torc_error **error)
{
    if (tc_error_pending(error))
        return NULL;
    if (!channel || !call) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s credentials: they are NULL", channel ? "call" : "channel");
        return NULL;
    }
    torc_credentials *c = TC_NEW(torc_credentials);
    torc_credentials *inner = tc_creds_channel(channel);
    tc_ref_init(&c->ref);
    c->ops = &composite_ops;
    c->scheme = inner->scheme;
    c->key = tc_rstr_ref(inner->key);
    c->channel = torc_credentials_ref(inner);
    c->call = channel->call ? tc_call_creds_join(channel->call, call) : torc_call_credentials_ref(call);
    return c;
}

torc_credentials *tc_creds_channel(torc_credentials *c)
{
    return c->channel ? c->channel : c;
}
