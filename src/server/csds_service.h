/* The client status discovery service (CSDS, A40): requests and their answers, for any maker of answers and any server.
 * Neither method watches: each request gets one answer. One thread, that of `loop`.
 *
 * Answers are shared. A request waits for an answer that was begun after the request came, and all requests of its kind
 * (with or without resource contents) that wait get the same one; answers are made one at a time. So the cost of the
 * service does not grow with the number of clients:
 *
 *   time     The next answer is begun when the maker has rested for 20 times as long as the last answer kept its loop,
 *            at most 1 s.
 *   memory   All answers that clients have not taken yet have at most max_bytes. At the limit the next answer, by the
 *            size of the last one of its kind, waits until one was taken; calls whose client has not taken theirs for
 *            5 s are reset. An answer that comes out too large for the rest of max_bytes is made again later. */
#ifndef TC_SERVER_CSDS_SERVICE_H
#define TC_SERVER_CSDS_SERVICE_H

#include <protobuf-c/protobuf-c.h>

#include "base/rstr.h"
#include "base/slice.h"
#include "io/loop.h"

#define TC_CSDS_NAME "/envoy.service.status.v3.ClientStatusDiscoveryService/"

/* Embedded in the maker of the answers: the xDS clients (api/), or the embedded control plane. */
struct tc_csds_service {
    /* Begins to make a serialised ClientStatusResponse; `without_contents`: resources are named and not shown. Ends
     * with tc_csds_service_made, now or later. One at a time. */
    void (*make)(struct tc_csds_service *service, bool without_contents);
    size_t max_bytes; /* 0: TC_CSDS_MAX_BYTES */

    /* Private to the service from here on. */
    struct tc_loop *loop;
    struct tc_link waiting[2];          /* of struct tc_csds_call: with contents, without */
    struct tc_link answers;             /* of struct csds_answer, the oldest first */
    size_t answer_bytes, last_bytes[2]; /* of all answers; of the last answer of each kind */
    struct tc_timer timer;
    struct tc_task begin;
    uint64_t rest_until_ms;        /* no answer is begun earlier */
    bool making, without_contents; /* an answer is being made, and which */
};

/* Embedded in a call of a server. */
struct tc_csds_call {
    const struct tc_csds_call_ops *ops;
    struct tc_csds_service *service;
    bool unary; /* an answer ends the call */

    /* Private to the service from here on. */
    struct tc_link link;        /* in the service's `waiting`, or in the answer's calls */
    struct csds_answer *answer; /* whose response it sends; NULL: it has none */
    bool in_time, ended; /* in_time: the answer that is being made is for it; ended: tc_csds_call_finish was called */
};

/* The functions by which the service answers a call. */
struct tc_csds_call_ops {
    void (*send)(struct tc_csds_call *call, struct tc_rstr *response);     /* takes a reference of its own */
    void (*finish)(struct tc_csds_call *call, int code, const char *text); /* `text` is borrowed */
    void (*reset)(struct tc_csds_call *call); /* the client takes nothing: ENHANCE_YOUR_CALM */
};

enum { TC_CSDS_MAX_BYTES = 32 << 20 };

/* Begins a service whose `make` and `max_bytes` are set. */
void tc_csds_service_init(struct tc_csds_service *service, struct tc_loop *loop);
/* Begins a call whose first three members are set. */
void tc_csds_call_init(struct tc_csds_call *call);
/* Takes a serialised ClientStatusRequest. The call asks its client for the next one when the answer has been written. A
 * malformed request, and one with node_matchers, ends the call with INVALID_ARGUMENT. */
void tc_csds_call_ask(struct tc_csds_call *call, struct tc_slice request);
/* Returns whether the call has an answer that its client has not taken. */
bool tc_csds_call_sends(const struct tc_csds_call *call);
/* The answer was written, or the call is over: the call lets go of its answer, or no longer waits for one. */
void tc_csds_call_release(struct tc_csds_call *call);
/* The client has sent its last request: the call ends, after the answer that it waits for. */
void tc_csds_call_no_more(struct tc_csds_call *call);
/* Ends the call with a status, once. */
void tc_csds_call_finish(struct tc_csds_call *call, int code, const char *text);

/* Delivers the answer that `make` began. Takes over the response. NULL: its `bytes` are too many, or there is no memory
 * for them; the requests then end with RESOURCE_EXHAUSTED. `took_ns`: how long the making kept the loop that has the
 * data. */
void tc_csds_service_made(struct tc_csds_service *service, struct tc_rstr *response, size_t bytes, uint64_t took_ns);
/* Returns how many bytes a response may have. */
size_t tc_csds_service_max_bytes(const struct tc_csds_service *service);
/* Returns a serialised response, which the caller owns, and its size in *bytes. Returns NULL if it has more than `max`
 * bytes, or there is no memory. */
struct tc_rstr *tc_csds_pack(const ProtobufCMessage *response, size_t max, size_t *bytes);
/* Call when no call is left. tc_csds_service_made must not be called after it. */
void tc_csds_service_end(struct tc_csds_service *service);

#endif
