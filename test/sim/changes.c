/* The mesh of a seed, and the changes of a run: faults of hosts, names, connections and the first control plane, and
 * changes of resources.
 *
 * A resource that becomes bad or is deleted disturbs no client that had a good version (A88), except with
 * SIM_FEATURE_DATA_ERRORS: then only a scene deletes a resource, a listener (sim_listener_remove). A client without a
 * good version would be disturbed: a client that is sent to a cluster for the first time must find the cluster's
 * resources. Therefore a listener, with its routes, or a cluster gets new contents only while all resources are good
 * and look-ups of every name that clients know succeed (sim_routes_may_change).
 *
 * A change goes to *c, to the servers or the network, and to the oracle, which copies the mesh. The oracle is not told
 * of a change that clients with a good version do not heed: a resource that becomes bad, is deleted, or is served again
 * with no difference that counts. The caller owns *c, which workload_internal.h describes. Everything runs on the
 * world's one thread, between turns of the loops. */
#include "base/clock.h"
#include "sim/faults.h"
#include "sim/names.h"
#include "sim/oracle.h"
#include "sim/servers.h"
#include "sim/trace.h"
#include "sim/workload_internal.h"
#include "testing/net.h"
#include "testing/world.h"

static unsigned below(struct tc_rng *rng, unsigned n)
{
    return (unsigned)tc_rng_below(rng, n);
}

/* --- the mesh of a seed --- */

/* Draws a locality of hosts that are not in `used`, and adds these to `used`. The locality may be without endpoints. */
static void locality_make(struct sim_client *c, struct sim_locality *l, unsigned priority, struct tc_rng *rng,
                          bool used[SIM_HOSTS])
{
    *l = (struct sim_locality){.priority = priority, .weight = 1 + below(rng, 3)};
    size_t n = 1 + below(rng, SIM_ENDPOINTS);
    for (size_t i = 0; i < n; i++) {
        unsigned host = below(rng, (unsigned)c->mesh.n_hosts);
        if (used[host])
            continue; /* an address may be in a resource only once */
        used[host] = true;
        l->endpoints[l->n_endpoints++] = (struct sim_endpoint){host, 1 + below(rng, 3)};
    }
}

void sim_endpoints_make(struct sim_client *c, struct sim_cluster *cluster, unsigned from, struct tc_rng *rng)
{
    bool used[SIM_HOSTS] = {false};
    unsigned priority = from;
    size_t i = 0;
    for (; i < cluster->n_localities && cluster->localities[i].priority < from; i++)
        for (size_t k = 0; k < cluster->localities[i].n_endpoints; k++)
            used[cluster->localities[i].endpoints[k].host] = true;
    cluster->version++;
    cluster->drop_percent = sim_feature_on(c, SIM_FEATURE_DROPS) && below(rng, 2) ? 10 + below(rng, 50) : 0;
    cluster->n_localities = i + 1 + below(rng, (unsigned)(SIM_LOCALITIES - i));
    for (; i < cluster->n_localities; i++) {
        locality_make(c, &cluster->localities[i], priority, rng, used);
        priority += sim_feature_on(c, SIM_FEATURE_PRIORITIES) ? below(rng, 2) : 0;
    }
}

static void aggregate_make(struct sim_cluster *cluster, unsigned leaves, struct tc_rng *rng)
{
    unsigned first = below(rng, leaves);
    cluster->is_aggregate = true;
    cluster->n_children = 1 + below(rng, TC_MIN(leaves, SIM_CHILDREN));
    for (unsigned i = 0; i < cluster->n_children; i++)
        cluster->children[i] = (first + i) % leaves;
}

static enum sim_policy policy_choose(const struct sim_client *c, struct tc_rng *rng)
{
    if (sim_feature_on(c, SIM_FEATURE_RING_HASH) && below(rng, 2))
        return SIM_RING_HASH;
    if (sim_feature_on(c, SIM_FEATURE_MAGLEV) && below(rng, 2))
        return SIM_MAGLEV;
    if (sim_feature_on(c, SIM_FEATURE_PICK_FIRST) && below(rng, 2))
        return SIM_PICK_FIRST;
    return sim_feature_on(c, SIM_FEATURE_BALANCERS) && below(rng, 2)
               ? (enum sim_policy)(SIM_LEAST_REQUEST + below(rng, SIM_POLICIES - SIM_LEAST_REQUEST))
               : SIM_ROUND_ROBIN;
}

static void leaf_choose(const struct sim_client *c, struct sim_cluster *cluster, struct tc_rng *rng)
{
    static const unsigned sizes[] = {0, 13, 101, 1021}; /* in a table of any of these sizes each host has a slot */
    static const unsigned factors[] = {100, 125, 200};
    cluster->table_size = sizes[below(rng, TC_ARRAY_LEN(sizes))];
    cluster->locality_weights = below(rng, 2);
    cluster->balance =
        sim_feature_on(c, SIM_FEATURE_BOUNDED_LOADS) && below(rng, 2) ? factors[below(rng, TC_ARRAY_LEN(factors))] : 0;
    cluster->max_requests = sim_feature_on(c, SIM_FEATURE_BREAKERS) && below(rng, 2) ? 1 + below(rng, 6) : 0;
    cluster->dns = sim_feature_on(c, SIM_FEATURE_DNS) && below(rng, 2);
    cluster->outliers = sim_feature_on(c, SIM_FEATURE_OUTLIERS) && below(rng, 2);
}

/* Adds a service whose channels use a plain DNS name and hedge. */
static void hedged_make(struct sim_client *c, struct tc_rng *rng)
{
    struct sim_mesh *m = &c->mesh;
    struct sim_cluster *cluster = &m->clusters[SIM_HEDGED];
    sim_endpoints_make(c, cluster, 0, rng);
    cluster->dns = true;
    sim_name_set(SIM_HEDGED, cluster);
    m->services[m->n_services++] =
        (struct sim_service){.cluster = SIM_HEDGED, .retries = 1 + below(rng, 3), .hedged = true};
}

static void service_make(const struct sim_client *c, struct sim_service *service, struct tc_rng *rng)
{
    service->cluster = below(rng, (unsigned)c->mesh.n_clusters);
    service->retries = sim_feature_on(c, SIM_FEATURE_RETRIES) ? below(rng, 4) : 0;
    service->sessions = sim_feature_on(c, SIM_FEATURE_SESSIONS) && below(rng, 3);
    service->abort_percent = sim_feature_on(c, SIM_FEATURE_ABORTS) && below(rng, 2) ? 10 + below(rng, 50) : 0;
}

void sim_mesh_make(struct sim_client *c, struct tc_rng *rng)
{
    static const unsigned limits_ms[] = {0, 400, 2500, 10000, 40000};
    struct sim_mesh *m = &c->mesh;
    m->n_hosts = 2 + below(rng, SIM_HOSTS - 1);
    m->max_streams = sim_feature_on(c, SIM_FEATURE_FEW_STREAMS) ? 2 + below(rng, 6) : SIM_MANY_STREAMS;
    unsigned leaves = 1 + below(rng, SIM_HEDGED - 1);
    m->n_clusters = leaves + (sim_feature_on(c, SIM_FEATURE_AGGREGATES) ? 1 : 0);
    for (unsigned i = 0; i < leaves; i++) {
        m->clusters[i].policy = policy_choose(c, rng);
        leaf_choose(c, &m->clusters[i], rng);
        sim_endpoints_make(c, &m->clusters[i], 0, rng);
    }
    if (m->n_clusters > leaves)
        aggregate_make(&m->clusters[leaves], leaves, rng);
    m->n_services = 1 + below(rng, SIM_SERVICES - 1);
    for (unsigned i = 0; i < m->n_services; i++) {
        service_make(c, &m->services[i], rng);
        m->services[i].rds = sim_feature_on(c, SIM_FEATURE_ROUTES_APART) && below(rng, 2);
        if (sim_feature_on(c, SIM_FEATURE_ROUTE_LIMITS))
            m->services[i].limit_ms = limits_ms[below(rng, TC_ARRAY_LEN(limits_ms))];
    }
    if (sim_feature_on(c, SIM_FEATURE_HEDGING))
        hedged_make(c, rng);
}

static void mesh_story(const struct sim_client *c)
{
    char text[256];
    for (unsigned i = 0; i < c->mesh.n_clusters; i++) {
        sim_cluster_text(&c->mesh.clusters[i], text, sizeof(text));
        sim_story("  c%u is %s", i, text);
    }
    for (unsigned i = 0; i < c->mesh.n_services; i++)
        sim_story("  s%u goes to c%u, %u retries%s%s", i, c->mesh.services[i].cluster, c->mesh.services[i].retries,
                  c->mesh.services[i].sessions ? ", sessions" : "", c->mesh.services[i].hedged ? ", hedged" : "");
}

void sim_mesh_serve(const struct sim_client *c)
{
    mesh_story(c);
    for (unsigned i = 0; i < c->mesh.n_clusters; i++) {
        servers_put(&c->mesh, SIM_CLUSTER, i);
        if (!c->mesh.clusters[i].is_aggregate)
            servers_put(&c->mesh, SIM_ENDPOINTS_OF, i);
    }
    for (unsigned i = 0; i < c->mesh.n_services; i++)
        if (!c->mesh.services[i].hedged)
            servers_put(&c->mesh, SIM_LISTENER, i);
}

/* --- faults --- */

void sim_host_turn(unsigned host, enum tc_host_mode mode)
{
    const char *address = sim_host_address(host);
    static const char *const words[] = {"is up", "refuses connections", "falls silent"};
    sim_story("host %u (%s) %s", host, address, words[mode]);
    tc_host_set(address, mode);
    if (mode != TC_HOST_UP)
        tc_host_break(address, mode == TC_HOST_SILENT);
    oracle_host(host, mode == TC_HOST_UP, mode == TC_HOST_SILENT, tc_world_now_ms());
}

static void fault_host(const struct sim_client *c, struct tc_rng *rng, enum tc_host_mode mode)
{
    unsigned host = below(rng, (unsigned)c->mesh.n_hosts);
    if (tc_host_mode(sim_host_address(host)) != TC_HOST_UP)
        mode = TC_HOST_UP;
    if (mode != TC_HOST_UP)
        sim_count(mode == TC_HOST_SILENT ? SIM_COUNT_FAULT_SILENT : SIM_COUNT_FAULT_DOWN);
    sim_host_turn(host, mode);
}

bool sim_lacks_listener(const struct sim_client *c)
{
    bool any = false;
    for (unsigned s = 0; s < SIM_SERVICES; s++)
        any = any || c->refused[s];
    return any;
}

void sim_control_plane_turn(struct sim_client *c, bool down)
{
    sim_story("the control plane is %s", down ? "unreachable" : "back");
    sim_note_disturbance(c);
    bool settled = oracle_settled(tc_world_now_ms());
    bool deaf = sim_net_last_fault_ns() == UINT64_MAX; /* the half-open connection may lead to the control plane */
    c->control_plane_down = down;
    c->fell_back = false;
    tc_host_set(SIM_CONTROL_PLANE, down ? TC_HOST_REFUSES : TC_HOST_UP);
    if (down) {
        sim_count(SIM_COUNT_FAULT_CONTROL_PLANE);
        tc_host_break(SIM_CONTROL_PLANE, false);
    }
    uint64_t now_ms = tc_world_now_ms();
    if (down)
        c->unheard =
            (c->unheard && c->back_ms + TIME_TO_HEAR_MS > now_ms) || c->changed_ms + TIME_TO_HEAR_MS > now_ms || deaf;
    c->had_all = settled && !c->unheard && !sim_lacks_listener(c);
    c->lacked = settled && !c->unheard && sim_lacks_listener(c);
    if (!down)
        c->back_ms = now_ms;
    /* A client may wait out the longest backoff before it asks again. */
    oracle_disturbed(now_ms + (down ? 0 : TIME_TO_HEAR_MS));
}

void sim_host_goaway(unsigned host, bool hasty)
{
    sim_story("host %u sends GOAWAY%s", host, hasty ? ", hasty" : "");
    sim_count(hasty ? SIM_COUNT_FAULT_HASTY_GOAWAY : SIM_COUNT_FAULT_GOAWAY);
    servers_goaway(host, hasty);
    oracle_goaway(host, hasty, tc_world_now_ms());
}

void sim_host_sicken(struct sim_client *c, unsigned host, bool sick)
{
    const int unavailable = 14;
    c->sick[host] = sick;
    sim_story("host %u %s", host, sick ? "answers every call with UNAVAILABLE" : "is well again");
    if (sick)
        sim_count(SIM_COUNT_FAULT_SICK);
    servers_set_sick(host, sick ? unavailable : 0);
    oracle_sick(host, sick ? unavailable : 0, tc_world_now_ms());
}

static void fault_sick(struct sim_client *c, struct tc_rng *rng)
{
    unsigned host = below(rng, (unsigned)c->mesh.n_hosts);
    sim_host_sicken(c, host, !c->sick[host]);
}

void sim_name_turn(struct sim_client *c, unsigned cluster, bool fails, bool known)
{
    sim_story("the name d%u.test %s", cluster, fails ? "is not found" : "is found");
    if (fails)
        sim_count(SIM_COUNT_FAULT_DNS);
    c->name_fails[cluster] = fails;
    sim_name_fail(cluster, fails);
    oracle_name(cluster, fails && !known, tc_world_now_ms());
}

bool sim_any_name_fails(const struct sim_client *c)
{
    bool any = false;
    for (unsigned i = 0; i < SIM_CLUSTERS; i++)
        any = any || c->name_fails[i];
    return any;
}

static bool any_name_fails_later(const struct sim_client *c)
{
    bool any = false;
    for (unsigned i = 0; i < SIM_CLUSTERS; i++)
        any = any || (c->name_fails[i] && oracle_name_known(i));
    return any;
}

/* Returns whether every channel has had the time to hear of its resources and names. */
static bool clients_have_all(const struct sim_client *c)
{
    return oracle_settled(tc_world_now_ms()) && c->changed_ms + ORACLE_SETTLED_MS < tc_world_now_ms();
}

/* During a run a name begins to fail only when every channel that uses the name knows its addresses: nothing changes
 * for the channels. */
static void fault_name(struct sim_client *c, struct tc_rng *rng)
{
    unsigned cluster = below(rng, SIM_CLUSTERS);
    if (c->name_fails[cluster])
        sim_name_turn(c, cluster, false, false);
    else if (clients_have_all(c))
        sim_name_turn(c, cluster, true, true);
}

static void fault_stream_end(void)
{
    sim_story("the control plane ends its streams");
    sim_count(SIM_COUNT_FAULT_STREAM_END);
    servers_end_streams();
    oracle_disturbed(tc_world_now_ms());
}

static void fault_connection(struct tc_rng *rng, enum sim_feature kind)
{
    uint64_t which = tc_rng_u64(rng);
    if (kind == SIM_FEATURE_RESETS && sim_net_reset_one(which))
        sim_count(SIM_COUNT_FAULT_RESET);
    else if (kind == SIM_FEATURE_STALLS && sim_net_stall_one(which, tc_rng_below(rng, 3000000)))
        sim_count(SIM_COUNT_FAULT_STALL);
    else if (kind == SIM_FEATURE_HALF_OPEN && sim_net_silence_one(which))
        sim_count(SIM_COUNT_FAULT_HALF_OPEN);
    else if (kind == SIM_FEATURE_CUTS)
        sim_net_cut_one(which, (size_t)tc_rng_below(rng, 2000));
}

void sim_step_fault(struct sim_client *c, struct tc_rng *rng)
{
    static const enum sim_feature kinds[] = {SIM_FEATURE_RESETS,        SIM_FEATURE_CUTS,     SIM_FEATURE_STALLS,
                                             SIM_FEATURE_HALF_OPEN,     SIM_FEATURE_DOWN,     SIM_FEATURE_SILENT,
                                             SIM_FEATURE_CONTROL_PLANE, SIM_FEATURE_GOAWAY,   SIM_FEATURE_SICK,
                                             SIM_FEATURE_STREAM_ENDS,   SIM_FEATURE_DNS_FAILS};
    enum sim_feature kind = kinds[below(rng, TC_ARRAY_LEN(kinds))];
    if (!sim_feature_on(c, kind))
        return;
    if (kind == SIM_FEATURE_DOWN)
        fault_host(c, rng, TC_HOST_REFUSES);
    else if (kind == SIM_FEATURE_SILENT)
        fault_host(c, rng, TC_HOST_SILENT);
    else if (kind == SIM_FEATURE_CONTROL_PLANE)
        sim_control_plane_turn(c, !c->control_plane_down);
    else if (kind == SIM_FEATURE_GOAWAY)
        sim_host_goaway(below(rng, (unsigned)c->mesh.n_hosts), below(rng, 2));
    else if (kind == SIM_FEATURE_SICK)
        fault_sick(c, rng);
    else if (kind == SIM_FEATURE_DNS_FAILS)
        fault_name(c, rng);
    else if (kind == SIM_FEATURE_STREAM_ENDS)
        fault_stream_end();
    else
        fault_connection(rng, kind);
}

/* --- resources --- */

static const char *const kind_names[SIM_RESOURCES] = {"listener s", "cluster c", "endpoints e"};

/* Returns whether all resources from this kind on are good. */
static bool all_good(const struct sim_client *c, enum sim_resource from)
{
    for (int kind = (int)from; kind < SIM_RESOURCES; kind++)
        for (unsigned i = 0; i < SIM_CLUSTERS; i++)
            if (c->served[kind][i] != SIM_SERVED_GOOD)
                return false;
    return true;
}

static void served_set(struct sim_client *c, enum sim_resource kind, unsigned which, enum sim_served served)
{
    c->served[kind][which] = served;
    c->served_ms[kind][which] = tc_world_now_ms();
}

void sim_change_served(struct sim_client *c, enum sim_resource kind, unsigned which)
{
    served_set(c, kind, which, SIM_SERVED_GOOD);
    c->unheard = c->unheard || (c->control_plane_down && !c->fell_back);
    c->changed_ms = tc_world_now_ms();
    servers_put(&c->mesh, kind, which);
    oracle_changed(&c->mesh, tc_world_now_ms());
}

void sim_name_move(struct sim_client *c, unsigned cluster)
{
    char text[256];
    sim_cluster_text(&c->mesh.clusters[cluster], text, sizeof(text));
    sim_story("the name d%u.test has other addresses: %s", cluster, text);
    sim_name_set(cluster, &c->mesh.clusters[cluster]);
    if (cluster < c->mesh.n_clusters) /* its EDS resource, for later: the cluster may become an EDS cluster */
        sim_change_served(c, SIM_ENDPOINTS_OF, cluster);
    oracle_changed(&c->mesh, tc_world_now_ms());
}

void sim_listener_remove(struct sim_client *c, unsigned service)
{
    served_set(c, SIM_LISTENER, service, SIM_SERVED_DELETED);
    c->changed_ms = tc_world_now_ms();
    servers_remove(&c->mesh, SIM_LISTENER, service);
    oracle_changed(&c->mesh, tc_world_now_ms());
}

bool sim_routes_may_change(const struct sim_client *c)
{
    return all_good(c, SIM_LISTENER) && !any_name_fails_later(c);
}

static void change_good(struct sim_client *c, struct tc_rng *rng, enum sim_resource kind, unsigned which)
{
    struct sim_cluster *cluster = &c->mesh.clusters[which];
    if (kind == SIM_ENDPOINTS_OF) {
        if (cluster->dns)
            return; /* a channel keeps a name's addresses while its connections last */
        sim_endpoints_make(c, cluster, 0, rng);
        sim_count(SIM_COUNT_CHANGE_ENDPOINTS);
    } else if (!sim_routes_may_change(c)) {
        return;
    } else if (kind == SIM_LISTENER) {
        service_make(c, &c->mesh.services[which], rng);
        c->routed_ms = tc_world_now_ms();
        sim_count(SIM_COUNT_CHANGE_ROUTE);
    } else if (cluster->is_aggregate) {
        aggregate_make(cluster, (unsigned)c->mesh.n_clusters - 1, rng);
        sim_count(SIM_COUNT_CHANGE_CLUSTER);
    } else {
        cluster->policy = policy_choose(c, rng);
        leaf_choose(c, cluster, rng);
        if (!cluster->dns && below(rng, 4) == 0) {
            cluster->moved = !cluster->moved;
            servers_put(&c->mesh, SIM_ENDPOINTS_OF, which);
        }
        sim_count(SIM_COUNT_CHANGE_CLUSTER);
    }
    sim_story("%s%u changes", kind_names[kind], which);
    mesh_story(c);
    sim_change_served(c, kind, which);
}

void sim_change_neutral(struct sim_client *c, enum sim_resource kind, unsigned which)
{
    if (kind == SIM_LISTENER)
        c->mesh.services[which].revision++;
    else
        c->mesh.clusters[which].revisions[kind == SIM_ENDPOINTS_OF]++;
    sim_story("%s%u is served again, with no difference that counts", kind_names[kind], which);
    sim_count(SIM_COUNT_CHANGE_NEUTRAL);
    servers_put(&c->mesh, kind, which);
}

static void change_bad(struct sim_client *c, enum sim_resource kind, unsigned which)
{
    static const enum sim_count counts[] = {SIM_COUNT_CHANGE_BAD_LISTENER, SIM_COUNT_CHANGE_BAD_CLUSTER,
                                            SIM_COUNT_CHANGE_BAD_ENDPOINTS};
    sim_story("%s%u becomes invalid", kind_names[kind], which);
    sim_count(counts[kind]);
    served_set(c, kind, which, SIM_SERVED_BAD);
    servers_put_bad(&c->mesh, kind, which);
}

static void change_deleted(struct sim_client *c, enum sim_resource kind, unsigned which)
{
    sim_story("%s%u is deleted", kind_names[kind], which);
    sim_count(SIM_COUNT_CHANGE_DELETED);
    served_set(c, kind, which, SIM_SERVED_DELETED);
    servers_remove(&c->mesh, kind, which);
}

static void change_restored(struct sim_client *c, enum sim_resource kind, unsigned which)
{
    sim_story("%s%u is restored", kind_names[kind], which);
    if (kind == SIM_LISTENER && c->mesh.services[which].unrouted) {
        c->mesh.services[which].unrouted = false;
        c->refused[which] = false;
        c->routed_ms = tc_world_now_ms();
    }
    sim_count(SIM_COUNT_CHANGE_RESTORED);
    sim_change_served(c, kind, which);
}

void sim_step_change(struct sim_client *c, struct tc_rng *rng)
{
    enum sim_resource kind = (enum sim_resource)below(rng, SIM_RESOURCES);
    unsigned which = below(rng, (unsigned)(kind == SIM_LISTENER ? c->mesh.n_services : c->mesh.n_clusters));
    if (kind == SIM_LISTENER && c->mesh.services[which].hedged)
        return;
    unsigned what = below(rng, 4);
    if (kind == SIM_ENDPOINTS_OF && c->mesh.clusters[which].is_aggregate)
        kind = SIM_CLUSTER;
    /* A bad version must not overtake a good one that clients have not heard of yet. With DATA_ERRORS clients drop a
     * resource that becomes bad or is deleted (A88), which would disturb. */
    bool heard = !c->control_plane_down && clients_have_all(c) && !sim_feature_on(c, SIM_FEATURE_DATA_ERRORS);
    /* Clients that never had the listener may have none of the resources that it leads to. */
    bool first = kind == SIM_LISTENER && c->mesh.services[which].unrouted;
    if (first && (!all_good(c, SIM_CLUSTER) || any_name_fails_later(c)))
        return;
    if (c->served[kind][which] != SIM_SERVED_GOOD)
        change_restored(c, kind, which);
    else if (what == 0 && sim_feature_on(c, SIM_FEATURE_CHANGES))
        change_good(c, rng, kind, which);
    else if (what == 1 && sim_feature_on(c, SIM_FEATURE_BAD_CHANGES) && heard)
        change_bad(c, kind, which);
    else if (what == 2 && sim_feature_on(c, SIM_FEATURE_DELETES) && heard)
        change_deleted(c, kind, which);
    else if (what == 3 && sim_feature_on(c, SIM_FEATURE_UPDATES))
        sim_change_neutral(c, kind, which);
}

/* Makes some listeners bad before any client has begun: no client has ever accepted a version of them. */
static void first_listeners(struct sim_client *c, struct tc_rng *rng)
{
    for (unsigned s = 0; s < c->mesh.n_services; s++) {
        c->refused[s] = !c->mesh.services[s].hedged && below(rng, 4) == 0;
        c->mesh.services[s].unrouted = c->refused[s];
        if (c->refused[s])
            change_bad(c, SIM_LISTENER, s);
    }
    oracle_changed(&c->mesh, tc_world_now_ms());
}

void sim_first_faults(struct sim_client *c, struct tc_rng *rng)
{
    if (sim_feature_on(c, SIM_FEATURE_BAD_START))
        first_listeners(c, rng);
    for (unsigned i = 0; sim_feature_on(c, SIM_FEATURE_DNS_FAILS) && i < SIM_CLUSTERS; i++)
        if (below(rng, 4) == 0)
            sim_name_turn(c, i, true, false);
    if (sim_feature_on(c, SIM_FEATURE_FALLBACK) && sim_feature_on(c, SIM_FEATURE_CONTROL_PLANE) && below(rng, 2)) {
        sim_control_plane_turn(c, true);
        sim_count(SIM_COUNT_FALLBACKS);
        c->unheard = false;
        c->fell_back = true;
    }
}

void sim_heal(struct sim_client *c)
{
    sim_story("all is healed");
    for (unsigned h = 0; h < c->mesh.n_hosts; h++) {
        servers_set_sick(h, 0);
        oracle_sick(h, 0, tc_world_now_ms());
        if (tc_host_mode(sim_host_address(h)) != TC_HOST_UP)
            sim_host_turn(h, TC_HOST_UP);
    }
    if (c->control_plane_down)
        sim_control_plane_turn(c, false);
    for (unsigned i = 0; i < SIM_CLUSTERS; i++)
        if (c->name_fails[i])
            sim_name_turn(c, i, false, false);
    for (int kind = 0; kind < SIM_RESOURCES; kind++)
        for (unsigned i = 0; i < SIM_CLUSTERS; i++)
            if (c->served[kind][i] != SIM_SERVED_GOOD)
                change_restored(c, (enum sim_resource)kind, i);
}
