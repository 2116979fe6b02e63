/* Innermost subchannels: handles on connections of the pool.
 *
 * Policies of several channels may share a connection, which is in any state when a policy comes to it. A handle hides
 * that: it shows IDLE until its policy connects it, then CONNECTING, then the connection's states, until IDLE again. So
 * each policy sees a state machine in order, whatever the other users do.
 *
 * States wait in notes (struct note), and are delivered one by one through the loop's serial queue. The policy may
 * release the handle from inside on_state.
 *
 * The policy owns the handle, and releases it. The handle's watch keeps the connection, which the pool owns. Loop
 * thread only, except tc_scaling_init. */
#include "subchannel/subchannel.h"

#include "base/mem.h"
#include "subchannel/connection.h"
#include "subchannel/health.h"

/* A state that the policy has not heard of yet. */
struct note {
    struct note *next;
    enum torc_connectivity state;
    struct tc_status status;
};

struct handle {
    struct tc_subchannel base;
    struct tc_connection *connection; /* the pool's; `watch` keeps it */
    struct tc_conn_config *config;    /* as tc_subchannel_new was given it; a reference */
    struct tc_connection_watch watch;
    struct tc_link scaled; /* on the list of a struct tc_scaling, or on none */
    struct tc_health_watch health;
    struct tc_task deliver;
    struct note *first, **last;   /* oldest first; owned */
    enum torc_connectivity shown; /* the last state that was queued for the policy */
    bool follows;                 /* the policy has connected it: the connection's states are shown */
    tc_conn_observer_fn observer;
    void *observer_arg;
};

/* Queues a state for the policy. `status` NULL: OK. */
static void handle_push(struct handle *h, enum torc_connectivity state, const struct tc_status *status)
{
    struct note *n = TC_NEW(struct note);
    n->state = state;
    if (status)
        n->status = tc_status_ref(status);
    *h->last = n;
    h->last = &n->next;
    h->shown = state;
    tc_loop_defer(h->connection->env->loop, &h->deliver);
}

static void on_deliver(struct tc_task *task)
{
    struct handle *h = TC_CONTAINER_OF(task, struct handle, deliver);
    struct note *n = h->first;
    h->first = n->next;
    if (h->first)
        tc_loop_defer(h->connection->env->loop, &h->deliver);
    else
        h->last = &h->first;
    h->base.on_state(h->base.arg, n->state, &n->status);
    tc_status_fini(&n->status);
    tc_free(n);
}

/* Calls the observer with the connection's new state, before the handle shows it. After READY every other state means
 * first that the last transport is closed; otherwise IDLE means nothing to the observer. */
static void handle_observe(struct handle *h, const struct tc_connection *c)
{
    static const char *const kinds[] = {[TORC_CONNECTIVITY_CONNECTING] = "connect",
                                        [TORC_CONNECTIVITY_READY] = "connected",
                                        [TORC_CONNECTIVITY_TRANSIENT_FAILURE] = "connect_failed"};
    if (!h->observer)
        return;
    if (h->shown == TORC_CONNECTIVITY_READY)
        h->observer(h->observer_arg, "closed", c->address, tc_status_text(&c->status));
    if (c->state != TORC_CONNECTIVITY_IDLE)
        h->observer(h->observer_arg, kinds[c->state], c->address, tc_status_text(&c->status));
}

static void on_connection_state(struct tc_connection_watch *watch)
{
    struct handle *h = TC_CONTAINER_OF(watch, struct handle, watch);
    const struct tc_connection *c = h->connection;
    if (!h->follows || h->shown == c->state)
        return;
    handle_observe(h, c);
    handle_push(h, c->state, &c->status);
    h->follows = c->state != TORC_CONNECTIVITY_IDLE;
}

/* The connection may be in any state: the policy sees CONNECTING first, then the connection's state. */
static void handle_connect(struct tc_subchannel *sc)
{
    struct handle *h = TC_CONTAINER_OF(sc, struct handle, base);
    struct tc_connection *c = h->connection;
    if (h->follows || c->env->shut)
        return;
    h->follows = true;
    if (c->state == TORC_CONNECTIVITY_IDLE) {
        tc_connection_connect(c);
        return;
    }
    handle_push(h, TORC_CONNECTIVITY_CONNECTING, NULL);
    if (c->state != TORC_CONNECTIVITY_CONNECTING)
        handle_push(h, c->state, c->state == TORC_CONNECTIVITY_READY ? NULL : &c->status);
}

static void handle_reset_backoff(struct tc_subchannel *sc)
{
    tc_connection_reset_backoff(TC_CONTAINER_OF(sc, struct handle, base)->connection);
}

static struct tc_subchannel *handle_inner(struct tc_subchannel *sc TC_UNUSED)
{
    return NULL;
}

static void handle_watch_side(struct tc_subchannel *sc, struct tc_side_watch *w)
{
    tc_side_streams_watch(&TC_CONTAINER_OF(sc, struct handle, base)->connection->side_streams, w);
}

static const struct tc_status *handle_watch_health(struct tc_subchannel *sc, tc_subchannel_health_fn on_health,
                                                   void *arg)
{
    struct handle *h = TC_CONTAINER_OF(sc, struct handle, base);
    return tc_health_watch_start(&h->health, h->config->health, &h->connection->side_streams, on_health, arg);
}

static void handle_release(struct tc_subchannel *sc)
{
    struct handle *h = TC_CONTAINER_OF(sc, struct handle, base);
    struct tc_connection *c = h->connection;
    struct tc_conn_config *config = h->config;
    tc_list_remove(&h->watch.link);
    tc_list_remove(&h->scaled);
    tc_health_watch_end(&h->health);
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
    if (tc_list_empty(&c->watches))
        c->env->unused(c, config);
    tc_conn_config_unref(config);
}

static const struct tc_subchannel_ops handle_ops = {
    .connect = handle_connect,
    .reset_backoff = handle_reset_backoff,
    .inner = handle_inner,
    .release = handle_release,
    .watch_health = handle_watch_health,
    .watch_side = handle_watch_side,
};

struct tc_subchannel *tc_subchannel_new(struct tc_pool *p, struct tc_conn_config *config, struct tc_endpoint *endpoint,
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
    h->watch.is_private = config->is_private;
    h->watch.on_state = on_connection_state;
    tc_list_init(&h->scaled);
    h->last = &h->first;
    h->observer = observer;
    h->observer_arg = observer_arg;
    tc_task_init(&h->deliver, on_deliver);
    tc_list_append(&h->connection->watches, &h->watch.link);
    handle_push(h, TORC_CONNECTIVITY_IDLE, NULL);
    return &h->base;
}

const char *tc_subchannel_stage(const struct tc_subchannel *sc)
{
    if (sc->ops != &handle_ops)
        return NULL;
    const struct handle *h = TC_CONTAINER_OF(sc, const struct handle, base);
    if (h->connection->state == TORC_CONNECTIVITY_CONNECTING)
        return tc_connection_stage(h->connection);
    return tc_health_watch_pending(&h->health) ? "the answer to its health check" : NULL;
}

struct tc_transport *tc_subchannel_transport(struct tc_subchannel *sc)
{
    if (sc->ops != &handle_ops)
        return NULL;
    return tc_transport_group_choose(&TC_CONTAINER_OF(sc, struct handle, base)->connection->group);
}

/* --- scaling (A105) --- */

void tc_scaling_init(struct tc_scaling *s)
{
    s->max_connections = 1;
    tc_list_init(&s->handles);
}

static void handle_scale(struct handle *h, uint32_t max_connections)
{
    h->watch.max_connections = TC_MIN(max_connections, h->config->max_connections);
    tc_connection_scale(h->connection);
}

void tc_scaling_set(struct tc_scaling *s, uint32_t max_connections)
{
    if (s->max_connections == max_connections)
        return;
    s->max_connections = max_connections;
    TC_LIST_FOREACH(it, &s->handles)
    handle_scale(TC_CONTAINER_OF(it, struct handle, scaled), max_connections);
}

void tc_scaling_fini(struct tc_scaling *s)
{
    while (tc_list_pop(&s->handles)) {
    }
}

void tc_scaling_add(struct tc_scaling *s, struct tc_subchannel *sc)
{
    sc = tc_subchannel_innermost(sc);
    if (sc->ops != &handle_ops)
        return;
    struct handle *h = TC_CONTAINER_OF(sc, struct handle, base);
    tc_list_remove(&h->scaled);
    tc_list_append(&s->handles, &h->scaled);
    handle_scale(h, s->max_connections);
}
