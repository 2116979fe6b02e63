/* The client status of a runtime's xDS clients at one moment (A40). A snapshot is made on the loop that has the
 * clients: the xDS domain's if the runtime is in one, else the runtime's own. Any thread may serialise and free it: it
 * has copies of names and states, and references to the resources' bytes. */
#include "api/csds.h"

#include "api/client_status.h"
#include "base/mem.h"
#include "base/vec.h"
#include "proto/pack.h"
#include "runtime/blocking.h"
#include "runtime/xds_domain.h"
#include "xds/domain/client_pool.h"

typedef Envoy__Service__Status__V3__ClientConfig client_config;
typedef TC_VEC(Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig *) resource_vec;

/* Everything lives in the arena but the arrays and the resources' bytes. */
struct tc_csds_snapshot {
    struct tc_arena arena;
    bool without_contents;
    Envoy__Service__Status__V3__ClientStatusResponse response;
    TC_VEC(client_config *) clients;
    TC_VEC(struct tc_rstr *) contents; /* references */
    resource_vec resources;            /* of the client that is being added */
};

static void on_resource(void *arg, const struct tc_xds_dump_entry *e)
{
    struct tc_csds_snapshot *s = arg;
    *tc_vec_push(&s->resources) = tc_client_status_resource(&s->arena, e, s->without_contents);
    if (e->bytes && !s->without_contents)
        *tc_vec_push(&s->contents) = tc_rstr_ref((struct tc_rstr *)(uintptr_t)e->bytes);
}

/* Adds a client. Collects the resources first, because their number is not known. */
static void on_client(void *arg, const struct tc_xds_client *client, struct tc_slice scope)
{
    struct tc_csds_snapshot *s = arg;
    client_config *c = tc_client_status_new(&s->arena, tc_xds_client_bootstrap(client), scope);
    s->resources.len = 0;
    tc_xds_client_dump(client, on_resource, s);
    c->n_generic_xds_configs = s->resources.len;
    c->generic_xds_configs = tc_arena_calloc(&s->arena, s->resources.len, sizeof(c->generic_xds_configs[0]));
    for (size_t i = 0; i < s->resources.len; i++)
        c->generic_xds_configs[i] = s->resources.data[i];
    *tc_vec_push(&s->clients) = c;
}

torc_runtime *tc_csds_source(torc_runtime *rt)
{
    const torc_xds_domain *shared = tc_runtime_xds_domain(rt);
    return shared ? tc_xds_domain_runtime(shared) : rt;
}

struct tc_csds_snapshot *tc_csds_snapshot_new(torc_runtime *source, bool without_contents)
{
    struct tc_csds_snapshot *s = TC_NEW(struct tc_csds_snapshot);
    const struct tc_xds_client_pool *domain = tc_xds_client_pool_find(source);
    s->without_contents = without_contents;
    tc_arena_init(&s->arena, 4096, 0);
    if (domain)
        tc_xds_client_pool_each(domain, on_client, s);
    envoy__service__status__v3__client_status_response__init(&s->response);
    s->response.n_config = s->clients.len;
    s->response.config = s->clients.data;
    return s;
}

const Envoy__Service__Status__V3__ClientStatusResponse *tc_csds_snapshot_response(const struct tc_csds_snapshot *s)
{
    return &s->response;
}

void tc_csds_snapshot_free(struct tc_csds_snapshot *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->contents.len; i++)
        tc_rstr_unref(s->contents.data[i]);
    tc_vec_fini(&s->contents);
    tc_vec_fini(&s->resources);
    tc_vec_fini(&s->clients);
    tc_arena_fini(&s->arena);
    tc_free(s);
}

/* --- for the application --- */

struct dump {
    torc_runtime *source; /* the application's runtime; on_dump replaces it by the runtime that has the clients */
    bool without_contents;
    struct tc_csds_snapshot *snapshot; /* made by on_source; torc_csds_dump frees it */
    int rc;                            /* of the wait for the domain's loop */
};

static void on_source(void *arg)
{
    struct dump *d = arg;
    d->snapshot = tc_csds_snapshot_new(d->source, d->without_contents);
}

/* Runs on the loop of the application's runtime, so that this runtime, and its xDS domain, are not freed meanwhile. The
 * domain's loop never waits for another loop, so that waiting for it here is safe. */
static void on_dump(void *arg)
{
    struct dump *d = arg;
    torc_runtime *rt = d->source;
    d->source = tc_csds_source(rt);
    if (d->source == rt)
        on_source(d);
    else
        d->rc = tc_runtime_do(d->source, on_source, d);
}

int torc_csds_dump(torc_runtime *runtime, bool without_contents, void **bytes, size_t *size)
{
    struct tc_buf out = {0};
    if (!bytes || !size)
        return TORC_EINVAL;
    struct dump d = {.source = runtime ? runtime : torc_runtime_default(), .without_contents = without_contents};
    int rc = d.source ? tc_runtime_do(d.source, on_dump, &d) : TORC_EIO;
    rc = rc ? rc : d.rc;
    if (rc != 0)
        return rc;
    tc_pack(&tc_csds_snapshot_response(d.snapshot)->base, &out);
    tc_csds_snapshot_free(d.snapshot);
    *size = out.len;
    *bytes = tc_buf_take(&out); /* never NULL */
    return 0;
}
