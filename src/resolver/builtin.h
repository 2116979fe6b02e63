/* The resolvers of src/resolver, for its registry. resolver.h says which thread may use them for what. */
#ifndef TC_RESOLVER_BUILTIN_H
#define TC_RESOLVER_BUILTIN_H

#include "resolver/resolver.h"

extern const struct tc_resolver_class tc_resolver_ipv4;
extern const struct tc_resolver_class tc_resolver_ipv6;
extern const struct tc_resolver_class tc_resolver_unix;
extern const struct tc_resolver_class tc_resolver_unix_abstract;
extern const struct tc_resolver_class tc_resolver_dns;
extern const struct tc_resolver_class tc_resolver_vsock;
extern const struct tc_resolver_class tc_resolver_fd;

/* Returns the descriptor that a target of tc_resolver_fd names, -1 if it is malformed. Any thread. */
int tc_resolver_fd_of(const struct tc_target *t);

/* Returns a resolver that reports the endpoints once. Takes over the reference. */
struct tc_resolver *tc_fixed_resolver_new(const struct tc_resolver_env *env, struct tc_endpoints *endpoints);
/* Returns one endpoint for each address, in a list with one reference. The addresses are copied, and stay the
 * caller's. */
struct tc_endpoints *tc_endpoints_of_addrs(const struct tc_addr *addrs, size_t n);

#endif
