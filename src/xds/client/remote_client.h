/* A remote client: a client on one loop that watches through the client of another loop, its origin. A remote client
 * has the functions of xds/client/client.h, for the thread of its own loop, and no ADS stream. Messages (io/mailbox.h)
 * with immutable resources go between the two loops. */
#ifndef TC_XDS_CLIENT_REMOTE_CLIENT_H
#define TC_XDS_CLIENT_REMOTE_CLIENT_H

#include "io/mailbox.h"
#include "xds/client/client.h"

struct tc_xds_remote_opts {
    struct tc_mailbox *here;  /* of the remote client's loop; borrowed for the call */
    struct tc_mailbox *there; /* of the origin's loop; borrowed for the call */
    /* Called once on the origin's loop, before the origin is used. Returns the origin, never NULL, borrowed until
     * `close`. Not called if `there` is closed before. */
    struct tc_xds_client *(*open)(void *arg);
    /* Called once, last: on the origin's loop, or on the thread that drops the mail if `there` is closed. Gives up
     * `arg`. */
    void (*close)(void *arg);
    void *arg;
};

/* Returns a client with one reference. Takes a reference of the bootstrap. `here` may be closed at any time: watches
 * get nothing more from then on. `there` may be closed only while the origin has no watch and no loads of the remote
 * client, as before `open` and after `close`: watches and loads can end only on the origin's loop. Does-not-exist
 * timers, fallback, the cache and load reports are the origin's; a dump of the remote client shows nothing. A remote
 * client holds back no response of the server (tokens are NULL): its watchers get the newest state when their loop
 * turns, and may miss states in between. */
struct tc_xds_client *tc_xds_remote_client_new(struct tc_loop *loop, struct tc_xds_bootstrap *bootstrap,
                                               const struct tc_xds_remote_opts *opts);

#endif
