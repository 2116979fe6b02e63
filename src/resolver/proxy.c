/* Channels through an HTTP proxy (A1, case 1).
 *
 * When a channel is made, tc_proxy_class_init decides whether its target goes through a proxy: by the channel's option,
 * or by the environment (grpc_proxy, https_proxy, http_proxy, and the exemptions of no_grpc_proxy and no_proxy). If so,
 * the target's resolver is replaced: the proxy's name is resolved by DNS, and each address found becomes an endpoint
 * with a proxy_hop, so that a connection to it asks the proxy for the target with CONNECT. The proxy resolves the
 * target's name.
 *
 * The channel owns the class (struct tc_proxy_class), which outlives the resolver. The resolver (struct proxied) owns
 * the resolver of the proxy's name and a reference to the hop; each address of its endpoints has another. Resolvers are
 * for the loop's thread, the rest for any thread. */
#include "resolver/proxy.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "io/addr.h"
#include "resolver/builtin.h"

struct proxied {
    struct tc_resolver base;
    struct tc_resolver_env env; /* the channel's, with this file's on_result */
    struct tc_resolver *inner;  /* resolves the proxy's name */
    struct tc_proxy_hop *hop;
};

/* Returns a list of new endpoints with the addresses of `from`, each address with a reference to the hop. */
static struct tc_endpoints *endpoints_through(const struct tc_endpoints *from, struct tc_proxy_hop *hop)
{
    struct tc_endpoint **at = from->n ? tc_reallocarray(NULL, from->n, sizeof(struct tc_endpoint *)) : NULL;
    for (size_t i = 0; i < from->n; i++) {
        at[i] = tc_endpoint_new(from->at[i]->addrs, from->at[i]->n_addrs);
        for (size_t k = 0; k < at[i]->n_addrs; k++)
            at[i]->addrs[k].proxy_hop = tc_proxy_hop_ref(hop);
    }
    return tc_endpoints_take(at, from->n);
}

static bool on_result(void *arg, struct tc_resolver_result *result)
{
    struct proxied *p = arg;
    if (result->endpoints) {
        struct tc_endpoints *mapped = endpoints_through(result->endpoints, p->hop);
        tc_endpoints_unref(result->endpoints);
        result->endpoints = mapped;
    } else if (!tc_status_ok(&result->status)) {
        tc_status_set(&result->status, tc_status_make(result->status.code, result->status.layer, "proxy: %s",
                                                      tc_status_text(&result->status)));
    }
    return p->base.env->on_result(p->base.env->arg, result);
}

static void proxied_start(struct tc_resolver *r)
{
    struct tc_resolver *inner = TC_CONTAINER_OF(r, struct proxied, base)->inner;
    inner->ops->start(inner);
}

static void proxied_request(struct tc_resolver *r)
{
    struct tc_resolver *inner = TC_CONTAINER_OF(r, struct proxied, base)->inner;
    inner->ops->request_reresolution(inner);
}

static void proxied_reset_backoff(struct tc_resolver *r)
{
    struct tc_resolver *inner = TC_CONTAINER_OF(r, struct proxied, base)->inner;
    inner->ops->reset_backoff(inner);
}

static void proxied_shutdown(struct tc_resolver *r)
{
    struct proxied *p = TC_CONTAINER_OF(r, struct proxied, base);
    p->inner->ops->shutdown(p->inner);
    tc_proxy_hop_unref(p->hop);
    tc_free(p);
}

static const struct tc_resolver_ops proxied_ops = {
    .start = proxied_start,
    .request_reresolution = proxied_request,
    .reset_backoff = proxied_reset_backoff,
    .shutdown = proxied_shutdown,
};

/* Returns whether the target has a port. Stores the host without brackets, borrowed from `path`, in any case. */
static bool host_split(struct tc_slice path, struct tc_slice *host)
{
    struct tc_slice rest;
    return tc_addr_split(path, host, &rest) && rest.len && rest.data[0] == ':';
}

/* Returns the argument of CONNECT, a new reference: the target with its port, or with 443. Percent-encodes bytes that a
 * line of HTTP must not have. */
static struct tc_rstr *connect_target(struct tc_slice path)
{
    struct tc_slice host;
    struct tc_buf out = {0};
    bool port = host_split(path, &host), v6 = !port && memchr(host.data, ':', host.len);
    tc_buf_append_str(&out, v6 ? "[" : "");
    tc_uri_encode(&out, port ? path : host, ":[]!$&'()*+,;=@");
    tc_buf_append_str(&out, v6 ? "]" : "");
    tc_buf_append_str(&out, port ? "" : ":443");
    return tc_rstr_of_buf(&out);
}

static struct tc_resolver *proxied_create(const struct tc_resolver_class *cls, const struct tc_target *target,
                                          const struct tc_resolver_env *env)
{
    const struct tc_proxy_class *pc =
        TC_CONTAINER_OF((struct tc_resolver_class *)(uintptr_t)cls, struct tc_proxy_class, base);
    struct proxied *p = TC_NEW(struct proxied);
    struct tc_rstr *asked = connect_target(tc_slice_str(target->path));
    p->base.ops = &proxied_ops;
    p->base.env = env;
    p->env = *env;
    p->env.on_result = on_result;
    p->env.arg = p;
    p->hop = tc_proxy_hop_new(NULL, asked, pc->authorization);
    p->inner = tc_resolver_dns.create(&tc_resolver_dns, &pc->proxy, &p->env);
    tc_rstr_unref(asked);
    return &p->base;
}

static bool proxied_authority(const struct tc_resolver_class *cls, const struct tc_target *target, struct tc_buf *out,
                              char **why)
{
    const struct tc_proxy_class *pc =
        TC_CONTAINER_OF((struct tc_resolver_class *)(uintptr_t)cls, struct tc_proxy_class, base);
    return pc->inner->authority(pc->inner, target, out, why);
}

static bool host_is_local(struct tc_slice host)
{
    /* As a block: tc_proxy_exempt takes a bare "::1" as a suffix, which other addresses end with. */
    static const char local[] = "127.0.0.0/8,::1/128";
    struct tc_addr addr;
    if (tc_slice_ieq(host, tc_slice_str("localhost")))
        return true;
    return tc_addr_from_ip(&addr, host, 0) == 0 && tc_proxy_exempt(tc_slice_str(local), host);
}

/* Returns the value of the first variable that is set, and stores the variable's name in *name. Returns NULL if no
 * variable is set. */
static const char *environment_proxy(const char **name)
{
    static const char *const names[] = {"grpc_proxy", "https_proxy", "http_proxy"};
    for (size_t i = 0; i < TC_ARRAY_LEN(names); i++) {
        const char *value = getenv(names[i]);
        *name = names[i];
        if (value)
            return value;
    }
    return NULL;
}

static bool environment_exempts(struct tc_slice host)
{
    const char *list = getenv("no_grpc_proxy");
    if (!list)
        list = getenv("no_proxy");
    return host_is_local(host) || (list && tc_proxy_exempt(tc_slice_str(list), host));
}

static bool target_may_be_proxied(const struct tc_target *t)
{
    if (strcmp(t->scheme, "ipv4") == 0 || strcmp(t->scheme, "ipv6") == 0)
        return !strchr(t->path, ',');
    return strcmp(t->scheme, "dns") == 0;
}

static bool scheme_is_dns(void *arg TC_UNUSED, struct tc_slice scheme)
{
    return tc_slice_eq_str(scheme, "dns");
}

/* Makes the target of the proxy's resolver, "dns:///host[:port]". Returns false, with p->proxy zeroed, if `host_port`
 * is malformed. */
static bool proxy_set(struct tc_proxy_class *p, const char *host_port)
{
    struct tc_buf ignored = {0};
    char *text = tc_asprintf("dns:///%s", host_port);
    bool parsed = tc_target_parse(&p->proxy, text, scheme_is_dns, NULL, NULL) == 0;
    bool ok = parsed && tc_resolver_dns.authority(&tc_resolver_dns, &p->proxy, &ignored, NULL);
    if (parsed && !ok)
        tc_target_fini(&p->proxy);
    tc_buf_fini(&ignored);
    tc_free(text);
    return ok;
}

bool tc_proxy_class_init(struct tc_proxy_class *p, const struct tc_target *target,
                         const struct tc_resolver_class *inner, const char *option)
{
    const char *name = "http_proxy", *url = option ? option : environment_proxy(&name);
    struct tc_buf host_port = {0}, authorization = {0};
    struct tc_slice host;
    if (!url || !*url || !target_may_be_proxied(target))
        return false;
    host_split(tc_slice_str(target->path), &host);
    if (!option && environment_exempts(host))
        return false;
    bool ok = tc_proxy_url_parse(url, &host_port, &authorization) == 0 && proxy_set(p, tc_buf_cstr(&host_port));
    if (ok) {
        p->base = (struct tc_resolver_class){
            .scheme = inner->scheme, .authority = proxied_authority, .create = proxied_create};
        p->inner = inner;
        p->authorization = authorization.len ? tc_rstr_new(authorization.data, authorization.len) : NULL;
    } else {
        /* The value is not logged: it may have a password. */
        TC_LOG(TC_LOG_RESOLVER, TORC_LOG_WARN, "%s: %s is not the URL of an HTTP proxy: connecting without one",
               target->text, name);
    }
    tc_buf_fini(&host_port);
    tc_buf_fini(&authorization);
    return ok;
}

void tc_proxy_class_fini(struct tc_proxy_class *p)
{
    if (!p->inner)
        return;
    tc_target_fini(&p->proxy);
    tc_rstr_unref(p->authorization);
    p->inner = NULL;
}
