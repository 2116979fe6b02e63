/* The exchange between the stateful session filter and xds_override_host for one RPC (A55, A61). The filter passes the
 * addresses of the RPC's cookie to the pick; the pick returns the addresses of the endpoint that it chose. Loop thread
 * only. */
#ifndef TC_LB_SESSION_AFFINITY_H
#define TC_LB_SESSION_AFFINITY_H

#include "base/common.h"
#include "io/addr.h"

/* The most addresses that a cookie may name. A LOGICAL_DNS endpoint has all addresses of its name (A61); a cookie with
 * all of them could be too long for servers. */
enum { TC_SESSION_ADDRS_MAX = 64 };

/* All memory lives as long as the RPC. Each attempt of a hedged RPC writes to a copy of its own; the copy of the
 * attempt whose response counts replaces the RPC's before the filter reads it. */
struct tc_session {
    bool has_cookie;
    struct tc_slice cookie; /* its value, base64 decoded; empty: none, or it cannot be decoded, or it is too long */
    /* The addresses to follow, in the cookie's order. n 0: there is no cookie that can be followed. */
    size_t n;
    const struct tc_addr *addrs;
    /* The IP addresses of the endpoint that the last pick chose, TC_SESSION_ADDRS_MAX at most, the one in use first:
     * "1.1.1.1:1,2.2.2.2:2". Empty: no pick has passed xds_override_host, or the last one chose no endpoint, or an
     * endpoint that xds_override_host does not know, or one that has no IP address. */
    struct tc_slice picked;
    /* Why the filter does not follow the cookie, or why the last pick passed over an address of the cookie (the first
     * reason). Static text. NULL: neither. A pick that follows the cookie to a READY endpoint sets NULL. */
    const char *passed_over;
};

#endif
