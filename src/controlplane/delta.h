/* The server's side of one incremental ADS stream: the client's subscriptions, and the version that it has of each
 * resource. Sends what differs, and what the client subscribes to again. Knows no transport: bytes come in, bytes go
 * out. Called on the thread of its server's loop. */
#ifndef TC_CONTROLPLANE_DELTA_H
#define TC_CONTROLPLANE_DELTA_H

#include "controlplane/ads.h"

struct tc_delta;

/* Returns a new stream, for tc_delta_free. `events` must outlive the stream. */
struct tc_delta *tc_delta_new(const struct tc_ads_events *events, void *arg);
/* NULL is allowed. */
void tc_delta_free(struct tc_delta *d);
/* Takes in one serialised DeltaDiscoveryRequest, and sends a response if one is due. Returns OK; or INVALID_ARGUMENT
 * for a request that cannot be unpacked (tc_request_unpack) or has no type_url: the caller should end the stream with
 * it. The caller owns the status. */
struct tc_status tc_delta_on_message(struct tc_delta *d, struct tc_slice bytes);
/* The set changed: sends the subscribed resources that differ from the client's, and the names of those that the set
 * does not have if the client was not told yet. A type whose last response the client has not answered waits for the
 * answer. */
void tc_delta_push(struct tc_delta *d);
/* Returns the Node message, serialised, borrowed from the stream. The data is NULL before the first request that has a
 * node. */
struct tc_slice tc_delta_node(const struct tc_delta *d);
/* Calls fn for each resource that the client asked for by name, or that a wildcard brings. */
void tc_delta_view(const struct tc_delta *d, tc_served_fn fn, void *arg);

/* A resource of a response. */
struct tc_delta_resource {
    struct tc_slice name, version, value;
};

/* Sends a response that the caller made up, for tests of clients. Everything is borrowed for the call. Of the resources
 * that the client asked for, by name or by a wildcard, the sent ones count as resources that the client has now, and
 * the removed ones as resources that the client was told are absent. */
void tc_delta_send(struct tc_delta *d, struct tc_slice type_url, struct tc_slice system_version,
                   const struct tc_delta_resource *resources, size_t n, const struct tc_slice *removed,
                   size_t n_removed);

#endif
