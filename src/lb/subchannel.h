/* A subchannel as policies see it: the means to reach one address. The connection behind it comes from a pool that the
 * channels of a runtime share. outlier_detection and xds_override_host put objects of their own in front.
 *
 * States come through the loop's serial queue, never from inside a call. The first one is IDLE. Then:
 *
 *   IDLE -> CONNECTING -> READY or TRANSIENT_FAILURE
 *   READY -> IDLE when the connection is lost (GOAWAY included); or -> CONNECTING or TRANSIENT_FAILURE, if a further
 *            connection was being attempted, or that attempt had failed (A105)
 *   TRANSIENT_FAILURE -> IDLE when the backoff is over (A61, A62)
 *
 * Loop thread only. */
#ifndef TC_LB_SUBCHANNEL_H
#define TC_LB_SUBCHANNEL_H

#include <torc/connectivity.h>

#include "base/ref.h"
#include "base/status.h"
#include "lb/endpoint.h"

struct tc_side_watch;
struct tc_subchannel;

/* status: why, in TRANSIENT_FAILURE. In IDLE and CONNECTING: why the connection was lost or failed before, or OK. In
 * READY: OK. Never NULL; borrowed for the call. */
typedef void (*tc_subchannel_state_fn)(void *arg, enum torc_connectivity state, const struct tc_status *status);

/* health: OK, TC_HEALTH_PENDING, or why the endpoint must not be used although it is connected. Borrowed for the
 * call. */
typedef void (*tc_subchannel_health_fn)(void *arg, const struct tc_status *health);

/* The code of a health status that is not known yet. */
enum { TC_HEALTH_PENDING = -1 };

struct tc_subchannel_ops {
    /* Starts connecting when IDLE; otherwise does nothing. */
    void (*connect)(struct tc_subchannel *sc);
    /* Ends the backoff of TRANSIENT_FAILURE at once, and that of side streams. The next delays are the first again. */
    void (*reset_backoff)(struct tc_subchannel *sc);
    /* Returns the wrapped subchannel, borrowed. NULL: this is the channel's own, or a wrapper after
     * tc_wrapped_subchannel_end. */
    struct tc_subchannel *(*inner)(struct tc_subchannel *sc);
    /* Frees the subchannel, which its policy no longer uses. Neither on_state nor on_health is called afterwards. A
     * wrapper may live on for RPCs and sessions. */
    void (*release)(struct tc_subchannel *sc);
    /* See tc_subchannel_watch_health. NULL: the health of the wrapped subchannel; without one, always fit. */
    const struct tc_status *(*watch_health)(struct tc_subchannel *sc, tc_subchannel_health_fn on_health, void *arg);
    /* See tc_subchannel_watch_side (lb/side_stream.h). Only the channel's own subchannel has it. */
    void (*watch_side)(struct tc_subchannel *sc, struct tc_side_watch *w);
};

/* One handle for each create_subchannel, with one watcher: the policy that created it, through on_state. */
struct tc_subchannel {
    const struct tc_subchannel_ops *ops;
    /* The endpoint that the subchannel was created for; a reference. xds_override_host renews it in subchannels of its
     * own, from a later list. */
    struct tc_endpoint *endpoint;
    struct tc_addr addr;             /* one of the endpoint's addresses; owned */
    tc_subchannel_state_fn on_state; /* NULL: a subchannel of xds_override_host's own */
    void *arg;                       /* of on_state */
};

static inline void tc_subchannel_connect(struct tc_subchannel *sc)
{
    sc->ops->connect(sc);
}

static inline void tc_subchannel_reset_backoff(struct tc_subchannel *sc)
{
    sc->ops->reset_backoff(sc);
}

static inline void tc_subchannel_release(struct tc_subchannel *sc)
{
    sc->ops->release(sc);
}

/* Starts A61's generic health report, for the pick_first of one endpoint that has chosen its subchannel. Returns the
 * present health, borrowed until the next change or the release. From then on the loop calls on_health with each
 * change, never from inside this call, until the subchannel is released. A later call replaces on_health. A policy that
 * ejects endpoints wraps this report, never the connectivity: an unfit endpoint keeps its connection. */
static inline const struct tc_status *tc_subchannel_watch_health(struct tc_subchannel *sc,
                                                                 tc_subchannel_health_fn on_health, void *arg)
{
    static const struct tc_status fit;
    for (; sc; sc = sc->ops->inner(sc))
        if (sc->ops->watch_health)
            return sc->ops->watch_health(sc, on_health, arg);
    return &fit;
}

/* Returns the channel's own subchannel behind any wrapping, borrowed. */
static inline struct tc_subchannel *tc_subchannel_innermost(struct tc_subchannel *sc)
{
    struct tc_subchannel *inner;
    while ((inner = sc->ops->inner(sc)))
        sc = inner;
    return sc;
}

#endif
