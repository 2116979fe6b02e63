/* The server's side of one incremental ADS stream: what a client subscribed to, which version of each resource it has,
 * and only what differs from that on the wire. Knows no transport: bytes come in, bytes go out. */
#ifndef TC_SERVER_DELTA_H
#define TC_SERVER_DELTA_H

#include "server/ads.h"

struct tc_delta;

struct tc_delta *tc_delta_new(const struct tc_ads_events *events, void *arg);
void tc_delta_free(struct tc_delta *d);
/* Takes in one serialised DeltaDiscoveryRequest and answers it where there is something new. A status other than OK
 * (the caller ends it) says that it is malformed: the stream should end with it. */
struct tc_status tc_delta_on_message(struct tc_delta *d, struct tc_slice bytes);
/* The set changed: sends what the client is subscribed to and what differs from what it has. */
void tc_delta_push(struct tc_delta *d);
/* Of the first request that had a node; empty before. */
struct tc_slice tc_delta_node_id(const struct tc_delta *d);
struct tc_slice tc_delta_node(const struct tc_delta *d);
void tc_delta_view(const struct tc_delta *d, tc_served_fn fn, void *arg);

/* The version of a resource as incremental responses have it: a hash of its content, so that it outlives restarts of
 * the control plane. One reference. */
struct tc_rstr *tc_delta_version(const struct tc_rstr *value);

/* A resource of a response of the caller's making. */
struct tc_delta_resource {
    struct tc_slice name, version, value;
};

/* Sends a response of the caller's making, for tests of clients. What it asked for of that counts as what it has now.
 */
void tc_delta_send(struct tc_delta *d, struct tc_slice type_url, struct tc_slice system_version,
                   const struct tc_delta_resource *resources, size_t n, const struct tc_slice *removed,
                   size_t n_removed);

#endif
