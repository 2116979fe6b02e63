/* The addresses of a LOGICAL_DNS cluster (A37, A61): a DNS resolver whose whole answer is one endpoint. */
#ifndef TC_MESH_DNS_WATCH_H
#define TC_MESH_DNS_WATCH_H

#include "resolver/resolver.h"

struct tc_dns_watch;

/* By the loop: something changed. */
typedef void (*tc_dns_watch_fn)(void *arg);

/* `env`: loop, backoff and minimal interval; must outlive the watch. target: "host:port". */
struct tc_dns_watch *tc_dns_watch_new(const struct tc_resolver_env *env, const char *target, tc_dns_watch_fn fn,
                                      void *arg);
void tc_dns_watch_free(struct tc_dns_watch *w);
void tc_dns_watch_refresh(struct tc_dns_watch *w);
void tc_dns_watch_reset_backoff(struct tc_dns_watch *w);
/* The last good answer, a list of one endpoint; borrowed; NULL: none yet. */
struct tc_endpoints *tc_dns_watch_endpoints(const struct tc_dns_watch *w);
/* Why the last resolution gave nothing; OK: it did, or there is none yet. Borrowed. */
const struct tc_status *tc_dns_watch_error(const struct tc_dns_watch *w);

#endif
