/* The interface through which the xDS client reaches its servers. xds/domain implements it with Torc's own channels,
 * tests implement it with a script. Loop thread only. */
#ifndef TC_XDS_CLIENT_TRANSPORT_H
#define TC_XDS_CLIENT_TRANSPORT_H

#include "base/rstr.h"
#include "base/status.h"
#include "xds/bootstrap/bootstrap.h"

struct tc_xds_transport;
struct tc_xds_stream;

struct tc_xds_stream_events {
    /* One message; the callee owns the reference. The next comes only after ops->read. */
    void (*on_message)(void *arg, struct tc_rstr *message);
    /* The message given to `send` was handed to a connected transport, and the next may be sent. The does-not-exist
     * timers start here (A57). `taken` is false if the stream or its connection ended first. Then on_status follows,
     * after the received messages that wait to be read. But if the message was the stream's first, the transport may
     * send it again; on_sent does not come again for it. */
    void (*on_sent)(void *arg, bool taken);
    /* The stream is over; the last callback. The stream must not be used from here on: the transport frees it, or has
     * freed it. The status of a message that was too large is of TORC_LAYER_LIMIT. */
    void (*on_status)(void *arg, const struct tc_status *status);
};

struct tc_xds_stream_ops {
    /* Sends one message, which is copied. The next may be sent after on_sent. */
    void (*send)(struct tc_xds_stream *s, struct tc_slice message);
    /* Asks for one more message. */
    void (*read)(struct tc_xds_stream *s);
    /* Half-closes the stream, which the server then ends. Must not be called while a message is on its way; none may be
     * sent afterwards. */
    void (*end)(struct tc_xds_stream *s);
    /* Ends the stream without on_status and frees it; no callback follows. May be called inside on_message. */
    void (*cancel)(struct tc_xds_stream *s);
};

struct tc_xds_stream {
    const struct tc_xds_stream_ops *ops;
};

struct tc_xds_transport_ops {
    /* Opens a stream of the method
     * ("/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"), which waits for a
     * connection. Never NULL. Callbacks come by the loop, never from inside open, send or read. `events` and `arg` are
     * borrowed until on_status or `cancel`. */
    struct tc_xds_stream *(*open)(struct tc_xds_transport *t, const char *method,
                                  const struct tc_xds_stream_events *events, void *arg);
    /* Connects at once if the transport waits after a failure. */
    void (*reset_backoff)(struct tc_xds_transport *t);
    /* Ends and frees the transport, whose streams must have ended or been cancelled. No callback follows. */
    void (*shutdown)(struct tc_xds_transport *t);
};

struct tc_xds_transport {
    const struct tc_xds_transport_ops *ops;
};

/* Says that the server's channel cannot connect, with the reason, borrowed (A57). Called by the loop for each failure;
 * there is no call for success. */
typedef void (*tc_xds_connectivity_fn)(void *arg, const struct tc_status *failure);

struct tc_xds_transport_factory {
    /* Returns a transport to the server, which must outlive the transport. Never NULL: if the server cannot be used at
     * all, `fn` is called with the reason later, and streams end with it. */
    struct tc_xds_transport *(*create)(struct tc_xds_transport_factory *f, const struct tc_xds_server *server,
                                       tc_xds_connectivity_fn fn, void *arg);
};

#endif
