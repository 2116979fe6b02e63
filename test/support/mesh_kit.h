/* A mesh in one process, for tests on real sockets: the embedded control plane and echo backends on a thread of their
 * own, and channels to "xds:///..." that are told of that control plane. Whatever fails in here fails the test. */
#ifndef TC_SUPPORT_MESH_KIT_H
#define TC_SUPPORT_MESH_KIT_H

#include <torc/torc.h>

#include "base/buf.h"
#include "server/control_plane.h"
#include "server/lrs.h"
#include "tls/tls.h"

#define MESH_KIT_MAX 8

struct mesh_kit;

/* n backends "b0", "b1", ..., all listening. */
struct mesh_kit *mesh_kit_new(size_t n);
/* Whose backends take that long for each answer. */
struct mesh_kit *mesh_kit_new_slow(size_t n, uint64_t delay_ms);
/* The same with a control plane behind TLS, whose certificate is for 127.0.0.1. */
struct mesh_kit *mesh_kit_new_secure(size_t n, const struct tc_tls_opts *control_plane);
void mesh_kit_free(struct mesh_kit *k);

/* --- servers --- */

/* "127.0.0.1:PORT"; borrowed. */
const char *mesh_kit_address(const struct mesh_kit *k, size_t i);
const char *mesh_kit_control_plane(const struct mesh_kit *k);
/* As a crash: port and connections closed. Then again, on its port. */
void mesh_kit_stop(struct mesh_kit *k, size_t i);
void mesh_kit_start(struct mesh_kit *k, size_t i);
void mesh_kit_stop_control_plane(struct mesh_kit *k);
void mesh_kit_start_control_plane(struct mesh_kit *k);
/* The backend asks its clients to go elsewhere (GOAWAY) and finishes what runs. */
void mesh_kit_goaway(struct mesh_kit *k, size_t i);
/* The backend's port is that of every loopback address from now on: 127.0.0.1 to 127.255.255.254. */
void mesh_kit_spread(struct mesh_kit *k, size_t i);
/* Backend i again, on its port, behind TLS (NULL: in the clear); its counts begin anew. */
void mesh_kit_secure(struct mesh_kit *k, size_t i, const struct tc_tls_opts *tls);
/* Connections to backend i that stand now. */
uint64_t mesh_kit_open_connections(struct mesh_kit *k, size_t i);
/* In place of the backend: its port takes connections and never answers; mesh_kit_stop then refuses them. */
void mesh_kit_hold(struct mesh_kit *k, size_t i);
/* Requests that backend i counted since the last call of this. */
uint64_t mesh_kit_take(struct mesh_kit *k, size_t i);
/* The same since the beginning. */
uint64_t mesh_kit_handled(struct mesh_kit *k, size_t i);
/* Connections to backend i so far. */
uint64_t mesh_kit_connections(struct mesh_kit *k, size_t i);
/* Of them, those that are open. */
uint64_t mesh_kit_open_connections(struct mesh_kit *k, size_t i);
/* The LRS server beside the control plane; for what runs on the servers' thread. */
struct tc_lrs *mesh_kit_lrs(struct mesh_kit *k);
/* Runs fn on the servers' thread and waits for it. */
void mesh_kit_do(struct mesh_kit *k, void (*fn)(struct tc_control_plane *cp, void *arg), void *arg);

/* --- resources --- */

/* Adds or replaces resources (YAML, printf form) and pushes. */
void mesh_kit_put(struct mesh_kit *k, const char *fmt, ...) TC_PRINTF(2, 3);
/* By type ("Cluster") and name. */
void mesh_kit_remove(struct mesh_kit *k, const char *type, const char *name);
/* A listener `name` with these HTTP filters before the router (YAML flow maps, each with a comma behind it) and these
 * routes inline (YAML flow maps, separated by commas). */
void mesh_kit_put_filtered(struct mesh_kit *k, const char *name, const char *filters, const char *routes);
/* The same without filters. */
void mesh_kit_put_routes(struct mesh_kit *k, const char *name, const char *routes);
/* A listener whose one route takes everything to `cluster`, hashing by these policies (a YAML flow list; NULL: none).
 */
void mesh_kit_put_listener(struct mesh_kit *k, const char *name, const char *cluster, const char *hash_policy);
/* An EDS cluster of the name; `more`: further fields as YAML lines (NULL: RING_HASH). */
void mesh_kit_put_cluster(struct mesh_kit *k, const char *name, const char *more);
/* An aggregate cluster of these ("c1, c2"). */
void mesh_kit_put_aggregate(struct mesh_kit *k, const char *name, const char *children);
/* A LOGICAL_DNS cluster of that host and port; policy: its lb_policy ("ROUND_ROBIN"). */
void mesh_kit_put_dns(struct mesh_kit *k, const char *name, const char *host, const char *port, const char *policy);
/* Endpoints: "0/a=1: 0, 1*2; 1/b: 2#key, 3+4": by ';' localities PRIORITY/SUB_ZONE=WEIGHT (weight 1 by default), by
 * ',' endpoints: backend, +BACKEND for a further address, *WEIGHT, then #HASH_KEY or !HEALTH. `more`: further fields,
 * or NULL. */
void mesh_kit_put_endpoints(struct mesh_kit *k, const char *name, const char *localities, const char *more);

/* Requests of the client since the last call of this, one a line: "Cluster version names... [initial n]
 * [NACK text]", of incremental ones what they subscribe to. The caller
 * frees with tc_free. */
char *mesh_kit_requests(struct mesh_kit *k);

/* Takes requests until one contains `text` (at most 30 s). */
void mesh_kit_wait_request(struct mesh_kit *k, const char *text);

/* --- channels --- */

torc_runtime *mesh_kit_runtime(struct mesh_kit *k);
/* The bootstrap for this control plane; borrowed. */
const char *mesh_kit_bootstrap(const struct mesh_kit *k);
/* A channel to "xds:///NAME"; options may be NULL (bootstrap and short backoffs are set in any case). */
torc_channel *mesh_kit_channel(struct mesh_kit *k, const char *name, const struct torc_channel_options *options);

/* One RPC with headers "name: value" by lines (NULL: none). The caller ends the result. */
struct torc_result mesh_kit_call(torc_channel *ch, const char *headers, bool wait_for_ready, int64_t timeout_ms);
/* Calls n times; each must succeed. */
void mesh_kit_calls(torc_channel *ch, const char *headers, size_t n);
/* Calls once, waiting for ready, until backend i answers (at most 30 s). */
void mesh_kit_wait_backend(struct mesh_kit *k, torc_channel *ch, const char *headers, size_t i);
/* Calls until an RPC ends with the code and a text that contains `text` (at most 30 s). */
void mesh_kit_wait_failure(torc_channel *ch, int code, const char *text);
/* Calls n times and asserts how many reach each backend: within 5 % of n of what is expected. */
void mesh_kit_expect_shares(struct mesh_kit *k, torc_channel *ch, const char *headers, size_t n, const double *shares,
                            size_t n_shares);

#endif
