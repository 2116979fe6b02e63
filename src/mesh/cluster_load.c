/* Keys are pointers: one multiplication mixes them better than need be, and every RPC looks one up. Ahead of all
 * headers, some of which include uthash.h. */
#define HASH_FUNCTION(key, len, hash)                                                                                  \
    ((hash) = (unsigned)(((uint64_t) * (void *const *)(key)*UINT64_C(0x9e3779b97f4a7c15)) >> 32))
#include "mesh/cluster_load.h"

#include <uthash.h>

#include "base/mem.h"
#include "proto/unpack.h"
#include "xds/client.h"

#include "pb/xds/data/orca/v3/orca_load_report.pb-c.h"

#define ORCA_TRAILER "endpoint-load-metrics-bin" /* A51 */

/* Localities come as shared objects; the next object with the same names may take another's place. */
struct known {
    struct tc_locality *key; /* NULL: of endpoints without a locality (LOGICAL_DNS) */
    struct tc_load_locality *counts;
    UT_hash_handle hh;
};

/* Lives with one snapshot of its cluster, so that what it knows of localities goes with their list. */
struct tc_cluster_load {
    struct tc_lref ref;
    struct tc_load_cluster *counts;
    const struct tc_cluster *cluster; /* a reference; which metrics are wanted (A85) */
    struct known *known;
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
    l->cluster = tc_cluster_of(tc_xds_resource_ref((struct tc_xds_resource *)(uintptr_t)&c->head));
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
    struct known *k, *next;
    HASH_ITER(hh, l->known, k, next)
    {
        HASH_DEL(l->known, k);
        tc_locality_unref(k->key);
        tc_load_locality_unref(k->counts);
        tc_free(k);
    }
    tc_load_cluster_unref(l->counts);
    tc_xds_resource_unref((struct tc_xds_resource *)(uintptr_t)&l->cluster->head);
    tc_free(l);
}

void tc_cluster_load_drop(struct tc_cluster_load *l, struct tc_rstr *category)
{
    if (l)
        tc_load_cluster_drop(l->counts, category);
}

/* --- localities --- */

static struct tc_load_locality *counts_of(struct tc_cluster_load *l, struct tc_locality *locality)
{
    const struct tc_slice none = tc_slice_of(NULL, 0);
    struct known *k = NULL;
    HASH_FIND_PTR(l->known, &locality, k);
    if (k)
        return k->counts;
    k = TC_NEW(struct known);
    k->key = locality ? tc_locality_ref(locality) : NULL;
    k->counts = locality ? tc_load_locality_get(l->counts, tc_rstr_slice(locality->region),
                                                tc_rstr_slice(locality->zone), tc_rstr_slice(locality->sub_zone))
                         : tc_load_locality_get(l->counts, none, none, none);
    HASH_ADD_PTR(l->known, key, k);
    return k->counts;
}

/* --- metrics --- */

typedef Xds__Data__Orca__V3__OrcaLoadReport orca_report;

static void add_named(struct tc_load_locality *l, const char *key, double value)
{
    struct tc_buf name = {0};
    tc_buf_printf(&name, "named_metrics.%s", key); /* A85 */
    tc_load_locality_metric(l, TC_LOAD_NAMED, tc_buf_slice(&name), value);
    tc_buf_fini(&name);
}

static bool is_listed(const struct tc_cluster *c, struct tc_slice name)
{
    size_t low = 0, high = c->n_lrs_names;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = tc_slice_cmp(name, c->lrs_names[middle]);
        if (order == 0)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return c->lrs_metrics & TC_LRS_ALL_NAMED;
}

static void add_report(struct tc_load_locality *l, const struct tc_cluster *c, orca_report *m)
{
    const struct tc_slice none = tc_slice_of(NULL, 0);
    m->n_named_metrics = tc_proto_map_dedupe((void **)m->named_metrics, m->n_named_metrics);
    if (c->lrs_metrics & TC_LRS_CPU)
        tc_load_locality_metric(l, TC_LOAD_CPU, none, m->cpu_utilization);
    if (c->lrs_metrics & TC_LRS_MEM)
        tc_load_locality_metric(l, TC_LOAD_MEM, none, m->mem_utilization);
    if (c->lrs_metrics & TC_LRS_APPLICATION)
        tc_load_locality_metric(l, TC_LOAD_APPLICATION, none, m->application_utilization);
    for (size_t i = 0; i < m->n_named_metrics; i++)
        if (is_listed(c, tc_slice_str(m->named_metrics[i]->key)))
            add_named(l, m->named_metrics[i]->key, m->named_metrics[i]->value);
}

/* A report that cannot be read says nothing. */
static void add_metrics(struct tc_load_locality *l, const struct tc_cluster *c, struct tc_slice bytes)
{
    struct tc_arena arena;
    struct tc_faults faults;
    ProtobufCMessage *m = NULL;
    tc_arena_init(&arena, 0, tc_unpack_budget(bytes.len));
    tc_faults_init(&faults);
    if (tc_unpack(&xds__data__orca__v3__orca_load_report__descriptor, bytes, NULL, &arena, &m, &faults) == 0)
        add_report(l, c, (orca_report *)m);
    tc_faults_fini(&faults);
    tc_arena_fini(&arena);
}

/* --- RPCs --- */

struct tracker {
    struct tc_call_tracker base;
    struct tc_cluster_load *load;
    struct tc_load_locality *counts;
};

static void on_done(struct tc_call_tracker *base, const struct tc_status *status, const struct tc_headers *trailers)
{
    struct tracker *t = TC_CONTAINER_OF(base, struct tracker, base);
    const struct tc_cluster *c = t->load->cluster;
    const struct tc_header *orca =
        trailers && (c->lrs_metrics || c->n_lrs_names) ? tc_headers_find(trailers, tc_slice_str(ORCA_TRAILER)) : NULL;
    if (orca)
        add_metrics(t->counts, c, orca->value);
    if (status)
        tc_load_locality_finished(t->counts, tc_status_ok(status));
    else
        tc_load_locality_revoked(t->counts); /* no RPC came of the pick */
    tc_load_locality_unref(t->counts);
    tc_cluster_load_unref(t->load);
}

void tc_cluster_load_track(struct tc_cluster_load *l, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct tracker *t = l ? tc_arena_calloc(args->arena, 1, sizeof(*t)) : NULL;
    if (!t)
        return;
    struct tc_call_tracker **tail = &out->trackers;
    t->base.on_done = on_done;
    t->load = tc_cluster_load_ref(l);
    t->counts = tc_load_locality_ref(counts_of(l, out->subchannel->endpoint->locality));
    tc_load_locality_started(t->counts);
    while (*tail)
        tail = &(*tail)->next;
    *tail = &t->base;
}
