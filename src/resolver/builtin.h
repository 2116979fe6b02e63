/* The resolvers that Torc itself has, but for xds, and what they share. resolver.h says which thread may call which
 * function of a class. */
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

/* Returns the descriptor that a target "fd:N" names, or -1 if the target is malformed. Any thread. */
int tc_resolver_fd_of(const struct tc_target *t);

/* Returns a resolver that reports the endpoints once. Takes over the reference to the endpoints; `env` must outlive the
 * resolver. */
struct tc_resolver *tc_fixed_resolver_new(const struct tc_resolver_env *env, struct tc_endpoints *endpoints);
/* Returns a list of one endpoint for each address, with one reference. The addresses stay the caller's. `n` may be
 * 0. */
struct tc_endpoints *tc_endpoints_of_addrs(const struct tc_addr *addrs, size_t n);

#endif
