/* Clusters that are in use: by routes of the present selector, and by RPCs that chose them (A31, A74). While a cluster
 * is held it stays in the LB policy's config and subscribed. Loop thread only. */
#ifndef TC_MESH_CLUSTER_REF_H
#define TC_MESH_CLUSTER_REF_H

#include <uthash.h>

#include "base/ref.h"
#include "base/rstr.h"

struct tc_cluster_refs;

struct tc_cluster_ref {
    struct tc_lref ref;
    struct tc_rstr *name;
    struct tc_cluster_refs *owner; /* NULL: the resolver is gone */
    UT_hash_handle hh;
};

/* Embedded in the resolver. */
struct tc_cluster_refs {
    struct tc_cluster_ref *table; /* by name */
    /* A cluster comes into use, or nothing holds it any more (it is off the table by then). */
    void (*on_used)(struct tc_cluster_refs *refs, struct tc_rstr *name);
    void (*on_unused)(struct tc_cluster_refs *refs, struct tc_rstr *name);
};

/* One more holder. */
struct tc_cluster_ref *tc_cluster_ref_get(struct tc_cluster_refs *refs, struct tc_rstr *name);
struct tc_cluster_ref *tc_cluster_ref_hold(struct tc_cluster_ref *r);
/* Another of those in use with `r`, by name: borrowed; NULL: there is none. */
struct tc_cluster_ref *tc_cluster_ref_find(struct tc_cluster_ref *r, struct tc_slice name);
void tc_cluster_ref_release(struct tc_cluster_ref *r);
/* Lets go of those that are still held; no callback comes after. */
void tc_cluster_refs_fini(struct tc_cluster_refs *refs);

#endif
