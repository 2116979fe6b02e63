/* The servers of the world: two control planes and backends, on the library's own server, each on a loop. */
#ifndef SIM_SERVERS_H
#define SIM_SERVERS_H

#include <stdint.h>

#include "sim/mesh.h"

#define SIM_CONTROL_PLANE "10.0.0.1:15010"
#define SIM_FALLBACK "10.0.0.2:15010" /* has the same resources */

/* A request as its backend got it. */
struct servers_request {
    uint64_t id;
    unsigned host;
    bool refused; /* the backend does not look at it */
    bool has_timeout;
    int64_t left_ns;            /* of grpc-timeout, which runs since the headers came */
    unsigned previous_attempts; /* of grpc-previous-rpc-attempts (A6); 0: the header is not there */
    char authority[32], key[16];
};

/* Begins the control planes, without resources, and the mesh's hosts. `seen` hears of each request that a backend takes
 * or refuses. */
void servers_begin(const struct sim_mesh *mesh, void (*seen)(const struct servers_request *request));
void servers_end(void);

/* --- the control planes, which have the same resources --- */

/* Puts one resource as the mesh has it: a service's listener, a cluster, or a cluster's endpoints. */
void servers_put(const struct sim_mesh *mesh, enum sim_resource kind, unsigned which);
/* Puts a version of the resource that no client may accept. */
void servers_put_bad(const struct sim_mesh *mesh, enum sim_resource kind, unsigned which);
/* Leaves the resource out from now on. */
void servers_remove(const struct sim_mesh *mesh, enum sim_resource kind, unsigned which);
/* Ends all streams of the control planes. */
void servers_end_streams(void);

/* The sums of all load reports. */
struct servers_loads {
    uint64_t issued, succeeded, failed, dropped;
    bool whole; /* a stream of reports is open, and none ever broke */
};
struct servers_loads servers_loads(void);

/* --- backends --- */

/* A call asks for "ID DELAY_MS CODE N SIZE REFUSALS PUSHBACK". The first REFUSALS times, backends refuse the call
 * without looking at it (REFUSED_STREAM), so that the client may send it again. Otherwise the backend waits for
 * DELAY_MS. With a CODE other than 0 it then ends the call with that code, a server stream after N / 2 messages.
 * With CODE 0 it answers
 *
 *   a unary call             "HOST ID"
 *   a client stream          one message, whose index is the number of the client's messages
 *   a server stream          N messages of SIZE bytes
 *   a stream of both sides   each message with one message
 *
 * and the trailers report the host's load, by which the host's weight is sim_host_weight (A51). */

/* The backend sends GOAWAY on all of its connections. It takes the requests on their way; with `hasty` it does not look
 * at these. */
void servers_goaway(unsigned host, bool hasty);
/* The backend fails every call with the code, with the pushback that the call asks for (SIM_NO_PUSHBACK: none); 0: it
 * is well again. */
void servers_set_sick(unsigned host, int code);
/* Returns how often backends took the call. */
unsigned servers_seen(uint64_t id);

#endif
