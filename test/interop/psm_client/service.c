/* The services by which the test driver controls the PSM client. Handlers run on threads of a pool and may wait. */
#include "psm.h"

static void refuse(torc_server_call *call, const char *what)
{
    torc_server_call_finish(call, TORC_STATUS_INVALID_ARGUMENT, what, NULL);
}

static void get_client_stats(torc_server_call *call, const Grpc__Testing__LoadBalancerStatsRequest *request, void *arg)
{
    struct psm_service *s = arg;
    if (request->num_rpcs < 1 || request->timeout_sec < 0)
        refuse(call, "a LoadBalancerStatsRequest has num_rpcs from 1 and timeout_sec from 0");
    else
        psm_stats_watch(s->stats, call, request);
}

static void get_client_accumulated_stats(torc_server_call *call,
                                         const Grpc__Testing__LoadBalancerAccumulatedStatsRequest *request, void *arg)
{
    struct psm_service *s = arg;
    (void)request;
    psm_stats_accumulated(s->stats, call);
}

/* Fills in the config that a request asks for, which psm_config_fini frees. Returns false, with nothing to free, if the
 * timeout is negative, a kind of RPC is unknown or a header cannot be sent. */
static bool config_of(struct psm_config *c, const Grpc__Testing__ClientConfigureRequest *r, int64_t default_timeout_ms)
{
    bool ok = r->timeout_sec >= 0;
    *c = (struct psm_config){.timeout_ms = r->timeout_sec > 0 ? (int64_t)r->timeout_sec * 1000 : default_timeout_ms};
    for (unsigned i = 0; i < PSM_RPCS; i++)
        c->metadata[i] = torc_metadata_new();
    for (size_t i = 0; i < r->n_types; i++) {
        ok = ok && (unsigned)r->types[i] < PSM_RPCS;
        if (ok)
            c->wanted[r->types[i]] = true;
    }
    for (size_t i = 0; ok && i < r->n_metadata; i++)
        ok = (unsigned)r->metadata[i]->type < PSM_RPCS &&
             torc_metadata_add_string(c->metadata[r->metadata[i]->type], r->metadata[i]->key, r->metadata[i]->value) ==
                 0;
    if (!ok)
        psm_config_fini(c);
    return ok;
}

static void configure(torc_server_call *call, const Grpc__Testing__ClientConfigureRequest *request, void *arg)
{
    static const Grpc__Testing__ClientConfigureResponse done = GRPC__TESTING__CLIENT_CONFIGURE_RESPONSE__INIT;
    struct psm_service *s = arg;
    struct psm_config config;
    if (!config_of(&config, request, s->default_timeout_ms)) {
        refuse(call, "a ClientConfigureRequest names RPC types and metadata that can be sent");
        return;
    }
    psm_load_configure(s->load, &config);
    grpc__testing__xds_update_client_configure_service__configure__reply(call, &done);
}

/* Returns the status of the xDS resources of the load's runtime, in the call's arena. NULL, with the call finished, if
 * the request has node_matchers or there is no status. */
static const Envoy__Service__Status__V3__ClientStatusResponse *status_of(
    torc_server_call *call, const Envoy__Service__Status__V3__ClientStatusRequest *request, const struct psm_service *s)
{
    void *bytes = NULL;
    size_t size = 0;
    if (request->n_node_matchers > 0) {
        refuse(call, "node_matchers are not supported");
        return NULL;
    }
    int rc = torc_csds_dump(psm_load_runtime(s->load), request->exclude_resource_contents, &bytes, &size);
    const ProtobufCMessage *status =
        rc == 0 ? torc_protobuf_c_unpack(&envoy__service__status__v3__client_status_response__descriptor, bytes, size,
                                         torc_server_call_arena(call), NULL)
                : NULL;
    torc_free(bytes);
    if (!status)
        torc_server_call_finish(call, TORC_STATUS_INTERNAL, "the client's status cannot be had", NULL);
    return (const Envoy__Service__Status__V3__ClientStatusResponse *)status;
}

static void fetch_client_status(torc_server_call *call, const Envoy__Service__Status__V3__ClientStatusRequest *request,
                                void *arg)
{
    const Envoy__Service__Status__V3__ClientStatusResponse *status = status_of(call, request, arg);
    if (status)
        envoy__service__status__v3__client_status_discovery_service__fetch_client_status__reply(call, status);
}

static void stream_client_status(torc_server_call *call, void *arg)
{
    const Envoy__Service__Status__V3__ClientStatusRequest *request;
    int rc;
    while ((rc = envoy__service__status__v3__client_status_discovery_service__stream_client_status__next(
                call, -1, &request)) == 1) {
        const Envoy__Service__Status__V3__ClientStatusResponse *status = status_of(call, request, arg);
        if (!status)
            return;
        envoy__service__status__v3__client_status_discovery_service__stream_client_status__reply(call, status, 0, -1);
    }
    torc_server_call_finish(call, rc == 0 ? TORC_STATUS_OK : TORC_STATUS_INTERNAL, NULL, NULL);
}

void psm_service_add(struct psm_service *s, torc_server *server, torc_error **error)
{
    static const struct grpc__testing__load_balancer_stats_service__handlers stats = {
        TORC_SIZE(grpc__testing__load_balancer_stats_service__handlers), get_client_stats,
        get_client_accumulated_stats};
    static const struct grpc__testing__xds_update_client_configure_service__handlers update = {
        TORC_SIZE(grpc__testing__xds_update_client_configure_service__handlers), configure};
    static const struct envoy__service__status__v3__client_status_discovery_service__handlers csds = {
        TORC_SIZE(envoy__service__status__v3__client_status_discovery_service__handlers), stream_client_status,
        fetch_client_status};
    grpc__testing__load_balancer_stats_service__add(server, &stats, s, error);
    grpc__testing__xds_update_client_configure_service__add(server, &update, s, error);
    envoy__service__status__v3__client_status_discovery_service__add(server, &csds, s, error);
}
