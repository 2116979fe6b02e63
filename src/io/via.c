#include "base/mem.h"
#include "io/proxy.h"

struct tc_via *tc_via_new(const struct tc_addr *proxy, struct tc_rstr *target, struct tc_rstr *authorization)
{
    struct tc_via *v = TC_NEW(struct tc_via);
    tc_ref_init(&v->ref);
    if (proxy)
        v->proxy = tc_addr_ref(proxy);
    v->target = tc_rstr_ref(target);
    v->authorization = tc_rstr_ref(authorization);
    return v;
}

struct tc_via *tc_via_ref(struct tc_via *v)
{
    if (v)
        tc_ref_inc(&v->ref);
    return v;
}

void tc_via_unref(struct tc_via *v)
{
    if (!v || !tc_ref_dec(&v->ref))
        return;
    tc_addr_fini(&v->proxy);
    tc_rstr_unref(v->target);
    tc_rstr_unref(v->authorization);
    tc_free(v);
}

bool tc_via_eq(const struct tc_via *a, const struct tc_via *b)
{
    if (a == b)
        return true;
    return a && b && a->proxy.len == b->proxy.len && (a->proxy.len == 0 || tc_addr_eq(&a->proxy, &b->proxy)) &&
           tc_rstr_eq(a->target, b->target) && tc_rstr_eq(a->authorization, b->authorization);
}

const struct tc_addr *tc_via_dial(const struct tc_addr *addr)
{
    return addr->via && addr->via->proxy.len ? &addr->via->proxy : addr;
}
