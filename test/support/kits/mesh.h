/* A mesh in one process, over real sockets: the embedded control plane and echo backends on a thread of their own, and
 * channels to "xds:///..." with a bootstrap for that control plane. A failure in the kit fails the test. The functions
 * are for the test's threads, unless they say otherwise. */
#ifndef TC_SUPPORT_KITS_MESH_H
#define TC_SUPPORT_KITS_MESH_H

#include <torc/torc.h>

#include "base/buf.h"
#include "controlplane/control_plane.h"
#include "controlplane/lrs.h"
#include "tls/tls.h"

#define KIT_MESH_MAX 8

struct kit_mesh;

/* Makes a control plane without resources, and n backends (KIT_MESH_MAX at most) "b0", "b1", ..., all listening. */
struct kit_mesh *kit_mesh_new(size_t n);
/* Makes a mesh whose backends delay each answer. */
struct kit_mesh *kit_mesh_new_slow(size_t n, uint64_t delay_ms);
/* Makes a mesh whose control plane uses these TLS options (borrowed for the call); their certificate should be for
 * 127.0.0.1. The kit's own bootstrap is for plaintext: the test brings another. */
struct kit_mesh *kit_mesh_new_secure(size_t n, const struct tc_tls_opts *control_plane);
/* Frees the mesh and its runtime. Channels of the runtime that are left end, and may be freed later. */
void kit_mesh_free(struct kit_mesh *k);

/* --- servers --- */

/* Return "127.0.0.1:PORT", or "0.0.0.0:PORT" after kit_mesh_spread. Valid until that server starts again. */
const char *kit_mesh_address(const struct kit_mesh *k, size_t i);
const char *kit_mesh_control_plane(const struct kit_mesh *k);
/* kit_mesh_stop and kit_mesh_stop_control_plane close the listening socket, and the connections without waiting for
 * their calls. Unlike a crash, this sends a last GOAWAY. The connections may close just after the function has
 * returned. kit_mesh_start closes both, too, and listens on the same port again. kit_mesh_start_control_plane only
 * listens again: the control plane, which has kept its resources, must be stopped. */
void kit_mesh_stop(struct kit_mesh *k, size_t i);
void kit_mesh_start(struct kit_mesh *k, size_t i);
void kit_mesh_stop_control_plane(struct kit_mesh *k);
void kit_mesh_start_control_plane(struct kit_mesh *k);
/* Makes the backend send GOAWAY on all connections and finish their calls. The backend goes on listening. */
void kit_mesh_goaway(struct kit_mesh *k, size_t i);
/* Starts the backend again as kit_mesh_start does, on 0.0.0.0 and its port: it can then be reached on every loopback
 * address, 127.0.0.1 to 127.255.255.254. */
void kit_mesh_spread(struct kit_mesh *k, size_t i);
/* Starts backend i again on its port, behind TLS (options borrowed for the call; NULL: plaintext). Its counts start
 * from 0; it has no delay and fails no calls. */
void kit_mesh_secure(struct kit_mesh *k, size_t i, const struct tc_tls_opts *tls);
/* Starts backend i again on its port, failing with this code every call that it would echo (0: echoing). Its counts
 * start from 0; it has no delay and no TLS. */
void kit_mesh_fail(struct kit_mesh *k, size_t i, int code);
/* Returns the number of open connections to backend i. */
uint64_t kit_mesh_open_connections(struct kit_mesh *k, size_t i);
/* Replaces the backend by a socket on its port: the system accepts about 16 connections, and nothing is answered.
 * kit_mesh_stop closes the socket, and so does each function that starts the backend again. */
void kit_mesh_hold(struct kit_mesh *k, size_t i);
/* Returns the number of requests to backend i since the last kit_mesh_take for it, or since it was made. */
uint64_t kit_mesh_take(struct kit_mesh *k, size_t i);
/* Return the number of requests, and of connections, to backend i since it was made; kit_mesh_secure and kit_mesh_fail
 * make it again. */
uint64_t kit_mesh_handled(struct kit_mesh *k, size_t i);
uint64_t kit_mesh_connections(struct kit_mesh *k, size_t i);
/* Returns the number of open connections to the control plane. */
uint64_t kit_mesh_open_control_connections(struct kit_mesh *k);
/* Returns the LRS server beside the control plane; use it on the servers' thread. */
struct tc_lrs *kit_mesh_lrs(struct kit_mesh *k);
/* Runs fn on the servers' thread and waits until it returns. fn must not call a function of the kit that
 * needs the servers' thread: the call would wait for ever. */
void kit_mesh_do(struct kit_mesh *k, void (*fn)(struct tc_control_plane *cp, void *arg), void *arg);

/* --- resources --- */

/* Adds or replaces resources (YAML, printf form) and pushes them. Fails the test if the text is invalid. */
void kit_mesh_put(struct kit_mesh *k, const char *fmt, ...) TC_PRINTF(2, 3);
/* Removes a resource. type: "Listener", "RouteConfiguration", "Cluster" or "ClusterLoadAssignment". Fails the test if
 * there is no such resource. */
void kit_mesh_remove(struct kit_mesh *k, const char *type, const char *name);
/* Puts a listener `name` with these HTTP filters before the router (YAML flow maps, each followed by a comma) and these
 * inline routes (YAML flow maps, separated by commas). */
void kit_mesh_put_filtered(struct kit_mesh *k, const char *name, const char *filters, const char *routes);
/* Puts a listener with these inline routes, without filters. */
void kit_mesh_put_routes(struct kit_mesh *k, const char *name, const char *routes);
/* Puts a listener whose one route sends everything to `cluster`, with these hash policies (a YAML flow list; NULL:
 * none). */
void kit_mesh_put_listener(struct kit_mesh *k, const char *name, const char *cluster, const char *hash_policy);
/* Puts an EDS cluster. `more`: further fields as YAML lines, from the second on indented by two spaces (NULL:
 * RING_HASH). */
void kit_mesh_put_cluster(struct kit_mesh *k, const char *name, const char *more);
/* Puts an aggregate cluster of these ("c1, c2"). */
void kit_mesh_put_aggregate(struct kit_mesh *k, const char *name, const char *children);
/* Puts a LOGICAL_DNS cluster of that host and port. policy: its lb_policy ("ROUND_ROBIN"). */
void kit_mesh_put_dns(struct kit_mesh *k, const char *name, const char *host, const char *port, const char *policy);
/* Puts the endpoints of a cluster: "0/a=1: 0, 1*2; 1/b: 2#key, 3+4". Localities, separated by ';', are
 * PRIORITY/SUB_ZONE=WEIGHT (weight 1 by default). Endpoints, separated by ',', are a backend's number, +BACKEND for an
 * additional address, *WEIGHT, then #HASH_KEY or !HEALTH. A backend has the address of kit_mesh_address now. `more`:
 * further fields as kit_mesh_put_cluster has them, or NULL. */
void kit_mesh_put_endpoints(struct kit_mesh *k, const char *name, const char *localities, const char *more);

/* Returns the clients' ADS requests that were not taken before, one a line: "Cluster VERSION NAME... [initial N] [NACK
 * CODE TEXT]". In an incremental request VERSION is empty, and NAME... are the new subscriptions. The caller frees the
 * text with tc_free. */
char *kit_mesh_requests(struct kit_mesh *k);

/* Takes requests until their text, in the form of kit_mesh_requests, contains `text`, for at most 60 s. A request from
 * before the last kit_mesh_put counts too; kit_mesh_wait_accepted waits until a client has accepted a content. */
void kit_mesh_wait_request(struct kit_mesh *k, const char *text);
/* Waits as kit_mesh_wait_request does. Returns the text of the requests taken; the caller frees it with tc_free. */
char *kit_mesh_requests_until(struct kit_mesh *k, const char *text);
/* Waits until a client accepted a version of the resource `name` whose serialised message contains `text`, at most
 * 60 s. type: the end of the type URL, such as "Cluster". */
void kit_mesh_wait_accepted(struct kit_mesh *k, const char *type, const char *name, const char *text);

/* --- channels --- */

/* Returns the runtime of the kit's channels, which has its own thread; borrowed until kit_mesh_free. */
torc_runtime *kit_mesh_runtime(struct kit_mesh *k);
/* Returns the bootstrap for this control plane, JSON; borrowed until kit_mesh_free. */
const char *kit_mesh_bootstrap(const struct kit_mesh *k);
/* Makes a channel to "xds:///NAME"; the caller frees it. options may be NULL: insecure credentials. Backoffs are always
 * short (50 to 200 ms); the bootstrap and a resource timeout of 60 s are set where the options have none. */
torc_channel *kit_mesh_channel(struct kit_mesh *k, const char *name, const struct torc_channel_options *options);

/* Makes one RPC with headers "name: value" by lines (NULL: none). The caller frees the result with torc_result_free. */
torc_result *kit_mesh_call(torc_channel *ch, const char *headers, bool wait_for_ready, int64_t timeout_ms);
/* Makes n calls, one after another; each must succeed within 60 s. */
void kit_mesh_calls(torc_channel *ch, const char *headers, size_t n);
/* Calls, waiting for ready, until backend i answers: at most 60 s. */
void kit_mesh_wait_backend(struct kit_mesh *k, torc_channel *ch, const char *headers, size_t i);
/* Calls until an RPC fails with the code and a message that contains `text`: at most 60 s. */
void kit_mesh_wait_failure(torc_channel *ch, int code, const char *text);
/* Calls until each backend with a share above 0 has answered (at most 60 s), then n times. Asserts for each of the
 * first n_shares backends (at most all) that its part of the n calls differs from its share by at most 0.06 (at least
 * seven standard deviations for n = 3500). A share of 0 or 1 must be exact, and a backend whose share is 0 gets no call
 * at all. */
void kit_mesh_expect_shares(struct kit_mesh *k, torc_channel *ch, const char *headers, size_t n, const double *shares,
                            size_t n_shares);

/* --- a mesh with one channel --- */

struct kit_mesh_world {
    struct kit_mesh *k;
    torc_channel *ch; /* to the listener "svc"; freed by kit_mesh_world_close */
};

/* Makes a mesh with that many backends. Puts a cluster "c" with these endpoints and further fields (`cluster`: the
 * `more` of kit_mesh_put_cluster) and a listener "svc" to "c" with these hash policies (NULL: none). Opens a channel to
 * "svc". */
struct kit_mesh_world kit_mesh_world_open(size_t backends, const char *endpoints, const char *cluster,
                                          const char *hash_policies);
/* Makes a mesh of round_robin clusters "c0", "c1", ... with one backend each, and opens a channel to the listener
 * "svc", which the test puts. */
struct kit_mesh_world kit_mesh_world_open_clusters(size_t clusters);
/* Frees the channel, then the mesh. */
void kit_mesh_world_close(struct kit_mesh_world *w);

#endif
