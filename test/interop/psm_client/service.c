/* The services by which the test driver controls the PSM client: unary methods with protobuf messages. */
#include <stdlib.h>

#include "base/mem.h"
#include "proto/pack.h"
#include "psm.h"

void psm_reply(struct tc_server_call *call, const ProtobufCMessage *message)
{
    struct tc_buf bytes = {0};
    tc_pack(message, &bytes);
    tc_server_call_reply(call, tc_buf_slice(&bytes));
    tc_buf_fini(&bytes);
}

static void malformed(struct tc_server_call *call, const char *what)
{
    tc_server_call_finish(call, TORC_STATUS_INVALID_ARGUMENT, what, NULL);
}

static void get_client_stats(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    struct psm_service *s = arg;
    struct tc_slice bytes = tc_rstr_slice(request);
    Grpc__Testing__LoadBalancerStatsRequest *r =
        grpc__testing__load_balancer_stats_request__unpack(NULL, bytes.len, (const uint8_t *)bytes.data);
    if (!r || r->num_rpcs < 1 || r->timeout_sec < 0)
        malformed(call, "a LoadBalancerStatsRequest has num_rpcs from 1 and timeout_sec from 0");
    else
        psm_stats_watch(s->stats, call, r);
    if (r)
        grpc__testing__load_balancer_stats_request__free_unpacked(r, NULL);
}

static void get_accumulated(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    struct psm_service *s = arg;
    (void)request; /* an empty message */
    psm_stats_accumulated(s->stats, call);
}

static bool add(struct psm_config *c, const Grpc__Testing__ClientConfigureRequest__Metadata *m)
{
    return (unsigned)m->type < PSM_RPCS && torc_metadata_add_string(c->metadata[m->type], m->key, m->value) == 0;
}

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
        ok = add(c, r->metadata[i]);
    if (!ok)
        psm_config_fini(c);
    return ok;
}

static void configure(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    static const Grpc__Testing__ClientConfigureResponse done = GRPC__TESTING__CLIENT_CONFIGURE_RESPONSE__INIT;
    struct psm_service *s = arg;
    struct tc_slice bytes = tc_rstr_slice(request);
    struct psm_config config;
    Grpc__Testing__ClientConfigureRequest *r =
        grpc__testing__client_configure_request__unpack(NULL, bytes.len, (const uint8_t *)bytes.data);
    if (!r || !config_of(&config, r, s->default_timeout_ms)) {
        malformed(call, "a ClientConfigureRequest names RPC types and metadata that can be sent");
    } else {
        psm_load_configure(s->load, &config);
        psm_reply(call, &done.base);
    }
    if (r)
        grpc__testing__client_configure_request__free_unpacked(r, NULL);
}

static void make_csds(struct tc_csds_service *csds, bool without_contents)
{
    struct psm_service *s = TC_CONTAINER_OF(csds, struct psm_service, csds);
    void *bytes = NULL;
    size_t size = 0;
    /* On failure the message is empty: nothing is known. */
    (void)torc_csds_dump(psm_load_runtime(s->load), without_contents, &bytes, &size);
    tc_csds_service_made(csds, tc_rstr_new(bytes ? bytes : "", size), size, 0);
    torc_free(bytes);
}

void psm_service_register(struct psm_service *s, struct tc_server *server)
{
    tc_server_add_unary(server, "/grpc.testing.LoadBalancerStatsService/GetClientStats", get_client_stats, s);
    tc_server_add_unary(server, "/grpc.testing.LoadBalancerStatsService/GetClientAccumulatedStats", get_accumulated, s);
    s->csds.make = make_csds;
    tc_csds_service_register(server, &s->csds);
    tc_server_add_unary(server, "/grpc.testing.XdsUpdateClientConfigureService/Configure", configure, s);
}
