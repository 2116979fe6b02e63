/* CSDS of the control plane.
 *
 * An answer is built from the control plane's state of its clients: one ClientConfig for each open stream whose client
 * has sent its node, one GenericXdsConfig for each resource that the client asked for by name or has by a wildcard.
 * csds_make builds and packs the whole answer in one call, so contents of resources need no references. The service
 * (server/csds_service.h) decides which requests share an answer, and when an answer is made; it owns the packed
 * answer. The end of this file connects calls of a tc_server to a service, also to one that is not the control plane's
 * (tc_csds_register). Everything runs on the thread of the server's loop. */
#include "controlplane/csds.h"

#include "base/clock.h"
#include "base/mem.h"
#include "http2/stream.h"
#include "pb/envoy/service/status/v3/csds.pb-c.h"
#include "proto/unpack.h"
#include "server/call.h"
#include "server/csds_service.h"

typedef Envoy__Service__Status__V3__ClientConfig client_config;
typedef Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig generic_config;
typedef TC_VEC(generic_config *) config_vec;

/* A response under construction. Messages and texts are in the arena; the contents of resources are borrowed from the
 * control plane. */
struct csds_response {
    struct tc_arena arena;
    bool without_contents;
    TC_VEC(client_config *) clients;
    TC_VEC(config_vec) configs; /* of each client, by its index in `clients` */
};

static char *response_text(struct csds_response *a, struct tc_slice s)
{
    return tc_arena_dup(&a->arena, s);
}

/* Begins a client: response_on_served adds the client's resources. */
static void response_on_client(void *arg, struct tc_slice node)
{
    struct csds_response *a = arg;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *message = NULL;
    client_config *c = tc_arena_calloc(&a->arena, 1, sizeof(*c));
    envoy__service__status__v3__client_config__init(c);
    /* Not expected to fail: request.c packed the node of a request that had passed tc_unpack. */
    if (tc_unpack(&envoy__config__core__v3__node__descriptor, node, NULL, &a->arena, &message, &errors) == 0)
        c->node = (Envoy__Config__Core__V3__Node *)message;
    tc_validation_fini(&errors);
    *tc_vec_push(&a->clients) = c;
    tc_vec_push(&a->configs);
}

/* Sets both of CSDS's views of a state: the server's (config_status) and the client's (client_status). */
static void config_set_states(generic_config *g, enum tc_served_state state)
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

static void response_on_served(void *arg, const struct tc_served *served)
{
    struct csds_response *a = arg;
    generic_config *g = tc_arena_calloc(&a->arena, 1, sizeof(*g));
    envoy__service__status__v3__client_config__generic_xds_config__init(g);
    g->type_url = response_text(a, served->type_url);
    g->name = response_text(a, served->name);
    g->version_info = response_text(a, served->version);
    config_set_states(g, served->state);
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
        g->error_state->details = response_text(a, served->error);
        g->error_state->version_info = g->version_info;
    }
    *tc_vec_push(&a->configs.data[a->configs.len - 1]) = g;
}

static const struct tc_control_plane_view view = {response_on_client, response_on_served};

struct tc_csds {
    struct tc_csds_service service;
    struct tc_control_plane *cp;
};

/* Returns the serialised answer, which the caller owns, and its size in *bytes; NULL if tc_csds_pack returns NULL. */
static struct tc_rstr *response_pack(struct csds_response *a, size_t max, size_t *bytes)
{
    Envoy__Service__Status__V3__ClientStatusResponse response =
        ENVOY__SERVICE__STATUS__V3__CLIENT_STATUS_RESPONSE__INIT;
    for (size_t i = 0; i < a->clients.len; i++) {
        a->clients.data[i]->n_generic_xds_configs = a->configs.data[i].len;
        a->clients.data[i]->generic_xds_configs = a->configs.data[i].data;
    }
    response.n_config = a->clients.len;
    response.config = a->clients.data;
    return tc_csds_pack(&response.base, max, bytes);
}

static void csds_make(struct tc_csds_service *service, bool without_contents)
{
    const struct tc_control_plane *cp = TC_CONTAINER_OF(service, struct tc_csds, service)->cp;
    uint64_t since_ns = tc_system_clock.monotonic_ns(NULL);
    struct csds_response a = {.without_contents = without_contents};
    size_t bytes;
    tc_arena_init(&a.arena, 4096, 0);
    tc_control_plane_view(cp, &view, &a);
    struct tc_rstr *response = response_pack(&a, tc_csds_service_max_bytes(service), &bytes);
    for (size_t i = 0; i < a.configs.len; i++)
        tc_vec_fini(&a.configs.data[i]);
    tc_vec_fini(&a.configs);
    tc_vec_fini(&a.clients);
    tc_arena_fini(&a.arena);
    tc_csds_service_made(service, response, bytes, tc_system_clock.monotonic_ns(NULL) - since_ns);
}

/* --- calls --- */

/* Lives in the arena of its call, and ends with the call. */
struct csds_core_call {
    struct tc_csds_call base;
    struct tc_server_call *call;
};

static struct tc_server_call *call_of(struct tc_csds_call *base)
{
    return TC_CONTAINER_OF(base, struct csds_core_call, base)->call;
}

static void call_send(struct tc_csds_call *base, struct tc_rstr *response)
{
    tc_server_call_send_ref(call_of(base), response);
}

static void call_finish(struct tc_csds_call *base, int code, const char *text)
{
    tc_server_call_finish(call_of(base), code, text, NULL);
}

static void call_reset(struct tc_csds_call *base)
{
    tc_server_call_reset(call_of(base), TC_H2_ENHANCE_YOUR_CALM);
}

static void call_on_message(void *arg, struct tc_rstr *message)
{
    struct csds_core_call *c = arg;
    tc_csds_call_ask(&c->base, tc_rstr_slice(message));
    tc_rstr_unref(message);
}

/* The next request is read when the answer to the last one has gone out. */
static void call_on_written(void *arg)
{
    struct csds_core_call *c = arg;
    tc_csds_call_release(&c->base);
    tc_server_call_read(c->call);
}

static void call_on_half_close(void *arg)
{
    struct csds_core_call *c = arg;
    tc_csds_call_no_more(&c->base);
}

static void call_on_end(void *arg, const struct tc_status *why TC_UNUSED)
{
    struct csds_core_call *c = arg;
    tc_csds_call_release(&c->base);
}

static struct csds_core_call *call_begin(struct tc_csds_service *service, struct tc_server_call *call, bool unary)
{
    static const struct tc_csds_call_ops ops = {call_send, call_finish, call_reset};
    static const struct tc_server_call_events of_unary = {.on_end = call_on_end},
                                              of_stream = {
                                                  .on_message = call_on_message,
                                                  .on_half_close = call_on_half_close,
                                                  .on_written = call_on_written,
                                                  .on_end = call_on_end,
                                              };
    struct csds_core_call *c = tc_arena_calloc(tc_server_call_arena(call), 1, sizeof(*c));
    *c = (struct csds_core_call){.base = {.ops = &ops, .service = service, .unary = unary}, .call = call};
    tc_csds_call_init(&c->base);
    tc_server_call_set_events(call, unary ? &of_unary : &of_stream, c);
    return c;
}

static void on_fetch(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    tc_csds_call_ask(&call_begin(arg, call, true)->base, tc_rstr_slice(request));
}

static void on_stream(void *arg, struct tc_server_call *call)
{
    call_begin(arg, call, false);
    tc_server_call_read(call);
}

void tc_csds_register(struct tc_server *server, struct tc_csds_service *service)
{
    tc_csds_service_init(service, tc_server_loop(server));
    tc_server_add_unary(server, TC_CSDS_NAME "FetchClientStatus", on_fetch, service);
    tc_server_add_method(server, TC_CSDS_NAME "StreamClientStatus", on_stream, service);
}

struct tc_csds *tc_csds_new(struct tc_server *server, struct tc_control_plane *cp)
{
    struct tc_csds *c = TC_NEW(struct tc_csds);
    c->service.make = csds_make;
    c->cp = cp;
    tc_csds_register(server, &c->service);
    return c;
}

void tc_csds_free(struct tc_csds *c)
{
    if (c)
        tc_csds_service_end(&c->service);
    tc_free(c);
}
