/* The addresses of a LOGICAL_DNS cluster: a dns resolver that reports to this watch instead of to a channel. All
 * addresses of an answer are one endpoint (A61). An error leaves the last good answer in place. A watch of a malformed
 * target has no resolver, and an error from the start. Loop thread only. */
#include "xds/resolver/dns_watch.h"

#include "base/mem.h"
#include "base/vec.h"

struct tc_dns_watch {
    struct tc_resolver_env env;
    struct tc_resolver *resolver;
    struct tc_endpoints *endpoints; /* the last good answer; NULL: none yet */
    struct tc_status error;         /* why the last resolution failed; OK: it succeeded, or none is over */
    char *target;
    tc_dns_watch_fn fn;
    void *arg;
};

/* Returns a list with all addresses in one endpoint (A61), in a locality whose names are empty; an empty list if there
 * are no addresses. */
static struct tc_endpoints *endpoints_merge(const struct tc_endpoints *found, const char *hostname)
{
    TC_VEC(struct tc_addr) addrs = {0};
    for (size_t i = 0; i < found->n; i++)
        for (size_t k = 0; k < found->at[i]->n_addrs; k++)
            *tc_vec_push(&addrs) = found->at[i]->addrs[k];
    if (addrs.len == 0)
        return tc_endpoints_empty();
    struct tc_endpoint **at = tc_malloc(sizeof(*at));
    at[0] = tc_endpoint_new(addrs.data, addrs.len);
    at[0]->locality = tc_locality_new(tc_slice_str(""), tc_slice_str(""), tc_slice_str(""));
    at[0]->locality_weight = 1;
    at[0]->hostname = tc_rstr_str(hostname); /* A81: the name, with its port */
    tc_vec_fini(&addrs);
    return tc_endpoints_take(at, 1);
}

static void dns_set_error(struct tc_dns_watch *w, const struct tc_status *why)
{
    tc_status_set(&w->error,
                  tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_RESOLVER, "DNS resolution failed for %s: %s: %s",
                                 w->target, torc_status_code_name(why->code), tc_status_text(why)));
}

static bool on_dns_result(void *arg, struct tc_resolver_result *result)
{
    struct tc_dns_watch *w = arg;
    if (result->endpoints) {
        struct tc_endpoints *list = endpoints_merge(result->endpoints, w->target);
        if (tc_endpoints_eq(list, w->endpoints)) {
            tc_endpoints_unref(list);
        } else {
            tc_endpoints_unref(w->endpoints);
            w->endpoints = list;
        }
        tc_status_set(&w->error, (struct tc_status){0});
    } else {
        dns_set_error(w, &result->status);
    }
    tc_resolver_result_fini(result);
    w->fn(w->arg);
    return true;
}

static bool scheme_is_dns(void *arg, struct tc_slice scheme)
{
    (void)arg;
    return tc_slice_eq_str(scheme, "dns");
}

struct tc_dns_watch *tc_dns_watch_new(const struct tc_resolver_env *env, const char *target, tc_dns_watch_fn fn,
                                      void *arg)
{
    struct tc_dns_watch *w = TC_NEW(struct tc_dns_watch);
    w->env = *env;
    w->env.on_result = on_dns_result;
    w->env.arg = w;
    w->fn = fn;
    w->arg = arg;
    w->target = tc_strdup(target);
    const struct tc_resolver_class *cls = tc_resolver_find(tc_slice_str("dns"));
    char *uri = tc_asprintf("dns:///%s", target), *why = NULL;
    struct tc_buf authority = {0};
    struct tc_target parsed;
    bool good = tc_target_parse(&parsed, uri, scheme_is_dns, NULL, &why) == 0;
    if (good && cls->authority(cls, &parsed, &authority, &why)) {
        w->resolver = cls->create(cls, &parsed, &w->env);
        w->resolver->ops->start(w->resolver);
    } else {
        struct tc_status status =
            tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_RESOLVER, "%s", why ? why : "malformed name");
        dns_set_error(w, &status);
        tc_status_fini(&status);
    }
    if (good)
        tc_target_fini(&parsed);
    tc_buf_fini(&authority);
    tc_free(uri);
    tc_free(why);
    return w;
}

void tc_dns_watch_free(struct tc_dns_watch *w)
{
    if (!w)
        return;
    if (w->resolver)
        w->resolver->ops->shutdown(w->resolver);
    tc_endpoints_unref(w->endpoints);
    tc_status_fini(&w->error);
    tc_free(w->target);
    tc_free(w);
}

void tc_dns_watch_refresh(struct tc_dns_watch *w)
{
    if (w->resolver)
        w->resolver->ops->request_reresolution(w->resolver);
}

void tc_dns_watch_reset_backoff(struct tc_dns_watch *w)
{
    if (w->resolver)
        w->resolver->ops->reset_backoff(w->resolver);
}

struct tc_endpoints *tc_dns_watch_endpoints(const struct tc_dns_watch *w)
{
    return w->endpoints;
}

const struct tc_status *tc_dns_watch_error(const struct tc_dns_watch *w)
{
    return &w->error;
}
