/* dns:[//server/]host[:port]: A and AAAA look-ups, each address an endpoint of its own. After a success no look-up
 * starts within the minimum interval; a failure is retried with backoff. The port is 443 when it is left out. */
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
    bool running; /* a look-up is under way */
    bool failing; /* the last one, or the policy refused what it found */
    bool looked_up;
    uint64_t last_ms; /* of the last success */
    struct tc_timer timer;
    struct tc_backoff backoff;
};

/* False when it is no host:port; where the port alone is bad, *bad_port is it, else NULL. The text goes on to a NUL. */
static bool split_host_port(struct tc_slice text, struct tc_slice *host, uint16_t *port, const char **bad_port)
{
    *bad_port = NULL;
    struct tc_slice port_text = {NULL, 0};
    *port = 443;
    if (text.len && text.data[0] == '[') {
        const char *end = memchr(text.data, ']', text.len);
        if (!end)
            return false;
        *host = tc_slice_of(text.data + 1, (size_t)(end - text.data) - 1);
        struct tc_slice rest = tc_slice_of(end + 1, text.len - host->len - 2);
        if (rest.len == 0)
            return host->len != 0;
        if (rest.data[0] != ':')
            return false;
        port_text = tc_slice_of(rest.data + 1, rest.len - 1);
    } else {
        const char *colon = text.len ? memchr(text.data, ':', text.len) : NULL;
        const char *last = text.len ? memrchr(text.data, ':', text.len) : NULL;
        *host = text;
        if (!colon || colon != last) /* no port, or an IPv6 literal without brackets */
            return text.len != 0;
        *host = tc_slice_of(text.data, (size_t)(colon - text.data));
        port_text = tc_slice_of(colon + 1, text.len - host->len - 1);
    }
    uint64_t value;
    if (host->len == 0)
        return false;
    if (tc_parse_u64(port_text, 65535, &value) != 0) {
        *bad_port = port_text.data;
        return false;
    }
    *port = (uint16_t)value;
    return true;
}

static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

/* What stands before such a port may be meant as a scheme, unless that was given. */
static bool is_a_port_for_sure(const struct tc_target *t, const char *port)
{
    return t->has_authority || t->path[0] == '[' || is_number(port);
}

static char *no_host_port(const struct tc_target *t, const char *bad_port)
{
    if (bad_port && is_a_port_for_sure(t, bad_port))
        return tc_asprintf("target \"" TC_SHOWN "\": the port \"" TC_SHOWN "\" is not a number from 0 to 65535",
                           TC_SHOW(t->text), TC_SHOW(bad_port));
    struct tc_buf schemes = {0};
    tc_resolver_schemes(&schemes);
    char *why = tc_asprintf("target \"" TC_SHOWN "\": neither host:port nor of a known scheme (%s)", TC_SHOW(t->text),
                            tc_buf_cstr(&schemes));
    tc_buf_fini(&schemes);
    return why;
}

static bool dns_authority(const struct tc_resolver_class *cls, const struct tc_target *t, struct tc_buf *out,
                          char **why)
{
    (void)cls;
    struct tc_slice host;
    uint16_t port;
    const char *bad_port;
    if (!split_host_port(tc_slice_str(t->path), &host, &port, &bad_port) || memchr(host.data, '/', host.len)) {
        if (why)
            *why = no_host_port(t, bad_port);
        return false;
    }
    tc_uri_encode(out, tc_slice_str(t->path), ":[]!$&'()*+,;=@");
    return true;
}

static void on_answer(void *arg, const struct tc_addr *addrs, size_t n, const struct tc_status *error)
{
    struct dns *d = arg;
    const struct tc_resolver_env *env = d->base.env;
    struct tc_resolver_result result = {0};
    d->running = false;
    d->failing = error != NULL;
    if (error) {
        TC_LOG(TC_LOG_RESOLVER, TORC_LOG_INFO, "%s: %s", d->host, tc_status_text(error));
        result.status = tc_status_make(TORC_STATUS_UNAVAILABLE, "name resolution failed for " TC_SHOWN ": %s",
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

static void look_up(struct dns *d)
{
    tc_timer_stop(&d->timer);
    d->running = true;
    tc_dns_resolve(d->dns, d->host, d->port, on_answer, d);
}

static void on_timer(struct tc_timer *timer)
{
    look_up(TC_CONTAINER_OF(timer, struct dns, timer));
}

static void dns_start(struct tc_resolver *r)
{
    look_up(TC_CONTAINER_OF(r, struct dns, base));
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
        look_up(d);
}

static void dns_reset_backoff(struct tc_resolver *r)
{
    struct dns *d = TC_CONTAINER_OF(r, struct dns, base);
    tc_backoff_reset(&d->backoff);
    if (d->failing && !d->running)
        look_up(d);
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

static struct tc_resolver *dns_create(const struct tc_resolver_class *cls, const struct tc_target *t,
                                      const struct tc_resolver_env *env)
{
    (void)cls;
    struct tc_slice host = {NULL, 0};
    const char *bad_port;
    struct dns *d = TC_NEW(struct dns);
    d->base.ops = &dns_ops;
    d->base.env = env;
    split_host_port(tc_slice_str(t->path), &host, &d->port, &bad_port);
    d->host = tc_slice_dup(host);
    d->dns = tc_dns_new(env->loop, &(struct tc_dns_opts){.servers = t->authority[0] ? t->authority : NULL});
    tc_timer_init(&d->timer, env->loop, on_timer);
    tc_backoff_init(&d->backoff, &env->backoff);
    return &d->base;
}

const struct tc_resolver_class tc_resolver_dns = {.scheme = "dns", .authority = dns_authority, .create = dns_create};
