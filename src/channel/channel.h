/* Channels as the public API and the xDS transport use them on the loop. channel/create.h makes one. Loop thread
 * only. */
#ifndef TC_CHANNEL_CHANNEL_H
#define TC_CHANNEL_CHANNEL_H

#include "channel/state_watch.h"
#include "runtime/runtime.h"

/* Ends a private channel, and gives back the caller's reference: called once. No callback of the channel, its watches
 * or its calls (not even on_done) comes from inside or later. The memory stays at least until step 5 of this turn
 * (io/loop.h); a task frees it. */
void tc_channel_shutdown(torc_channel *ch);
/* Ends all backoffs: of the resolver, of subchannels, of side streams. */
void tc_channel_reset_backoff(torc_channel *ch);
/* Has an IDLE channel start to connect. Does nothing to a channel that has ended. */
void tc_channel_exit_idle(torc_channel *ch);

/* Adds a watch, which its owner embeds and keeps until the watch is removed or the channel has ended. fn is called with
 * each state that is delivered from now on; never, if the channel has ended already: such a watch is removed while its
 * owner has a reference to the channel. */
void tc_channel_watch_add(torc_channel *ch, struct tc_channel_watch *watch);
/* Removes a watch: fn is no longer called. Does nothing if the end of the channel has removed the watch, or if the
 * watch was never added; the link must be initialised in any case. */
void tc_channel_watch_remove(struct tc_channel_watch *watch);

#endif
