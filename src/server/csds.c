#include "server/csds.h"

#include "base/mem.h"
#include "pb/envoy/service/status/v3/csds.pb-c.h"
#include "proto/pack.h"
#include "proto/unpack.h"
#include "server/csds_service.h"

typedef Envoy__Service__Status__V3__ClientConfig client_config;
typedef Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig generic_config;
typedef TC_VEC(generic_config *) config_vec;

/* A response under construction; all in the arena but the arrays. */
struct answer {
    struct tc_arena arena;
    bool without_contents;
    TC_VEC(client_config *) clients;
    TC_VEC(config_vec) configs; /* of each client */
};

static char *text_of(struct answer *a, struct tc_slice s)
{
    return tc_arena_dup(&a->arena, s);
}

static void on_client(void *arg, struct tc_slice node)
{
    struct answer *a = arg;
    struct tc_faults faults;
    ProtobufCMessage *message = NULL;
    client_config *c = tc_arena_calloc(&a->arena, 1, sizeof(*c));
    envoy__service__status__v3__client_config__init(c);
    tc_faults_init(&faults);
    /* It was packed here, of a message that came through the same check. */
    if (tc_unpack(&envoy__config__core__v3__node__descriptor, node, NULL, &a->arena, &message, &faults) == 0)
        c->node = (Envoy__Config__Core__V3__Node *)message;
    tc_faults_fini(&faults);
    *tc_vec_push(&a->clients) = c;
    tc_vec_push(&a->configs);
}

static void set_states(generic_config *g, enum tc_served_state state)
{
    static const struct {
        Envoy__Service__Status__V3__ConfigStatus config;
        Envoy__Admin__V3__ClientResourceStatus client;
    } of[] = {
        [TC_SERVED_ASKED] = {ENVOY__SERVICE__STATUS__V3__CONFIG_STATUS__NOT_SENT,
                             ENVOY__ADMIN__V3__CLIENT_RESOURCE_STATUS__REQUESTED},
        [TC_SERVED_SENT] = {ENVOY__SERVICE__STATUS__V3__CONFIG_STATUS__STALE,
                            ENVOY__ADMIN__V3__CLIENT_RESOURCE_STATUS__REQUESTED},
        [TC_SERVED_ACKED] = {ENVOY__SERVICE__STATUS__V3__CONFIG_STATUS__SYNCED,
                             ENVOY__ADMIN__V3__CLIENT_RESOURCE_STATUS__ACKED},
        [TC_SERVED_NACKED] = {ENVOY__SERVICE__STATUS__V3__CONFIG_STATUS__ERROR,
                              ENVOY__ADMIN__V3__CLIENT_RESOURCE_STATUS__NACKED},
        [TC_SERVED_ABSENT] = {ENVOY__SERVICE__STATUS__V3__CONFIG_STATUS__NOT_SENT,
                              ENVOY__ADMIN__V3__CLIENT_RESOURCE_STATUS__DOES_NOT_EXIST},
    };
    g->config_status = of[state].config;
    g->client_status = of[state].client;
}

static void on_served(void *arg, const struct tc_served *served)
{
    struct answer *a = arg;
    generic_config *g = tc_arena_calloc(&a->arena, 1, sizeof(*g));
    envoy__service__status__v3__client_config__generic_xds_config__init(g);
    g->type_url = text_of(a, served->type_url);
    g->name = text_of(a, served->name);
    g->version_info = text_of(a, served->version);
    set_states(g, served->state);
    if (served->value && !a->without_contents) {
        g->xds_config = tc_arena_calloc(&a->arena, 1, sizeof(*g->xds_config));
        google__protobuf__any__init(g->xds_config);
        g->xds_config->type_url = g->type_url;
        g->xds_config->value.data = (uint8_t *)(uintptr_t)served->value->data;
        g->xds_config->value.len = served->value->len;
    }
    if (served->state == TC_SERVED_NACKED) {
        g->error_state = tc_arena_calloc(&a->arena, 1, sizeof(*g->error_state));
        envoy__admin__v3__update_failure_state__init(g->error_state);
        g->error_state->details = text_of(a, served->error);
        g->error_state->version_info = g->version_info;
    }
    *tc_vec_push(&a->configs.data[a->configs.len - 1]) = g;
}

static const struct tc_control_plane_view view = {on_client, on_served};

struct tc_csds {
    struct tc_csds_service service;
    struct tc_control_plane *cp;
};

static void make(struct tc_csds_service *service, bool without_contents, struct tc_buf *out)
{
    const struct tc_control_plane *cp = TC_CONTAINER_OF(service, struct tc_csds, service)->cp;
    Envoy__Service__Status__V3__ClientStatusResponse response =
        ENVOY__SERVICE__STATUS__V3__CLIENT_STATUS_RESPONSE__INIT;
    struct answer a = {.without_contents = without_contents};
    tc_arena_init(&a.arena, 4096, 0);
    tc_control_plane_view(cp, &view, &a);
    for (size_t i = 0; i < a.clients.len; i++) {
        a.clients.data[i]->n_generic_xds_configs = a.configs.data[i].len;
        a.clients.data[i]->generic_xds_configs = a.configs.data[i].data;
    }
    response.n_config = a.clients.len;
    response.config = a.clients.data;
    tc_pack(&response.base, out);
    for (size_t i = 0; i < a.configs.len; i++)
        tc_vec_fini(&a.configs.data[i]);
    tc_vec_fini(&a.configs);
    tc_vec_fini(&a.clients);
    tc_arena_fini(&a.arena);
}

struct tc_csds *tc_csds_new(struct tc_server *server, struct tc_control_plane *cp)
{
    struct tc_csds *c = TC_NEW(struct tc_csds);
    c->service.make = make;
    c->cp = cp;
    tc_csds_service_register(server, &c->service);
    return c;
}

void tc_csds_free(struct tc_csds *c)
{
    tc_free(c);
}
