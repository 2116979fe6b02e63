/* Channels as the rest of the library uses them: private channels, to xDS servers for instance (channel/create.h makes
 * one). Loop thread only. */
#ifndef TC_CHANNEL_CHANNEL_H
#define TC_CHANNEL_CHANNEL_H

#include "channel/state_watch.h"
#include "runtime/runtime.h"

/* Ends a private channel, once. No callback of the channel, its watches or its calls (not even on_done) comes after it
 * returns; the memory is freed at the end of the loop's turn. */
void tc_channel_shutdown(torc_channel *ch);
/* Ends all backoffs at once. */
void tc_channel_reset_backoff(torc_channel *ch);
/* An IDLE channel starts to connect. */
void tc_channel_exit_idle(torc_channel *ch);

/* Adds a watch. fn is called with each state that is delivered from now on. */
void tc_channel_watch_add(torc_channel *ch, struct tc_channel_watch *watch);
/* Removes a watch: fn is not called any longer. Does nothing if the watch was not added or the channel was shut
 * down. */
void tc_channel_watch_remove(struct tc_channel_watch *watch);

#endif
