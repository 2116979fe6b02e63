/* Channels as the rest of the library uses them: private channels, to xDS servers for instance (channel/create.h makes
 * one). Loop thread only. */
#ifndef TC_CHANNEL_CHANNEL_H
#define TC_CHANNEL_CHANNEL_H

#include "channel/state_watch.h"
#include "runtime/runtime.h"

/* Ends a private channel, once, and gives back the caller's reference. No callback of the channel, its watches or its
 * calls (not even on_done) comes from inside or later. The loop frees the memory after this turn. */
void tc_channel_shutdown(torc_channel *ch);
/* Ends all backoffs at once: of the resolver, of subchannels, of side streams. */
void tc_channel_reset_backoff(torc_channel *ch);
/* Has an IDLE channel start to connect. Does nothing to a channel that has ended. */
void tc_channel_exit_idle(torc_channel *ch);

/* Adds a watch, which its owner embeds. fn is called with each state that is delivered from now on. */
void tc_channel_watch_add(torc_channel *ch, struct tc_channel_watch *watch);
/* Removes a watch: fn is not called any longer. Does nothing if the channel was shut down, or the watch was not added,
 * whose link must be initialised then. */
void tc_channel_watch_remove(struct tc_channel_watch *watch);

#endif
