/* The RPCs of a cluster, counted for load reports.
 *
 * tc_cluster_load_track finds the counts of the endpoint's locality (or of the endpoint, if the LRS server asks for
 * loads by endpoint), counts one started RPC and adds a tracker, which counts the end. If the cluster wants metrics
 * (A85), the tracker also reads the ORCA report in the trailers. The counts belong to a load store of the xDS client
 * (xds/load). The client's LRS stream takes its reports from the store; a remote client sends the counts to its origin
 * instead (xds/client/remote_load.h). Recorder and trackers hold references of the counts, which may outlive the store:
 * nobody reports them then.
 *
 * xds_cluster_impl owns a recorder until tc_cluster_load_stop; its limits and the trackers hold references. Loop thread
 * only. */

/* Every RPC searches the table of localities by pointer: one multiplication mixes pointers well enough. Defined in
 * front of all headers, since some include base/table.h. */
#define HASH_FUNCTION(key, len, hash)                                                                                  \
    ((hash) = (unsigned)(((uint64_t)(uintptr_t) * (void *const *)(key)*UINT64_C(0x9e3779b97f4a7c15)) >> 32))
#include "xds/lb/load_recorder.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/table.h"
#include "lb/orca.h"
#include "xds/client/client.h"

/* The counts of a locality, found by the pointer to the tc_locality. The reference of `key` keeps that pointer from
 * being reused. */
struct known_locality {
    struct tc_locality *key;         /* a reference; NULL: endpoints without a locality */
    struct tc_load_locality *counts; /* a reference */
    UT_hash_handle hh;
};

/* xds_cluster_impl makes a recorder for each snapshot of its cluster, so that `known` does not collect old localities.
 * RPCs and pickers may hold an old recorder longer. */
struct tc_cluster_load {
    struct tc_lref ref;
    struct tc_load_cluster *counts;   /* a reference, and a use until tc_cluster_load_stop */
    const struct tc_cluster *cluster; /* a reference; says which metrics are wanted (A85) */
    struct known_locality *known;     /* uthash by key */
};

struct tc_cluster_load *tc_cluster_load_new(const struct tc_xds_config *xds, const struct tc_cluster_config *cluster)
{
    const struct tc_cluster *c = cluster->cluster;
    if (!c->has_lrs || !c->lrs_server || !xds->client)
        return NULL;
    struct tc_load_cluster *counts = tc_xds_client_load(xds->client, c->lrs_server, cluster->name, c->eds_service);
    if (!counts)
        return NULL;
    struct tc_cluster_load *l = TC_NEW(struct tc_cluster_load);
    tc_lref_init(&l->ref);
    l->counts = counts;
    l->cluster = tc_cluster_of(tc_xds_resource_ref((struct tc_xds_resource *)(uintptr_t)&c->base.head));
    return l;
}

void tc_cluster_load_stop(struct tc_cluster_load *l)
{
    if (!l)
        return;
    tc_load_cluster_unuse(l->counts);
    tc_cluster_load_unref(l);
}

struct tc_cluster_load *tc_cluster_load_ref(struct tc_cluster_load *l)
{
    if (l)
        tc_lref_inc(&l->ref);
    return l;
}

void tc_cluster_load_unref(struct tc_cluster_load *l)
{
    if (!l || !tc_lref_dec(&l->ref))
        return;
    struct known_locality *k, *next;
    HASH_ITER(hh, l->known, k, next)
    {
        HASH_DEL(l->known, k);
        tc_locality_unref(k->key);
        tc_load_locality_unref(k->counts);
        tc_free(k);
    }
    tc_load_cluster_unref(l->counts);
    tc_xds_resource_unref((struct tc_xds_resource *)(uintptr_t)&l->cluster->base.head);
    tc_free(l);
}

void tc_cluster_load_drop(struct tc_cluster_load *l, struct tc_rstr *category)
{
    if (l)
        tc_load_cluster_drop(l->counts, category, 1);
}

/* --- localities --- */

/* Returns the counts of the locality (NULL: of endpoints without one), borrowed from the recorder. */
static struct tc_load_locality *load_counts_of(struct tc_cluster_load *l, struct tc_locality *locality)
{
    const struct tc_slice none = tc_slice_of(NULL, 0);
    struct known_locality *k = NULL;
    HASH_FIND_PTR(l->known, &locality, k);
    if (k)
        return k->counts;
    k = TC_NEW(struct known_locality);
    k->key = locality ? tc_locality_ref(locality) : NULL;
    k->counts = locality ? tc_load_locality_get(l->counts, tc_rstr_slice(locality->region),
                                                tc_rstr_slice(locality->zone), tc_rstr_slice(locality->sub_zone))
                         : tc_load_locality_get(l->counts, none, none, none);
    HASH_ADD_PTR(l->known, key, k);
    return k->counts;
}

/* Returns the counts of an endpoint of the locality, with one more reference. */
static struct tc_load_locality *endpoint_counts(struct tc_cluster_load *l, struct tc_load_locality *locality,
                                                const struct tc_addr *addr)
{
    struct tc_buf text = {0};
    tc_addr_format(addr, &text);
    struct tc_load_locality *counts = tc_load_endpoint_get(l->counts, locality, tc_buf_slice(&text));
    tc_buf_fini(&text);
    return counts;
}

/* --- metrics --- */

static int compare_by_bytes(const void *a, const void *b)
{
    return tc_slice_cmp(*(const struct tc_slice *)a, *(const struct tc_slice *)b);
}

/* Returns whether the cluster wants the named metric: all are wanted, or the sorted list has the name. */
static bool orca_is_wanted(const struct tc_cluster *c, struct tc_slice name)
{
    return (c->lrs_metrics & TC_LRS_ALL_NAMED) ||
           (c->n_lrs_names && bsearch(&name, c->lrs_names, c->n_lrs_names, sizeof(name), compare_by_bytes));
}

/* The values of one report that a cluster may want. */
struct orca_values {
    double fields[TC_ORCA_APPLICATION + 1]; /* by number; only fields without names are read; 0 if not in the report */
    TC_VEC(struct tc_orca_value) named;     /* named_metrics that are wanted, sorted by compare_values */
};

/* Sorts by name, and values of one name by their order in the report: names point into the report. */
static int compare_values(const void *pa, const void *pb)
{
    const struct tc_orca_value *a = pa, *b = pb;
    int order = tc_slice_cmp(a->name, b->name);
    return order ? order : (a->name.data > b->name.data) - (a->name.data < b->name.data);
}

/* Reads the report. Returns false if it is malformed; the caller frees out->named in either case. */
static bool orca_collect(const struct tc_cluster *c, struct tc_slice report, struct orca_values *out)
{
    struct tc_orca_value v;
    while (tc_orca_next(&report, &v)) {
        if (v.field == TC_ORCA_NAMED && orca_is_wanted(c, v.name))
            *tc_vec_push(&out->named) = v;
        else if (v.field <= TC_ORCA_APPLICATION)
            out->fields[v.field] = v.value;
    }
    if (out->named.len)
        qsort(out->named.data, out->named.len, sizeof(v), compare_values);
    return report.len == 0;
}

/* Adds a value of the named metric `key` of the report. */
static void orca_add_named(struct tc_load_locality *l, struct tc_slice key, double value)
{
    struct tc_buf name = {0};
    tc_buf_append_str(&name, "named_metrics."); /* A85 */
    tc_buf_append_slice(&name, key);
    tc_load_locality_metric(l, TC_LOAD_NAMED, tc_buf_slice(&name), 1, value);
    tc_buf_fini(&name);
}

/* Adds the metrics that the cluster wants; of several values of one name the last. Ignores a malformed report. */
static void orca_add_metrics(struct tc_load_locality *l, const struct tc_cluster *c, struct tc_slice report)
{
    const struct tc_slice none = tc_slice_of(NULL, 0);
    struct orca_values all = {.named = {0}};
    bool good = orca_collect(c, report, &all);
    if (good && c->lrs_metrics & TC_LRS_CPU)
        tc_load_locality_metric(l, TC_LOAD_CPU, none, 1, all.fields[TC_ORCA_CPU]);
    if (good && c->lrs_metrics & TC_LRS_MEM)
        tc_load_locality_metric(l, TC_LOAD_MEM, none, 1, all.fields[TC_ORCA_MEM]);
    if (good && c->lrs_metrics & TC_LRS_APPLICATION)
        tc_load_locality_metric(l, TC_LOAD_APPLICATION, none, 1, all.fields[TC_ORCA_APPLICATION]);
    const struct tc_orca_value *v = all.named.data;
    for (size_t i = 0; good && i < all.named.len; i++)
        if (i + 1 == all.named.len || !tc_slice_eq(v[i].name, v[i + 1].name))
            orca_add_named(l, v[i].name, v[i].value);
    tc_vec_fini(&all.named);
}

/* --- RPCs --- */

/* In the call's arena. */
struct load_tracker {
    struct tc_call_tracker base;
    struct tc_cluster_load *load;    /* a reference */
    struct tc_load_locality *counts; /* of the locality or the endpoint; a reference */
};

static void tracker_on_done(struct tc_call_tracker *base, const struct tc_status *status,
                            const struct tc_headers *trailers)
{
    struct load_tracker *t = TC_CONTAINER_OF(base, struct load_tracker, base);
    const struct tc_cluster *c = t->load->cluster;
    struct tc_slice report = {0};
    if (c->lrs_metrics || c->n_lrs_names)
        report = tc_orca_of_trailers(trailers);
    if (report.data)
        orca_add_metrics(t->counts, c, report);
    if (status)
        tc_load_locality_finished(t->counts, tc_status_ok(status));
    else
        tc_load_locality_revoked(t->counts); /* the pick led to no RPC */
    tc_load_locality_unref(t->counts);
    tc_cluster_load_unref(t->load);
}

void tc_cluster_load_track(struct tc_cluster_load *l, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct load_tracker *t = l ? tc_arena_calloc(args->arena, 1, sizeof(*t)) : NULL;
    if (!t)
        return;
    t->base.on_done = tracker_on_done;
    t->load = tc_cluster_load_ref(l);
    t->counts = load_counts_of(l, out->subchannel->endpoint->locality);
    t->counts = TC_UNLIKELY(l->counts->by_endpoint) ? endpoint_counts(l, t->counts, &out->subchannel->addr)
                                                    : tc_load_locality_ref(t->counts);
    tc_load_locality_started(t->counts);
    tc_pick_track(out, &t->base);
}
