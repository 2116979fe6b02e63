/* The outside view of a client: its load reports (LRS), and the status of its resources (CSDS). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/common.h"
#include "pb/envoy/service/status/v3/csds.pb-c.h"
#include "sim/oracle.h"
#include "sim/servers.h"
#include "sim/trace.h"
#include "sim/workload_internal.h"
#include "testing/net.h"
#include "testing/world.h"

typedef Envoy__Service__Status__V3__ClientStatusResponse client_status;
typedef Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig shown_resource;

void sim_show_loads(void)
{
    struct servers_loads l = servers_loads();
    /* Reports that a client sends on a half-open connection are lost, since LRS has no acknowledgement. Half-open
     * connections to backends lose nothing: their calls end for the client, and count. */
    bool whole = l.whole && tc_host_silenced(SIM_CONTROL_PLANE) == 0 && tc_host_silenced(SIM_FALLBACK) == 0;
    oracle_loads(&(struct oracle_loads){l.issued, l.succeeded, l.failed, l.dropped, whole});
}

/* Returns the resource's entry among those of one xDS client; NULL if there is none. */
static const shown_resource *shown_find(const Envoy__Service__Status__V3__ClientConfig *config, const char *name)
{
    for (size_t i = 0; i < config->n_generic_xds_configs; i++)
        if (strcmp(config->generic_xds_configs[i]->name, name) == 0)
            return config->generic_xds_configs[i];
    return NULL;
}

/* Shows the oracle one resource as the client's `config` has it. Does nothing if what is served changed less than
 * ORACLE_SETTLED_MS ago. */
static void show(const struct sim_client *c, const Envoy__Service__Status__V3__ClientConfig *config,
                 enum sim_resource kind, unsigned which)
{
    static const char prefixes[SIM_RESOURCES] = {'s', 'c', 'e'};
    char name[16];
    if (kind == SIM_ENDPOINTS_OF)
        sim_endpoints_name(&c->mesh.clusters[which], which, name, sizeof(name));
    else
        snprintf(name, sizeof(name), "%c%u", prefixes[kind], which);
    const shown_resource *shown = shown_find(config, name);
    if (c->served_ms[kind][which] + ORACLE_SETTLED_MS > tc_world_now_ms())
        return;
    struct oracle_resource r = {.kind = kind,
                                .which = which,
                                .served = c->served[kind][which],
                                .client_status = shown ? (int)shown->client_status : 0,
                                .has_error = shown && shown->error_state,
                                .incremental = sim_feature_on(c, SIM_FEATURE_INCREMENTAL)};
    sim_detail("%s is shown with status %d%s", name, r.client_status, r.has_error ? ", an error" : "");
    oracle_resource(&r);
}

static void show_service(const struct sim_client *c, const Envoy__Service__Status__V3__ClientConfig *config,
                         unsigned service)
{
    unsigned root = c->mesh.services[service].cluster;
    const struct sim_cluster *cluster = &c->mesh.clusters[root];
    show(c, config, SIM_LISTENER, service);
    if (c->mesh.services[service].unrouted)
        return; /* for this service nobody asks for a cluster */
    show(c, config, SIM_CLUSTER, root);
    if (!cluster->is_aggregate && !cluster->dns)
        show(c, config, SIM_ENDPOINTS_OF, root);
    for (size_t i = 0; cluster->is_aggregate && i < cluster->n_children; i++) {
        show(c, config, SIM_CLUSTER, cluster->children[i]);
        if (!c->mesh.clusters[cluster->children[i]].dns)
            show(c, config, SIM_ENDPOINTS_OF, cluster->children[i]);
    }
}

/* Returns whether the scope, a list of targets with a space between them, has the target. */
static bool scope_has(const char *scope, const char *target)
{
    const char *at = strstr(scope, target);
    size_t len = strlen(target);
    return at && (at == scope || at[-1] == ' ') && (at[len] == 0 || at[len] == ' ');
}

void sim_show_resources(const struct sim_client *c)
{
    for (size_t r = 0; r < c->n_runtimes; r++) {
        size_t size;
        void *bytes = app_client_status(c->runtimes[r], &size);
        client_status *status =
            envoy__service__status__v3__client_status_response__unpack(NULL, size, (const uint8_t *)bytes);
        if (!status)
            sim_violation("csds: the client status is malformed");
        for (size_t i = 0; status && i < status->n_config; i++)
            for (unsigned s = 0; s < c->mesh.n_services; s++) {
                char target[16];
                snprintf(target, sizeof(target), "xds:///s%u", s);
                if (scope_has(status->config[i]->client_scope, target))
                    show_service(c, status->config[i], s);
            }
        if (status)
            envoy__service__status__v3__client_status_response__free_unpacked(status, NULL);
        app_memory_free(bytes);
    }
}
