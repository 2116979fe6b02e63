/* Counts of RPCs for one LRS server (A27, A64, A85).
 *
 *   store      clusters by {cluster, EDS service}
 *   cluster    drops by category; localities
 *   locality   RPCs in progress, issued, succeeded, failed; metrics of backends
 *   endpoint   the same counts for one address of a locality, while the server asks for them
 *
 * Every count but the RPCs in progress has two numbers: `now` is in no report yet, `reported` is in the report under
 * way. load_report.c moves `now` to `reported` when it takes a report out, and back if the report was not handed over.
 *
 * A cluster has references (objects that may still count) and users (objects that want it reported). The store is in
 * use while any cluster has a user. A cluster that loses its last user stays until its counts were reported, its RPCs
 * are over, and only the store refers to it. The cluster goes at once if there are MAX_IDLE_CLUSTERS such clusters
 * already, and with the next report if the server does not ask for the cluster. RPCs that end after their cluster went,
 * or after the store was freed, count for nobody: cluster->store is NULL then.
 *
 * Fast path: tc_load_locality_started and _finished, a few additions on the loop's thread without a lock. */
#include "xds/load/load_store.h"

#include <math.h>

#include "base/mem.h"
#include "xds/load/load_store_internal.h"

enum {
    MAX_METRICS = 256,
    MAX_ENDPOINT_METRICS = 16,
    MAX_ENDPOINTS = 65536, /* of a cluster */
    /* Three limits of a cluster: a control plane may rename localities and categories again and again, and take no
     * report. */
    MAX_LOCALITIES = 65536,
    MAX_CATEGORIES = 1024,
    MAX_NAME_BYTES = 16 << 20,
    /* Clusters without users that wait for a report. */
    MAX_IDLE_CLUSTERS = 4096,
};

/* --- the store --- */

struct tc_load_store *tc_load_store_new(void (*on_users)(void *arg), void *arg)
{
    struct tc_load_store *s = TC_NEW(struct tc_load_store);
    tc_list_init(&s->clusters);
    tc_list_init(&s->sources);
    s->on_users = on_users;
    s->arg = arg;
    return s;
}

void tc_load_store_by_endpoint(struct tc_load_store *s, bool by_endpoint)
{
    if (s->by_endpoint == by_endpoint)
        return;
    s->by_endpoint = by_endpoint;
    TC_LIST_FOREACH(it, &s->clusters)
    TC_CONTAINER_OF(it, struct tc_load_cluster, link)->by_endpoint = by_endpoint;
    TC_LIST_FOREACH(it, &s->sources)
    {
        struct tc_load_source *source = TC_CONTAINER_OF(it, struct tc_load_source, link);
        source->by_endpoint = by_endpoint;
        source->ask(source);
    }
}

bool tc_load_store_in_use(const struct tc_load_store *s)
{
    return s->n_used != 0;
}

/* Removes the cluster from its store. May free the cluster. */
static void cluster_detach(struct tc_load_cluster *c)
{
    struct tc_load_store *s = c->store;
    if (c->users)
        s->n_used--;
    else
        s->n_idle--;
    c->store = NULL;
    c->by_endpoint = false;
    tc_list_remove(&c->link);
    HASH_DEL(s->by_name, c);
    tc_load_cluster_unref(c);
}

void tc_load_store_free(struct tc_load_store *s)
{
    while (!tc_list_empty(&s->clusters))
        cluster_detach(TC_CONTAINER_OF(s->clusters.next, struct tc_load_cluster, link));
    s->on_gathered = NULL;
    while (!tc_list_empty(&s->sources))
        tc_load_source_remove(TC_CONTAINER_OF(s->sources.next, struct tc_load_source, link));
    tc_free(s);
}

static void store_users_changed(struct tc_load_store *s)
{
    if (s->on_users)
        s->on_users(s->arg);
}

/* --- clusters --- */

struct tc_load_cluster *tc_load_cluster_find(struct tc_load_store *s, struct tc_rstr *cluster, struct tc_rstr *service,
                                             uint64_t now_ns)
{
    struct tc_rstr *key = tc_rstr_pair(cluster, service);
    struct tc_load_cluster *c;
    HASH_FIND(hh, s->by_name, key->data, key->len, c);
    if (c) {
        tc_rstr_unref(key);
        return c;
    }
    c = TC_NEW(struct tc_load_cluster);
    tc_lref_init(&c->ref);
    c->store = s;
    c->cluster = tc_rstr_ref(cluster);
    c->service = tc_rstr_ref(service);
    c->since_ns = now_ns;
    c->by_endpoint = s->by_endpoint;
    c->key = key;
    tc_list_append(&s->clusters, &c->link);
    HASH_ADD_KEYPTR(hh, s->by_name, key->data, key->len, c);
    s->n_idle++;
    return c;
}

struct tc_load_cluster *tc_load_cluster_get(struct tc_load_store *s, struct tc_rstr *cluster, struct tc_rstr *service,
                                            uint64_t now_ns)
{
    struct tc_load_cluster *c = tc_load_cluster_find(s, cluster, service, now_ns);
    tc_lref_inc(&c->ref);
    if (c->users++ == 0) {
        s->n_idle--;
        if (s->n_used++ == 0)
            store_users_changed(s);
        if (s->on_use)
            s->on_use(s->on_use_arg, c, true);
    }
    return c;
}

void tc_load_cluster_limit(struct tc_load_cluster *c)
{
    if (c->users == 0)
        tc_load_cluster_sweep(c, c->store->n_idle > MAX_IDLE_CLUSTERS);
}

void tc_load_cluster_unuse(struct tc_load_cluster *c)
{
    struct tc_load_store *s = c->store;
    if (--c->users || !s)
        return;
    bool was_last = --s->n_used == 0;
    s->n_idle++;
    tc_load_cluster_limit(c);
    if (was_last)
        store_users_changed(s);
    if (s->on_use)
        s->on_use(s->on_use_arg, c, false);
}

/* Removes endpoints from the table: those with neither counts nor RPCs in progress that nobody else holds, or all. */
static void sweep_endpoints(struct tc_load_cluster *c, struct tc_load_locality *l, bool all)
{
    struct tc_load_locality *e, *next;
    HASH_ITER(hh, l->endpoints, e, next)
    if (all || (e->ref.n == 1 && tc_load_locality_is_zero(e))) {
        HASH_DEL(l->endpoints, e);
        c->n_endpoints--;
        tc_load_locality_unref(e);
    }
}

static void cluster_remove_locality(struct tc_load_cluster *c, struct tc_load_locality *l)
{
    c->name_bytes -= l->key->len;
    HASH_DEL(c->localities, l);
    tc_load_locality_unref(l);
}

void tc_load_cluster_unref(struct tc_load_cluster *c)
{
    if (!c || !tc_lref_dec(&c->ref))
        return;
    struct tc_load_locality *l, *next;
    HASH_ITER(hh, c->localities, l, next)
    {
        sweep_endpoints(c, l, true);
        cluster_remove_locality(c, l);
    }
    for (size_t i = 0; i < c->drops.len; i++)
        tc_rstr_unref(c->drops.data[i].category);
    tc_vec_fini(&c->drops);
    tc_rstr_unref(c->key);
    tc_rstr_unref(c->cluster);
    tc_rstr_unref(c->service);
    tc_free(c);
}

void tc_load_cluster_drop(struct tc_load_cluster *c, struct tc_rstr *category, uint64_t n)
{
    c->dropped.now += n;
    if (!category)
        return;
    for (size_t i = 0; i < c->drops.len; i++)
        if (tc_rstr_eq(c->drops.data[i].category, category)) {
            c->drops.data[i].count.now += n;
            return;
        }
    if (c->drops.len == MAX_CATEGORIES || c->name_bytes + category->len > MAX_NAME_BYTES)
        return;
    c->name_bytes += category->len;
    *tc_vec_push(&c->drops) = (struct tc_load_drop){tc_rstr_ref(category), {.now = n}};
}

static bool count_is_zero(const struct tc_load_count *n)
{
    return n->now == 0 && n->reported == 0;
}

bool tc_load_locality_is_zero(const struct tc_load_locality *l)
{
    return l->in_progress == 0 && count_is_zero(&l->issued) && count_is_zero(&l->succeeded) &&
           count_is_zero(&l->failed);
}

void tc_load_cluster_sweep(struct tc_load_cluster *c, bool unasked)
{
    struct tc_load_locality *l, *next;
    HASH_ITER(hh, c->localities, l, next)
    {
        sweep_endpoints(c, l, false);
        if (l->ref.n == 1 && tc_load_locality_is_zero(l))
            cluster_remove_locality(c, l);
    }
    if (c->users == 0 && (unasked || (c->ref.n == 1 && !c->localities && count_is_zero(&c->dropped))))
        cluster_detach(c);
}

/* --- localities --- */

static bool locality_has_room(const struct tc_load_cluster *c, const struct tc_rstr *key)
{
    return HASH_COUNT(c->localities) < MAX_LOCALITIES && c->name_bytes + key->len <= MAX_NAME_BYTES;
}

struct tc_load_locality *tc_load_locality_get(struct tc_load_cluster *c, struct tc_slice region, struct tc_slice zone,
                                              struct tc_slice sub_zone)
{
    const struct tc_slice none = tc_slice_of(NULL, 0);
    struct tc_rstr *names[] = {tc_rstr_new(region.data, region.len), tc_rstr_new(zone.data, zone.len),
                               tc_rstr_new(sub_zone.data, sub_zone.len)};
    struct tc_rstr *pair = tc_rstr_pair(names[0], names[1]), *key = tc_rstr_pair(pair, names[2]);
    struct tc_load_locality *l;
    tc_rstr_unref(pair);
    HASH_FIND(hh, c->localities, key->data, key->len, l);
    if (l || (!locality_has_room(c, key) && (region.len || zone.len || sub_zone.len))) {
        tc_rstr_unref(key);
        for (size_t i = 0; i < TC_ARRAY_LEN(names); i++)
            tc_rstr_unref(names[i]);
        return l ? tc_load_locality_ref(l) : tc_load_locality_get(c, none, none, none);
    }
    l = TC_NEW(struct tc_load_locality);
    tc_lref_init(&l->ref);
    l->region = names[0];
    l->zone = names[1];
    l->sub_zone = names[2];
    l->key = key;
    c->name_bytes += key->len;
    HASH_ADD_KEYPTR(hh, c->localities, key->data, key->len, l);
    return tc_load_locality_ref(l);
}

struct tc_load_locality *tc_load_endpoint_get(struct tc_load_cluster *c, struct tc_load_locality *l,
                                              struct tc_slice address)
{
    struct tc_load_locality *e;
    HASH_FIND(hh, l->endpoints, address.data, address.len, e);
    if (!e && c->n_endpoints == MAX_ENDPOINTS)
        return tc_load_locality_ref(l);
    if (!e) {
        e = TC_NEW(struct tc_load_locality);
        tc_lref_init(&e->ref);
        e->of = tc_load_locality_ref(l);
        e->address = tc_rstr_new(address.data, address.len);
        HASH_ADD_KEYPTR(hh, l->endpoints, e->address->data, e->address->len, e);
        c->n_endpoints++;
    }
    return tc_load_locality_ref(e);
}

struct tc_load_locality *tc_load_locality_ref(struct tc_load_locality *l)
{
    tc_lref_inc(&l->ref);
    return l;
}

void tc_load_locality_unref(struct tc_load_locality *l)
{
    if (!l || !tc_lref_dec(&l->ref))
        return;
    for (size_t i = 0; i < l->metrics.len; i++)
        tc_rstr_unref(l->metrics.data[i].name);
    tc_vec_fini(&l->metrics);
    tc_rstr_unref(l->region);
    tc_rstr_unref(l->zone);
    tc_rstr_unref(l->sub_zone);
    tc_rstr_unref(l->key);
    tc_rstr_unref(l->address);
    tc_load_locality_unref(l->of);
    tc_free(l);
}

void tc_load_locality_started(struct tc_load_locality *l)
{
    l->in_progress++;
    l->issued.now++;
    if (l->of)
        tc_load_locality_started(l->of);
}

void tc_load_locality_finished(struct tc_load_locality *l, bool success)
{
    l->in_progress -= l->in_progress > 0; /* tc_load_store_add may have subtracted the start */
    if (success)
        l->succeeded.now++;
    else
        l->failed.now++;
    if (l->of)
        tc_load_locality_finished(l->of, success);
}

void tc_load_locality_revoked(struct tc_load_locality *l)
{
    l->in_progress -= l->in_progress > 0;
    if (l->issued.now)
        l->issued.now--;
    else
        l->failed.now++;
    if (l->of)
        tc_load_locality_revoked(l->of);
}

static struct tc_load_metric_sum *metric_find(struct tc_load_locality *l, enum tc_load_metric kind,
                                              struct tc_slice name)
{
    for (size_t i = 0; i < l->metrics.len; i++) {
        struct tc_load_metric_sum *m = &l->metrics.data[i];
        if (m->kind == kind && (kind != TC_LOAD_NAMED || tc_slice_eq(tc_rstr_slice(m->name), name)))
            return m;
    }
    return NULL;
}

/* An endpoint's metric shares the name object of its locality's metric, so that many endpoints cost no memory for
 * names. */
void tc_load_locality_add_metric(struct tc_load_locality *l, enum tc_load_metric kind, struct tc_slice name, uint64_t n,
                                 double value)
{
    if (!isfinite(value))
        return;
    struct tc_load_metric_sum *m = metric_find(l, kind, name);
    if (!m) {
        const struct tc_load_metric_sum *whole = l->of ? metric_find(l->of, kind, name) : NULL;
        if (l->metrics.len == (l->of ? MAX_ENDPOINT_METRICS : MAX_METRICS) || (l->of && !whole))
            return;
        m = tc_vec_push(&l->metrics);
        m->kind = kind;
        m->name = whole ? tc_rstr_ref(whole->name) : kind == TC_LOAD_NAMED ? tc_rstr_new(name.data, name.len) : NULL;
    }
    m->requests.now += n;
    m->sum += value;
}

void tc_load_locality_metric(struct tc_load_locality *l, enum tc_load_metric kind, struct tc_slice name, uint64_t n,
                             double value)
{
    if (l->of)
        tc_load_locality_add_metric(l->of, kind, name, n, value);
    if (!l->of || kind == TC_LOAD_NAMED)
        tc_load_locality_add_metric(l, kind, name, n, value);
}
