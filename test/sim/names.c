/* The world's name resolution: tc_dns as src/io/dns.h has it. A literal is its own address; every other name is not
 * found. */
#include "base/mem.h"
#include "io/dns.h"
#include "sim/world.h"

struct tc_dns {
    struct tc_loop *loop;
    struct tc_task done;
    char *host;
    uint16_t port;
    bool running;
    tc_dns_fn fn;
    void *arg;
};

static void dns_on_done(struct tc_task *task)
{
    struct tc_dns *dns = TC_CONTAINER_OF(task, struct tc_dns, done);
    struct tc_addr addr = {0};
    struct tc_status error = {0};
    char *host = dns->host;
    dns->host = NULL;
    dns->running = false;
    bool known = tc_addr_from_ip(&addr, tc_slice_str(host), dns->port) == 0;
    if (!known)
        error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_RESOLVER,
                               "DNS resolution failed for %s:%u: Domain name not found", host, (unsigned)dns->port);
    tc_free(host);
    dns->fn(dns->arg, known ? &addr : NULL, known ? 1 : 0, known ? NULL : &error);
    tc_addr_fini(&addr);
    tc_status_fini(&error);
}

struct tc_dns *tc_dns_new(struct tc_loop *loop, const struct tc_dns_opts *opts TC_UNUSED)
{
    struct tc_dns *dns = TC_NEW(struct tc_dns);
    dns->loop = loop;
    tc_task_init(&dns->done, dns_on_done);
    return dns;
}

int tc_dns_resolve(struct tc_dns *dns, const char *host, uint16_t port, tc_dns_fn fn, void *arg)
{
    if (dns->running)
        return TORC_ESTATE;
    dns->running = true;
    dns->host = tc_strdup(host);
    dns->port = port;
    dns->fn = fn;
    dns->arg = arg;
    tc_loop_defer(dns->loop, &dns->done);
    return 0;
}

void tc_dns_cancel(struct tc_dns *dns)
{
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
