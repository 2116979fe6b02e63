/* A connected transport: an HTTP/2 connection and the calls that wait for a stream on it (MAX_CONCURRENT_STREAMS). It
 * outlives its place in the pool: after a GOAWAY it goes on until its last stream ended. Counted. Loop thread only. */
#ifndef TC_SUBCHANNEL_TRANSPORT_H
#define TC_SUBCHANNEL_TRANSPORT_H

#include "http2/client_stream.h"
#include "http2/connection.h"

struct tc_transport;

/* How many connections in a row ended soon after they were made, before the server had ended any RPC with a status.
 * Shared by the connection and by those of its transports that are not judged yet. */
struct tc_barren {
    struct tc_lref ref;
    unsigned n;
};

struct tc_barren *tc_barren_new(void);
void tc_barren_unref(struct tc_barren *b);

/* Waits for a stream; embedded in the call. */
struct tc_capacity_wait {
    struct tc_link link;
    /* Called from the loop, off the list: a stream can be opened, or (gone) the transport takes no more. */
    void (*fn)(struct tc_capacity_wait *wait, bool gone);
};

struct tc_transport_events {
    void (*on_ready)(void *arg);
    /* No new streams from now on. The owner forgets the transport, which ends by itself. `why` is borrowed. */
    void (*on_gone)(void *arg, const struct tc_status *why, bool too_many_pings);
    /* A call waits for a stream; called from inside tc_transport_wait. NULL: nothing to do. */
    void (*on_wait)(void *arg);
};

/* Takes over the byte stream. `list` is the owner's list of all its transports. */
struct tc_transport *tc_transport_new(struct tc_loop *loop, struct tc_bytestream *bs, const struct tc_h2_opts *opts,
                                      struct tc_rstr *address, struct tc_link *list,
                                      const struct tc_transport_events *events, void *arg);
/* Replaces the events. */
void tc_transport_set_events(struct tc_transport *t, const struct tc_transport_events *events);
/* The owner lets go: no event comes after it, and the connection closes when its last stream has ended. */
void tc_transport_drain(struct tc_transport *t, const char *debug_text);
/* Ends the transport at once, without events. */
void tc_transport_close(struct tc_transport *t);
/* Returns the transport with this link on the owner's list. */
struct tc_transport *tc_transport_of_link(struct tc_link *link);

struct tc_h2_conn *tc_transport_h2(const struct tc_transport *t);
/* Called after on_gone for a transport that ended soon and has not answered yet, but still may: its end counts for
 * `barren`. Takes a reference of `barren`. */
void tc_transport_judge_later(struct tc_transport *t, struct tc_barren *barren);
/* Returns the address as text; borrowed. */
struct tc_rstr *tc_transport_address(const struct tc_transport *t);
/* Opens a stream as tc_h2_client_stream_open does. Returns NULL with TORC_EAGAIN also while other calls wait: no call
 * overtakes them. */
struct tc_h2_stream *tc_transport_open(struct tc_transport *t, const struct tc_h2_request *request,
                                       struct tc_arena *arena, const struct tc_h2_client_events *events, void *arg,
                                       int *error);
/* Waits for a stream, after TORC_EAGAIN. tc_list_remove ends the wait. */
void tc_transport_wait(struct tc_transport *t, struct tc_capacity_wait *wait);

#endif
