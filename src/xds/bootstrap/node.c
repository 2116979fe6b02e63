/* The Node message of the bootstrap, serialised once: every stream sends these bytes (LRS streams append one more
 * client feature). The user agent and the client features are the client's own (A27), and replace those of the file. */
#include <torc/version.h>

#include "base/arena.h"
#include "proto/json.h"
#include "xds/bootstrap/bootstrap_internal.h"

#include "pb/envoy/config/core/v3/base.pb-c.h"

#define NODE_BUDGET_BYTES (size_t)(16u << 20)

/* The client features that servers may rely on, by the names of Envoy's list. xds.config.resource-in-sotw: resources of
 * DiscoveryResponses may be in Resource wrappers. */
static char *const client_features[] = {
    "envoy.lb.does_not_support_overprovisioning", "xds.config.resource-in-sotw",
    "xds.endpoint.supports_lb_endpoint_collection", /* A95 */
};

static struct tc_rstr *node_serialise(Envoy__Config__Core__V3__Node *node)
{
    struct tc_buf b = {0};
    size_t len = envoy__config__core__v3__node__get_packed_size(node);
    envoy__config__core__v3__node__pack(node, (uint8_t *)tc_buf_reserve(&b, len));
    struct tc_rstr *bytes = tc_rstr_new(b.data, len);
    tc_buf_fini(&b);
    return bytes;
}

struct tc_rstr *tc_xds_node_parse(const json_t *obj, struct tc_rstr **id, struct tc_validation_errors *f)
{
    static const struct tc_proto_json_options options = {.ignore_unknown = true};
    const json_t *json = NULL;
    struct tc_arena arena;
    struct tc_rstr *bytes = NULL;
    ProtobufCMessage *m = NULL;
    Envoy__Config__Core__V3__Node empty = ENVOY__CONFIG__CORE__V3__NODE__INIT;
    size_t before = f->count;

    tc_arena_init(&arena, 0, NODE_BUDGET_BYTES);
    tc_json_get_obj(obj, "node", &json, f);
    if (json) {
        tc_validation_push(f, ".node");
        tc_proto_from_json(&envoy__config__core__v3__node__descriptor, json, &options, &arena, &m, f);
        tc_validation_pop(f);
    }
    if (f->count != before)
        goto done;
    Envoy__Config__Core__V3__Node *node = m ? (Envoy__Config__Core__V3__Node *)m : &empty;
    *id = tc_rstr_str(node->id);
    node->user_agent_name = "torc";
    node->user_agent_version_type_case = ENVOY__CONFIG__CORE__V3__NODE__USER_AGENT_VERSION_TYPE_USER_AGENT_VERSION;
    node->user_agent_version = (char *)TORC_VERSION;
    node->client_features = (char **)client_features;
    node->n_client_features = TC_ARRAY_LEN(client_features);
    bytes = node_serialise(node);
done:
    tc_arena_fini(&arena);
    return bytes;
}
