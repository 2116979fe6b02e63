/* Name look-ups by c-ares: A and AAAA in parallel, results in the order of RFC 6724 as c-ares sorts them. Literals are
 * answered without a query. Each query reads /etc/hosts and resolv.conf. Each DNS resolver has one tc_dns, which holds
 * little memory between queries. Loop thread only. */
#ifndef TC_IO_DNS_H
#define TC_IO_DNS_H

#include "base/status.h"
#include "io/addr.h"
#include "io/loop.h"

struct tc_dns;

struct tc_dns_opts {
    const char *servers; /* "127.0.0.1:5353,..." instead of resolv.conf; NULL: the system's */
    uint64_t timeout_ms; /* for a whole query; 0: 120000 (gRPC's) */
};

/* Called once from the loop, never from inside tc_dns_resolve. On success error is NULL and the addresses (all with the
 * port asked for) are borrowed for the call; n is at least 1. Otherwise n is 0, and the status (UNAVAILABLE, borrowed)
 * names host, port and reason. fn may start the next look-up. */
typedef void (*tc_dns_fn)(void *arg, const struct tc_addr *addrs, size_t n, const struct tc_status *error);

/* The options are copied; NULL: the defaults. */
struct tc_dns *tc_dns_new(struct tc_loop *loop, const struct tc_dns_opts *opts);
/* Starts a look-up; `host` is copied. Returns 0, and fn reports every outcome; or TORC_ESTATE, and fn is not called,
 * while a look-up runs. */
int tc_dns_resolve(struct tc_dns *dns, const char *host, uint16_t port, tc_dns_fn fn, void *arg);
/* Cancels the look-up that runs, if any: fn is not called. */
void tc_dns_cancel(struct tc_dns *dns);
/* Cancels the look-up that runs, and frees `dns`. May be called from fn. NULL is allowed. */
void tc_dns_free(struct tc_dns *dns);

#endif
