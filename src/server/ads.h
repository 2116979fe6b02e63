/* The server's side of one ADS stream, state of the world: what a client asks for, what it was sent, what it made of
 * it. Knows no transport: bytes come in, bytes go out. server/delta.h is its incremental sister. */
#ifndef TC_SERVER_ADS_H
#define TC_SERVER_ADS_H

#include "base/status.h"
#include "server/resource_set.h"

struct tc_ads;

/* One request as received; borrowed for the call. */
struct tc_ads_request {
    struct tc_slice node_id; /* of the stream */
    struct tc_slice type_url;
    struct tc_slice version, nonce;
    const struct tc_slice *names;
    size_t n_names;
    bool has_error; /* a NACK */
    int error_code;
    struct tc_slice error_text;
    /* Incremental: version is empty and names are those subscribed to. */
    bool delta;
    const struct tc_slice *unsubscribed;
    size_t n_unsubscribed;
    size_t n_initial; /* entries of initial_resource_versions */
};

enum tc_served_state {
    TC_SERVED_ASKED = 1, /* nothing was sent yet */
    TC_SERVED_SENT,      /* and not answered yet */
    TC_SERVED_ACKED,
    TC_SERVED_NACKED,
    TC_SERVED_ABSENT, /* the client was told that it does not exist */
};

/* What is known of one resource that a client asked for; borrowed for the call. */
struct tc_served {
    struct tc_slice type_url, name;
    enum tc_served_state state;
    struct tc_slice version;     /* that it was sent; empty: none */
    const struct tc_rstr *value; /* that it was sent; NULL: none */
    struct tc_slice error;       /* of its NACK */
};

typedef void (*tc_served_fn)(void *arg, const struct tc_served *served);

struct tc_ads_events {
    /* Sends one serialised DiscoveryResponse; they are queued by the callee in order. */
    void (*send)(void *arg, struct tc_slice response);
    /* Each request, before it is answered; may be NULL. */
    void (*on_request)(void *arg, const struct tc_ads_request *request);
    /* The set that serves a node; borrowed. NULL: nothing is answered now, and all that is due by the next push. */
    const struct tc_resource_set *(*resources)(void *arg, struct tc_slice node_id);
};

struct tc_ads *tc_ads_new(const struct tc_ads_events *events, void *arg);
void tc_ads_free(struct tc_ads *a);
/* Takes in one serialised DiscoveryRequest and answers it where there is something new. A status other than OK (the
 * caller ends it) says that it is malformed: the stream should end with it. */
struct tc_status tc_ads_on_message(struct tc_ads *a, struct tc_slice bytes);
/* The set changed: sends what the client subscribed to and what differs from what it has. */
void tc_ads_push(struct tc_ads *a);
/* The node's id; empty before the first request. */
struct tc_slice tc_ads_node_id(const struct tc_ads *a);
/* Its Node message, serialised; empty before the first request. */
struct tc_slice tc_ads_node(const struct tc_ads *a);
void tc_ads_view(const struct tc_ads *a, tc_served_fn fn, void *arg);
/* Sends a response of the caller's making: `resources` are serialised messages of the type. For tests of clients. */
void tc_ads_send(struct tc_ads *a, struct tc_slice type_url, struct tc_slice version, const struct tc_slice *resources,
                 size_t n);

#endif
