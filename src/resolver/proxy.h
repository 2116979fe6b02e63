/* Channels through an HTTP proxy (A1, case 1): the proxy's name is resolved instead of the target's, and connections
 * ask the proxy for the target with HTTP CONNECT. The functions and the class's `authority` may be called on any
 * thread, all else on the loop's thread only. */
#ifndef TC_RESOLVER_PROXY_H
#define TC_RESOLVER_PROXY_H

#include "resolver/resolver.h"

/* A tc_resolver_class around the target's own, owned by the channel. The channel zeroes it first; it stays zeroed
 * unless tc_proxy_class_init returns true. */
struct tc_proxy_class {
    struct tc_resolver_class base;
    const struct tc_resolver_class *inner; /* the target's own, borrowed; NULL: the class is zeroed */
    struct tc_target proxy;                /* "dns:///host[:port]" */
    struct tc_rstr *authorization;         /* "Basic ..."; NULL: none */
};

/* Returns true, and fills in *p, if the target is reached through a proxy. Only dns targets, and ipv4 and ipv6 targets
 * of one address, can be. `option` is the channel's: the proxy's URL, "" for no proxy, or NULL for the environment's:
 * the first of grpc_proxy, https_proxy and http_proxy that is set, even to "". If the value is not the URL of an HTTP
 * proxy, logs a warning, which does not show the value, and returns false. `target` and `option` are borrowed for the
 * call; `inner` must outlive the class.
 *
 * Exempt from the environment's proxy are localhost, 127.0.0.0/8, ::1, and the hosts that no_grpc_proxy lists, or
 * no_proxy if no_grpc_proxy is not set (tc_proxy_exempt). The option's proxy has no exemptions. */
bool tc_proxy_class_init(struct tc_proxy_class *p, const struct tc_target *target,
                         const struct tc_resolver_class *inner, const char *option);
/* Frees what the class holds; does nothing if the class is zeroed. */
void tc_proxy_class_fini(struct tc_proxy_class *p);

/* Splits "[http://][user:password@]host[:port]"; "/", "?" or "#" and what follows are ignored. Appends host and port to
 * `host_port`, and the value of Proxy-Authorization to `authorization` (nothing if no user stands before an "@").
 * Returns 0; or TORC_EPARSE, with nothing appended, if the text is malformed, has another scheme, or has more than 512
 * bytes of host and port. */
int tc_proxy_url_parse(const char *url, struct tc_buf *host_port, struct tc_buf *authorization);
/* Returns whether an entry of the comma-separated list exempts the host (a name or an IP literal, without port): "*", a
 * suffix of the host in any case, or a CIDR block or IP address that has the host's address. */
bool tc_proxy_exempt(struct tc_slice list, struct tc_slice host);

#endif
