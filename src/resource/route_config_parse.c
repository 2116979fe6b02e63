#include "base/mem.h"
#include "resource/filter_parse.h"
#include "resource/matchers_parse.h"
#include "resource/route_parse.h"

typedef Envoy__Config__Route__V3__RouteConfiguration RouteConfiguration;
typedef Envoy__Config__Route__V3__VirtualHost VirtualHost;
typedef Envoy__Config__Route__V3__Route Route;

#define ACTION(x) ENVOY__CONFIG__ROUTE__V3__ROUTE__ACTION_##x

/* "*", "*suffix", "prefix*" or a whole name. */
static bool domain_valid(const char *d)
{
    size_t len = strlen(d);
    const char *star = strchr(d, '*');
    return len != 0 && (!star || ((star == d || star == d + len - 1) && !strchr(star + 1, '*')));
}

static void read_domains(struct tc_reading *p, const VirtualHost *m, struct tc_virtual_host *out)
{
    struct tc_slice *domains = TC_STORE_ARRAY(p->store, m->n_domains, struct tc_slice);
    if (m->n_domains == 0)
        tc_faults_add_at(p->faults, ".domains", "must be non-empty");
    for (size_t i = 0; i < m->n_domains; i++) {
        domains[i] = tc_store_text(p->store, m->domains[i]);
        if (domain_valid(m->domains[i]))
            continue;
        tc_faults_push(p->faults, ".domains[%zu]", i);
        tc_faults_add(p->faults, "invalid domain pattern \"%s\"", tc_read_clip(p, tc_slice_str(m->domains[i])));
        tc_faults_pop(p->faults);
    }
    out->n_domains = m->n_domains;
    out->domains = domains;
}

/* False when the route is left out. */
static bool read_route(struct tc_reading *p, const RouteConfiguration *config, const Route *m,
                       const struct tc_route_retry *retry, struct tc_route *out)
{
    *out = (struct tc_route){.name = tc_store_text(p->store, m->name), .kind = TC_ROUTE_UNSUPPORTED};
    tc_faults_push(p->faults, ".match");
    bool used = tc_read_route_match(p, m->match, out);
    tc_faults_pop(p->faults);
    if (!used)
        return false;
    if (m->action_case == ACTION(ROUTE)) {
        tc_faults_push(p->faults, ".route");
        used = tc_read_route_action(p, config, m->route, out);
        tc_faults_pop(p->faults);
        if (!out->retry)
            out->retry = retry;
    } else if (m->action_case == ACTION(NON_FORWARDING_ACTION)) {
        out->kind = TC_ROUTE_NON_FORWARDING;
    }
    TC_READ_FILTER_OVERRIDES(p, m, &out->overrides);
    return used;
}

static void read_vhost(struct tc_reading *p, const RouteConfiguration *config, const VirtualHost *m,
                       struct tc_virtual_host *out)
{
    const struct tc_route_retry *retry = NULL;
    out->name = tc_store_text(p->store, m->name);
    read_domains(p, m, out);
    TC_READ_FILTER_OVERRIDES(p, m, &out->overrides);
    if (m->retry_policy) {
        tc_faults_push(p->faults, ".retry_policy");
        retry = tc_read_retry_policy(p, m->retry_policy);
        tc_faults_pop(p->faults);
    }
    struct tc_route *routes = TC_STORE_ARRAY(p->store, m->n_routes, struct tc_route);
    for (size_t i = 0; i < m->n_routes; i++) {
        tc_faults_push(p->faults, ".routes[%zu]", i);
        if (read_route(p, config, m->routes[i], retry, &routes[out->n_routes]))
            out->n_routes++;
        tc_faults_pop(p->faults);
    }
    out->routes = routes;
}

/* Torc has no cluster specifier plugins; those that are optional may be named. */
static void read_plugins(struct tc_reading *p, const RouteConfiguration *m)
{
    struct tc_any any;
    for (size_t i = 0; i < m->n_cluster_specifier_plugins; i++) {
        const Envoy__Config__Route__V3__ClusterSpecifierPlugin *plugin = m->cluster_specifier_plugins[i];
        tc_faults_push(p->faults, ".cluster_specifier_plugins[%zu].extension", i);
        if (!plugin->extension) {
            tc_faults_add(p->faults, "field not present");
        } else {
            tc_read_nonempty(p, plugin->extension->name, ".name");
            tc_faults_push(p->faults, ".typed_config");
            if (tc_read_any(p, plugin->extension->typed_config, &any) && !plugin->is_optional)
                tc_faults_add(p->faults, "unsupported cluster specifier plugin type %s", tc_read_clip(p, any.name));
            tc_faults_pop(p->faults);
        }
        tc_faults_pop(p->faults);
    }
}

static bool within_limits(struct tc_reading *p, const RouteConfiguration *m)
{
    const struct tc_resource_limits *limits = &p->limits;
    size_t routes = 0;
    for (size_t i = 0; i < m->n_virtual_hosts; i++)
        routes += m->virtual_hosts[i]->n_routes;
    if (m->n_virtual_hosts > limits->vhosts)
        tc_faults_add_at(p->faults, ".virtual_hosts", "%zu virtual hosts, more than %zu", m->n_virtual_hosts,
                         limits->vhosts);
    if (routes > limits->routes)
        tc_faults_add_at(p->faults, ".virtual_hosts", "%zu routes, more than %zu", routes, limits->routes);
    return m->n_virtual_hosts <= limits->vhosts && routes <= limits->routes;
}

void tc_read_route_table(struct tc_reading *p, const RouteConfiguration *m, struct tc_route_table *out)
{
    if (!within_limits(p, m))
        return;
    read_plugins(p, m);
    struct tc_virtual_host *vhosts = TC_STORE_ARRAY(p->store, m->n_virtual_hosts, struct tc_virtual_host);
    for (size_t i = 0; i < m->n_virtual_hosts; i++) {
        tc_faults_push(p->faults, ".virtual_hosts[%zu]", i);
        read_vhost(p, m, m->virtual_hosts[i], &vhosts[i]);
        tc_faults_pop(p->faults);
    }
    out->n_vhosts = m->n_virtual_hosts;
    out->vhosts = vhosts;
}

static void route_config_free(struct tc_xds_resource *r)
{
    struct tc_route_config *rc = (struct tc_route_config *)(void *)r;
    tc_store_fini(&rc->store);
    tc_free(rc);
}

static bool route_config_equal(const struct tc_xds_resource *a, const struct tc_xds_resource *b)
{
    return tc_slice_eq(tc_route_config_of(a)->store.bytes, tc_route_config_of(b)->store.bytes);
}

static struct tc_xds_resource *route_config_decode(const struct tc_xds_resource_type *type,
                                                   const struct tc_xds_decode_context *ctx, struct tc_slice bytes,
                                                   struct tc_rstr **name, struct tc_faults *faults)
{
    size_t before = faults->count;
    struct tc_route_config *rc = TC_NEW(struct tc_route_config);
    struct tc_reading r;
    tc_ref_init(&rc->head.ref);
    rc->head.type = type;
    tc_store_init(&rc->store);
    tc_read_init(&r, ctx, &rc->store, bytes.len, faults);
    const RouteConfiguration *m =
        TC_READ(&r, &envoy__config__route__v3__route_configuration__descriptor, RouteConfiguration, bytes);
    if (m) {
        rc->name = tc_store_rstr(&rc->store, m->name);
        *name = tc_rstr_ref(rc->name);
        tc_read_nonempty(&r, m->name, ".name");
        tc_read_route_table(&r, m, &rc->table);
    } else {
        *name = tc_read_name(bytes);
    }
    tc_read_fini(&r);
    if (faults->count == before) {
        tc_store_set_bytes(&rc->store, bytes);
        return &rc->head;
    }
    route_config_free(&rc->head);
    return NULL;
}

const struct tc_xds_resource_type tc_route_config_type = {
    .type_url = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
    .short_name = "RouteConfiguration",
    .any_thread = true,
    .all_resources_required_in_sotw = false,
    .decode = route_config_decode,
    .peek_name = tc_read_peek_name,
    .slow = tc_read_may_be_slow,
    .equal = route_config_equal,
    .free = route_config_free,
};
