/* The addresses of a LOGICAL_DNS cluster (A37, A61): a DNS resolver whose whole answer is one endpoint. Loop thread
 * only. */
#ifndef TC_XDS_RESOLVER_DNS_WATCH_H
#define TC_XDS_RESOLVER_DNS_WATCH_H

#include "resolver/resolver.h"

struct tc_dns_watch;

/* Called by the loop after each answer or failure: endpoints or error may have changed. Must not free the watch. */
typedef void (*tc_dns_watch_fn)(void *arg);

/* Starts to resolve `target`, "host:port". Copies the target, and `env`, whose loop, backoff and dns_min_interval_ms
 * are used. If the target is malformed, the error is there at once and `fn` is never called. */
struct tc_dns_watch *tc_dns_watch_new(const struct tc_resolver_env *env, const char *target, tc_dns_watch_fn fn,
                                      void *arg);
/* Ends the watch: no callback follows. NULL is allowed. */
void tc_dns_watch_free(struct tc_dns_watch *w);
/* Resolves the name again, once dns_min_interval_ms have passed since the last success. Does nothing while a query is
 * under way or due. */
void tc_dns_watch_refresh(struct tc_dns_watch *w);
/* Ends the wait after a failed query: resolves the name at once. Does nothing if the last query succeeded. */
void tc_dns_watch_reset_backoff(struct tc_dns_watch *w);
/* Returns the last good answer, borrowed: a list of one endpoint, or of none if the answer has no addresses. (The dns
 * resolver reports an error for a name without addresses.) NULL before the first good answer. */
struct tc_endpoints *tc_dns_watch_endpoints(const struct tc_dns_watch *w);
/* Returns why the last resolution failed; OK if it succeeded, or while the first one is not over. Borrowed. */
const struct tc_status *tc_dns_watch_error(const struct tc_dns_watch *w);

#endif
