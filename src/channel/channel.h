/* Channels as the public API and the xDS transport use them on the loop. channel/create.h makes one. Loop thread
 * only. */
#ifndef TC_CHANNEL_CHANNEL_H
#define TC_CHANNEL_CHANNEL_H

#include "channel/state_watch.h"
#include "runtime/runtime.h"

/* Ends a private channel, and gives back the caller's reference: called once. No callback of the channel, its watches
 * or its calls (not even on_done) comes from inside or later. The memory is freed after this turn of the loop. */
void tc_channel_shutdown(torc_channel *ch);
/* Ends all backoffs: of the resolver, of subchannels, of side streams. */
void tc_channel_reset_backoff(torc_channel *ch);
/* Has an IDLE channel start to connect. Does nothing to a channel that has ended. */
void tc_channel_exit_idle(torc_channel *ch);

/* Adds a watch, which its owner embeds. fn is called with each state that is delivered from now on. */
void tc_channel_watch_add(torc_channel *ch, struct tc_channel_watch *watch);
/* Removes a watch: fn is no longer called. Does nothing if the channel has ended, or if the watch was never added; the
 * link must be initialised in any case. */
void tc_channel_watch_remove(struct tc_channel_watch *watch);

#endif
