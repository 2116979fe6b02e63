/* Decodes RouteConfiguration resources (RDS), and the inline route tables of listeners: virtual hosts with their
 * domains, routes, filter overrides.
 *
 * route_match_decoder.c decodes what a route matches, route_action_decoder.c what it does. A virtual host's retry
 * policy is the default of its routes. `trusted` says whether the bootstrap trusts the server that sent the routes
 * (A81).
 *
 * An error is added at its path, and decoding goes on; tc_decode_end then frees the resource. A table beyond the limits
 * is not read further, nor is a route that is left out because of its match. The resource's arena keeps the table. Runs
 * on any thread. */
#include "xds/resource/route_config_decoder.h"

#include "base/mem.h"
#include "xds/resource/decoded.h"
#include "xds/resource/http_filter_decoder.h"

typedef Envoy__Config__Route__V3__RouteConfiguration RouteConfiguration;
typedef Envoy__Config__Route__V3__VirtualHost VirtualHost;
typedef Envoy__Config__Route__V3__Route Route;

#define ACTION(x) ENVOY__CONFIG__ROUTE__V3__ROUTE__ACTION_##x

/* Returns whether the domain is "*", "*suffix", "prefix*", or a name without "*". */
static bool domain_valid(const char *d)
{
    size_t len = strlen(d);
    const char *star = strchr(d, '*');
    return len != 0 && (!star || ((star == d || star == d + len - 1) && !strchr(star + 1, '*')));
}

static void decode_domains(struct tc_decoder *dec, const VirtualHost *m, struct tc_virtual_host *out)
{
    struct tc_slice *domains = TC_RESOURCE_ARRAY(dec->arena, m->n_domains, struct tc_slice);
    if (m->n_domains == 0)
        tc_validation_add_at(dec->errors, ".domains", "must be non-empty");
    for (size_t i = 0; i < m->n_domains; i++) {
        domains[i] = tc_resource_arena_text(dec->arena, m->domains[i]);
        if (domain_valid(m->domains[i]))
            continue;
        tc_validation_push(dec->errors, ".domains[%zu]", i);
        tc_validation_add(dec->errors, "invalid domain pattern \"%s\"",
                          tc_decode_clip(dec, tc_slice_str(m->domains[i])));
        tc_validation_pop(dec->errors);
    }
    out->n_domains = m->n_domains;
    out->domains = domains;
}

/* Returns false when the route is left out. `retry` is the virtual host's policy, or NULL. */
static bool decode_route(struct tc_decoder *dec, const RouteConfiguration *config, const Route *m,
                         const struct tc_route_retry *retry, struct tc_route *out)
{
    *out = (struct tc_route){.name = tc_resource_arena_text(dec->arena, m->name), .kind = TC_ROUTE_UNSUPPORTED};
    tc_validation_push(dec->errors, ".match");
    bool used = tc_decode_route_match(dec, m->match, out);
    tc_validation_pop(dec->errors);
    if (!used)
        return false;
    if (m->action_case == ACTION(ROUTE)) {
        tc_validation_push(dec->errors, ".route");
        used = tc_decode_route_action(dec, config, m->route, out);
        tc_validation_pop(dec->errors);
        if (!out->retry)
            out->retry = retry;
    } else if (m->action_case == ACTION(NON_FORWARDING_ACTION)) {
        out->kind = TC_ROUTE_NON_FORWARDING;
    }
    TC_DECODE_FILTER_OVERRIDES(dec, m, &out->overrides);
    return used;
}

static void decode_vhost(struct tc_decoder *dec, const RouteConfiguration *config, const VirtualHost *m,
                         struct tc_virtual_host *out)
{
    const struct tc_route_retry *retry = NULL;
    out->name = tc_resource_arena_text(dec->arena, m->name);
    decode_domains(dec, m, out);
    TC_DECODE_FILTER_OVERRIDES(dec, m, &out->overrides);
    if (m->retry_policy) {
        tc_validation_push(dec->errors, ".retry_policy");
        retry = tc_decode_retry_policy(dec, m->retry_policy);
        tc_validation_pop(dec->errors);
    }
    struct tc_route *routes = TC_RESOURCE_ARRAY(dec->arena, m->n_routes, struct tc_route);
    for (size_t i = 0; i < m->n_routes; i++) {
        tc_validation_push(dec->errors, ".routes[%zu]", i);
        if (decode_route(dec, config, m->routes[i], retry, &routes[out->n_routes]))
            out->n_routes++;
        tc_validation_pop(dec->errors);
    }
    out->routes = routes;
}

/* Torc has no cluster specifier plugins: a plugin in the list is an error unless it is optional. An optional plugin
 * without extension, name or config is an error, too. Sorts the list. */
static void decode_plugins(struct tc_decoder *dec, const RouteConfiguration *m)
{
    struct tc_any any;
    for (size_t i = 0; i < m->n_cluster_specifier_plugins; i++) {
        const Envoy__Config__Route__V3__ClusterSpecifierPlugin *plugin = m->cluster_specifier_plugins[i];
        tc_validation_push(dec->errors, ".cluster_specifier_plugins[%zu].extension", i);
        if (!plugin->extension) {
            tc_validation_add(dec->errors, "field not present");
        } else {
            tc_decode_nonempty(dec, plugin->extension->name, ".name");
            tc_validation_push(dec->errors, ".typed_config");
            if (tc_decode_any(dec, plugin->extension->typed_config, &any) && !plugin->is_optional)
                tc_validation_add(dec->errors, "unsupported cluster specifier plugin type %s of plugin \"%s\"",
                                  tc_decode_clip(dec, any.name),
                                  tc_decode_clip(dec, tc_slice_str(plugin->extension->name)));
            tc_validation_pop(dec->errors);
        }
        tc_validation_pop(dec->errors);
    }
    tc_decode_sort_plugins(m);
}

/* Returns false with errors if there are too many virtual hosts or routes. */
static bool within_limits(struct tc_decoder *dec, const RouteConfiguration *m)
{
    const struct tc_resource_limits *limits = &dec->limits;
    size_t routes = 0;
    for (size_t i = 0; i < m->n_virtual_hosts; i++)
        routes += m->virtual_hosts[i]->n_routes;
    if (m->n_virtual_hosts > limits->vhosts)
        tc_validation_add_at(dec->errors, ".virtual_hosts", "%zu virtual hosts, more than %zu", m->n_virtual_hosts,
                             limits->vhosts);
    if (routes > limits->routes)
        tc_validation_add_at(dec->errors, ".virtual_hosts", "%zu routes, more than %zu", routes, limits->routes);
    return m->n_virtual_hosts <= limits->vhosts && routes <= limits->routes;
}

void tc_decode_route_table(struct tc_decoder *dec, const RouteConfiguration *m, struct tc_route_table *out)
{
    if (!within_limits(dec, m))
        return;
    decode_plugins(dec, m);
    struct tc_virtual_host *vhosts = TC_RESOURCE_ARRAY(dec->arena, m->n_virtual_hosts, struct tc_virtual_host);
    for (size_t i = 0; i < m->n_virtual_hosts; i++) {
        tc_validation_push(dec->errors, ".virtual_hosts[%zu]", i);
        decode_vhost(dec, m, m->virtual_hosts[i], &vhosts[i]);
        tc_validation_pop(dec->errors);
    }
    out->n_vhosts = m->n_virtual_hosts;
    out->vhosts = vhosts;
    out->trusted = tc_decode_is_trusted(dec);
}

/* Two resources of equal bytes differ if the bootstrap trusts the server of one of them alone (A81). */
static bool route_config_equal(const struct tc_xds_resource *a, const struct tc_xds_resource *b)
{
    return tc_decoded_equal(a, b) && tc_route_config_of(a)->table.trusted == tc_route_config_of(b)->table.trusted;
}

static void decode_route_config(struct tc_decoder *dec, const RouteConfiguration *m, struct tc_route_config *out)
{
    tc_decode_nonempty(dec, m->name, ".name");
    tc_decode_route_table(dec, m, &out->table);
}

static struct tc_xds_resource *route_config_decode(const struct tc_xds_resource_type *type,
                                                   const struct tc_xds_decode_context *ctx, struct tc_slice bytes,
                                                   struct tc_rstr **name, struct tc_validation_errors *errors)
{
    struct tc_route_config *rc = TC_NEW(struct tc_route_config);
    struct tc_decoder dec;
    tc_decode_begin(&dec, &rc->base, type, ctx, bytes, errors);
    const RouteConfiguration *m =
        TC_DECODE(&dec, &envoy__config__route__v3__route_configuration__descriptor, RouteConfiguration, bytes);
    rc->name = tc_decode_take_name(&dec, m ? m->name : NULL, bytes, name);
    if (m)
        decode_route_config(&dec, m, rc);
    return tc_decode_end(&dec, &rc->base, bytes);
}

const struct tc_xds_resource_type tc_route_config_type = {
    .type_url = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
    .short_name = "RouteConfiguration",
    .any_thread = true,
    .all_resources_required_in_sotw = false,
    .decode = route_config_decode,
    .peek_name = tc_decode_peek_name,
    .slow = tc_decode_may_be_slow,
    .equal = route_config_equal,
    .free = tc_decoded_free,
};
