/* torc bench: the localities of backends, as the ClusterLoadAssignments say that the client has. */
#include "api/builtin.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "pb/envoy/service/status/v3/csds.pb-c.h"
#include "xds/resource/endpoints.h"

static void take_locality(struct bench *b, const struct tc_eds_locality *l)
{
    struct tc_buf text = {0};
    tc_eds_locality_format(l, &text);
    for (size_t i = 0; i < l->n; i++) {
        for (size_t k = 0; k < l->endpoints[i].n_addrs; k++) {
            char *address = tc_addr_text(&l->endpoints[i].addrs[k]);
            struct bench_backend *at = bench_backend_of(b, address);
            if (!at->locality)
                at->locality = tc_strdup(tc_buf_cstr(&text));
            tc_free(address);
        }
    }
    tc_buf_fini(&text);
}

static void take_endpoints(struct bench *b, struct tc_slice bytes)
{
    const struct tc_xds_decode_context ctx = {.registries = tc_builtin_validation_context()};
    struct tc_validation_errors errors = {0};
    struct tc_rstr *name = NULL;
    struct tc_xds_resource *r = tc_eds_type.decode(&tc_eds_type, &ctx, bytes, &name, &errors);
    const struct tc_eds *eds = r ? tc_eds_of(r) : NULL;
    for (size_t p = 0; eds && p < eds->n_priorities; p++)
        for (size_t i = 0; i < eds->priorities[p].n; i++)
            take_locality(b, &eds->priorities[p].localities[i]);
    tc_xds_resource_unref(r);
    tc_rstr_unref(name);
    tc_validation_fini(&errors);
}

static void take_client(struct bench *b, const Envoy__Service__Status__V3__ClientConfig *client)
{
    for (size_t i = 0; i < client->n_generic_xds_configs; i++) {
        const Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig *g = client->generic_xds_configs[i];
        if (g->xds_config && strcmp(g->type_url, tc_eds_type.type_url) == 0)
            take_endpoints(b, tc_slice_of((const char *)g->xds_config->value.data, g->xds_config->value.len));
    }
}

void bench_find_localities(struct bench *b)
{
    void *bytes;
    size_t size;
    if (torc_csds_dump(b->runtime, false, &bytes, &size) != 0)
        return; /* no figure depends on it */
    Envoy__Service__Status__V3__ClientStatusResponse *all =
        envoy__service__status__v3__client_status_response__unpack(NULL, size, bytes);
    for (size_t i = 0; all && i < all->n_config; i++)
        take_client(b, all->config[i]);
    if (all)
        envoy__service__status__v3__client_status_response__free_unpacked(all, NULL);
    torc_free(bytes);
}
