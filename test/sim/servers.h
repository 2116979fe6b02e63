/* The servers of the world: two control planes and the backends. Each is a server of the library, on its own loop. The
 * world's one thread turns all of these loops and calls all functions here. */
#ifndef SIM_SERVERS_H
#define SIM_SERVERS_H

#include <stdint.h>

#include "sim/mesh.h"

#define SIM_CONTROL_PLANE "10.0.0.1:15010"
#define SIM_FALLBACK "10.0.0.2:15010" /* has the same resources */

/* A request as its backend got it. If `refused` is set, the other members but id and host are not. */
struct servers_request {
    uint64_t id;
    unsigned host;
    bool refused;                /* by REFUSED_STREAM; servers_seen does not count it */
    bool has_timeout;            /* the request has a grpc-timeout */
    int64_t left_ns;             /* with has_timeout: what is left of it when `seen` is called */
    unsigned previous_attempts;  /* of grpc-previous-rpc-attempts (A6); 0: the header is not there */
    char authority[32], key[16]; /* :authority and x-key, cut to fit; "": the header is not there */
};

/* Begins the control planes, without resources, and a backend for each host of the mesh. `seen` is called for each
 * request that a backend takes or refuses, and borrows the request; NULL: none. Call once in a process. */
void servers_begin(const struct sim_mesh *mesh, void (*seen)(const struct servers_request *request));
/* Ends and frees all servers. Calls that are open get no answer. */
void servers_end(void);

/* --- the control planes, which have the same resources --- */

/* Puts one resource as the mesh has it: a service's listener, with its routes; a cluster, and the addresses of its DNS
 * names (sim_name_set); or a cluster's endpoints. */
void servers_put(const struct sim_mesh *mesh, enum sim_resource kind, unsigned which);
/* Puts a version of the resource that clients must reject. */
void servers_put_bad(const struct sim_mesh *mesh, enum sim_resource kind, unsigned which);
/* Removes the resource. */
void servers_remove(const struct sim_mesh *mesh, enum sim_resource kind, unsigned which);
/* Ends all ADS streams of the control planes. Streams of load reports stay open. */
void servers_end_streams(void);

/* The sums of all load reports. */
struct servers_loads {
    uint64_t issued, succeeded, failed, dropped;
    bool whole; /* a stream of reports is open, and none ever broke */
};
struct servers_loads servers_loads(void);

/* --- backends --- */

/* A call asks for "ID DELAY_MS CODE N SIZE REFUSALS PUSHBACK", in its message if it is unary, else in the header
 * x-call. The first REFUSALS times, backends refuse the call with REFUSED_STREAM, so that the client may send it again.
 * Otherwise the backend waits for DELAY_MS. If it is sick, it then ends the call with its own code and PUSHBACK. With a
 * CODE other than 0 it ends the call with that code, a server stream after N / 2 messages. With CODE 0 it answers
 *
 *   a unary call             "HOST ID"
 *   a client stream          one message, whose index is the number of the client's messages
 *   a server stream          N messages of SIZE bytes
 *   a stream of both sides   each message with one message
 *
 * and reports its load in the trailers (A51): the host's weight is in proportion to sim_host_weight. */

/* The backend sends GOAWAY on all of its connections. It still takes the requests on their way; with `hasty` it drops
 * them. */
void servers_goaway(unsigned host, bool hasty);
/* From now on the backend fails each call when the call's delay is over, with the code and with the pushback that the
 * call asks for (SIM_NO_PUSHBACK: none). A stream whose delay is over already goes on. 0: it is well again. */
void servers_set_sick(unsigned host, int code);
/* Returns how often backends took the call, refusals not counted. */
unsigned servers_seen(uint64_t id);

#endif
