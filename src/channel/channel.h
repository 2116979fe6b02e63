/* Channels as the rest of the library uses them: private ones, for instance to xDS servers. Loop thread only. */
#ifndef TC_CHANNEL_CHANNEL_H
#define TC_CHANNEL_CHANNEL_H

#include <torc/channel.h>

#include "base/list.h"
#include "base/status.h"
#include "channel/runtime.h"

/* A channel without a public handle, on the runtime and its loop. Options as in the public API (copied). NULL with *why
 * set when target or options are malformed. Nothing connects before the first call. */
torc_channel *tc_channel_new_private(torc_runtime *rt, const char *target, const struct torc_channel_options *options,
                                     struct tc_status *why);
/* Ends it: no callback of the channel, its watches or its calls (not even on_done) comes after it returns; the memory
 * goes with the turn. Once, by who made a private channel. */
void tc_channel_shutdown(torc_channel *ch);
/* Retries at once what waits out a backoff. */
void tc_channel_reset_backoff(torc_channel *ch);
/* An IDLE channel starts to connect. */
void tc_channel_exit_idle(torc_channel *ch);

/* Tells of every state that the channel publishes, embedded in its owner. fn comes by the serial queue; states that
 * came between two calls may be joined, but READY, IDLE and TRANSIENT_FAILURE are never left out. status: why, in
 * TRANSIENT_FAILURE. */
struct tc_channel_watch {
    struct tc_link link;
    void (*fn)(struct tc_channel_watch *watch, enum torc_connectivity state, const struct tc_status *status);
};

void tc_channel_watch_add(torc_channel *ch, struct tc_channel_watch *watch);
/* No call of fn after it. Harmless when it is not added or the channel was shut down. */
void tc_channel_watch_remove(struct tc_channel_watch *watch);

#endif
