/* Client-side health checks (A17): what the server of a subchannel's connection says of one service, by a side stream
 * of grpc.health.v1.Health/Watch. A channel whose service config names a service, and whose policy comes from a
 * service config too (not from xDS), checks every subchannel whose policy watches health (tc_subchannel_watch_health);
 * its option health_checks turns that off. A pick_first that is not below a petiole policy does not watch.
 *
 * While no service is checked, the health is OK. Otherwise a watch begins with TC_HEALTH_PENDING. From the server's
 * first answer on, its health is OK while the service is SERVING, else a status that says why not. A server without the
 * health service, or without room for its stream, counts as healthy. When the subchannel connects again by itself
 * (A105), its policy starts the watch once more, and the health is TC_HEALTH_PENDING again. Loop thread only, unless a
 * comment says otherwise. */
#ifndef TC_SUBCHANNEL_HEALTH_H
#define TC_SUBCHANNEL_HEALTH_H

#include "io/loop.h"
#include "lb/subchannel.h"
#include "subchannel/side_stream.h"

struct tc_health_stream;

/* The checks of one channel; its own tc_conn_config owns them. */
struct tc_health_checks;

/* A policy's watch of a subchannel's health; embedded in the subchannel, zero-initialised. */
struct tc_health_watch {
    struct tc_link link;             /* of the channel's checks; link.next NULL: in no list */
    struct tc_side_streams *streams; /* of the subchannel's connection, which outlives the watch */
    tc_subchannel_health_fn on_health;
    void *arg;
    struct tc_health_stream *stream; /* owned; NULL: no service is checked */
    uint64_t uses;                   /* streams->uses at the last start: tells which transport the policy knows */
};

/* Makes checks without a service; never returns NULL. Any thread. */
struct tc_health_checks *tc_health_checks_new(struct tc_loop *loop);
/* Frees checks without watches, after tc_health_checks_end, or if tc_health_checks_set was never called. NULL is
 * allowed. Any thread. */
void tc_health_checks_free(struct tc_health_checks *checks);
/* Checks another service from now on (NULL: none); takes a reference. A task applies it to the started watches. A
 * healthy endpoint counts as healthy until the server's first answer for the other service, any other is
 * TC_HEALTH_PENDING until then. `checks` may be NULL. */
void tc_health_checks_set(struct tc_health_checks *checks, struct tc_rstr *service);
/* Called when the channel has ended. tc_health_checks_set must not be called after it. NULL is allowed. */
void tc_health_checks_end(struct tc_health_checks *checks);

/* Starts the watch, or replaces its on_health. If the transport is another one than when the health was set, a checked
 * service's health is TC_HEALTH_PENDING again until the server's first answer. Returns the present health, always OK if
 * `checks` is NULL; borrowed until on_health is called, a task applies another service, or the watch is started again
 * or ends. */
const struct tc_status *tc_health_watch_start(struct tc_health_watch *w, struct tc_health_checks *checks,
                                              struct tc_side_streams *streams, tc_subchannel_health_fn on_health,
                                              void *arg);
/* Ends the watch, if it was started. No callback comes afterwards. */
void tc_health_watch_end(struct tc_health_watch *w);
/* Returns true while the watch's health is TC_HEALTH_PENDING. */
bool tc_health_watch_pending(const struct tc_health_watch *w);

#endif
