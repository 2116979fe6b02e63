/* What passes between the stateful session filter and xds_override_host for one RPC (A55, A61): the addresses that the
 * RPC's cookie names go down with the pick, the addresses of the endpoint that was picked come up. */
#ifndef TC_LB_SESSION_H
#define TC_LB_SESSION_H

#include "base/common.h"
#include "io/addr.h"

struct tc_session {
    /* Of the cookie, in its order; they live as long as the RPC. None: the RPC begins a session. */
    size_t n;
    const struct tc_addr *addrs;
    /* Of the endpoint that the last pick chose, the address in use first: "1.1.1.1:1,2.2.2.2:2". In the RPC's arena.
     * Empty: no pick has come through xds_override_host. */
    struct tc_slice picked;
    /* Why the cookie was not followed; static text. NULL: it was, or there was none. */
    const char *passed_over;
};

#endif
