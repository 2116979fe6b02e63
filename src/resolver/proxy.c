#include "resolver/proxy.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "io/proxy.h"
#include "resolver/builtin.h"

struct proxied {
    struct tc_resolver base;
    struct tc_resolver_env env; /* the channel's, with our on_result */
    struct tc_resolver *inner;  /* of the proxy's name */
    struct tc_via *via;
};

/* The same endpoints, each reached by asking it for the target. */
static struct tc_endpoints *through(const struct tc_endpoints *from, struct tc_via *via)
{
    struct tc_endpoint **at = from->n ? tc_reallocarray(NULL, from->n, sizeof(struct tc_endpoint *)) : NULL;
    for (size_t i = 0; i < from->n; i++) {
        at[i] = tc_endpoint_new(from->at[i]->addrs, from->at[i]->n_addrs);
        for (size_t k = 0; k < at[i]->n_addrs; k++)
            at[i]->addrs[k].via = tc_via_ref(via);
    }
    return tc_endpoints_take(at, from->n);
}

static bool on_result(void *arg, struct tc_resolver_result *result)
{
    struct proxied *p = arg;
    if (result->endpoints) {
        struct tc_endpoints *mapped = through(result->endpoints, p->via);
        tc_endpoints_unref(result->endpoints);
        result->endpoints = mapped;
    } else if (!tc_status_ok(&result->status)) {
        tc_status_set(&result->status,
                      tc_status_make(result->status.code, "proxy: %s", tc_status_text(&result->status)));
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
    tc_via_unref(p->via);
    tc_free(p);
}

static const struct tc_resolver_ops proxied_ops = {
    .start = proxied_start,
    .request_reresolution = proxied_request,
    .reset_backoff = proxied_reset_backoff,
    .shutdown = proxied_shutdown,
};

/* Whether the target names its port; the host without brackets in *host. */
static bool split(struct tc_slice path, struct tc_slice *host)
{
    const char *colon = path.len ? memrchr(path.data, ':', path.len) : NULL;
    *host = path;
    if (path.len && path.data[0] == '[') {
        const char *end = memchr(path.data, ']', path.len);
        if (!end)
            return false;
        *host = tc_slice_of(path.data + 1, (size_t)(end - path.data) - 1);
        return colon > end;
    }
    if (!colon || memchr(path.data, ':', (size_t)(colon - path.data)))
        return false; /* no port, or an IPv6 address without brackets */
    host->len = (size_t)(colon - path.data);
    return true;
}

/* What CONNECT asks for: the target with its port, 443 where it has none. What a target may have and a line of HTTP may
 * not, such as a line's end, goes percent-encoded. */
static struct tc_rstr *connect_target(struct tc_slice path)
{
    struct tc_slice host;
    struct tc_buf out = {0};
    bool port = split(path, &host), v6 = !port && memchr(host.data, ':', host.len);
    tc_buf_append_str(&out, v6 ? "[" : "");
    tc_uri_encode(&out, port ? path : host, ":[]!$&'()*+,;=@");
    tc_buf_append_str(&out, v6 ? "]" : "");
    tc_buf_append_str(&out, port ? "" : ":443");
    struct tc_rstr *target = tc_rstr_new(out.data, out.len);
    tc_buf_fini(&out);
    return target;
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
    p->via = tc_via_new(NULL, asked, pc->authorization);
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

static bool is_local(struct tc_slice host)
{
    /* A block, since a bare "::1" is the end of other addresses. */
    static const char local[] = "127.0.0.0/8,::1/128";
    struct tc_addr addr;
    if (tc_slice_ieq(host, tc_slice_str("localhost")))
        return true;
    return tc_addr_from_ip(&addr, host, 0) == 0 && tc_proxy_exempt(tc_slice_str(local), host);
}

/* The variable that counts, and its value; NULL: none. */
static const char *from_environment(const char **name)
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

static bool exempt_by_environment(struct tc_slice host)
{
    const char *list = getenv("no_grpc_proxy");
    if (!list)
        list = getenv("no_proxy");
    return is_local(host) || (list && tc_proxy_exempt(tc_slice_str(list), host));
}

static bool may_be_proxied(const struct tc_target *t)
{
    if (strcmp(t->scheme, "ipv4") == 0 || strcmp(t->scheme, "ipv6") == 0)
        return !strchr(t->path, ',');
    return strcmp(t->scheme, "dns") == 0;
}

static bool is_dns(void *arg, struct tc_slice scheme)
{
    (void)arg;
    return tc_slice_eq_str(scheme, "dns");
}

/* "dns:///host:port" */
static bool set_proxy(struct tc_proxy_class *p, const char *host_port)
{
    struct tc_buf ignored = {0};
    char *text = tc_asprintf("dns:///%s", host_port);
    bool parsed = tc_target_parse(&p->proxy, text, is_dns, NULL, NULL) == 0;
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
    const char *name = "http_proxy", *url = option ? option : from_environment(&name);
    struct tc_buf host_port = {0}, authorization = {0};
    struct tc_slice host;
    if (!url || !*url || !may_be_proxied(target))
        return false;
    split(tc_slice_str(target->path), &host);
    if (!option && exempt_by_environment(host))
        return false;
    bool ok = tc_proxy_url_parse(url, &host_port, &authorization) == 0 && set_proxy(p, tc_buf_cstr(&host_port));
    if (ok) {
        p->base = (struct tc_resolver_class){
            .scheme = inner->scheme, .authority = proxied_authority, .create = proxied_create};
        p->inner = inner;
        p->authorization = authorization.len ? tc_rstr_new(authorization.data, authorization.len) : NULL;
    } else {
        /* Without the value: it may have a password. */
        TC_LOG(TC_LOG_RESOLVER, TORC_LOG_WARN, "%s is no URL of an HTTP proxy: %s is reached without one", name,
               target->text);
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
