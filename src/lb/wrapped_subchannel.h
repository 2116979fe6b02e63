/* A subchannel in front of another, for policies that wrap the subchannels of their child (outlier_detection,
 * xds_override_host).
 *
 * The child policy holds the wrapper. The wrapper owns the "inner" subchannel, which comes from the helper of the
 * wrapping policy. The wrapping policy keeps all its wrappers in one set, and a wrapper finds its policy through the
 * set. A wrapper may outlive the policy, since RPCs or an application's child policy may hold it; its `set` is NULL
 * then.
 *
 * A policy embeds struct tc_wrapped_subchannel as the first member of a struct of its own, and struct
 * tc_wrapped_subchannels in its policy struct. Loop thread only. */
#ifndef TC_LB_WRAPPED_SUBCHANNEL_H
#define TC_LB_WRAPPED_SUBCHANNEL_H

#include "base/list.h"
#include "lb/policy.h"

/* All wrappers of one policy. */
struct tc_wrapped_subchannels {
    const struct tc_subchannel_ops *ops;   /* of the wrappers; static, one table for each wrapping policy's type */
    tc_subchannel_state_fn on_inner_state; /* arg: the struct tc_wrapped_subchannel */
    struct tc_link all;
};

struct tc_wrapped_subchannel {
    struct tc_subchannel base; /* the subchannel that the child policy holds */
    struct tc_lref ref;
    struct tc_wrapped_subchannels *set; /* NULL after the policy's shutdown */
    struct tc_link link;                /* of set->all, until tc_wrapped_subchannels_pop or the last unref */
    struct tc_subchannel *inner;        /* NULL after tc_wrapped_subchannel_end */
};

/* --- the set --- */

void tc_wrapped_subchannels_init(struct tc_wrapped_subchannels *set, const struct tc_subchannel_ops *ops,
                                 tc_subchannel_state_fn on_inner_state);
/* Takes a wrapper out of the set and clears its `set`. Called in the policy's shutdown until it returns NULL: the set
 * is empty. Returns the wrapper, borrowed. */
struct tc_wrapped_subchannel *tc_wrapped_subchannels_pop(struct tc_wrapped_subchannels *set);

/* --- one wrapper --- */

/* Prepares a zero-initialised wrapper made with TC_NEW, with one reference, which tc_wrapped_subchannel_end gives up.
 * Creates the inner subchannel with `up`, the helper of the policy. Takes its own references of endpoint and address.
 * The first state comes through the serial queue, never from inside this call. */
void tc_wrapped_subchannel_init(struct tc_wrapped_subchannel *w, struct tc_wrapped_subchannels *set,
                                struct tc_lb_helper *up, struct tc_endpoint *endpoint, const struct tc_addr *addr,
                                tc_subchannel_state_fn on_state, void *arg);
/* Releases the inner subchannel and gives up the reference from tc_wrapped_subchannel_init. */
void tc_wrapped_subchannel_end(struct tc_wrapped_subchannel *w);
/* Gives up a reference. The last one takes the wrapper out of its set and frees it. */
void tc_wrapped_subchannel_unref(struct tc_wrapped_subchannel *w);

/* For the policy's table of operations. The first two pass the call on to the inner subchannel. */
void tc_wrapped_subchannel_connect(struct tc_subchannel *sc);
void tc_wrapped_subchannel_reset_backoff(struct tc_subchannel *sc);
struct tc_subchannel *tc_wrapped_subchannel_inner(struct tc_subchannel *sc);

static inline struct tc_wrapped_subchannel *tc_wrapped_subchannel_of(struct tc_subchannel *sc)
{
    return TC_CONTAINER_OF(sc, struct tc_wrapped_subchannel, base);
}

/* Looks at `sc` (may be NULL) and at all that it wraps. Returns the first that is a wrapper of this set, borrowed, or
 * NULL if there is none. `set` is only compared, so its policy may be gone; `ops` are those that the set was made with.
 * Inline, since picks call it. */
static inline struct tc_wrapped_subchannel *tc_wrapped_subchannels_find(const struct tc_wrapped_subchannels *set,
                                                                        const struct tc_subchannel_ops *ops,
                                                                        struct tc_subchannel *sc)
{
    for (; sc; sc = sc->ops->inner(sc))
        if (sc->ops == ops && tc_wrapped_subchannel_of(sc)->set == set)
            return tc_wrapped_subchannel_of(sc);
    return NULL;
}

#endif
