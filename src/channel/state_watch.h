/* The connectivity state of a channel: published for any thread, and delivered to watches and to the observer. Loop
 * thread only, except `published` and tc_state_watch_init. */
#ifndef TC_CHANNEL_STATE_WATCH_H
#define TC_CHANNEL_STATE_WATCH_H

#include <stdatomic.h>

#include <torc/channel.h>

#include "base/rstr.h"
#include "base/status.h"
#include "io/loop.h"

/* A callback for the states that the channel publishes; embedded in its owner. The serial queue calls fn. The end of
 * the channel calls fn at once with SHUTDOWN, the last state; tc_channel_shutdown does not call fn. Equal states in a
 * row may be delivered as one. status: the reason of TRANSIENT_FAILURE, OK in other states; never NULL, borrowed. */
struct tc_channel_watch {
    struct tc_link link;
    void (*fn)(struct tc_channel_watch *watch, enum torc_connectivity state, const struct tc_status *status);
};

/* Embedded in the channel. */
struct tc_channel_connectivity {
    struct tc_loop *loop;
    enum torc_connectivity state;
    struct tc_status status; /* why, in TRANSIENT_FAILURE */
    atomic_int published;    /* `state` for torc_channel_state; any thread */
    bool ended;              /* tc_state_watch_end was called */

    struct tc_link watches; /* struct tc_channel_watch */
    struct tc_link states;  /* published, not delivered yet */
    struct tc_task tell;
    torc_channel_event_fn observer; /* torc_channel_observe; NULL: none */
    void *observer_arg;
    struct tc_link events; /* of connections, not delivered to the observer yet */
    struct tc_task tell_events;
};

/* Prepares a zeroed struct: IDLE, no watches, no observer. `loop` is borrowed. Any thread, before any other use. */
void tc_state_watch_init(struct tc_channel_connectivity *c, struct tc_loop *loop);
/* Publishes `state` and `status` as they are, and delivers them to watches and observer by the serial queue. */
void tc_state_watch_publish(struct tc_channel_connectivity *c);
/* Sets the state to SHUTDOWN, drops states and events that were not delivered, and removes the observer. Then removes
 * the watches; with `tell`, calls them from inside before that. */
void tc_state_watch_end(struct tc_channel_connectivity *c, bool tell);
/* Replaces the observer; fn NULL: none. Drops events that were not delivered to the old observer. */
void tc_state_watch_set_observer(struct tc_channel_connectivity *c, torc_channel_event_fn fn, void *arg);
/* A tc_conn_observer_fn; `arg` is the struct tc_channel_connectivity. Does nothing without an observer. Keeps `kind`,
 * which must be static, takes a reference to `address`, and copies `reason`. The serial queue delivers the event: the
 * caller is below an LB policy or walks over subchannels, and the application may destroy either. */
void tc_state_watch_on_conn_event(void *arg, const char *kind, struct tc_rstr *address, const char *reason);

#endif
