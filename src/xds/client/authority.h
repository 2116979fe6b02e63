/* An authority in use: its entries, its servers, and A71's fallback between them. Loop thread only. */
#ifndef TC_XDS_CLIENT_AUTHORITY_H
#define TC_XDS_CLIENT_AUTHORITY_H

#include "xds/client/local_internal.h"

/* Returns the state of an authority (NULL: the top level), borrowed from the client. Makes the state, with its first
 * channel, if it does not exist. */
struct tc_xds_authority_state *tc_xds_authority_get(struct tc_xds_local_client *c,
                                                    const struct tc_xds_authority *authority);
/* Frees the state, whose entries must be gone, and gives back its channels. */
void tc_xds_authority_free(struct tc_xds_authority_state *s);
/* The subscriptions of a type changed: queues a request to each server in use. */
void tc_xds_authority_request(struct tc_xds_authority_state *s, size_t type);
/* A71: takes one more server into use as long as no server in use can be reached and a resource is missing. With
 * fallback_on_reachability_only (A95) no resource needs to be missing. */
void tc_xds_authority_fall_back(struct tc_xds_authority_state *s);
/* Gives back the channels behind `index`. Called for a valid resource from the channel at `index`, or what counts as a
 * valid resource (tc_xds_channel_nothing_to_add). */
void tc_xds_authority_end_fallback(struct tc_xds_authority_state *s, size_t index);

/* --- struct tc_xds_channel_events (channel_internal.h): on_unreachable, on_reachable, on_nothing_to_add --- */

void tc_xds_channel_fail(struct tc_xds_channel *ch, struct tc_status status, bool of_stream);
void tc_xds_channel_healthy(struct tc_xds_channel *ch, struct tc_xds_token *token);
void tc_xds_channel_nothing_to_add(struct tc_xds_channel *ch);

#endif
