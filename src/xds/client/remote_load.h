/* The loads of a remote client: counted on its own loop, reported by its origin. The functions are for the thread of
 * the remote client's loop. */
#ifndef TC_XDS_CLIENT_REMOTE_LOAD_H
#define TC_XDS_CLIENT_REMOTE_LOAD_H

#include "io/mailbox.h"
#include "xds/client/client.h"

struct tc_xds_remote_loads {
    struct tc_loop *loop;
    struct tc_mailbox *here, *there;     /* of this loop and of the origin's; borrowed */
    struct tc_xds_client *const *origin; /* where the origin's loop finds the origin; outlives the mail to `there` */
    struct tc_link shares;               /* of struct load_share, one for each server */
};

/* The boxes are borrowed until tc_xds_remote_loads_end. */
void tc_xds_remote_loads_init(struct tc_xds_remote_loads *loads, struct tc_loop *loop, struct tc_mailbox *here,
                              struct tc_mailbox *there, struct tc_xds_client *const *origin);
/* Returns the loads of a cluster for tc_xds_client_load: one more reference and one more user. `service` may be NULL.
 * Never NULL: if the origin does not know the server, nobody reports the counts. */
struct tc_load_cluster *tc_xds_remote_load(struct tc_xds_remote_loads *loads, struct tc_rstr *server_key,
                                           struct tc_rstr *cluster, struct tc_rstr *service);
/* Sends the counts so far to the origin, and frees the stores. Counts that users add later are lost. */
void tc_xds_remote_loads_end(struct tc_xds_remote_loads *loads);

#endif
