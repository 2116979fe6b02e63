/* The world's name resolution: tc_dns as src/io/dns.h has it. A literal is its own address; dCvN.test has the addresses
 * of cluster C (names.h), after a delay; every other name is not found. */
#include "sim/names.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "io/dns.h"
#include "sim/trace.h"
#include "sim/world.h"

enum { DELAY_MAX_MS = 200, ADDRESSES_MAX = SIM_LOCALITIES * SIM_ENDPOINTS };

struct name {
    bool fails;
    size_t n;
    unsigned hosts[ADDRESSES_MAX];
};

struct tc_dns {
    struct tc_loop *loop;
    struct sim_event answer;
    struct tc_task done;
    char *host;
    uint16_t port;
    bool running;
    tc_dns_fn fn;
    void *arg;
};

static struct name names[SIM_CLUSTERS];

void sim_name_set(unsigned cluster, const struct sim_cluster *c)
{
    struct name *name = &names[cluster];
    name->n = 0;
    for (size_t i = 0; i < c->n_localities; i++)
        for (size_t k = 0; k < c->localities[i].n_endpoints; k++)
            name->hosts[name->n++] = c->localities[i].endpoints[k].host;
}

void sim_name_fail(unsigned cluster, bool fail)
{
    names[cluster].fails = fail;
}

/* Fills in the addresses of a host. Returns how many there are. */
static size_t dns_addresses(const char *host, uint16_t port, struct tc_addr addrs[ADDRESSES_MAX])
{
    unsigned cluster;
    size_t n = 0;
    if (tc_addr_from_ip(&addrs[0], tc_slice_str(host), port) == 0)
        return 1;
    if (sscanf(host, "d%u", &cluster) != 1 || cluster >= SIM_CLUSTERS || names[cluster].fails)
        return 0;
    for (; n < names[cluster].n; n++) {
        const char *address = sim_host_address(names[cluster].hosts[n]);
        tc_addr_from_ip(&addrs[n], tc_slice_of(address, strcspn(address, ":")), port);
    }
    return n;
}

static void dns_on_done(struct tc_task *task)
{
    struct tc_dns *dns = TC_CONTAINER_OF(task, struct tc_dns, done);
    struct tc_addr addrs[ADDRESSES_MAX] = {{0}};
    struct tc_status error = {0};
    char *host = dns->host;
    size_t n = dns_addresses(host, dns->port, addrs);
    dns->host = NULL;
    dns->running = false;
    if (n == 0) {
        sim_count(SIM_COUNT_NAMES_FAILED);
        error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_RESOLVER,
                               "DNS resolution failed for %s:%u: Domain name not found", host, (unsigned)dns->port);
    }
    sim_detail("%s has %zu addresses", host, n);
    tc_free(host);
    dns->fn(dns->arg, n > 0 ? addrs : NULL, n, n > 0 ? NULL : &error);
    for (size_t i = 0; i < n; i++)
        tc_addr_fini(&addrs[i]);
    tc_status_fini(&error);
}

static void dns_on_answer(struct sim_event *event)
{
    struct tc_dns *dns = TC_CONTAINER_OF(event, struct tc_dns, answer);
    tc_loop_defer(dns->loop, &dns->done);
}

struct tc_dns *tc_dns_new(struct tc_loop *loop, const struct tc_dns_opts *opts TC_UNUSED)
{
    struct tc_dns *dns = TC_NEW(struct tc_dns);
    dns->loop = loop;
    tc_task_init(&dns->done, dns_on_done);
    sim_event_init(&dns->answer, dns_on_answer);
    return dns;
}

int tc_dns_resolve(struct tc_dns *dns, const char *host, uint16_t port, tc_dns_fn fn, void *arg)
{
    struct tc_addr literal = {0};
    if (dns->running)
        return TORC_ESTATE;
    dns->running = true;
    dns->host = tc_strdup(host);
    dns->port = port;
    dns->fn = fn;
    dns->arg = arg;
    if (tc_addr_from_ip(&literal, tc_slice_str(host), port) == 0)
        tc_loop_defer(dns->loop, &dns->done);
    else
        sim_event_at(&dns->answer, sim_now_ns() + sim_below(SIM_CHANCE_NET, DELAY_MAX_MS * TC_NS_PER_MS));
    tc_addr_fini(&literal);
    return 0;
}

void tc_dns_cancel(struct tc_dns *dns)
{
    sim_event_stop(&dns->answer);
    tc_task_cancel(&dns->done);
    tc_free(dns->host);
    dns->host = NULL;
    dns->running = false;
}

void tc_dns_free(struct tc_dns *dns)
{
    if (!dns)
        return;
    tc_dns_cancel(dns);
    tc_free(dns);
}
