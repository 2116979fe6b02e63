/* The world's name resolution, which defines tc_dns of src/io/dns.h. A literal is its own address: the answer comes by
 * the loop's serial queue, without time passing. Any other name is looked up by the function of tc_names_look_up_in,
 * after a delay. */
#include "testing/names.h"

#include <string.h>

#include "base/mem.h"
#include "io/dns.h"
#include "testing/observer.h"
#include "testing/world.h"

struct tc_dns {
    struct tc_loop *loop;
    struct tc_world_event answer; /* the end of the delay, for a name */
    struct tc_task done;          /* calls fn */
    char *host;                   /* of the look-up that runs, owned; NULL: none runs */
    uint16_t port;
    bool running;
    tc_dns_fn fn;
    void *arg;
};

static tc_names_fn look_up;
static uint64_t most_delay_ms;

void tc_names_look_up_in(tc_names_fn fn, uint64_t delay_ms)
{
    look_up = fn;
    most_delay_ms = delay_ms;
}

/* tc_names_fn for names and literals. */
static size_t dns_addresses(const char *host, uint16_t port, struct tc_addr addrs[TC_NAME_ADDRESSES])
{
    if (tc_addr_from_ip(&addrs[0], tc_slice_str(host), port) == 0)
        return 1;
    return look_up ? look_up(host, port, addrs) : 0;
}

static void dns_on_done(struct tc_task *task)
{
    struct tc_dns *dns = TC_CONTAINER_OF(task, struct tc_dns, done);
    struct tc_addr addrs[TC_NAME_ADDRESSES] = {{0}};
    struct tc_status error = {0};
    char *host = dns->host;
    size_t n = dns_addresses(host, dns->port, addrs);
    dns->host = NULL;
    dns->running = false;
    if (n == 0) {
        tc_world_note(TC_WORLD_NAMES_FAILED);
        error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_RESOLVER,
                               "DNS resolution failed for %s:%u: Domain name not found", host, (unsigned)dns->port);
    }
    tc_world_detail("%s has %zu addresses", host, n);
    tc_free(host);
    dns->fn(dns->arg, n > 0 ? addrs : NULL, n, n > 0 ? NULL : &error);
    for (size_t i = 0; i < n; i++)
        tc_addr_fini(&addrs[i]);
    tc_status_fini(&error);
}

static void dns_on_answer(struct tc_world_event *event)
{
    struct tc_dns *dns = TC_CONTAINER_OF(event, struct tc_dns, answer);
    tc_loop_defer(dns->loop, &dns->done);
}

struct tc_dns *tc_dns_new(struct tc_loop *loop, const struct tc_dns_opts *opts TC_UNUSED)
{
    struct tc_dns *dns = TC_NEW(struct tc_dns);
    dns->loop = loop;
    tc_task_init(&dns->done, dns_on_done);
    tc_world_event_init(&dns->answer, dns_on_answer);
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
        tc_world_event_at(&dns->answer,
                          tc_world_now_ns() +
                              (most_delay_ms ? tc_world_below(TC_CHANCE_NET, most_delay_ms * TC_NS_PER_MS) : 0));
    tc_addr_fini(&literal);
    return 0;
}

void tc_dns_cancel(struct tc_dns *dns)
{
    tc_world_event_stop(&dns->answer);
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
