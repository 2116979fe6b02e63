/* Scenes: steps in an order that chance finds rarely, each around a timer or a state that must be remembered.
 *
 *   route      a service's route goes and comes back, one to three times, while the control plane can be reached;
 *              perhaps the control plane fails while the route is gone for the last time
 *   blink      a cluster's endpoints are replaced and come back within 300 ms, two to four times, while one of them
 *              cannot be reached
 *   ejection   an endpoint fails again as soon as its ejection is over (A50's multiplier)
 *   failover   the first priority fails, and the lower ones, if any, change while they are in use; perhaps the first
 *              one comes back, and has to connect again
 *   move       a name gets other addresses, and its connections end within the minimum interval between look-ups;
 *              perhaps look-ups of the name had failed before
 *   weights    calls to endpoints that have reported their load for long enough to be weighed (A58)
 *
 * A scene returns false, and has changed nothing, if it does not fit the run's features, mesh or present state. Then
 * the next one is tried; if none fits, nothing happens. A scene that fits takes its steps before it returns: up to
 * minutes of the world's time. All on the world's one thread; the run's state and the random numbers are borrowed. */
#include "base/common.h"
#include "sim/oracle.h"
#include "sim/trace.h"
#include "sim/workload_internal.h"
#include "testing/net.h"
#include "testing/world.h"

static unsigned below(struct tc_rng *rng, unsigned n)
{
    return (unsigned)tc_rng_below(rng, n);
}

/* Lets time pass, then tells the oracle what disturbed the world meanwhile. */
static void wait_ms(const struct sim_client *c, uint64_t ms)
{
    sim_pass_ms(ms);
    sim_note_disturbance(c);
}

static void calls_to(struct sim_client *c, struct tc_rng *rng, unsigned service, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sim_call_plain(c, rng, service, below(rng, (unsigned)c->n_runtimes), below(rng, 16));
}

static void goaway_from(const struct sim_locality *l)
{
    for (size_t k = 0; k < l->n_endpoints; k++)
        sim_host_goaway(l->endpoints[k].host, false);
}

/* --- route --- */

static void route_turn(struct sim_client *c, unsigned service, bool gone)
{
    sim_story("the route of s%u %s", service, gone ? "goes" : "is back");
    c->mesh.services[service].unrouted = gone;
    c->routed_ms = tc_world_now_ms();
    if (gone)
        sim_count(SIM_COUNT_CHANGE_UNROUTED);
    if (gone && sim_feature_on(c, SIM_FEATURE_DATA_ERRORS))
        sim_listener_remove(c, service);
    else
        sim_change_served(c, SIM_LISTENER, service);
}

/* The control plane fails while a service has no route. Clients know that its listener is absent, or have one that
 * routes nothing: they lack no resource, so they do not fall back (A71). */
static void route_outage(struct sim_client *c, struct tc_rng *rng)
{
    sim_count(SIM_COUNT_SCENES_ABSENT);
    wait_ms(c, TIME_TO_HEAR_MS);
    sim_control_plane_turn(c, true);
    sim_step_calm(c, rng);
    sim_control_plane_turn(c, false);
    wait_ms(c, TIME_TO_HEAR_MS);
}

static bool scene_route(struct sim_client *c, struct tc_rng *rng)
{
    unsigned service = below(rng, (unsigned)c->mesh.n_services), times = 1 + below(rng, 3);
    if (!sim_feature_on(c, SIM_FEATURE_ROUTES_GO) || c->mesh.services[service].hedged || c->control_plane_down ||
        !sim_routes_may_change(c) || !oracle_settled(tc_world_now_ms()))
        return false;
    for (; times > 0; times--) {
        route_turn(c, service, true);
        calls_to(c, rng, service, below(rng, 3));
        wait_ms(c, below(rng, 3000));
        if (times > 1) {
            route_turn(c, service, false);
            calls_to(c, rng, service, below(rng, 3));
            wait_ms(c, below(rng, 3000));
        }
    }
    sim_step_calm(c, rng);
    calls_to(c, rng, service, 4);
    wait_ms(c, 1000);
    if (sim_feature_on(c, SIM_FEATURE_FALLBACK) && below(rng, 2))
        route_outage(c, rng);
    route_turn(c, service, false);
    return true;
}

/* --- blink --- */

static bool scene_blink(struct sim_client *c, struct tc_rng *rng)
{
    unsigned which = below(rng, (unsigned)c->mesh.n_clusters), times = 2 + below(rng, 3);
    struct sim_cluster *cluster = &c->mesh.clusters[which];
    if (cluster->is_aggregate || cluster->dns || c->served[SIM_ENDPOINTS_OF][which] != SIM_SERVED_GOOD ||
        cluster->localities[0].n_endpoints == 0 || !sim_feature_on(c, SIM_FEATURE_DOWN))
        return false;
    unsigned host = cluster->localities[0].endpoints[0].host;
    if (tc_host_mode(sim_host_address(host)) == TC_HOST_UP)
        sim_host_turn(host, TC_HOST_REFUSES);
    for (; times > 0; times--) {
        struct sim_cluster before = *cluster;
        sim_count(SIM_COUNT_CHANGE_BLINK);
        sim_step_calls(c, rng);
        wait_ms(c, below(rng, 1500));
        sim_endpoints_make(c, cluster, 0, rng);
        sim_story("the endpoints of c%u change, and come back", which);
        sim_change_served(c, SIM_ENDPOINTS_OF, which);
        wait_ms(c, below(rng, 300));
        before.version = cluster->version + 1;
        *cluster = before;
        sim_change_served(c, SIM_ENDPOINTS_OF, which);
        wait_ms(c, below(rng, 300));
    }
    return true;
}

/* --- ejection --- */

/* Returns how many endpoints of a locality can be reached. */
static unsigned locality_up(const struct sim_locality *l)
{
    unsigned up = 0;
    for (size_t k = 0; k < l->n_endpoints; k++)
        up += tc_host_mode(sim_host_address(l->endpoints[k].host)) == TC_HOST_UP;
    return up;
}

/* Returns whether calls of the service are tried once, at endpoints that may be ejected, of which the first locality
 * has one that is up. */
static bool ejects(const struct sim_client *c, unsigned service)
{
    const struct sim_service *s = &c->mesh.services[service];
    const struct sim_cluster *cluster = &c->mesh.clusters[s->cluster];
    return !cluster->is_aggregate && !cluster->dns && cluster->outliers && cluster->policy != SIM_PICK_FIRST &&
           s->retries == 0 && locality_up(&cluster->localities[0]) > 0;
}

static bool scene_ejection(struct sim_client *c, struct tc_rng *rng)
{
    unsigned service = below(rng, (unsigned)c->mesh.n_services), rounds = 50; /* about 75 s: two ejections */
    for (unsigned i = 0; i < c->mesh.n_services && !ejects(c, service); i++)
        service = (service + 1) % (unsigned)c->mesh.n_services;
    if (!ejects(c, service) || !sim_feature_on(c, SIM_FEATURE_SICK))
        return false;
    const struct sim_locality *l = &c->mesh.clusters[c->mesh.services[service].cluster].localities[0];
    unsigned host = l->endpoints[below(rng, (unsigned)l->n_endpoints)].host;
    sim_count(SIM_COUNT_SCENES_EJECTION);
    if (!c->sick[host])
        sim_host_sicken(c, host, true);
    wait_ms(c, ORACLE_SETTLED_MS + 1000);
    unsigned cluster = c->mesh.services[service].cluster;
    for (unsigned i = 0; i < rounds; i++) {
        if (sim_feature_on(c, SIM_FEATURE_UPDATES) && below(rng, 2) &&
            c->served[SIM_ENDPOINTS_OF][cluster] == SIM_SERVED_GOOD)
            sim_change_neutral(c, SIM_ENDPOINTS_OF, cluster);
        calls_to(c, rng, service, 4);
        wait_ms(c, 1000 + below(rng, 1000));
    }
    if (below(rng, 2))
        sim_host_sicken(c, host, false);
    return true;
}

/* --- failover --- */

/* The endpoints of the first priority send GOAWAY after it has recovered. The priority gets the time to connect again
 * (A56): no call goes to the next one meanwhile. */
static void first_priority_connects_again(struct sim_client *c, struct tc_rng *rng, unsigned service,
                                          const struct sim_cluster *cluster)
{
    sim_step_calm(c, rng);
    for (unsigned r = 0; r < c->n_runtimes; r++)
        sim_call_plain(c, rng, service, r, below(rng, 16));
    wait_ms(c, 2000);
    for (size_t i = 0; i < cluster->n_localities && cluster->localities[i].priority == 0; i++)
        goaway_from(&cluster->localities[i]);
    for (unsigned i = 0; i < 4; i++) {
        wait_ms(c, below(rng, 5));
        for (unsigned r = 0; r < c->n_runtimes; r++)
            sim_call_plain(c, rng, service, r, below(rng, 16));
    }
    wait_ms(c, 1000);
}

static bool scene_failover(struct sim_client *c, struct tc_rng *rng)
{
    unsigned service = below(rng, (unsigned)c->mesh.n_services), which = c->mesh.services[service].cluster;
    struct sim_cluster *cluster = &c->mesh.clusters[which];
    enum tc_host_mode mode = sim_feature_on(c, SIM_FEATURE_SILENT) && below(rng, 2) ? TC_HOST_SILENT : TC_HOST_REFUSES;
    size_t first = 0;
    if (cluster->is_aggregate || cluster->dns || c->served[SIM_ENDPOINTS_OF][which] != SIM_SERVED_GOOD ||
        !sim_feature_on(c, SIM_FEATURE_DOWN))
        return false;
    for (; first < cluster->n_localities && cluster->localities[first].priority == 0; first++)
        for (size_t k = 0; k < cluster->localities[first].n_endpoints; k++)
            if (tc_host_mode(sim_host_address(cluster->localities[first].endpoints[k].host)) == TC_HOST_UP)
                sim_host_turn(cluster->localities[first].endpoints[k].host, mode);
    sim_count(SIM_COUNT_SCENES_FAILOVER);
    calls_to(c, rng, service, 3);
    wait_ms(c, 12000);
    calls_to(c, rng, service, 3);
    if (first < cluster->n_localities) {
        sim_endpoints_make(c, cluster, 1, rng);
        sim_story("the lower priorities of c%u change", which);
        sim_change_served(c, SIM_ENDPOINTS_OF, which);
    }
    sim_step_calm(c, rng);
    calls_to(c, rng, service, 6);
    wait_ms(c, 20000);
    calls_to(c, rng, service, 6);
    wait_ms(c, 1000);
    bool all = below(rng, 2);
    for (unsigned h = 0; h < c->mesh.n_hosts; h++)
        if (tc_host_mode(sim_host_address(h)) != TC_HOST_UP && (all || below(rng, 2)))
            sim_host_turn(h, TC_HOST_UP);
    if (all)
        first_priority_connects_again(c, rng, service, cluster);
    return true;
}

/* --- move --- */

/* Returns whether some service uses the cluster's name, and every call of such a service comes to a host of the name:
 * then each of its channels has connections to the name's hosts once it has made calls. */
static bool name_is_in_use(const struct sim_client *c, unsigned cluster)
{
    const struct sim_cluster *of = &c->mesh.clusters[cluster];
    bool any = false, alone = of->dns && !of->max_requests && !c->name_fails[cluster] && oracle_name_known(cluster);
    for (unsigned s = 0; s < c->mesh.n_services; s++) {
        const struct sim_service *service = &c->mesh.services[s];
        any = any || service->cluster == cluster;
        alone = alone && !c->mesh.clusters[service->cluster].is_aggregate && !service->unrouted;
        if (service->cluster == cluster)
            alone = alone && service->abort_percent == 0;
    }
    for (size_t i = 0; i < of->n_localities; i++)
        for (size_t k = 0; k < of->localities[i].n_endpoints; k++) {
            unsigned host = of->localities[i].endpoints[k].host;
            alone = alone && tc_host_mode(sim_host_address(host)) == TC_HOST_UP && !c->sick[host];
        }
    return any && alone;
}

/* Every channel that uses the name makes calls, then all endpoints of `hosts` send GOAWAY. Judges that the name is
 * looked up then, if a look-up is due (oracle_judge_look_up). `hosts` has the addresses that the name had when clients
 * connected. */
static void use_and_goaway(struct sim_client *c, struct tc_rng *rng, unsigned cluster, const struct sim_cluster *hosts)
{
    for (unsigned s = 0; s < c->mesh.n_services; s++)
        for (unsigned r = 0; c->mesh.services[s].cluster == cluster && r < c->n_runtimes; r++)
            for (unsigned i = 0; i < 4; i++)
                sim_call_plain(c, rng, s, r, i);
    wait_ms(c, 2000);
    oracle_name_lost(cluster, tc_world_now_ms());
    for (size_t i = 0; i < hosts->n_localities; i++)
        goaway_from(&hosts->localities[i]);
    wait_ms(c, 1000);
    if (!c->name_fails[cluster]) /* else the resolver waits for its backoff */
        oracle_judge_look_up(cluster, tc_world_now_ms());
}

/* The GOAWAYs before the move cause a look-up. So the GOAWAYs after the move ask for a look-up within the minimum
 * interval between look-ups. */
static bool scene_move(struct sim_client *c, struct tc_rng *rng)
{
    unsigned cluster = below(rng, SIM_CLUSTERS);
    for (unsigned i = 0; i < SIM_CLUSTERS && !name_is_in_use(c, cluster); i++)
        cluster = (cluster + 1) % SIM_CLUSTERS;
    if (!name_is_in_use(c, cluster) || c->control_plane_down || !sim_routes_may_change(c) ||
        !oracle_settled(tc_world_now_ms()))
        return false;
    sim_count(SIM_COUNT_SCENES_MOVE);
    sim_step_calm(c, rng);
    struct sim_cluster before = c->mesh.clusters[cluster];
    if (sim_feature_on(c, SIM_FEATURE_DNS_FAILS) && below(rng, 2)) {
        sim_name_turn(c, cluster, true, true);
        use_and_goaway(c, rng, cluster, &before);
        sim_name_turn(c, cluster, false, false);
        sim_step_calm(c, rng);
        sim_step_calm(c, rng);
    }
    use_and_goaway(c, rng, cluster, &before);
    sim_endpoints_make(c, &c->mesh.clusters[cluster], 0, rng);
    c->mesh.clusters[cluster].version = before.version; /* the name stays */
    sim_name_move(c, cluster);
    use_and_goaway(c, rng, cluster, &before);
    use_and_goaway(c, rng, cluster, &before);
    sim_step_calm(c, rng);
    return true;
}

/* --- weights --- */

/* Returns whether the endpoints of the service's cluster have weights from reports of load. */
static bool weighs(const struct sim_client *c, unsigned service)
{
    const struct sim_cluster *cluster = &c->mesh.clusters[c->mesh.services[service].cluster];
    return !cluster->is_aggregate && !cluster->dns && !cluster->outliers && cluster->policy == SIM_WEIGHTED;
}

static bool scene_weights(struct sim_client *c, struct tc_rng *rng)
{
    unsigned service = below(rng, (unsigned)c->mesh.n_services);
    for (unsigned i = 0; i < c->mesh.n_services && !weighs(c, service); i++)
        service = (service + 1) % (unsigned)c->mesh.n_services;
    if (!weighs(c, service))
        return false;
    sim_count(SIM_COUNT_SCENES_WEIGHTS);
    sim_step_calm(c, rng);
    for (unsigned i = 0; i < 40; i++) {
        calls_to(c, rng, service, 4);
        wait_ms(c, i == 10 ? 13000 : 100);
    }
    return true;
}

void sim_step_scene(struct sim_client *c, struct tc_rng *rng)
{
    static bool (*const scenes[])(struct sim_client *, struct tc_rng *) = {scene_route,    scene_blink, scene_ejection,
                                                                           scene_failover, scene_move,  scene_weights};
    unsigned first = below(rng, TC_ARRAY_LEN(scenes));
    for (unsigned i = 0; i < TC_ARRAY_LEN(scenes); i++)
        if (scenes[(first + i) % TC_ARRAY_LEN(scenes)](c, rng))
            return;
}
