/* The embedded control plane: serves sets of resources to ADS clients, state of the world and incremental, on a gRPC
 * server, and pushes changes. controlplane/lrs.h takes load reports; controlplane/csds.h shows the clients' states.
 * Owned by the caller. Called on the thread of the server's loop. */
#ifndef TC_CONTROLPLANE_CONTROL_PLANE_H
#define TC_CONTROLPLANE_CONTROL_PLANE_H

#include "controlplane/delta.h"
#include "server/call.h"
#include "server/server.h"

struct tc_control_plane;

/* Called with each request that names a type, before it is answered (torc serve-xds --log, tests). */
typedef void (*tc_control_plane_request_fn)(void *arg, const struct tc_ads_request *request);

/* Registers the methods of ADS with the server. The control plane must live as long as the server takes calls. */
struct tc_control_plane *tc_control_plane_new(struct tc_server *server);
/* Call after tc_server_free. NULL is allowed. */
void tc_control_plane_free(struct tc_control_plane *cp);
/* Sets the one observer of requests; NULL: none. */
void tc_control_plane_observe(struct tc_control_plane *cp, tc_control_plane_request_fn fn, void *arg);

/* Replaces the resources of a node (NULL: of every node without a set of its own), and pushes to every stream
 * (tc_ads_push, tc_delta_push). Copies node_id, which must not be "". Takes over the set, and sets its versions
 * (tc_resource_set_version). */
void tc_control_plane_set(struct tc_control_plane *cp, const char *node_id, struct tc_resource_set *set);
/* Adds or replaces the resources of a YAML or JSON text for every node without a set of its own, and pushes. Returns 0;
 * or TORC_EPARSE with a reason in *why (the caller frees it with tc_free), and nothing changes. */
int tc_control_plane_put(struct tc_control_plane *cp, const char *text, char **why);
/* Removes one resource for every node without a set of its own, and pushes. Returns 0 or TORC_ENOTFOUND. */
int tc_control_plane_remove(struct tc_control_plane *cp, const char *type_url, const char *name);

/* Returns how many streams there are, with those that were ended and have not closed yet. */
size_t tc_control_plane_streams(const struct tc_control_plane *cp);
/* Sends a response that the caller made up on every open state-of-the-world stream, even one without a subscription to
 * the type: `resources` are serialised messages. */
void tc_control_plane_send(struct tc_control_plane *cp, const char *type_url, const char *version,
                           const struct tc_slice *resources, size_t n);

/* Neither function may be NULL. */
struct tc_control_plane_view {
    void (*on_client)(void *arg, struct tc_slice node); /* a Node message, serialised; borrowed */
    tc_served_fn on_served;                             /* of the client of the last on_client */
};

/* Calls on_client for each open stream whose client has sent its node, then on_served for each resource that the client
 * asked for by name or has by a wildcard. A client with several streams is shown several times. */
void tc_control_plane_view(const struct tc_control_plane *cp, const struct tc_control_plane_view *view, void *arg);
/* Ends every open stream with a status. */
void tc_control_plane_end_streams(struct tc_control_plane *cp, int code, const char *text);
/* Returns how many streams were opened so far. */
uint64_t tc_control_plane_opened(const struct tc_control_plane *cp);
/* With `one`, keeps one stream only, as istio-agent does for a pod: a new stream ends the others with OK. */
void tc_control_plane_set_one_stream(struct tc_control_plane *cp, bool one);

#endif
