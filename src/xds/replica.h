/* A client on one loop that watches through the client of another loop, its origin: same functions (xds/client.h), one
 * ADS stream. Between them go messages (io/mailbox.h) with immutable resources. */
#ifndef TC_XDS_REPLICA_H
#define TC_XDS_REPLICA_H

#include "io/mailbox.h"
#include "xds/client.h"

struct tc_xds_replica_opts {
    struct tc_mailbox *here;  /* of the replica's loop; borrowed for the call, as is the other */
    struct tc_mailbox *there; /* of the origin's loop */
    /* On the origin's loop, once and first: the client to watch through, which lives until `close`. */
    struct tc_xds_client *(*open)(void *arg);
    /* On the origin's loop, once and last; gives up `arg`. */
    void (*close)(void *arg);
    void *arg;
};

/* The origin's loop and its box must last until `close`; the replica's may end at any time. Does-not-exist timers,
 * fallback, the cache and load reports are the origin's; a dump of the replica shows nothing. A replica holds back no
 * response of the server's (tokens are NULL): its watchers are told what holds when their loop turns, which may leave
 * out what held in between. */
struct tc_xds_client *tc_xds_client_new_replica(struct tc_loop *loop, struct tc_xds_bootstrap *bootstrap,
                                                const struct tc_xds_replica_opts *opts);

#endif
