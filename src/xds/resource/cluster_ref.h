/* The clusters that are in use: by the routes of a selector, or by RPCs that chose them (A31, A74). While a cluster has
 * a reference it stays in the LB policy's config and subscribed. Loop thread only. */
#ifndef TC_XDS_RESOURCE_CLUSTER_REF_H
#define TC_XDS_RESOURCE_CLUSTER_REF_H

#include "base/ref.h"
#include "base/rstr.h"
#include "base/table.h"

struct tc_cluster_refs;

/* One cluster in use. */
struct tc_cluster_ref {
    struct tc_lref ref;
    struct tc_rstr *name;
    struct tc_cluster_refs *owner; /* NULL: the resolver is gone */
    UT_hash_handle hh;             /* the owner's */
};

/* Embedded in the resolver. */
struct tc_cluster_refs {
    struct tc_cluster_ref *table; /* by name */
    /* Called when a cluster has got its first reference, and when it has lost the last one and has left `table`. The
     * name is borrowed for the call. */
    void (*on_used)(struct tc_cluster_refs *refs, struct tc_rstr *name);
    void (*on_unused)(struct tc_cluster_refs *refs, struct tc_rstr *name);
};

/* Returns the cluster of that name with one more reference. If no cluster has that name, makes one and calls
 * on_used. */
struct tc_cluster_ref *tc_cluster_ref_get(struct tc_cluster_refs *refs, struct tc_rstr *name);
/* Takes one more reference and returns `r`. */
struct tc_cluster_ref *tc_cluster_ref_hold(struct tc_cluster_ref *r);
/* Returns the cluster of that name from the owner of `r`, borrowed; NULL if it is not in use or the owner is gone. */
struct tc_cluster_ref *tc_cluster_ref_find(struct tc_cluster_ref *r, struct tc_slice name);
/* Gives back a reference. NULL is allowed. */
void tc_cluster_ref_release(struct tc_cluster_ref *r);
/* Empties the table. References stay valid, and end later without a callback. */
void tc_cluster_refs_fini(struct tc_cluster_refs *refs);

#endif
