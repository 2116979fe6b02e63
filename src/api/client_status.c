/* The status of xDS resources as envoy.service.status.v3 has it (A40). Messages live in the caller's arena. They have
 * copies of names, versions, times and errors, and borrow the bytes of resources and the type URLs. */
#include "api/client_status.h"

#include "proto/unpack.h"
#include "xds/bootstrap/bootstrap.h"

typedef Envoy__Service__Status__V3__ClientConfig client_config;
typedef Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig generic_config;

client_config *tc_client_status_new(struct tc_arena *arena, const struct tc_xds_bootstrap *bootstrap,
                                    struct tc_slice target)
{
    client_config *c = tc_arena_calloc(arena, 1, sizeof(*c));
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *node = NULL;
    envoy__service__status__v3__client_config__init(c);
    /* This process serialised the node, so the arena needs no budget. */
    if (tc_unpack(&envoy__config__core__v3__node__descriptor, tc_rstr_slice(bootstrap->node), NULL, arena, &node,
                  &errors) == 0)
        c->node = (Envoy__Config__Core__V3__Node *)node;
    tc_validation_fini(&errors);
    c->client_scope = tc_arena_dup(arena, target);
    return c;
}

/* `ns`: realtime, in nanoseconds. Returns NULL for 0: there is no such time. */
static Google__Protobuf__Timestamp *timestamp_make(struct tc_arena *arena, int64_t ns)
{
    if (ns == 0)
        return NULL;
    Google__Protobuf__Timestamp *t = tc_arena_calloc(arena, 1, sizeof(*t));
    google__protobuf__timestamp__init(t);
    t->seconds = ns / (int64_t)TC_NS_PER_S;
    t->nanos = (int32_t)(ns % (int64_t)TC_NS_PER_S);
    return t;
}

static Envoy__Admin__V3__UpdateFailureState *failure_make(struct tc_arena *arena, const struct tc_xds_dump_entry *e)
{
    Envoy__Admin__V3__UpdateFailureState *f = tc_arena_calloc(arena, 1, sizeof(*f));
    envoy__admin__v3__update_failure_state__init(f);
    f->details = tc_arena_dup(arena, tc_slice_str(tc_status_text(e->error)));
    if (e->failed_version.len)
        f->version_info = tc_arena_dup(arena, e->failed_version);
    f->last_update_attempt = timestamp_make(arena, e->failed_ns);
    return f;
}

generic_config *tc_client_status_resource(struct tc_arena *arena, const struct tc_xds_dump_entry *e,
                                          bool without_contents)
{
    generic_config *g = tc_arena_calloc(arena, 1, sizeof(*g));
    envoy__service__status__v3__client_config__generic_xds_config__init(g);
    g->type_url = (char *)(uintptr_t)e->type->type_url;
    g->name = tc_arena_dup(arena, e->name);
    g->client_status = (Envoy__Admin__V3__ClientResourceStatus)e->state;
    if (e->version.len)
        g->version_info = tc_arena_dup(arena, e->version);
    g->last_updated = timestamp_make(arena, e->updated_ns);
    if (e->bytes && !without_contents) {
        g->xds_config = tc_arena_calloc(arena, 1, sizeof(*g->xds_config));
        google__protobuf__any__init(g->xds_config);
        g->xds_config->type_url = g->type_url;
        g->xds_config->value.len = e->bytes->len;
        g->xds_config->value.data = (uint8_t *)(uintptr_t)e->bytes->data;
    }
    if (e->error && !tc_status_ok(e->error))
        g->error_state = failure_make(arena, e);
    return g;
}
