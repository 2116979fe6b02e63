/* What passes between the stateful session filter and xds_override_host for one RPC (A55, A61): the addresses that the
 * RPC's cookie names go down with the pick, the addresses of the endpoint that was picked come up. */
#ifndef TC_LB_SESSION_H
#define TC_LB_SESSION_H

#include "base/common.h"
#include "io/addr.h"

/* Everything lives as long as the RPC. */
struct tc_session {
    bool has_cookie;        /* the RPC has brought one */
    struct tc_slice cookie; /* what it says, out of its base64; empty: nothing that can be read */
    /* Addresses to follow, in the cookie's order. None: the RPC begins a session. */
    size_t n;
    const struct tc_addr *addrs;
    /* Of the endpoint that the last pick chose, the address in use first: "1.1.1.1:1,2.2.2.2:2". Empty: no pick has
     * come through xds_override_host. */
    struct tc_slice picked;
    /* Why the cookie is not followed, or was not by the last pick; static text. NULL: it was, or there is none. */
    const char *passed_over;
};

#endif
