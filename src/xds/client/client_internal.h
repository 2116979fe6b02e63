/* The base of every kind of xDS client, and the operations in which the kinds differ. A kind embeds struct
 * tc_xds_client first. Loop thread only. */
#ifndef TC_XDS_CLIENT_CLIENT_INTERNAL_H
#define TC_XDS_CLIENT_CLIENT_INTERNAL_H

#include "base/log.h"
#include "xds/client/client.h"

#define TC_XDS_LOG(level, ...) TC_LOG(TC_LOG_XDS, TORC_LOG_##level, __VA_ARGS__)

/* The kinds: local_client.c asks servers, forwarding_client.c chooses between two clients of its loop, remote_client.c
 * asks the client of another loop. Each operation but `free` does the work of tc_xds_client_NAME of client.h. */
struct tc_xds_client_ops {
    void (*watch)(struct tc_xds_client *c, const struct tc_xds_resource_type *type, struct tc_slice name,
                  struct tc_xds_watcher *watcher);
    /* Called only for a watcher that watches. */
    void (*unwatch)(struct tc_xds_client *c, struct tc_xds_watcher *watcher);
    void (*reset_backoff)(struct tc_xds_client *c);
    /* Called with a server of the client's bootstrap; never returns NULL. */
    struct tc_load_cluster *(*load)(struct tc_xds_client *c, const struct tc_xds_server *server,
                                    struct tc_rstr *cluster, struct tc_rstr *service);
    /* NULL: the kind has no cache of its own. */
    void (*dump)(const struct tc_xds_client *c, tc_xds_dump_fn fn, void *arg);
    /* Called when the last reference is dropped. Ends the kind's work, drops the client's reference to the bootstrap,
     * and frees the client. */
    void (*free)(struct tc_xds_client *c);
};

struct tc_xds_client {
    const struct tc_xds_client_ops *ops;
    struct tc_lref refs;
    struct tc_loop *loop;
    struct tc_xds_bootstrap *bootstrap;
};

/* Initialises the base with one reference, the caller's. Takes a reference to the bootstrap. */
void tc_xds_client_init(struct tc_xds_client *c, const struct tc_xds_client_ops *ops, struct tc_loop *loop,
                        struct tc_xds_bootstrap *bootstrap);
/* Returns the id of the bootstrap's Node, for texts; borrowed. */
const char *tc_xds_node_id(const struct tc_xds_client *c);

#endif
