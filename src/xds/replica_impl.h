/* Between client.c, replica.c and replica_load.c. */
#ifndef TC_XDS_REPLICA_IMPL_H
#define TC_XDS_REPLICA_IMPL_H

#include "xds/client_impl.h"
#include "xds/replica.h"

/* The origin's end of a replica; touched on the origin's loop alone. */
struct tc_xds_origin {
    struct tc_xds_replica_opts opts;
    struct tc_xds_client *client;
    struct tc_mail open, close;
};

/* What makes a client a replica. */
struct tc_xds_replica {
    struct tc_mailbox *here, *there;
    struct tc_xds_origin *origin;
    struct tc_link watches; /* that are not stopped */
    struct tc_link loads;   /* one for each server */
};

/* replica.c; what client.c does with a replica */
void tc_xds_replica_watch(struct tc_xds_client *c, const struct tc_xds_resource_type *type, struct tc_slice name,
                          struct tc_xds_watcher *watcher);
void tc_xds_replica_unwatch(struct tc_xds_client *c, struct tc_xds_watcher *watcher);
void tc_xds_replica_reset_backoff(struct tc_xds_client *c);
void tc_xds_replica_end(struct tc_xds_replica *r);

/* replica_load.c */
struct tc_load_cluster *tc_xds_replica_load(struct tc_xds_client *c, struct tc_rstr *server_key,
                                            struct tc_rstr *cluster, struct tc_rstr *service);
/* What was counted goes to the origin, and is counted there no more. */
void tc_xds_replica_loads_end(struct tc_xds_replica *r);

#endif
