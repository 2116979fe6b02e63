/* Requests of ADS and LRS streams at the server: decoding them, and the node that sends them. Any thread; a struct
 * tc_request_node on one thread at a time. */
#ifndef TC_CONTROLPLANE_REQUEST_H
#define TC_CONTROLPLANE_REQUEST_H

#include "base/status.h"
#include "pb/envoy/config/core/v3/base.pb-c.h"

/* Unpacks a request, lends it to fn for the call, and returns fn's status. Returns INVALID_ARGUMENT without calling fn
 * if tc_unpack refuses the bytes, which includes a message that needs more memory than tc_unpack_budget allows. The
 * caller owns the status. */
struct tc_status tc_request_unpack(const ProtobufCMessageDescriptor *type, struct tc_slice bytes,
                                   struct tc_status (*fn)(void *arg, const ProtobufCMessage *request), void *arg);

/* The node of a stream, from the first request that had one. Zeroed by its owner before use. */
struct tc_request_node {
    struct tc_rstr *id;      /* NULL: no request had a node yet */
    struct tc_rstr *message; /* the Node, serialised; NULL if `id` is NULL */
};

/* Keeps a copy of `node` (NULL is allowed) unless the stream has a node. */
void tc_request_node_take(struct tc_request_node *n, const Envoy__Config__Core__V3__Node *node);
void tc_request_node_fini(struct tc_request_node *n);

#endif
