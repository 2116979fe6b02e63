/* Connectivity states of channels and of LB policies. SPDX-License-Identifier: Apache-2.0
 *
 *     if (torc_channel_connect(channel, 5000) != 0)
 *         fprintf(stderr, "not connected: %s\n", torc_connectivity_name(torc_channel_state(channel, false)));
 *
 * An RPC needs none of this: it has its channel connect, and waits for that. Source: gRPC
 * doc/connectivity-semantics-and-api.md. */
#ifndef TORC_CONNECTIVITY_H
#define TORC_CONNECTIVITY_H

#include <torc/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The state of a channel or of an LB policy; a channel with several backends shows what its policy makes of them. */
enum torc_connectivity {
    TORC_CONNECTIVITY_IDLE = 0,              /* does not connect until an RPC begins or it is asked to */
    TORC_CONNECTIVITY_CONNECTING = 1,        /* resolving the name, connecting, or in a handshake; RPCs wait */
    TORC_CONNECTIVITY_READY = 2,             /* RPCs can be sent */
    TORC_CONNECTIVITY_TRANSIENT_FAILURE = 3, /* the last attempt failed, another follows after a backoff; RPCs fail
                                                (with UNAVAILABLE, or as the resolver says) unless they are
                                                wait_for_ready */
    TORC_CONNECTIVITY_SHUTDOWN = 4,          /* the channel has ended, for good */
};

/* Returns the name: "IDLE", "CONNECTING", "READY", "TRANSIENT_FAILURE" or "SHUTDOWN"; "UNKNOWN" for another number. A
 * constant text, never NULL. Any thread. */
TORC_API const char *torc_connectivity_name(enum torc_connectivity state);

#ifdef __cplusplus
}
#endif
#endif
