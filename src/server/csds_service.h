/* The client status discovery service (CSDS, A40): both of its methods, for any maker of answers. Neither method
 * watches: each request gets one answer. Loop thread of the server.
 *
 * Answers are shared. A request waits until an answer is there that was begun after it came, and all requests that wait
 * get the same one; answers are made one at a time. So the cost of the service does not grow with the number of
 * clients:
 *
 *   time     The next answer is begun when the maker has rested for 20 times as long as the last one kept its loop, at
 *            most 1 s.
 *   memory   All answers that are with a client that has not taken them yet have at most max_bytes. At the limit the
 *            next answer waits until one was taken; calls whose client has not taken theirs for 5 s are reset. */
#ifndef TC_SERVER_CSDS_SERVICE_H
#define TC_SERVER_CSDS_SERVICE_H

#include <protobuf-c/protobuf-c.h>

#include "server/call.h"
#include "server/server.h"

/* Embedded in the maker of the answers: the xDS clients (api/), or the embedded control plane. */
struct tc_csds_service {
    /* Begins to make a serialised ClientStatusResponse; `without_contents`: resources are named and not shown. Ends
     * with tc_csds_service_made, now or later. One at a time. */
    void (*make)(struct tc_csds_service *service, bool without_contents);
    size_t max_bytes; /* 0: TC_CSDS_MAX_BYTES */

    /* Private to the service from here on. */
    struct tc_loop *loop;
    struct tc_link waiting[2]; /* of struct csds_call: with contents, without */
    struct tc_link answers;    /* of struct csds_answer, the oldest first */
    size_t answer_bytes, last_bytes[2];
    struct tc_timer timer;
    struct tc_task begin;
    uint64_t rest_until_ms;
    bool making, without_contents; /* an answer is being made, and which */
};

enum { TC_CSDS_MAX_BYTES = 32 << 20 };

/* Registers FetchClientStatus and StreamClientStatus. The service must live as long as the server takes calls. Requests
 * with node_matchers end with INVALID_ARGUMENT. */
void tc_csds_service_register(struct tc_server *server, struct tc_csds_service *service);
/* Delivers the answer that `make` began. Takes over the response. NULL: its `bytes` are too many, or there is no memory
 * for them; the requests then end with RESOURCE_EXHAUSTED. `took_ns`: how long the making kept the loop that has the
 * data. On the server's loop. */
void tc_csds_service_made(struct tc_csds_service *service, struct tc_rstr *response, size_t bytes, uint64_t took_ns);
/* Returns how many bytes a response may have. */
size_t tc_csds_service_max_bytes(const struct tc_csds_service *service);
/* Returns a serialised response, and its size in *bytes. NULL if it has more than `max` bytes, or there is no memory.
 */
struct tc_rstr *tc_csds_pack(const ProtobufCMessage *response, size_t max, size_t *bytes);
/* Call right after tc_server_free. tc_csds_service_made must not be called after it. */
void tc_csds_service_end(struct tc_csds_service *service);

#endif
