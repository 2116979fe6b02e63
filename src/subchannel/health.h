/* Client-side health checks (A17): what the server of a subchannel's connection says of one service, by a side stream
 * of grpc.health.v1.Health/Watch. A channel whose service config names a service checks every subchannel whose policy
 * watches health (tc_subchannel_watch_health): the endpoints of petiole policies, never a pick_first on its own.
 *
 * The health of a watch that begins is TC_HEALTH_PENDING until the server's first answer; then OK while the service is
 * SERVING, or a status that says why it is not. A server without the health service, or without room for its stream,
 * counts as healthy. When the subchannel connects again by itself (A105), its policy starts the watch once more, and
 * the health is TC_HEALTH_PENDING again. Loop thread only, unless a comment says otherwise. */
#ifndef TC_SUBCHANNEL_HEALTH_H
#define TC_SUBCHANNEL_HEALTH_H

#include "io/loop.h"
#include "lb/subchannel.h"
#include "subchannel/side_stream.h"

struct tc_health_stream;

/* The checks of one channel: owned by its tc_conn_config. */
struct tc_health_checks;

/* A policy's watch of a subchannel's health; embedded in the subchannel, zero-initialised. */
struct tc_health_watch {
    struct tc_link link; /* of the channel's checks; NULL: not started */
    struct tc_side_streams *streams;
    tc_subchannel_health_fn on_health;
    void *arg;
    struct tc_health_stream *stream; /* NULL: no service is checked */
};

/* Makes checks without a service. Any thread. */
struct tc_health_checks *tc_health_checks_new(struct tc_loop *loop);
/* Called after tc_health_checks_end, or if tc_health_checks_set was never called; no watch is left. NULL is allowed.
 * Any thread. */
void tc_health_checks_free(struct tc_health_checks *checks);
/* Checks another service from now on (NULL: none); takes a reference. Watches that are started hear of it by a task; an
 * endpoint that is healthy counts as healthy until the server's first answer for the other service. `checks` may be
 * NULL. */
void tc_health_checks_set(struct tc_health_checks *checks, struct tc_rstr *service);
/* The channel has ended: nothing changes any longer. NULL is allowed. */
void tc_health_checks_end(struct tc_health_checks *checks);

/* Starts the watch, or replaces its on_health. On another connection than the last one, the health is TC_HEALTH_PENDING
 * again until the server's first answer. Returns the present health, as tc_subchannel_watch_health does: borrowed
 * until the next change. `checks` NULL: always OK. */
const struct tc_status *tc_health_watch_start(struct tc_health_watch *w, struct tc_health_checks *checks,
                                              struct tc_side_streams *streams, tc_subchannel_health_fn on_health,
                                              void *arg);
/* Ends the watch, if it was started. No callback comes afterwards. */
void tc_health_watch_end(struct tc_health_watch *w);
/* Returns true while the watch's health is TC_HEALTH_PENDING. */
bool tc_health_watch_pending(const struct tc_health_watch *w);

#endif
