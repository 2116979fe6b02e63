/* The DNS resolver: dns:[//server/]host[:port]. The port is 443 when the target has none.
 *
 * A and AAAA records are looked up together; each address is an endpoint of its own. A look-up begins:
 *
 *   at the start;
 *   when a policy asks (request_reresolution), but not before dns_min_interval_ms have passed since the last success;
 *   after a failure, or when the policy refused the result: with the channel's backoff, which reset_backoff cuts short.
 *
 * One timer serves both waits. tc_dns (io/dns.h) does the look-up. A resolver owns its tc_dns and the name until
 * dns_shutdown, which cancels a look-up that runs. Loop thread only, except dns_authority (any thread). */
#include "io/dns.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "resolver/builtin.h"

struct dns {
    struct tc_resolver base;
    struct tc_dns *dns;
    char *host;
    uint16_t port;
    bool running;     /* a look-up is under way */
    bool failing;     /* the last look-up failed, or the policy refused its result */
    bool looked_up;   /* a look-up has succeeded */
    uint64_t last_ms; /* when the last success was */
    struct tc_timer timer;
    struct tc_backoff backoff;
};

/* Splits "host[:port]"; without a port, stores 443. Returns false if the text is malformed: *bad_port is the port if
 * only the port is bad, else NULL. The text must end with a NUL. */
static bool host_port_split(struct tc_slice text, struct tc_slice *host, uint16_t *port, const char **bad_port)
{
    struct tc_slice rest;
    uint64_t value = 443;
    *bad_port = NULL;
    if (!tc_addr_split(text, host, &rest) || (rest.len && rest.data[0] != ':'))
        return false;
    if (rest.len && tc_parse_u64(tc_slice_of(rest.data + 1, rest.len - 1), UINT16_MAX, &value) != 0) {
        *bad_port = rest.data + 1;
        return false;
    }
    *port = (uint16_t)value;
    return true;
}

static bool text_is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

/* Returns true if the text after the colon must be meant as a port. Otherwise "a:b" may be meant as scheme and path. */
static bool port_is_meant(const struct tc_target *t, const char *port)
{
    return t->has_authority || t->path[0] == '[' || text_is_number(port);
}

/* Stores in *why (NULL is allowed) what is wrong with the target. `bad_port` is what host_port_split stored. Returns
 * false. */
static bool host_port_refuse(const struct tc_target *t, const char *bad_port, char **why)
{
    if (bad_port && port_is_meant(t, bad_port))
        return tc_refuse(why, "target \"" TC_SHOWN "\": the port \"" TC_SHOWN "\" is not a number from 0 to 65535",
                         TC_SHOW(t->text), TC_SHOW(bad_port));
    struct tc_buf schemes = {0};
    tc_resolver_schemes(&schemes);
    tc_refuse(why, "target \"" TC_SHOWN "\": neither host:port nor of a known scheme (%s)", TC_SHOW(t->text),
              tc_buf_cstr(&schemes));
    tc_buf_fini(&schemes);
    return false;
}

static bool dns_authority(const struct tc_resolver_class *cls TC_UNUSED, const struct tc_target *t, struct tc_buf *out,
                          char **why)
{
    struct tc_slice host;
    uint16_t port;
    const char *bad_port;
    if (!host_port_split(tc_slice_str(t->path), &host, &port, &bad_port) || memchr(host.data, '/', host.len))
        return host_port_refuse(t, bad_port, why);
    tc_uri_encode(out, tc_slice_str(t->path), ":[]!$&'()*+,;=@");
    return true;
}

/* Reports the answer. A refused result counts as a failure: the next look-up follows with backoff. */
static void on_answer(void *arg, const struct tc_addr *addrs, size_t n, const struct tc_status *error)
{
    struct dns *d = arg;
    const struct tc_resolver_env *env = d->base.env;
    struct tc_resolver_result result = {0};
    d->running = false;
    d->failing = error != NULL;
    if (error) {
        TC_LOG(TC_LOG_RESOLVER, TORC_LOG_DEBUG, "%s: %s", d->host, tc_status_text(error));
        result.status =
            tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_RESOLVER, "name resolution failed for " TC_SHOWN ": %s",
                           TC_SHOW(d->host), tc_status_text(error));
    } else {
        result.endpoints = tc_endpoints_of_addrs(addrs, n);
        d->looked_up = true;
        d->last_ms = tc_loop_now_ms(env->loop);
    }
    if (!env->on_result(env->arg, &result))
        d->failing = true;
    if (d->failing)
        tc_timer_start(&d->timer, tc_backoff_next_ms(&d->backoff, tc_loop_rng(env->loop)));
    else
        tc_backoff_reset(&d->backoff);
}

static void dns_look_up(struct dns *d)
{
    tc_timer_stop(&d->timer);
    d->running = true;
    tc_dns_resolve(d->dns, d->host, d->port, on_answer, d);
}

static void on_timer(struct tc_timer *timer)
{
    dns_look_up(TC_CONTAINER_OF(timer, struct dns, timer));
}

static void dns_start(struct tc_resolver *r)
{
    dns_look_up(TC_CONTAINER_OF(r, struct dns, base));
}

static void dns_request(struct tc_resolver *r)
{
    struct dns *d = TC_CONTAINER_OF(r, struct dns, base);
    if (d->running || tc_timer_active(&d->timer))
        return;
    uint64_t now = tc_loop_now_ms(r->env->loop);
    uint64_t next = d->looked_up ? d->last_ms + r->env->dns_min_interval_ms : now;
    if (next > now)
        tc_timer_start(&d->timer, next - now);
    else
        dns_look_up(d);
}

static void dns_reset_backoff(struct tc_resolver *r)
{
    struct dns *d = TC_CONTAINER_OF(r, struct dns, base);
    tc_backoff_reset(&d->backoff);
    if (d->failing && !d->running)
        dns_look_up(d);
}

static void dns_shutdown(struct tc_resolver *r)
{
    struct dns *d = TC_CONTAINER_OF(r, struct dns, base);
    tc_timer_stop(&d->timer);
    tc_dns_free(d->dns);
    tc_free(d->host);
    tc_free(d);
}

static const struct tc_resolver_ops dns_ops = {
    .start = dns_start,
    .request_reresolution = dns_request,
    .reset_backoff = dns_reset_backoff,
    .shutdown = dns_shutdown,
};

static struct tc_resolver *dns_create(const struct tc_resolver_class *cls TC_UNUSED, const struct tc_target *t,
                                      const struct tc_resolver_env *env)
{
    struct tc_slice host = {NULL, 0};
    const char *bad_port;
    struct dns *d = TC_NEW(struct dns);
    d->base.ops = &dns_ops;
    d->base.env = env;
    host_port_split(tc_slice_str(t->path), &host, &d->port, &bad_port);
    d->host = tc_slice_dup(host);
    d->dns = tc_dns_new(env->loop, &(struct tc_dns_opts){.servers = t->authority[0] ? t->authority : NULL});
    tc_timer_init(&d->timer, env->loop, on_timer);
    tc_backoff_init(&d->backoff, &env->backoff);
    return &d->base;
}

const struct tc_resolver_class tc_resolver_dns = {.scheme = "dns", .authority = dns_authority, .create = dns_create};
