#include "admin/csds.h"

#include "admin/client_status.h"
#include "base/mem.h"
#include "base/vec.h"
#include "channel/runtime.h"
#include "channel/xds_domain.h"
#include "mesh/domain.h"
#include "proto/pack.h"

typedef Envoy__Service__Status__V3__ClientConfig client_config;
typedef TC_VEC(Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig *) resource_vec;

/* A response under construction; all in the arena but the arrays. */
struct answer {
    struct tc_arena arena;
    bool without_contents;
    TC_VEC(client_config *) clients;
    resource_vec resources; /* of the client that is being told of */
};

static void on_resource(void *arg, const struct tc_xds_dump_entry *e)
{
    struct answer *a = arg;
    *tc_vec_push(&a->resources) = tc_client_status_resource(&a->arena, e, a->without_contents);
}

static void on_client(void *arg, const struct tc_xds_client *client)
{
    struct answer *a = arg;
    client_config *c = tc_client_status_new(&a->arena, tc_xds_client_bootstrap(client), tc_xds_client_target(client));
    a->resources.len = 0;
    tc_xds_client_dump(client, on_resource, a);
    c->n_generic_xds_configs = a->resources.len;
    c->generic_xds_configs = tc_arena_calloc(&a->arena, a->resources.len, sizeof(c->generic_xds_configs[0]));
    for (size_t i = 0; i < a->resources.len; i++)
        c->generic_xds_configs[i] = a->resources.data[i];
    *tc_vec_push(&a->clients) = c;
}

/* What is asked for, for the loop that has it. */
struct dump {
    torc_runtime *rt;
    bool without_contents;
    struct tc_buf *out;
};

static void make(void *arg)
{
    const struct dump *d = arg;
    Envoy__Service__Status__V3__ClientStatusResponse response =
        ENVOY__SERVICE__STATUS__V3__CLIENT_STATUS_RESPONSE__INIT;
    const struct tc_mesh_domain *domain = tc_mesh_domain_find(d->rt);
    struct answer a = {.without_contents = d->without_contents};
    tc_arena_init(&a.arena, 4096, 0);
    if (domain)
        tc_mesh_domain_each_client(domain, on_client, &a);
    response.n_config = a.clients.len;
    response.config = a.clients.data;
    tc_pack(&response.base, d->out);
    tc_vec_fini(&a.resources);
    tc_vec_fini(&a.clients);
    tc_arena_fini(&a.arena);
}

void tc_csds_make(torc_runtime *rt, bool without_contents, struct tc_buf *out)
{
    const torc_xds_domain *shared = tc_runtime_xds_domain(rt);
    struct dump d = {shared ? tc_xds_domain_runtime(shared) : rt, without_contents, out};
    /* A domain's loop waits for no other. */
    if (shared)
        tc_runtime_do(d.rt, make, &d);
    else
        make(&d);
}

/* --- for the application --- */

static void on_dump(void *arg)
{
    const struct dump *d = arg;
    tc_csds_make(d->rt, d->without_contents, d->out);
}

int torc_csds_dump(torc_runtime *runtime, bool without_contents, void **bytes, size_t *size)
{
    struct tc_buf out = {0};
    struct dump d = {runtime ? runtime : torc_runtime_default(), without_contents, &out};
    if (!bytes || !size)
        return TORC_EINVAL;
    int rc = d.rt ? tc_runtime_do(d.rt, on_dump, &d) : TORC_EIO;
    if (rc != 0)
        return rc;
    *size = out.len;
    *bytes = tc_buf_take(&out); /* never NULL */
    return 0;
}
