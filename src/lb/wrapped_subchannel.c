/* The life of a wrapper: tc_wrapped_subchannel_init creates the inner subchannel, tc_wrapped_subchannel_end releases
 * it. If RPCs still hold references then, the wrapper stays in its set without an inner subchannel, so that the policy
 * can still find it and clear what points into the policy. The last unref takes the wrapper out of the set and frees
 * it. */
#include "lb/wrapped_subchannel.h"

#include "base/mem.h"
#include "lb/delegate.h"

void tc_wrapped_subchannels_init(struct tc_wrapped_subchannels *set, const struct tc_subchannel_ops *ops,
                                 tc_subchannel_state_fn on_inner_state)
{
    set->ops = ops;
    set->on_inner_state = on_inner_state;
    tc_list_init(&set->all);
}

struct tc_wrapped_subchannel *tc_wrapped_subchannels_pop(struct tc_wrapped_subchannels *set)
{
    struct tc_link *link = tc_list_pop(&set->all);
    if (!link)
        return NULL;
    struct tc_wrapped_subchannel *w = TC_CONTAINER_OF(link, struct tc_wrapped_subchannel, link);
    w->set = NULL;
    return w;
}

void tc_wrapped_subchannel_init(struct tc_wrapped_subchannel *w, struct tc_wrapped_subchannels *set,
                                struct tc_lb_helper *up, struct tc_endpoint *endpoint, const struct tc_addr *addr,
                                tc_subchannel_state_fn on_state, void *arg)
{
    w->base = (struct tc_subchannel){set->ops, tc_endpoint_ref(endpoint), tc_addr_ref(addr), on_state, arg};
    tc_lref_init(&w->ref);
    w->set = set;
    tc_list_append(&set->all, &w->link);
    w->inner = tc_lb_create_subchannel(up, endpoint, addr, set->on_inner_state, w);
}

void tc_wrapped_subchannel_end(struct tc_wrapped_subchannel *w)
{
    tc_subchannel_release(w->inner);
    w->inner = NULL;
    tc_wrapped_subchannel_unref(w);
}

void tc_wrapped_subchannel_unref(struct tc_wrapped_subchannel *w)
{
    if (!tc_lref_dec(&w->ref))
        return;
    tc_list_remove(&w->link);
    tc_endpoint_unref(w->base.endpoint);
    tc_addr_fini(&w->base.addr);
    tc_free(w);
}

void tc_wrapped_subchannel_connect(struct tc_subchannel *sc)
{
    tc_subchannel_connect(tc_wrapped_subchannel_of(sc)->inner);
}

void tc_wrapped_subchannel_reset_backoff(struct tc_subchannel *sc)
{
    tc_subchannel_reset_backoff(tc_wrapped_subchannel_of(sc)->inner);
}

struct tc_subchannel *tc_wrapped_subchannel_inner(struct tc_subchannel *sc)
{
    return tc_wrapped_subchannel_of(sc)->inner;
}
