/* Counted names of clusters.
 *
 * A31: the resolver keeps a cluster in its LB config while a config selector or an RPC refers to the cluster. on_used
 * and on_unused tell the resolver when the first reference comes and the last one goes.
 *
 * RPCs may outlive the resolver: tc_cluster_refs_fini sets each `owner` to NULL, and the references end without a
 * callback. Loop thread only. */
#include "xds/resource/cluster_ref.h"

#include "base/mem.h"

struct tc_cluster_ref *tc_cluster_ref_get(struct tc_cluster_refs *refs, struct tc_rstr *name)
{
    struct tc_cluster_ref *r = NULL;
    HASH_FIND(hh, refs->table, name->data, name->len, r);
    if (r)
        return tc_cluster_ref_hold(r);
    r = TC_NEW(struct tc_cluster_ref);
    tc_lref_init(&r->ref);
    r->name = tc_rstr_ref(name);
    r->owner = refs;
    HASH_ADD_KEYPTR(hh, refs->table, r->name->data, r->name->len, r);
    refs->on_used(refs, r->name);
    return r;
}

struct tc_cluster_ref *tc_cluster_ref_hold(struct tc_cluster_ref *r)
{
    tc_lref_inc(&r->ref);
    return r;
}

struct tc_cluster_ref *tc_cluster_ref_find(struct tc_cluster_ref *r, struct tc_slice name)
{
    struct tc_cluster_ref *other = NULL;
    if (r->owner)
        HASH_FIND(hh, r->owner->table, name.data, name.len, other);
    return other;
}

void tc_cluster_ref_release(struct tc_cluster_ref *r)
{
    if (!r || !tc_lref_dec(&r->ref))
        return;
    if (r->owner) {
        HASH_DEL(r->owner->table, r);
        r->owner->on_unused(r->owner, r->name);
    }
    tc_rstr_unref(r->name);
    tc_free(r);
}

void tc_cluster_refs_fini(struct tc_cluster_refs *refs)
{
    struct tc_cluster_ref *r, *next;
    HASH_ITER(hh, refs->table, r, next)
    {
        HASH_DEL(refs->table, r);
        r->owner = NULL;
    }
}
