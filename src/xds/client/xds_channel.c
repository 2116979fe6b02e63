/* The life of an xds_channel. It lives while an authority uses it, loads are to be reported on it, or its LRS stream is
 * still open. The ADS stream ends when no authority uses the channel. */
#include "xds/client/xds_channel.h"

#include "xds/client/ads.h"
#include "xds/client/lrs.h"

static const struct tc_xds_ads_ops *server_ads_ops(const struct tc_xds_server *server)
{
    return server->incremental ? &tc_xds_ads_delta : &tc_xds_ads_sotw;
}

static void on_connectivity(void *arg, const struct tc_status *failure)
{
    struct tc_xds_channel *ch = arg;
    if (!ch->users) /* a failure that lasts is reported after tc_xds_channel_use */
        return;
    ch->client->events->on_unreachable(
        ch,
        tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS, "xDS channel for server %s: %s (node ID:%s)",
                       tc_rstr_cstr(ch->server->uri), tc_status_text(failure), tc_xds_node_id(&ch->client->base)),
        false);
}

struct tc_xds_channel *tc_xds_channel_get(struct tc_xds_local_client *c, const struct tc_xds_server *server)
{
    TC_LIST_FOREACH(it, &c->channels)
    {
        struct tc_xds_channel *ch = TC_CONTAINER_OF(it, struct tc_xds_channel, link);
        if (tc_rstr_eq(ch->server->key, server->key))
            return ch;
    }
    struct tc_xds_channel *ch = TC_NEW(struct tc_xds_channel);
    ch->client = c;
    ch->server = tc_xds_bootstrap_server(c->base.bootstrap, server->key); /* of equal entries always the same one */
    tc_list_append(&c->channels, &ch->link);
    tc_xds_ads_init(ch, server_ads_ops(ch->server));
    ch->transport = c->factory->create(c->factory, ch->server, on_connectivity, ch);
    TC_XDS_LOG(INFO, "xds %s: channel created for %s", tc_rstr_cstr(server->uri),
               c->target->len ? tc_rstr_cstr(c->target) : "all targets");
    if (server->incremental && c->base.bootstrap->for_istiod)
        TC_XDS_LOG(
            WARN,
            "xds %s: the bootstrap is for istiod, which forgets what an incremental stream subscribed to when it "
            "asks for more; each request that adds a name has all names of the type. Leave torc.incremental_ads "
            "out for istiod",
            tc_rstr_cstr(server->uri));
    return ch;
}

void tc_xds_channel_use(struct tc_xds_channel *ch)
{
    if (ch->users++ == 0 && ch->lrs)
        ch->transport->ops->reset_backoff(ch->transport);
    tc_xds_ads_start(ch);
}

void tc_xds_channel_release(struct tc_xds_channel *ch)
{
    if (ch->users || (ch->lrs && tc_xds_lrs_active(ch->lrs)))
        return;
    TC_XDS_LOG(INFO, "xds %s: channel closed", tc_rstr_cstr(ch->server->uri));
    tc_xds_lrs_free(ch->lrs);
    tc_xds_ads_fini(ch);
    ch->transport->ops->shutdown(ch->transport);
    tc_list_remove(&ch->link);
    tc_status_fini(&ch->status);
    tc_free(ch);
}

void tc_xds_channel_put(struct tc_xds_channel *ch)
{
    if (--ch->users)
        return;
    if (ch->lrs) { /* the channel may stay for its load reports, without an ADS stream */
        tc_xds_ads_fini(ch);
        ch->ads = (struct tc_xds_ads){0};
        tc_xds_ads_init(ch, server_ads_ops(ch->server));
        tc_status_fini(&ch->status); /* says nothing of the next ADS stream */
        ch->stream_failed = false;
    }
    tc_xds_channel_release(ch);
}

struct tc_xds_lrs *tc_xds_channel_lrs(struct tc_xds_channel *ch)
{
    if (!ch->lrs)
        ch->lrs = tc_xds_lrs_new(ch, tc_xds_channel_release);
    return ch->lrs;
}

void tc_xds_channel_stop_lrs(struct tc_xds_channel *ch)
{
    tc_xds_lrs_free(ch->lrs);
    ch->lrs = NULL;
    tc_xds_channel_release(ch);
}

void tc_xds_channel_reset_backoff(struct tc_xds_channel *ch)
{
    ch->transport->ops->reset_backoff(ch->transport);
    tc_xds_ads_reset_backoff(ch);
    if (ch->lrs)
        tc_xds_lrs_reset_backoff(ch->lrs);
}
