/* The addresses of a LOGICAL_DNS cluster (A37, A61): a DNS resolver whose whole answer is one endpoint. Loop thread
 * only. */
#ifndef TC_XDS_RESOLVER_DNS_WATCH_H
#define TC_XDS_RESOLVER_DNS_WATCH_H

#include "resolver/resolver.h"

struct tc_dns_watch;

/* Called from the loop after each answer: endpoints or error may have changed. */
typedef void (*tc_dns_watch_fn)(void *arg);

/* Starts to resolve `target`, "host:port". Takes loop, backoff and minimal interval from `env`, which it copies. */
struct tc_dns_watch *tc_dns_watch_new(const struct tc_resolver_env *env, const char *target, tc_dns_watch_fn fn,
                                      void *arg);
void tc_dns_watch_free(struct tc_dns_watch *w);
void tc_dns_watch_refresh(struct tc_dns_watch *w);
void tc_dns_watch_reset_backoff(struct tc_dns_watch *w);
/* Returns the last good answer, a list of one endpoint, borrowed; NULL before the first one. */
struct tc_endpoints *tc_dns_watch_endpoints(const struct tc_dns_watch *w);
/* Returns why the last resolution failed; OK if it succeeded, or while the first one is not over. Borrowed. */
const struct tc_status *tc_dns_watch_error(const struct tc_dns_watch *w);

#endif
