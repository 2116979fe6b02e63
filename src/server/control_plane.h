/* The embedded control plane: serves sets of resources to ADS clients, state of the world and incremental, on a gRPC
 * server, and pushes what changes. Load reports are server/lrs.h, its view of its clients server/csds.h. */
#ifndef TC_SERVER_CONTROL_PLANE_H
#define TC_SERVER_CONTROL_PLANE_H

#include "server/delta.h"
#include "server/grpc_server.h"

struct tc_control_plane;

/* Called for each request as it comes in (torc serve-xds --log, tests). */
typedef void (*tc_control_plane_request_fn)(void *arg, const struct tc_ads_request *request);

/* Registers its methods with the server, which must outlive it. */
struct tc_control_plane *tc_control_plane_new(struct tc_server *server);
/* After tc_server_free. */
void tc_control_plane_free(struct tc_control_plane *cp);
void tc_control_plane_observe(struct tc_control_plane *cp, tc_control_plane_request_fn fn, void *arg);

/* Replaces what a node is served (NULL: every node without a set of its own), and pushes the difference. Takes over the
 * set; gives it its versions. */
void tc_control_plane_set(struct tc_control_plane *cp, const char *node_id, struct tc_resource_set *set);
/* Adds or replaces the resources of a YAML or JSON text for every node, and pushes. TORC_EPARSE with a reason in *why
 * (tc_free); nothing changes then. */
int tc_control_plane_put(struct tc_control_plane *cp, const char *text, char **why);
/* Removes one resource for every node, and pushes. TORC_ENOTFOUND. */
int tc_control_plane_remove(struct tc_control_plane *cp, const char *type_url, const char *name);

/* Streams open now. */
size_t tc_control_plane_streams(const struct tc_control_plane *cp);
/* Sends a response of the caller's making on every open stream of the state of the world, whatever was asked:
 * `resources` are serialised messages. */
void tc_control_plane_send(struct tc_control_plane *cp, const char *type_url, const char *version,
                           const struct tc_slice *resources, size_t n);
/* The same on every open incremental stream. */
void tc_control_plane_send_delta(struct tc_control_plane *cp, const char *type_url, const char *system_version,
                                 const struct tc_delta_resource *resources, size_t n, const struct tc_slice *removed,
                                 size_t n_removed);

struct tc_control_plane_view {
    void (*on_client)(void *arg, struct tc_slice node); /* a Node message, serialised */
    tc_served_fn on_served;                             /* of the client that was told of last */
};

/* Tells of each client that has an open stream, and of what it was served. */
void tc_control_plane_view(const struct tc_control_plane *cp, const struct tc_control_plane_view *view, void *arg);
/* Ends every open stream with a status. */
void tc_control_plane_end_streams(struct tc_control_plane *cp, int code, const char *text);
/* While mute, requests are taken in and not answered; false answers what is due. */
void tc_control_plane_set_mute(struct tc_control_plane *cp, bool mute);

#endif
