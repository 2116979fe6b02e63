/* The client status discovery service (CSDS, A40): requests and their answers, for any maker of answers and any server.
 * Neither of its methods (StreamClientStatus, FetchClientStatus) watches: each request gets one answer. One thread,
 * that of `loop`.
 *
 * Answers are shared. A request waits for an answer that was begun after the request came. All waiting requests of one
 * kind (with or without resource contents) get the same answer. Answers are made one at a time. The cost is bounded
 * whatever the number of clients:
 *
 *   time     After an answer the maker rests for 20 times as long as the answer kept its loop, at most 1 s.
 *   memory   All answers that clients have not taken yet have at most max_bytes. An answer that would not fit, if it
 *            were as large as the last one of its kind, waits until clients have taken another answer. Calls whose
 *            client has not taken the oldest answer for 5 s are reset then. An answer that comes out too large for the
 *            rest of max_bytes is made again later. */
#ifndef TC_SERVER_CSDS_SERVICE_H
#define TC_SERVER_CSDS_SERVICE_H

#include <protobuf-c/protobuf-c.h>

#include "base/rstr.h"
#include "base/slice.h"
#include "io/loop.h"

#define TC_CSDS_NAME "/envoy.service.status.v3.ClientStatusDiscoveryService/"

/* Embedded in the maker of the answers: the xDS clients (api/), or the embedded control plane. */
struct tc_csds_service {
    /* Makes a serialised ClientStatusResponse (`without_contents`: without the contents of resources), and delivers it
     * with tc_csds_service_made, now or later. Not called again before. */
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

/* Embedded in a call of a server, zeroed but for its first three members. */
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
    void (*finish)(struct tc_csds_call *call, int code, const char *text); /* `text` is borrowed, and may be NULL */
    void (*reset)(struct tc_csds_call *call); /* the client takes nothing: ENHANCE_YOUR_CALM */
};

enum { TC_CSDS_MAX_BYTES = 32 << 20 };

/* Begins a service, which is zeroed but for `make` and `max_bytes`. */
void tc_csds_service_init(struct tc_csds_service *service, struct tc_loop *loop);
/* Begins a call. */
void tc_csds_call_init(struct tc_csds_call *call);
/* Takes a serialised ClientStatusRequest, borrowed until the function returns. Must not be called again before the
 * answer was written and released (tc_csds_call_release). A malformed request, or a request with node_matchers, ends
 * the call with INVALID_ARGUMENT. */
void tc_csds_call_ask(struct tc_csds_call *call, struct tc_slice request);
/* Returns whether the call has an answer that its client has not taken. */
bool tc_csds_call_sends(const struct tc_csds_call *call);
/* Lets go of the call's answer, or takes the call off the waiting calls. Must be called when the answer was written,
 * and when the call is over. */
void tc_csds_call_release(struct tc_csds_call *call);
/* Ends the call with OK after the answer that it waits for, if any: the client has sent its last request. */
void tc_csds_call_no_more(struct tc_csds_call *call);
/* Ends the call with a status. Does nothing the second time. `text` may be NULL. */
void tc_csds_call_finish(struct tc_csds_call *call, int code, const char *text);

/* Delivers the answer that `make` began, of `bytes` bytes. Takes over the response. NULL: `bytes` are too many, or
 * there is no memory for them; the requests then end with RESOURCE_EXHAUSTED. `took_ns`: how long the making kept the
 * loop that has the data. */
void tc_csds_service_made(struct tc_csds_service *service, struct tc_rstr *response, size_t bytes, uint64_t took_ns);
/* Returns how many bytes a response may have. */
size_t tc_csds_service_max_bytes(const struct tc_csds_service *service);
/* Returns a serialised response, which the caller owns. Returns NULL if it has more than `max` bytes, or there is no
 * memory. Stores the size of the response in *bytes in either case. */
struct tc_rstr *tc_csds_pack(const ProtobufCMessage *response, size_t max, size_t *bytes);
/* Ends the service, and frees the answers that are left. Called when every call has been released, or is gone with its
 * server (tc_server_free calls no on_end). tc_csds_service_made must not be called after it. */
void tc_csds_service_end(struct tc_csds_service *service);

#endif
