/* The exchange between the stateful session filter and xds_override_host for one RPC (A55, A61): the addresses in the
 * RPC's cookie go down with the pick, the addresses of the picked endpoint come back up. Loop thread only. */
#ifndef TC_LB_SESSION_AFFINITY_H
#define TC_LB_SESSION_AFFINITY_H

#include "base/common.h"
#include "io/addr.h"

/* The most addresses that a cookie may name. LOGICAL_DNS has all addresses of a name in one endpoint (A61), and all of
 * these would make a cookie that servers refuse. */
enum { TC_SESSION_ADDRS_MAX = 64 };

/* All memory lives as long as the RPC. Each attempt of a hedged RPC has a copy; the filter reads the copy of the
 * attempt whose response counts. */
struct tc_session {
    bool has_cookie;
    struct tc_slice cookie; /* its value, base64 decoded; empty: it cannot be decoded, or is too long */
    /* The addresses to follow, in the cookie's order. n 0: the RPC begins a session. */
    size_t n;
    const struct tc_addr *addrs;
    /* The addresses of the endpoint that the last pick chose, the one in use first: "1.1.1.1:1,2.2.2.2:2";
     * TC_SESSION_ADDRS_MAX of them at most. Empty: the last pick that passed xds_override_host chose no endpoint that
     * it knows, or none has passed it. */
    struct tc_slice picked;
    /* Why the last pick did not follow the cookie, or the filter could not read it; static text. A pick that waits for
     * one address of the cookie may have passed over another. NULL: the cookie was followed, or there is none. */
    const char *passed_over;
};

#endif
