/* The server's side of one incremental ADS stream: the client's subscriptions, and the version that it has of each
 * resource. Sends what differs, and what the client subscribes to again. Knows no transport: bytes come in, bytes go
 * out. Called on the thread of its server's loop. */
#ifndef TC_CONTROLPLANE_DELTA_H
#define TC_CONTROLPLANE_DELTA_H

#include "controlplane/ads.h"

struct tc_delta;

/* `events` must outlive the stream. */
struct tc_delta *tc_delta_new(const struct tc_ads_events *events, void *arg);
void tc_delta_free(struct tc_delta *d);
/* Takes in one serialised DeltaDiscoveryRequest, and answers it if something is due. Returns OK, or the status that a
 * malformed request should end the stream with (the caller ends it). */
struct tc_status tc_delta_on_message(struct tc_delta *d, struct tc_slice bytes);
/* The set changed: sends the subscribed resources that differ from the client's, and the names of removed ones. A type
 * whose last response the client has not answered waits for the answer. */
void tc_delta_push(struct tc_delta *d);
/* Returns the Node message, serialised, borrowed from the stream; empty before the first request that has one. */
struct tc_slice tc_delta_node(const struct tc_delta *d);
/* Calls fn for each resource that the client asked for by name, or that a wildcard brings. */
void tc_delta_view(const struct tc_delta *d, tc_served_fn fn, void *arg);

/* A resource of a response that the caller makes up. */
struct tc_delta_resource {
    struct tc_slice name, version, value;
};

/* Sends a response that the caller made up, for tests of clients. Everything is borrowed for the call. Resources that
 * the client asked for, by name or by a wildcard, count as resources that it has now. */
void tc_delta_send(struct tc_delta *d, struct tc_slice type_url, struct tc_slice system_version,
                   const struct tc_delta_resource *resources, size_t n, const struct tc_slice *removed,
                   size_t n_removed);

#endif
