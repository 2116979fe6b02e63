/* The side streams of one connection (lb/side_stream.h has their contract). Embedded in struct tc_connection, which
 * chooses their transport. Loop thread only. */
#ifndef TC_SUBCHANNEL_SIDE_STREAM_H
#define TC_SUBCHANNEL_SIDE_STREAM_H

#include "lb/side_stream.h"
#include "subchannel/transport.h"

struct tc_side_streams {
    struct tc_loop *loop;
    struct tc_rstr *authority;      /* of the streams' requests; a reference */
    struct tc_transport *transport; /* borrowed; NULL: the connection is not READY */
    uint64_t uses;                  /* how often tc_side_streams_use was called: tells transports apart */
    struct tc_link all;             /* struct tc_side_stream */
};

/* Begins with no stream, and no transport. Takes a reference to `authority`. */
void tc_side_streams_init(struct tc_side_streams *set, struct tc_loop *loop, struct tc_rstr *authority);
/* Ends all streams. Watches that are left fall silent for good. */
void tc_side_streams_fini(struct tc_side_streams *set);
/* Ends the streams on the present transport, and starts others on `transport`, which is borrowed until the next call.
 * NULL: the connection is no longer READY. Calls no watch, and is not called from inside a callback of a watch. Called
 * before the owner drains or closes the present transport, and from its on_gone: a stream would keep a draining
 * transport for ever. */
void tc_side_streams_use(struct tc_side_streams *set, struct tc_transport *transport);
/* Closes open streams until they leave RPCs at least one of the peer's MAX_CONCURRENT_STREAMS, which the peer may have
 * lowered; closes all if the peer allows none. The watches of closed streams hear of it by a task, and these streams
 * try again after a backoff. */
void tc_side_streams_make_room(struct tc_side_streams *set);
/* Ends the streams' backoffs: streams in backoff are opened from the loop, and the next delays are the first again. */
void tc_side_streams_reset_backoff(struct tc_side_streams *set);
/* Starts a watch, which must not be running. Its owner has set the members up to `on_end` (lb/side_stream.h). Calls no
 * watch. */
void tc_side_streams_watch(struct tc_side_streams *set, struct tc_side_watch *w);

#endif
