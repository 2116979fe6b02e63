/* Connectivity states of channels and subchannels. SPDX-License-Identifier: Apache-2.0
 * Source: gRPC doc/connectivity-semantics-and-api.md. */
#ifndef TORC_CONNECTIVITY_H
#define TORC_CONNECTIVITY_H

#include <torc/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The state of a channel or of an LB policy. Source: gRPC connectivity semantics. */
enum torc_connectivity {
    TORC_CONNECTIVITY_IDLE = 0,
    TORC_CONNECTIVITY_CONNECTING = 1,
    TORC_CONNECTIVITY_READY = 2,
    TORC_CONNECTIVITY_TRANSIENT_FAILURE = 3,
    TORC_CONNECTIVITY_SHUTDOWN = 4,
};

/* Returns the name: "IDLE", "CONNECTING", "READY", "TRANSIENT_FAILURE" or "SHUTDOWN"; "UNKNOWN" for another number. Any
 * thread. */
TORC_API const char *torc_connectivity_name(enum torc_connectivity state);

#ifdef __cplusplus
}
#endif
#endif
