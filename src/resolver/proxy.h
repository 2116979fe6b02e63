/* Channels through an HTTP proxy (A1, case 1): the proxy's name is resolved instead of the target's, and connections
 * ask the proxy for the target with HTTP CONNECT. The functions and the class's `authority`: any thread; its resolvers:
 * loop thread only. */
#ifndef TC_RESOLVER_PROXY_H
#define TC_RESOLVER_PROXY_H

#include "resolver/resolver.h"

/* A tc_resolver_class around the target's own, owned by the channel. The channel zeroes it first; it stays zeroed
 * unless tc_proxy_class_init returns true. */
struct tc_proxy_class {
    struct tc_resolver_class base;
    const struct tc_resolver_class *inner;
    struct tc_target proxy;        /* "dns:///host[:port]" */
    struct tc_rstr *authorization; /* "Basic ..."; NULL: none */
};

/* Returns whether the target is reached through a proxy, and makes *p ready then. `option` is the channel's: a URL, ""
 * for none, or NULL for the environment: the first of grpc_proxy, https_proxy and http_proxy that is set, even if it is
 * empty. The environment also exempts hosts from its proxy: no_grpc_proxy, or else no_proxy, lists suffixes of hosts
 * and CIDR blocks of IP addresses ("*": all), and hosts of this machine (localhost, 127.0.0.0/8, ::1) are always
 * exempt. The option's proxy has no exemptions. Targets of other schemes than dns, ipv4 and ipv6, or with several
 * addresses, do not go through a proxy. A value that is not an http URL is warned of and ignored. */
bool tc_proxy_class_init(struct tc_proxy_class *p, const struct tc_target *target,
                         const struct tc_resolver_class *inner, const char *option);
/* Frees what the class holds; does nothing if the class is zeroed. */
void tc_proxy_class_fini(struct tc_proxy_class *p);

/* Splits "[http://][user:password@]host[:port]"; "/", "?" or "#" and what follows are ignored. Appends the value of
 * Proxy-Authorization to `authorization`, or nothing without a user. Returns 0; or TORC_EPARSE, also for other schemes
 * than http. */
int tc_proxy_url_parse(const char *url, struct tc_buf *host_port, struct tc_buf *authorization);
/* Returns whether an entry of the comma-separated list exempts the host (a name or an IP literal, without port). */
bool tc_proxy_exempt(struct tc_slice list, struct tc_slice host);

#endif
