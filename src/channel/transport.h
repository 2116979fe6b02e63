/* A connected transport: an HTTP/2 connection and the calls that wait for a stream on it (MAX_CONCURRENT_STREAMS). It
 * outlives its place in the pool: after a GOAWAY it goes on until its last stream ended. */
#ifndef TC_CHANNEL_TRANSPORT_H
#define TC_CHANNEL_TRANSPORT_H

#include "http2/stream.h"

struct tc_transport;

/* One that waits for a stream; embedded in the call. */
struct tc_capacity_wait {
    struct tc_link link;
    /* From the loop, taken off the list before: a stream can be opened, or (gone) the transport takes no more. */
    void (*fn)(struct tc_capacity_wait *wait, bool gone);
};

struct tc_transport_events {
    void (*on_ready)(void *arg);
    /* No new streams any more. The owner forgets the transport, which ends by itself. `why` is borrowed. */
    void (*on_gone)(void *arg, const struct tc_status *why, bool too_many_pings);
};

/* Takes over the byte stream. The list is the owner's, of all its transports. */
struct tc_transport *tc_transport_new(struct tc_loop *loop, struct tc_bytestream *bs, const struct tc_h2_opts *opts,
                                      struct tc_rstr *address, struct tc_link *list,
                                      const struct tc_transport_events *events, void *arg);
/* Other events from now on. */
void tc_transport_set_events(struct tc_transport *t, const struct tc_transport_events *events);
/* The owner lets go: no event comes after; the connection closes when its last stream ended. */
void tc_transport_drain(struct tc_transport *t, const char *debug_text);
/* Ends it at once, without any event. */
void tc_transport_close(struct tc_transport *t);
/* The one with this link on the owner's list. */
struct tc_transport *tc_transport_of_link(struct tc_link *link);

struct tc_h2_conn *tc_transport_h2(const struct tc_transport *t);
/* The address as text; borrowed. */
/* Whether a stream was ever opened on it. */
bool tc_transport_used(const struct tc_transport *t);
struct tc_rstr *tc_transport_address(const struct tc_transport *t);
/* ":scheme" of its requests: "https" when it is confidential, else "http". */
const char *tc_transport_scheme(const struct tc_transport *t);
/* Opens a stream as tc_h2_stream_open does; behind those who wait already. */
struct tc_h2_stream *tc_transport_open(struct tc_transport *t, const struct tc_h2_request *request,
                                       struct tc_arena *arena, const struct tc_h2_stream_events *events, void *arg,
                                       int *error);
/* After TORC_EAGAIN. tc_list_remove takes it off again. */
void tc_transport_wait(struct tc_transport *t, struct tc_capacity_wait *wait);

#endif
