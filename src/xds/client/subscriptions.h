/* The subscriptions of an ADS stream: a queue of the types whose requests are due, and the entries of each type. Loop
 * thread only. */
#ifndef TC_XDS_CLIENT_SUBSCRIPTIONS_H
#define TC_XDS_CLIENT_SUBSCRIPTIONS_H

#include "xds/client/channel_internal.h"

/* Returns the state of a type on the channel, made if it does not exist; valid until the next type is added. */
struct tc_xds_ads_type *tc_xds_ads_type(struct tc_xds_channel *ch, size_t type);
/* Queues a request of this type; requests of one loop turn become one. Does nothing without a stream: the next stream
 * asks for everything. */
void tc_xds_ads_request(struct tc_xds_channel *ch, size_t type);
/* Called when another server has superseded a value of this channel's server: requests must no longer give the value's
 * version. If the stream's first requests give versions and still wait for a connection, a task replaces the stream.
 * superseded: the value was good until now; then also calls tc_xds_ads_replace_soon. */
void tc_xds_ads_outdate(struct tc_xds_channel *ch, bool superseded);
/* Starts a timer of one second, unless the timer runs. The timer replaces the stream if tc_xds_ads_has_superseded is
 * true then: on this stream the server would not send again the values that it has sent, or whose versions it was given
 * (A71). While another thread decodes a response, the timer starts again instead. Does nothing without a stream, nor on
 * a stream with no request that was sent or that gives a version. */
void tc_xds_ads_replace_soon(struct tc_xds_channel *ch);
/* Returns whether another server has superseded the value of an entry that this channel's server is asked for. */
bool tc_xds_ads_has_superseded(struct tc_xds_channel *ch);
/* Calls fn for each entry of the type whose authority uses this channel. `bit` is the channel's in the entry's
 * masks. */
void tc_xds_ads_each_entry(struct tc_xds_channel *ch, size_t type,
                           void (*fn)(struct tc_xds_entry *e, uint32_t bit, void *arg), void *arg);
/* Stores the name of an entry that was asked for on this channel and no longer is: it leaves the cache, or its
 * authority gives the channel back. Takes a reference. Does nothing if the name is stored already. */
void tc_xds_ads_drop(struct tc_xds_channel *ch, size_t type, struct tc_rstr *name);
/* Returns whether the server may still count the name as subscribed: the name was dropped since the last request, or
 * a response since then had a resource that is not subscribed to (sent_dropped). */
bool tc_xds_ads_dropped(const struct tc_xds_channel *ch, size_t type, const struct tc_rstr *name);
/* Forgets the dropped names and clears `sent_dropped`. Called when a request without the names was made or none was
 * due, and when the stream ended. */
void tc_xds_ads_forget_dropped(struct tc_xds_ads_type *t);

#endif
