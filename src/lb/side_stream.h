/* Side streams: streams to a service of the backend on a subchannel's own connection, beside the RPCs. Of several
 * connections of a subchannel (A105) they use the oldest. Out-of-band load reports (A51) are one kind, health checks
 * (A17) are another.
 *
 * A policy starts a watch (tc_subchannel_watch_side), which says by kind and key which stream it wants to read. All
 * watches of one kind and key on one connection share one stream, whatever policies and channels they come from:
 *
 * - The stream is open while the connection is READY and the stream has watches. It sends one request, which the kind
 *   makes for all of the watches, and reads messages without end. If the request changes when a watch comes or goes, a
 *   new stream replaces the old one. A watch that joins hears the newest message that came on this connection, or that
 *   the stream ended since.
 * - The watches hear the first message at once, then at most one message each TC_SIDE_PACE_MS, the newest. After
 *   TC_SIDE_MESSAGES messages within that time flow control holds the server. A message of more than the kind's
 *   max_message_bytes ends the stream.
 * - When the server ends the stream, the next one starts after a backoff (1 s, 1.6 times as long each time, at most
 *   120 s, with jitter). The backoff counts from the start of the stream that ended; each message resets it. After
 *   UNIMPLEMENTED, which is logged, the stream is not opened again on this connection, nor is one for a new key of the
 *   kind. Both hold for watches that come later, too.
 * - The stream has no deadline, no metadata, and no call credentials, and its end does not count as an RPC's. It counts
 *   against MAX_CONCURRENT_STREAMS and waits in line as RPCs do. Side streams leave at least one stream of that limit
 *   to RPCs. A side stream that does not fit is logged; its watches hear UNIMPLEMENTED, and it tries again after a
 *   backoff.
 *
 * Loop thread only. */
#ifndef TC_LB_SIDE_STREAM_H
#define TC_LB_SIDE_STREAM_H

#include "base/buf.h"
#include "base/list.h"
#include "base/status.h"
#include "lb/subchannel.h"

enum { TC_SIDE_PACE_MS = 100, TC_SIDE_MESSAGES = 16 };

struct tc_side_stream;
struct tc_side_watch;

/* A kind of side streams; constant. */
struct tc_side_kind {
    const char *path;         /* "/package.Service/Method" */
    const char *name;         /* for logs: "out-of-band load reports" */
    size_t max_message_bytes; /* of one message from the server */
    /* Appends the request for all watches of the list (tc_side_watch_of), of which there is at least one. */
    void (*request)(const struct tc_link *watches, struct tc_buf *out);
};

/* Embedded in the object of its owner, who sets the members up to on_end and zeroes the others. A watch lasts until
 * tc_side_watch_end. It may outlive its subchannel, and is silent while there is no connection. The callbacks may end
 * any watch and release any subchannel. */
struct tc_side_watch {
    const struct tc_side_kind *kind;
    /* Tells streams of one kind apart: the service whose health is asked for. Valid as long as the watch: the kind's
     * request may read it. */
    struct tc_slice key;
    /* A message came; borrowed for the call. Not NULL. */
    void (*on_message)(struct tc_side_watch *w, struct tc_slice message);
    /* The server ended the stream, or sent a message that is too large, or there is no room for the stream. `status` is
     * borrowed for the call. Does not come when the connection ends or drains, or the request changed. NULL: nothing to
     * do. */
    void (*on_end)(struct tc_side_watch *w, const struct tc_status *status);
    struct tc_link link;                  /* in a list of the stream */
    bool behind;                          /* the watch has not been told the newest message or end */
    struct tc_side_stream *stream;        /* NULL: not started, or ended, or the connection is gone for good */
    void (*end)(struct tc_side_watch *w); /* ends the watch; set by the start */
};

static inline struct tc_side_watch *tc_side_watch_of(const struct tc_link *link)
{
    return TC_CONTAINER_OF((struct tc_link *)(uintptr_t)link, struct tc_side_watch, link);
}

/* Starts a watch, which must not be running, on the connection of the subchannel, which may be a wrapper. Callbacks
 * come from the loop, never from inside this call. */
static inline void tc_subchannel_watch_side(struct tc_subchannel *sc, struct tc_side_watch *w)
{
    sc = tc_subchannel_innermost(sc);
    if (sc->ops->watch_side)
        sc->ops->watch_side(sc, w);
}

/* Ends the watch; no callback comes afterwards. A watch that is not started is left as it is. */
static inline void tc_side_watch_end(struct tc_side_watch *w)
{
    if (w->stream)
        w->end(w);
}

#endif
