/* torc bench: the localities of backends, from the ClusterLoadAssignments that the runtime's xDS clients hold, and from
 * the collections of endpoints that the assignments name (LEDS). */
#include "api/builtin.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "pb/envoy/service/status/v3/csds.pb-c.h"
#include "xds/client/name.h"
#include "xds/resource/endpoints.h"

typedef Envoy__Service__Status__V3__ClientConfig client_config;
typedef Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig generic_config;

/* A collection of endpoints, in a table by canonical name. */
struct collection {
    UT_hash_handle hh;                /* borrows the name from the ClientConfig */
    struct tc_xds_resource *resource; /* a reference */
};

/* Returns the collection of this name, or NULL. The table has canonical names, so the name is parsed first. */
static const struct collection *find(const struct collection *collections, struct tc_slice text)
{
    const struct collection *c = NULL;
    struct tc_xds_name name;
    char *why = NULL;
    if (tc_xds_name_parse(&tc_eds_collection_type, text, &name, &why)) {
        HASH_FIND_STR(collections, name.text->data, c);
        tc_xds_name_fini(&name);
    }
    tc_free(why);
    return c;
}

/* Adds the endpoints of a locality as backends: those that stand in it, or those of the collection that it names. */
static void take_locality(struct bench *b, const struct tc_eds_locality *l, const struct collection *collections)
{
    struct tc_buf text = {0};
    size_t n = l->n;
    const struct tc_eds_endpoint *endpoints = l->endpoints;
    if (l->collection) {
        const struct collection *c = find(collections, tc_rstr_slice(l->collection));
        n = c ? tc_eds_collection_of(c->resource)->n : 0;
        endpoints = c ? tc_eds_collection_of(c->resource)->endpoints : NULL;
    }
    tc_eds_locality_format(l, &text);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < endpoints[i].n_addrs; k++) {
            char *address = tc_addr_text(&endpoints[i].addrs[k]);
            struct bench_backend *at = bench_backend_of(b, address);
            if (!at->locality)
                at->locality = tc_strdup(tc_buf_cstr(&text));
            tc_free(address);
        }
    }
    tc_buf_fini(&text);
}

/* Returns the resource of an entry, for tc_xds_resource_unref. NULL if the entry has another type or no content, or if
 * decoding fails. */
static struct tc_xds_resource *decode(const generic_config *g, const struct tc_xds_resource_type *type)
{
    const struct tc_xds_decode_context ctx = {.registries = tc_builtin_validation_context()};
    struct tc_validation_errors errors = {0};
    struct tc_rstr *name = NULL;
    if (!g->xds_config || strcmp(g->type_url, type->type_url) != 0)
        return NULL;
    struct tc_slice bytes = tc_slice_of(g->xds_config->value.data, g->xds_config->value.len);
    struct tc_xds_resource *r = type->decode(type, &ctx, bytes, &name, &errors);
    tc_rstr_unref(name);
    tc_validation_fini(&errors);
    return r;
}

/* Adds the backends of a client's resources. Collections are read first, because localities name them. */
static void take_client(struct bench *b, const client_config *client)
{
    struct collection *collections = NULL, *c, *next;
    for (size_t i = 0; i < client->n_generic_xds_configs; i++) {
        const generic_config *g = client->generic_xds_configs[i];
        struct tc_xds_resource *r = decode(g, &tc_eds_collection_type);
        if (!r)
            continue;
        c = TC_NEW(struct collection);
        c->resource = r;
        HASH_ADD_KEYPTR(hh, collections, g->name, strlen(g->name), c);
    }
    for (size_t i = 0; i < client->n_generic_xds_configs; i++) {
        struct tc_xds_resource *r = decode(client->generic_xds_configs[i], &tc_eds_type);
        const struct tc_eds *eds = r ? tc_eds_of(r) : NULL;
        for (size_t p = 0; eds && p < eds->n_priorities; p++)
            for (size_t k = 0; k < eds->priorities[p].n; k++)
                take_locality(b, &eds->priorities[p].localities[k], collections);
        tc_xds_resource_unref(r);
    }
    HASH_ITER(hh, collections, c, next)
    {
        HASH_DELETE(hh, collections, c);
        tc_xds_resource_unref(c->resource);
        tc_free(c);
    }
}

void bench_find_localities(struct bench *b)
{
    void *bytes;
    size_t size;
    if (torc_csds_dump(b->runtime, false, &bytes, &size) != 0)
        return; /* no locality is added */
    Envoy__Service__Status__V3__ClientStatusResponse *all =
        envoy__service__status__v3__client_status_response__unpack(NULL, size, bytes);
    for (size_t i = 0; all && i < all->n_config; i++)
        take_client(b, all->config[i]);
    if (all)
        envoy__service__status__v3__client_status_response__free_unpacked(all, NULL);
    torc_free(bytes);
}
