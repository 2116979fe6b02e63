/* A resolver whose answer is known from the start (ipv4, ipv6, unix, unix-abstract, vsock, fd). It reports once, by a
 * task, since a resolver must not report from inside start. It ignores requests for re-resolution and a refusal of its
 * result. Loop thread only. */
#include "base/mem.h"
#include "resolver/builtin.h"

struct fixed {
    struct tc_resolver base;
    struct tc_endpoints *endpoints;
    struct tc_task report;
};

static void on_report(struct tc_task *task)
{
    struct fixed *f = TC_CONTAINER_OF(task, struct fixed, report);
    struct tc_resolver_result result = {.endpoints = tc_endpoints_ref(f->endpoints)};
    f->base.env->on_result(f->base.env->arg, &result);
}

static void fixed_report(struct tc_resolver *r)
{
    struct fixed *f = TC_CONTAINER_OF(r, struct fixed, base);
    tc_loop_defer(r->env->loop, &f->report);
}

static void fixed_nothing(struct tc_resolver *r TC_UNUSED) {}

static void fixed_shutdown(struct tc_resolver *r)
{
    struct fixed *f = TC_CONTAINER_OF(r, struct fixed, base);
    tc_task_cancel(&f->report);
    tc_endpoints_unref(f->endpoints);
    tc_free(f);
}

static const struct tc_resolver_ops fixed_ops = {
    .start = fixed_report,
    .request_reresolution = fixed_nothing,
    .reset_backoff = fixed_nothing,
    .shutdown = fixed_shutdown,
};

struct tc_resolver *tc_fixed_resolver_new(const struct tc_resolver_env *env, struct tc_endpoints *endpoints)
{
    struct fixed *f = TC_NEW(struct fixed);
    f->base.ops = &fixed_ops;
    f->base.env = env;
    f->endpoints = endpoints;
    tc_task_init(&f->report, on_report);
    return &f->base;
}

struct tc_endpoints *tc_endpoints_of_addrs(const struct tc_addr *addrs, size_t n)
{
    struct tc_endpoint **at = n ? tc_calloc(n, sizeof(struct tc_endpoint *)) : NULL;
    for (size_t i = 0; i < n; i++)
        at[i] = tc_endpoint_new(&addrs[i], 1);
    return tc_endpoints_take(at, n);
}
