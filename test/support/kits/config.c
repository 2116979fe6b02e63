/* Cluster snapshots and XdsConfigs from short texts.
 *
 * Texts become proto3 JSON, which kits/resource decodes as the client would: the resources have passed the client's
 * validation. A cluster's snapshot owns a reference to its Cluster and to its EDS resource. A config owns a reference
 * to each snapshot, and to its Listener. Its client and pool are NULL. kit_config_routing is for tests of routes and
 * filters, kit_config_config for tests of clusters. Everything runs on the test's thread, on the loop of the fake
 * channel. */
#include "support/kits/config.h"

#include "support/cmocka.h"

#include "api/builtin.h"
#include "base/mem.h"
#include "lb/registry.h"
#include "support/kits/resource.h"

/* Cuts the text at the first `at`, and stores the text after it in *rest. Returns false, and changes nothing, if there
 * is no `at`. */
static bool cut(struct tc_slice *text, char at, struct tc_slice *rest)
{
    for (size_t i = 0; i < text->len; i++)
        if (text->data[i] == at) {
            *rest = tc_slice_of(text->data + i + 1, text->len - i - 1);
            text->len = i;
            return true;
        }
    return false;
}

static void append_endpoint(struct tc_buf *b, struct tc_slice text)
{
    struct tc_slice health, key, weight, port = tc_slice_str("");
    bool has_health = cut(&text, '!', &health), has_key = cut(&text, '#', &key), has_weight = cut(&text, '*', &weight);
    assert_true(cut(&text, ':', &port));
    tc_buf_printf(b, "{'endpoint': {'address': {'socketAddress': {'address': '%.*s', 'portValue': %.*s}}}",
                  (int)text.len, text.data, (int)port.len, port.data);
    if (has_weight)
        tc_buf_printf(b, ", 'loadBalancingWeight': %.*s", (int)weight.len, weight.data);
    if (has_key)
        tc_buf_printf(b, ", 'metadata': {'filterMetadata': {'envoy.lb': {'hash_key': '%.*s'}}}", (int)key.len,
                      key.data);
    if (has_health)
        tc_buf_printf(b, ", 'healthStatus': '%.*s'", (int)health.len, health.data);
    tc_buf_append_str(b, "}");
}

static void append_locality(struct tc_buf *b, struct tc_slice head)
{
    struct tc_slice endpoints = {0}, name = {0}, weight = tc_slice_str("1"), part;
    bool more = true, first = true;
    assert_true(cut(&head, ':', &endpoints));
    assert_true(cut(&head, '/', &name));
    cut(&name, '=', &weight);
    tc_buf_printf(b,
                  "{'priority': %.*s, 'loadBalancingWeight': %.*s, 'locality': {'subZone': '%.*s'}, 'lbEndpoints': [",
                  (int)head.len, head.data, (int)weight.len, weight.data, (int)name.len, name.data);
    while (tc_slice_split(&endpoints, &more, ' ', &part))
        if (part.len) {
            tc_buf_append_str(b, first ? "" : ", ");
            append_endpoint(b, part);
            first = false;
        }
    tc_buf_append_str(b, "]}");
}

const struct tc_eds *kit_config_eds(const char *localities, const char *more)
{
    struct tc_buf b = {0};
    struct tc_slice rest = tc_slice_str(localities), part;
    bool left = true, first = true;
    tc_buf_append_str(&b, "{'clusterName': 'c', 'endpoints': [");
    while (tc_slice_split(&rest, &left, ';', &part)) {
        part = tc_slice_trim(part);
        if (!part.len)
            continue;
        tc_buf_append_str(&b, first ? "" : ", ");
        append_locality(&b, part);
        first = false;
    }
    tc_buf_printf(&b, "]%s}", more ? more : "");
    struct tc_xds_resource *r = kit_resource_valid(&tc_eds_type, NULL, tc_buf_cstr(&b));
    tc_buf_fini(&b);
    return tc_eds_of(r);
}

void kit_config_eds_unref(const struct tc_eds *eds)
{
    tc_xds_resource_unref((struct tc_xds_resource *)(void *)&eds->base.head);
}

struct tc_cluster_config *kit_config_cluster(const char *name, const char *more, const struct tc_eds *eds)
{
    char *json = tc_asprintf("{'name': '%s', 'type': 'EDS', 'edsClusterConfig': {'edsConfig': {'ads': {}}, "
                             "'serviceName': 'c'}%s}",
                             name, more);
    struct tc_cluster_config *c = TC_NEW(struct tc_cluster_config);
    tc_ref_init(&c->ref);
    c->name = tc_rstr_str(name);
    c->cluster = tc_cluster_of(kit_resource_valid(&tc_cluster_type, NULL, json));
    c->eds = eds;
    c->resolution_note = tc_rstr_str("xDS node ID:n1");
    tc_free(json);
    return c;
}

struct tc_xds_config *kit_config_config(struct tc_cluster_config *first, ...)
{
    struct tc_xds_config *config = TC_NEW(struct tc_xds_config);
    va_list ap;
    tc_ref_init(&config->ref);
    config->clusters = tc_calloc(8, sizeof(*config->clusters));
    config->node_id = tc_rstr_str("n1");
    va_start(ap, first);
    for (struct tc_cluster_config *c = first; c; c = va_arg(ap, struct tc_cluster_config *))
        config->clusters[config->n_clusters++] = c;
    va_end(ap);
    return config;
}

struct tc_xds_config *kit_config_routing(const char *filters, const char *vhost, const char *routes, const char *more)
{
    char *json = tc_asprintf(
        "{'name': 'l', 'apiListener': {'apiListener': {'@type': "
        "'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager', "
        "'httpFilters': [%s {'name': 'router', 'typedConfig': {'@type': "
        "'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router'}}], "
        "'routeConfig': {'virtualHosts': [{'name': 'v', 'domains': ['*'], %s 'routes': [%s]}]}%s}}}",
        filters, vhost, routes, more);
    struct tc_xds_config *config = TC_NEW(struct tc_xds_config);
    tc_ref_init(&config->ref);
    config->listener = tc_listener_of(kit_resource_valid(&tc_listener_type, NULL, json));
    config->vhost = &config->listener->routes->vhosts[0];
    config->node_id = tc_rstr_str("n1");
    tc_free(json);
    return config;
}

struct fake_lb *kit_config_lb(const char *policy)
{
    struct fake_lb *f = fake_lb_new(NULL);
    f->policy = tc_lb_create(tc_lb_registry_find(f->registry, tc_slice_str(policy)), &f->helper);
    return f;
}

void kit_config_update(struct fake_lb *f, struct tc_lb_config *lb_config, struct tc_xds_config *config)
{
    struct tc_endpoints *none = tc_endpoints_empty();
    struct tc_lb_update u = {.endpoints = none, .config = lb_config, .attributes = config};
    struct tc_status status = f->policy->ops->update(f->policy, &u);
    tc_status_fini(&status);
    tc_endpoints_unref(none);
    tc_lb_config_unref(lb_config);
    tc_xds_config_unref(config);
    tc_loop_drain(f->loop);
}

void kit_config_lb_free(struct fake_lb *f)
{
    tc_status_fini(&f->pick.status);
    fake_lb_free(f);
}
