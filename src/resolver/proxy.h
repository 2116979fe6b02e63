/* Channels through an HTTP proxy, as the environment has it (A1, case 1): the proxy's name is resolved in place of the
 * target's, and connections ask it for the target by HTTP CONNECT. */
#ifndef TC_RESOLVER_PROXY_H
#define TC_RESOLVER_PROXY_H

#include "resolver/resolver.h"

/* A resolver class over the target's own. Zero-initialised until tc_proxy_class_init said yes. */
struct tc_proxy_class {
    struct tc_resolver_class base;
    const struct tc_resolver_class *inner;
    struct tc_target proxy;        /* "dns:///host:port" */
    struct tc_rstr *authorization; /* "Basic ..."; NULL: none */
};

/* Whether the target is reached by a proxy; *p is then ready. `option`: the channel's, a URL, "" for none, or NULL for
 * the environment: grpc_proxy, https_proxy, http_proxy in this order, the first that is set; no_grpc_proxy, else
 * no_proxy, exempts hosts by suffix and IP addresses by CIDR block ("*": all), and so does being of this machine
 * (localhost, 127.0.0.0/8, ::1). Only targets of dns, ipv4 and ipv6 are, each with one address. A value that is no
 * http URL is warned of and means none. */
bool tc_proxy_class_init(struct tc_proxy_class *p, const struct tc_target *target,
                         const struct tc_resolver_class *inner, const char *option);
void tc_proxy_class_fini(struct tc_proxy_class *p);

/* The parts of "http://user:password@host:port". `authorization` is appended the header's value, and stays empty
 * without user. TORC_EPARSE. */
int tc_proxy_url_parse(const char *url, struct tc_buf *host_port, struct tc_buf *authorization);
/* Whether an entry of the comma-separated list exempts the host (a name or an IP literal, without port). */
bool tc_proxy_exempt(struct tc_slice list, struct tc_slice host);

#endif
