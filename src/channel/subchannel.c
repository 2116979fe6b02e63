/* The subchannels that policies hold: handles on connections of the pool. A handle shows its policy only what happened
 * after the policy connected it, so that each sees IDLE -> CONNECTING -> ... in order whatever the sharers do. */
#include "base/mem.h"
#include "channel/connection.h"
#include "channel/pool.h"

struct note {
    struct note *next;
    enum torc_connectivity state;
    struct tc_status status;
};

struct handle {
    struct tc_subchannel base;
    struct tc_connection *connection;
    struct tc_conn_config *config; /* of the channel that made it; a reference */
    struct tc_link link;
    struct tc_task deliver;
    struct note *first, **last;
    enum torc_connectivity shown; /* the last that was queued */
    bool follows;                 /* connected by its policy: changes are shown */
    tc_conn_observer_fn observer;
    void *observer_arg;
};

static void push(struct handle *h, enum torc_connectivity state, const struct tc_status *status)
{
    struct note *n = TC_NEW(struct note);
    n->state = state;
    if (status)
        n->status = tc_status_ref(status);
    *h->last = n;
    h->last = &n->next;
    h->shown = state;
    tc_loop_defer(tc_pool_loop(h->connection->pool), &h->deliver);
}

static void on_deliver(struct tc_task *task)
{
    struct handle *h = TC_CONTAINER_OF(task, struct handle, deliver);
    struct note *n = h->first;
    h->first = n->next;
    if (h->first)
        tc_loop_defer(tc_pool_loop(h->connection->pool), &h->deliver);
    else
        h->last = &h->first;
    /* The policy may release the handle from inside. */
    h->base.on_state(h->base.arg, n->state, &n->status);
    tc_status_fini(&n->status);
    tc_free(n);
}

bool tc_connection_is_private(const struct tc_connection *c)
{
    if (tc_list_empty(&c->handles))
        return c->config->is_private;
    for (const struct tc_link *it = c->handles.next; it != &c->handles; it = it->next)
        if (!TC_CONTAINER_OF(it, struct handle, link)->config->is_private)
            return false;
    return true;
}

static void observe(struct handle *h, const struct tc_connection *c)
{
    static const char *const kinds[] = {[TORC_IDLE] = "closed",
                                        [TORC_CONNECTING] = "connect",
                                        [TORC_READY] = "connected",
                                        [TORC_TRANSIENT_FAILURE] = "connect_failed"};
    if (!h->observer || (c->state == TORC_IDLE && h->shown != TORC_READY))
        return;
    h->observer(h->observer_arg, kinds[c->state], c->address, tc_status_text(&c->status));
}

void tc_connection_notify(struct tc_connection *c)
{
    TC_LIST_FOREACH(it, &c->handles)
    {
        struct handle *h = TC_CONTAINER_OF(it, struct handle, link);
        if (!h->follows || h->shown == c->state)
            continue;
        observe(h, c);
        push(h, c->state, &c->status);
        h->follows = c->state != TORC_IDLE;
    }
}

static void handle_connect(struct tc_subchannel *sc)
{
    struct handle *h = TC_CONTAINER_OF(sc, struct handle, base);
    struct tc_connection *c = h->connection;
    if (h->follows || tc_pool_is_shut(c->pool))
        return;
    h->follows = true;
    if (c->state == TORC_IDLE) {
        tc_connection_connect(c);
        return;
    }
    push(h, TORC_CONNECTING, NULL);
    if (c->state != TORC_CONNECTING)
        push(h, c->state, &c->status);
}

static void handle_reset_backoff(struct tc_subchannel *sc)
{
    tc_connection_reset_backoff(TC_CONTAINER_OF(sc, struct handle, base)->connection);
}

static struct tc_subchannel *handle_inner(struct tc_subchannel *sc)
{
    (void)sc;
    return NULL;
}

static void handle_release(struct tc_subchannel *sc)
{
    struct handle *h = TC_CONTAINER_OF(sc, struct handle, base);
    struct tc_connection *c = h->connection;
    struct tc_conn_config *config = h->config;
    tc_list_remove(&h->link);
    tc_task_cancel(&h->deliver);
    while (h->first) {
        struct note *n = h->first;
        h->first = n->next;
        tc_status_fini(&n->status);
        tc_free(n);
    }
    tc_endpoint_unref(h->base.endpoint);
    tc_addr_fini(&h->base.addr);
    tc_free(h);
    if (tc_list_empty(&c->handles))
        tc_pool_unused(c, config);
    tc_conn_config_unref(config);
}

static const struct tc_subchannel_ops handle_ops = {
    .connect = handle_connect,
    .reset_backoff = handle_reset_backoff,
    .inner = handle_inner,
    .release = handle_release,
};

struct tc_subchannel *tc_pool_subchannel(struct tc_pool *p, struct tc_conn_config *config, struct tc_endpoint *endpoint,
                                         const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg,
                                         tc_conn_observer_fn observer, void *observer_arg)
{
    struct handle *h = TC_NEW(struct handle);
    h->base.ops = &handle_ops;
    h->base.endpoint = tc_endpoint_ref(endpoint);
    h->base.addr = tc_addr_ref(addr);
    h->base.on_state = on_state;
    h->base.arg = arg;
    h->connection = tc_pool_connection(p, config, addr);
    h->connection->locality = endpoint->locality;
    h->config = tc_conn_config_ref(config);
    h->last = &h->first;
    h->observer = observer;
    h->observer_arg = observer_arg;
    tc_task_init(&h->deliver, on_deliver);
    tc_list_append(&h->connection->handles, &h->link);
    push(h, TORC_IDLE, NULL);
    return &h->base;
}

struct tc_transport *tc_subchannel_transport(struct tc_subchannel *sc)
{
    if (sc->ops != &handle_ops)
        return NULL;
    const struct tc_connection *c = TC_CONTAINER_OF(sc, struct handle, base)->connection;
    return c->state == TORC_READY ? c->transport : NULL;
}
