/* The base of every kind of xDS client, and the operations in which the kinds differ. A kind embeds struct
 * tc_xds_client first.
 *
 * The functions of client.h count references and call the operation of the kind, on the loop's thread. They call
 * `unwatch` only for a watcher that watches, and `load` only with a server of the bootstrap. */
#ifndef TC_XDS_CLIENT_CLIENT_INTERNAL_H
#define TC_XDS_CLIENT_CLIENT_INTERNAL_H

#include "base/log.h"
#include "xds/client/client.h"

#define TC_XDS_LOG(level, ...) TC_LOG(TC_LOG_XDS, TORC_LOG_##level, __VA_ARGS__)

/* The kinds: local_client.c asks servers, forwarding_client.c chooses between two clients of its loop, remote_client.c
 * asks the client of another loop. Each operation is the function tc_xds_client_NAME of client.h. */
struct tc_xds_client_ops {
    void (*watch)(struct tc_xds_client *c, const struct tc_xds_resource_type *type, struct tc_slice name,
                  struct tc_xds_watcher *watcher);
    /* `watcher` is watching. No callback follows. */
    void (*unwatch)(struct tc_xds_client *c, struct tc_xds_watcher *watcher);
    void (*reset_backoff)(struct tc_xds_client *c);
    /* Returns the cluster's counts: a reference and a user. `server` is the bootstrap's. */
    struct tc_load_cluster *(*load)(struct tc_xds_client *c, const struct tc_xds_server *server,
                                    struct tc_rstr *cluster, struct tc_rstr *service);
    void (*dump)(const struct tc_xds_client *c, tc_xds_dump_fn fn, void *arg);
    /* Ends the kind's work and frees the client, and the reference to the bootstrap. */
    void (*free)(struct tc_xds_client *c);
};

struct tc_xds_client {
    const struct tc_xds_client_ops *ops;
    struct tc_lref refs;
    struct tc_loop *loop;
    struct tc_xds_bootstrap *bootstrap;
};

/* Gives the caller the first reference. */
void tc_xds_client_init(struct tc_xds_client *c, const struct tc_xds_client_ops *ops, struct tc_loop *loop,
                        struct tc_xds_bootstrap *bootstrap);
/* Returns the id that the bootstrap's Node has, for texts. */
const char *tc_xds_node_id(const struct tc_xds_client *c);

#endif
