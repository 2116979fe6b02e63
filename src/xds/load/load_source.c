/* Loads that were counted on other loops, carried into the store of the loop that reports.
 *
 * Before each report of the interval, xds/client/lrs.c asks every source (tc_load_store_gather). lrs.c makes the report
 * when all sources have answered or its timer runs out: a loop that nobody turns must not hold the report up. The last
 * report of a stream is made without asking. A source is embedded in an object of xds/client/remote_load.c, which owns
 * the source. That file gets the counts as a LoadStatsRequest; tc_load_store_add adds them to the store.
 *
 * tc_load_store_on_use and tc_load_stats_none_in_progress are for the stores of the loops that count. Each function
 * runs on the loop of its store; load_store.h describes the functions. */
#include "base/mem.h"
#include "io/addr.h"
#include "xds/load/load_store_internal.h"

#include "pb/envoy/config/endpoint/v3/load_report.pb-c.h"

typedef Envoy__Config__Endpoint__V3__ClusterStats cluster_stats;
typedef Envoy__Config__Endpoint__V3__UpstreamLocalityStats locality_stats;
typedef Envoy__Config__Endpoint__V3__UpstreamEndpointStats endpoint_stats;
typedef Envoy__Config__Endpoint__V3__UnnamedEndpointLoadMetricStats unnamed_stats;
typedef Envoy__Config__Endpoint__V3__EndpointLoadMetricStats named_stats;

void tc_load_store_on_use(struct tc_load_store *s,
                          void (*on_use)(void *arg, const struct tc_load_cluster *cluster, bool used), void *arg)
{
    s->on_use = on_use;
    s->on_use_arg = arg;
}

/* --- asking --- */

static bool any_source_pending(const struct tc_load_store *s)
{
    TC_LIST_FOREACH(it, &s->sources)
    if (TC_CONTAINER_OF(it, struct tc_load_source, link)->pending)
        return true;
    return false;
}

void tc_load_source_add(struct tc_load_store *s, struct tc_load_source *source)
{
    source->store = s;
    source->pending = false;
    source->by_endpoint = s->by_endpoint;
    tc_list_append(&s->sources, &source->link);
    if (s->by_endpoint)
        source->ask(source);
}

void tc_load_source_answered(struct tc_load_source *source)
{
    struct tc_load_store *s = source->store;
    if (!s || !source->pending)
        return;
    source->pending = false;
    if (s->on_gathered && !any_source_pending(s))
        s->on_gathered(s->arg);
}

void tc_load_source_remove(struct tc_load_source *source)
{
    struct tc_load_store *s = source->store;
    if (!s)
        return;
    tc_list_remove(&source->link);
    source->store = NULL;
    if (source->pending && s->on_gathered && !any_source_pending(s))
        s->on_gathered(s->arg);
    source->pending = false;
}

bool tc_load_store_gather(struct tc_load_store *s, void (*on_gathered)(void *arg))
{
    s->on_gathered = on_gathered;
    TC_LIST_FOREACH(it, &s->sources)
    {
        struct tc_load_source *source = TC_CONTAINER_OF(it, struct tc_load_source, link);
        source->pending = true;
        source->ask(source);
    }
    return !tc_list_empty(&s->sources);
}

/* --- adding --- */

static void locality_add_unnamed(struct tc_load_locality *l, enum tc_load_metric kind, const unnamed_stats *m)
{
    if (m)
        tc_load_locality_metric(l, kind, tc_slice_of(NULL, 0), m->num_requests_finished_with_metric,
                                m->total_metric_value);
}

static void add_named(struct tc_load_locality *l, named_stats *const *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tc_load_locality_add_metric(l, TC_LOAD_NAMED, tc_slice_str(from[i]->metric_name),
                                    from[i]->num_requests_finished_with_metric, from[i]->total_metric_value);
}

/* Stores the address, for tc_addr_fini. Returns false if the address is neither IP nor a Unix socket, or cannot be
 * read. */
static bool address_read(const Envoy__Config__Core__V3__Address *from, struct tc_addr *out)
{
    if (from->address_case == ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_PIPE) {
        bool abstract = *from->pipe->path == '@';
        return tc_addr_from_unix(out, tc_slice_str(from->pipe->path + abstract), abstract) == 0;
    }
    return from->address_case == ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS &&
           tc_addr_from_ip(out, tc_slice_str(from->socket_address->address),
                           (uint16_t)from->socket_address->port_value) == 0;
}

/* Returns how many of `open` RPCs are in progress after `ended` RPCs have ended. `ended` may be larger than `open`: the
 * store may have dropped starts with their cluster, or had no room for them. */
static uint64_t in_progress_now(uint64_t open, uint64_t ended)
{
    return open > ended ? open - ended : 0;
}

/* Adds the counts of an endpoint. The counts of its locality have its RPCs already. Ignores an address that cannot be
 * read. */
static void locality_add_endpoint(struct tc_load_cluster *c, struct tc_load_locality *l, const endpoint_stats *in)
{
    struct tc_addr addr;
    struct tc_buf text = {0};
    if (!address_read(in->address, &addr))
        return;
    tc_addr_format(&addr, &text);
    struct tc_load_locality *e = tc_load_endpoint_get(c, l, tc_buf_slice(&text));
    if (e != l) {
        e->in_progress =
            in_progress_now(e->in_progress + in->total_issued_requests,
                            in->total_successful_requests + in->total_error_requests + in->total_requests_in_progress);
        e->issued.now += in->total_issued_requests;
        e->succeeded.now += in->total_successful_requests;
        e->failed.now += in->total_error_requests;
        add_named(e, in->load_metric_stats, in->n_load_metric_stats);
    }
    tc_load_locality_unref(e);
    tc_addr_fini(&addr);
    tc_buf_fini(&text);
}

static void cluster_add_locality(struct tc_load_cluster *c, const locality_stats *in)
{
    const Envoy__Config__Core__V3__Locality *names = in->locality;
    struct tc_load_locality *l =
        tc_load_locality_get(c, tc_slice_str(names->region), tc_slice_str(names->zone), tc_slice_str(names->sub_zone));
    l->issued.now += in->total_issued_requests;
    l->succeeded.now += in->total_successful_requests;
    l->failed.now += in->total_error_requests;
    l->in_progress =
        in_progress_now(l->in_progress + in->total_issued_requests,
                        in->total_successful_requests + in->total_error_requests + in->total_requests_in_progress);
    locality_add_unnamed(l, TC_LOAD_CPU, in->cpu_utilization);
    locality_add_unnamed(l, TC_LOAD_MEM, in->mem_utilization);
    locality_add_unnamed(l, TC_LOAD_APPLICATION, in->application_utilization);
    add_named(l, in->load_metric_stats, in->n_load_metric_stats);
    for (size_t i = 0; i < in->n_upstream_endpoint_stats; i++)
        locality_add_endpoint(c, l, in->upstream_endpoint_stats[i]);
    tc_load_locality_unref(l);
}

static void cluster_add_drops(struct tc_load_cluster *c, const cluster_stats *in)
{
    uint64_t named = 0;
    for (size_t i = 0; i < in->n_dropped_requests; i++) {
        struct tc_rstr *category = tc_rstr_str(in->dropped_requests[i]->category);
        tc_load_cluster_drop(c, category, in->dropped_requests[i]->dropped_count);
        named += in->dropped_requests[i]->dropped_count;
        tc_rstr_unref(category);
    }
    if (in->total_dropped_requests > named)
        tc_load_cluster_drop(c, NULL, in->total_dropped_requests - named);
}

void tc_load_store_add(struct tc_load_store *s, cluster_stats **stats, size_t n, uint64_t now_ns)
{
    for (size_t i = 0; i < n; i++) {
        const cluster_stats *in = stats[i];
        struct tc_rstr *cluster = tc_rstr_str(in->cluster_name);
        struct tc_rstr *service = in->cluster_service_name[0] ? tc_rstr_str(in->cluster_service_name) : NULL;
        struct tc_load_cluster *c = tc_load_cluster_find(s, cluster, service, now_ns);
        for (size_t k = 0; k < in->n_upstream_locality_stats; k++)
            cluster_add_locality(c, in->upstream_locality_stats[k]);
        cluster_add_drops(c, in);
        tc_load_cluster_limit(c);
        tc_rstr_unref(cluster);
        tc_rstr_unref(service);
    }
}

static void locality_none_in_progress(locality_stats *l)
{
    l->total_requests_in_progress = 0;
    for (size_t i = 0; i < l->n_upstream_endpoint_stats; i++)
        l->upstream_endpoint_stats[i]->total_requests_in_progress = 0;
}

void tc_load_stats_none_in_progress(cluster_stats **stats, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < stats[i]->n_upstream_locality_stats; k++)
            locality_none_in_progress(stats[i]->upstream_locality_stats[k]);
}
