/* The subscriptions of an ADS stream: a queue of the types whose requests are due, and the entries of each type. Loop
 * thread only. */
#ifndef TC_XDS_CLIENT_SUBSCRIPTIONS_H
#define TC_XDS_CLIENT_SUBSCRIPTIONS_H

#include "xds/client/channel_internal.h"

struct tc_xds_ads_type *tc_xds_ads_type(struct tc_xds_channel *ch, size_t type);
/* Queues a request of this type; requests of one loop turn become one. */
void tc_xds_ads_request(struct tc_xds_channel *ch, size_t type);
/* The client's value of an entry is another server's now, or refused, or gone: a first request that gives versions and
 * still waits for its connection is made again. */
void tc_xds_ads_outdate(struct tc_xds_channel *ch);
/* Calls fn for each entry of the type whose authority uses this channel. */
void tc_xds_ads_each_entry(struct tc_xds_channel *ch, size_t type,
                           void (*fn)(struct tc_xds_entry *e, uint32_t bit, void *arg), void *arg);
/* An entry that was asked for is gone from the cache. */
void tc_xds_ads_drop(struct tc_xds_channel *ch, size_t type, struct tc_rstr *name);
/* Returns whether the name was dropped, or may have been, and the server does not know it yet. */
bool tc_xds_ads_dropped(const struct tc_xds_channel *ch, size_t type, const struct tc_rstr *name);
/* The server has been sent the dropped names: forgets them. */
void tc_xds_ads_forget_dropped(struct tc_xds_ads_type *t);

#endif
