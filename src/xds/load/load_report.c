/* Reports out of a load store: ClusterStats messages in an arena.
 *
 * tc_load_store_take moves the counts since the last report into the messages and marks their clusters `in_report`.
 * tc_load_store_settle forgets the counts of a report that was handed over, and puts them back otherwise. Then it
 * removes metrics and categories without counts, and sweeps the clusters of the report. A locality is left out while
 * its counts and its RPCs in progress are zero. RPCs in progress are reported again each time. A cluster's interval
 * starts at the end of the last report that covered the cluster and was handed over, or when the cluster was made.
 *
 * The caller owns the arena. Strings of the messages may point into the store. Runs on the loop of the store;
 * load_store.h describes the functions. */
#include <arpa/inet.h>

#include "base/mem.h"
#include "io/addr.h"
#include "xds/load/load_store_internal.h"

#include "pb/envoy/config/endpoint/v3/load_report.pb-c.h"

#define NS_PER_S UINT64_C(1000000000)

typedef Envoy__Config__Endpoint__V3__ClusterStats cluster_stats;
typedef Envoy__Config__Endpoint__V3__UpstreamLocalityStats locality_stats;
typedef Envoy__Config__Endpoint__V3__UpstreamEndpointStats endpoint_stats;
typedef Envoy__Config__Endpoint__V3__UnnamedEndpointLoadMetricStats unnamed_stats;
typedef Envoy__Config__Endpoint__V3__EndpointLoadMetricStats named_stats;

/* Declares `var`, a new message in the arena. The arena has no budget, so this never fails. */
#define MAKE(arena, type, var, prefix)                                                                                 \
    type *var = tc_arena_calloc(arena, 1, sizeof(type));                                                               \
    prefix##__init(var)

static uint64_t take_count(struct tc_load_count *n)
{
    n->reported = n->now;
    n->now = 0;
    return n->reported;
}

static void settle_count(struct tc_load_count *n, bool handed_over)
{
    if (!handed_over)
        n->now += n->reported;
    n->reported = 0;
}

/* --- taking a report --- */

/* Takes the metrics. Stores metrics of the kind TC_LOAD_NAMED in *named, an array in the arena, and returns their
 * number. Stores the metric of each other kind in unnamed[kind]. `unnamed` is NULL for an endpoint, which has
 * TC_LOAD_NAMED alone. */
static size_t take_metrics(struct tc_load_locality *l, struct tc_arena *arena, named_stats ***named,
                           unnamed_stats *unnamed[TC_LOAD_NAMED])
{
    size_t n = 0;
    *named = tc_arena_calloc(arena, l->metrics.len, sizeof(**named));
    for (size_t i = 0; i < l->metrics.len; i++) {
        struct tc_load_metric_sum *m = &l->metrics.data[i];
        if (m->requests.now == 0)
            continue;
        m->reported_sum = m->sum;
        m->sum = 0;
        if (m->kind == TC_LOAD_NAMED) {
            MAKE(arena, named_stats, s, envoy__config__endpoint__v3__endpoint_load_metric_stats);
            s->metric_name = m->name->data;
            s->num_requests_finished_with_metric = take_count(&m->requests);
            s->total_metric_value = m->reported_sum;
            (*named)[n++] = s;
        } else {
            MAKE(arena, unnamed_stats, s, envoy__config__endpoint__v3__unnamed_endpoint_load_metric_stats);
            s->num_requests_finished_with_metric = take_count(&m->requests);
            s->total_metric_value = m->reported_sum;
            unnamed[m->kind] = s;
        }
    }
    return n;
}

/* Makes the message of an address from its text (tc_addr_format). The message is empty if the address is neither IP nor
 * a Unix socket. */
static Envoy__Config__Core__V3__Address *make_address(struct tc_slice text, struct tc_arena *arena)
{
    struct tc_addr addr;
    struct tc_slice host, port;
    MAKE(arena, Envoy__Config__Core__V3__Address, out, envoy__config__core__v3__address);
    if (tc_addr_parse(&addr, text) != 0)
        return out;
    if (tc_addr_family(&addr) == AF_UNIX) {
        MAKE(arena, Envoy__Config__Core__V3__Pipe, pipe, envoy__config__core__v3__pipe);
        pipe->path = tc_arena_dup(arena, tc_rstr_slice(addr.unix_path));
        if (!*pipe->path)
            *pipe->path = '@';
        out->address_case = ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_PIPE;
        out->pipe = pipe;
    } else if (tc_addr_split(text, &host, &port)) {
        MAKE(arena, Envoy__Config__Core__V3__SocketAddress, ip, envoy__config__core__v3__socket_address);
        ip->address = tc_arena_dup(arena, host);
        ip->port_specifier_case = ENVOY__CONFIG__CORE__V3__SOCKET_ADDRESS__PORT_SPECIFIER_PORT_VALUE;
        ip->port_value = ntohs(addr.sa.in.sin_port); /* IPv6 has its port at the same place */
        out->address_case = ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS;
        out->socket_address = ip;
    }
    tc_addr_fini(&addr);
    return out;
}

/* Takes the counts of an endpoint. Adds them to the report if `wanted` and not all zero. */
static void take_endpoint(struct tc_load_locality *e, struct tc_arena *arena, bool wanted, locality_stats *out)
{
    MAKE(arena, endpoint_stats, s, envoy__config__endpoint__v3__upstream_endpoint_stats);
    wanted = wanted && !tc_load_locality_is_zero(e);
    s->address = make_address(tc_rstr_slice(e->address), arena);
    s->total_issued_requests = take_count(&e->issued);
    s->total_successful_requests = take_count(&e->succeeded);
    s->total_error_requests = take_count(&e->failed);
    s->total_requests_in_progress = e->in_progress;
    s->n_load_metric_stats = take_metrics(e, arena, &s->load_metric_stats, NULL);
    if (wanted)
        out->upstream_endpoint_stats[out->n_upstream_endpoint_stats++] = s;
}

/* Takes the counts of a locality and of its endpoints. `endpoints`: the counts of endpoints are to be reported,
 * too. */
static locality_stats *take_locality(struct tc_load_locality *l, struct tc_arena *arena, bool endpoints)
{
    MAKE(arena, locality_stats, out, envoy__config__endpoint__v3__upstream_locality_stats);
    MAKE(arena, Envoy__Config__Core__V3__Locality, names, envoy__config__core__v3__locality);
    names->region = l->region->data;
    names->zone = l->zone->data;
    names->sub_zone = l->sub_zone->data;
    out->locality = names;
    out->total_issued_requests = take_count(&l->issued);
    out->total_successful_requests = take_count(&l->succeeded);
    out->total_error_requests = take_count(&l->failed);
    out->total_requests_in_progress = l->in_progress;
    unnamed_stats *unnamed[TC_LOAD_NAMED] = {NULL};
    out->n_load_metric_stats = take_metrics(l, arena, &out->load_metric_stats, unnamed);
    out->cpu_utilization = unnamed[TC_LOAD_CPU];
    out->mem_utilization = unnamed[TC_LOAD_MEM];
    out->application_utilization = unnamed[TC_LOAD_APPLICATION];
    out->upstream_endpoint_stats =
        tc_arena_calloc(arena, HASH_COUNT(l->endpoints), sizeof(*out->upstream_endpoint_stats));
    for (struct tc_load_locality *e = l->endpoints; e; e = e->hh.next)
        take_endpoint(e, arena, endpoints, out);
    return out;
}

static void take_drops(struct tc_load_cluster *c, struct tc_arena *arena, cluster_stats *out)
{
    out->total_dropped_requests = take_count(&c->dropped);
    out->dropped_requests = tc_arena_calloc(arena, c->drops.len, sizeof(*out->dropped_requests));
    for (size_t i = 0; i < c->drops.len; i++) {
        uint64_t n = take_count(&c->drops.data[i].count);
        if (n == 0)
            continue;
        MAKE(arena, Envoy__Config__Endpoint__V3__ClusterStats__DroppedRequests, d,
             envoy__config__endpoint__v3__cluster_stats__dropped_requests);
        d->category = c->drops.data[i].category->data;
        d->dropped_count = n;
        out->dropped_requests[out->n_dropped_requests++] = d;
    }
}

/* Returns NULL if the cluster has nothing to report. Its interval then counts as reported, too. */
static cluster_stats *take_cluster(struct tc_load_cluster *c, uint64_t now_ns, struct tc_arena *arena, bool endpoints)
{
    MAKE(arena, cluster_stats, out, envoy__config__endpoint__v3__cluster_stats);
    MAKE(arena, Google__Protobuf__Duration, interval, google__protobuf__duration);
    c->in_report = true;
    c->reported_until_ns = now_ns;
    out->cluster_name = c->cluster->data;
    if (c->service)
        out->cluster_service_name = c->service->data;
    interval->seconds = (int64_t)((now_ns - c->since_ns) / NS_PER_S);
    interval->nanos = (int32_t)((now_ns - c->since_ns) % NS_PER_S);
    out->load_report_interval = interval;
    out->upstream_locality_stats =
        tc_arena_calloc(arena, HASH_COUNT(c->localities), sizeof(*out->upstream_locality_stats));
    for (struct tc_load_locality *l = c->localities; l; l = l->hh.next)
        if (!tc_load_locality_is_zero(l))
            out->upstream_locality_stats[out->n_upstream_locality_stats++] = take_locality(l, arena, endpoints);
    take_drops(c, arena, out);
    return out->n_upstream_locality_stats || out->total_dropped_requests ? out : NULL;
}

static bool cluster_is_wanted(const struct tc_load_filter *filter, const struct tc_load_cluster *c)
{
    const struct tc_load_name *name = NULL;
    if (filter->all)
        return true;
    HASH_FIND(hh, filter->names, c->cluster->data, c->cluster->len, name);
    return name != NULL;
}

size_t tc_load_store_take(struct tc_load_store *s, const struct tc_load_filter *filter, uint64_t now_ns,
                          struct tc_arena *arena, cluster_stats ***out)
{
    size_t n = 0;
    *out = tc_arena_calloc(arena, s->n_used + s->n_idle, sizeof(**out));
    for (struct tc_link *it = s->clusters.next, *next; it != &s->clusters; it = next) {
        struct tc_load_cluster *c = TC_CONTAINER_OF(it, struct tc_load_cluster, link);
        next = it->next;
        cluster_stats *stats = cluster_is_wanted(filter, c) ? take_cluster(c, now_ns, arena, filter->endpoints) : NULL;
        if (stats)
            (*out)[n++] = stats;
        else if (!c->in_report)
            tc_load_cluster_sweep(c, true); /* not asked for: dropped unless it has a user */
    }
    return n;
}

/* --- settling it --- */

static void settle_locality(struct tc_load_locality *l, bool handed_over)
{
    settle_count(&l->issued, handed_over);
    settle_count(&l->succeeded, handed_over);
    settle_count(&l->failed, handed_over);
    for (size_t i = l->metrics.len; i-- > 0;) {
        struct tc_load_metric_sum *m = &l->metrics.data[i];
        if (!handed_over)
            m->sum += m->reported_sum;
        m->reported_sum = 0;
        settle_count(&m->requests, handed_over);
        if (m->requests.now == 0) {
            tc_rstr_unref(m->name);
            tc_vec_remove(&l->metrics, i);
        }
    }
    for (struct tc_load_locality *e = l->endpoints; e; e = e->hh.next)
        settle_locality(e, handed_over); /* endpoints have no endpoints */
}

static void settle_cluster(struct tc_load_cluster *c, bool handed_over)
{
    c->in_report = false;
    if (handed_over)
        c->since_ns = c->reported_until_ns;
    for (struct tc_load_locality *l = c->localities; l; l = l->hh.next)
        settle_locality(l, handed_over);
    settle_count(&c->dropped, handed_over);
    for (size_t i = c->drops.len; i-- > 0;) {
        settle_count(&c->drops.data[i].count, handed_over);
        if (c->drops.data[i].count.now == 0) {
            c->name_bytes -= c->drops.data[i].category->len;
            tc_rstr_unref(c->drops.data[i].category);
            tc_vec_remove(&c->drops, i);
        }
    }
    tc_load_cluster_sweep(c, false);
}

void tc_load_store_settle(struct tc_load_store *s, bool handed_over)
{
    for (struct tc_link *it = s->clusters.next, *next; it != &s->clusters; it = next) {
        struct tc_load_cluster *c = TC_CONTAINER_OF(it, struct tc_load_cluster, link);
        next = it->next;
        if (c->in_report)
            settle_cluster(c, handed_over);
    }
}

bool tc_load_store_has_counts(const struct tc_load_store *s, const struct tc_load_filter *filter)
{
    TC_LIST_FOREACH(it, &s->clusters)
    {
        const struct tc_load_cluster *c = TC_CONTAINER_OF(it, struct tc_load_cluster, link);
        if (!cluster_is_wanted(filter, c))
            continue;
        if (c->dropped.now)
            return true;
        for (const struct tc_load_locality *l = c->localities; l; l = l->hh.next)
            if (l->issued.now || l->succeeded.now || l->failed.now)
                return true;
    }
    return false;
}
