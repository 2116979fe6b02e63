/* The server's side of one state-of-the-world ADS stream: the client's subscriptions, the resources sent to it, and its
 * ACKs and NACKs. Knows no transport: bytes come in, bytes go out. The incremental variant is controlplane/delta.h.
 * Called on the thread of the server's loop. */
#ifndef TC_CONTROLPLANE_ADS_H
#define TC_CONTROLPLANE_ADS_H

#include "base/status.h"
#include "controlplane/resource_set.h"

struct tc_ads;

/* One request as received; borrowed for the call. */
struct tc_ads_request {
    struct tc_slice node_id; /* of the stream; empty: no request had a node yet, or the node has no id */
    struct tc_slice type_url;
    struct tc_slice version, nonce;
    const struct tc_slice *names;
    size_t n_names;
    bool has_error; /* a NACK */
    int error_code;
    struct tc_slice error_text;
    bool delta; /* the incremental variant: `version` is empty, and `names` are the new subscriptions */
    const struct tc_slice *unsubscribed;
    size_t n_unsubscribed;
    size_t n_initial; /* entries of initial_resource_versions */
    uint64_t stream;  /* which of the control plane's ADS streams, from 1; set by the control plane */
};

enum tc_served_state {
    /* No response told of the resource; or, for a state-of-the-world type other than LDS and CDS, the last response of
     * the type lacked the resource. */
    TC_SERVED_ASKED = 1,
    TC_SERVED_SENT, /* the client has not answered the last response that has the resource */
    TC_SERVED_ACKED,
    TC_SERVED_NACKED,
    /* Incremental: a response named the resource as removed. LDS and CDS: there was a response of the type, and the
     * client does not have the resource. */
    TC_SERVED_ABSENT,
};

/* The state of one resource that a client asked for; borrowed for the call. */
struct tc_served {
    struct tc_slice type_url, name;
    enum tc_served_state state;
    struct tc_slice version;     /* the version that the client has or was sent last; empty: none */
    const struct tc_rstr *value; /* the bytes of that version; NULL: none, or only the version is known */
    struct tc_slice error;       /* the text of its NACK; empty: none */
};

typedef void (*tc_served_fn)(void *arg, const struct tc_served *served);

struct tc_ads_events {
    /* Sends one serialised DiscoveryResponse (from controlplane/delta.h: DeltaDiscoveryResponse), which is borrowed.
     * Responses must keep their order. */
    void (*send)(void *arg, struct tc_slice response);
    /* Called with each request that names a type, before the request is answered. May be NULL. */
    void (*on_request)(void *arg, const struct tc_ads_request *request);
    /* Returns the set that serves a node. The set is borrowed until the stream's function that asked for it returns.
     * NULL: no answer now; the next push sends the resources that are due. */
    const struct tc_resource_set *(*resources)(void *arg, struct tc_slice node_id);
};

/* Returns a new stream, for tc_ads_free. `events` must outlive the stream. */
struct tc_ads *tc_ads_new(const struct tc_ads_events *events, void *arg);
/* NULL is allowed. */
void tc_ads_free(struct tc_ads *a);
/* Takes in one serialised DiscoveryRequest, and sends a response if one is due. Returns OK; or INVALID_ARGUMENT for a
 * request that cannot be unpacked (tc_request_unpack) or has no type_url: the caller should end the stream with it. The
 * caller owns the status. */
struct tc_status tc_ads_on_message(struct tc_ads *a, struct tc_slice bytes);
/* The set changed. For each type in which the client lacks a resource or has an old one, sends all subscribed
 * resources; of LDS and CDS, also if the client has one too many, or if no set could answer the first request of the
 * type. Sends nothing of a type whose last response the client has not answered: the answer brings the next response.
 */
void tc_ads_push(struct tc_ads *a);
/* Returns the Node message, serialised, borrowed from the stream. The data is NULL before the first request that has a
 * node. */
struct tc_slice tc_ads_node(const struct tc_ads *a);
/* Calls fn for each resource that the client asked for by name, and for each that the client has by a wildcard. */
void tc_ads_view(const struct tc_ads *a, tc_served_fn fn, void *arg);
/* Sends a response that the caller made up, for tests of clients: `resources` are serialised messages of the type. The
 * resources do not count as ones that the client has. */
void tc_ads_send(struct tc_ads *a, struct tc_slice type_url, struct tc_slice version, const struct tc_slice *resources,
                 size_t n);

#endif
