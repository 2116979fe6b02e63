/* The side streams of one connection (lb/side_stream.h has their contract). Embedded in struct tc_connection, which
 * says on which transport they run. Loop thread only. */
#ifndef TC_SUBCHANNEL_SIDE_STREAM_H
#define TC_SUBCHANNEL_SIDE_STREAM_H

#include "lb/side_stream.h"
#include "subchannel/transport.h"

struct tc_side_streams {
    struct tc_loop *loop;
    struct tc_rstr *authority;      /* of the streams' requests */
    struct tc_transport *transport; /* NULL: the connection is not READY */
    uint64_t uses;                  /* how often tc_side_streams_use was called: tells transports apart */
    struct tc_link all;             /* struct tc_side_stream */
};

/* Begins with no stream, and no transport. Takes a reference to `authority`. */
void tc_side_streams_init(struct tc_side_streams *set, struct tc_loop *loop, struct tc_rstr *authority);
/* Ends all streams. Watches that are left fall silent for good. */
void tc_side_streams_fini(struct tc_side_streams *set);
/* Ends the streams on the present transport, and starts others on this one. NULL: the connection is no longer READY.
 * Called before the owner drains or closes the present transport, and from its on_gone: a stream would keep a draining
 * transport for ever. */
void tc_side_streams_use(struct tc_side_streams *set, struct tc_transport *transport);
/* Ends streams until RPCs may have one at least of the streams that the peer allows: its limit may have become
 * smaller. */
void tc_side_streams_make_room(struct tc_side_streams *set);
/* Ends the streams' backoffs: they are opened again by the loop's next timers. */
void tc_side_streams_reset_backoff(struct tc_side_streams *set);
/* Starts a watch, whose members up to `on_end` are set (lb/side_stream.h); opens its stream if there is a transport. */
void tc_side_streams_watch(struct tc_side_streams *set, struct tc_side_watch *w);

#endif
