/* The server's side of one ADS stream, state of the world: what a client asks for, what it was sent, what it made of
 * it. Knows no transport: bytes come in, bytes go out. */
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
};

struct tc_ads_events {
    /* Sends one serialised DiscoveryResponse; they are queued by the callee in order. */
    void (*send)(void *arg, struct tc_slice response);
    /* Each request, before it is answered; may be NULL. */
    void (*on_request)(void *arg, const struct tc_ads_request *request);
    /* The set that serves a node; borrowed, never NULL. */
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
/* Sends a response of the caller's making: `resources` are serialised messages of the type. For tests of clients. */
void tc_ads_send(struct tc_ads *a, struct tc_slice type_url, struct tc_slice version, const struct tc_slice *resources,
                 size_t n);

#endif
