/* Decodes the input as a resource of one type, and checks what the contract of `decode` promises. */
#include "resource.h"

#include "api/builtin.h"
#include "base/mem.h"
#include "base/parse.h"
#include "proto/json.h"

static const char bootstrap_text[] =
    "{\"xds_servers\":[{\"server_uri\":\"s\",\"channel_creds\":[{\"type\":\"insecure\"}],\"server_features\":"
    "[\"trusted_xds_server\",\"xds_v3\"]}],\"node\":{\"id\":\"n\"},\"certificate_providers\":{\"p\":{\"plugin_name\":"
    "\"file_watcher\",\"config\":{\"certificate_file\":\"c\",\"private_key_file\":\"k\"}}}}";

static bool supported(void *arg, const char *type, const json_t *config)
{
    (void)arg;
    (void)type;
    (void)config;
    return true;
}

/* Returns the context of all decoders. It is made once, and lives until the process ends. */
static const struct tc_xds_decode_context *context(void)
{
    static struct tc_xds_decode_context ctx;
    struct tc_status error = {0};
    if (ctx.bootstrap)
        return &ctx;
    ctx.bootstrap = tc_xds_bootstrap_parse(tc_slice_str(bootstrap_text), supported, NULL, &error);
    TC_FUZZ_CHECK(ctx.bootstrap);
    ctx.server = &ctx.bootstrap->servers[0];
    ctx.registries = tc_builtin_validation_context();
    return &ctx;
}

/* Stores the message in `bytes`, which is empty before. Returns false if the text is not JSON of the type, or if the
 * message needs more than 16 MiB. */
static bool from_json(const struct tc_xds_resource_type *type, struct tc_slice text, struct tc_buf *bytes)
{
    static const struct tc_proto_json_options options = {.ignore_unknown = true};
    const ProtobufCMessageDescriptor *desc = tc_proto_type_of_url(tc_slice_str(type->type_url));
    char *why = NULL;
    json_t *json = tc_json_parse(text, &why);
    tc_free(why);
    if (!json)
        return false;
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m = NULL;
    tc_arena_init(&arena, 0, 1u << 24);
    bool good = tc_proto_from_json(desc, json, &options, &arena, &m, &errors) == 0;
    if (good)
        bytes->len =
            protobuf_c_message_pack(m, (uint8_t *)tc_buf_reserve(bytes, protobuf_c_message_get_packed_size(m)));
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
    json_decref(json);
    return good;
}

/* Returns the resource with one reference, which the caller ends; NULL if the bytes are rejected. */
static struct tc_xds_resource *decode(const struct tc_xds_resource_type *type, struct tc_slice bytes)
{
    struct tc_validation_errors errors = {0};
    struct tc_rstr *name = NULL;
    struct tc_xds_resource *r = type->decode(type, context(), bytes, &name, &errors);
    TC_FUZZ_CHECK((r == NULL) == tc_validation_any(&errors));
    TC_FUZZ_CHECK(errors.path.len == 0);
    TC_FUZZ_CHECK(tc_utf8_valid(tc_slice_str(tc_validation_text(&errors)))); /* for a NACK */
    bool nameless = type->peek_name(bytes).len == 0;                         /* LbEndpointCollection */
    TC_FUZZ_CHECK(!r || ((name || nameless) && r->type == type));
    tc_rstr_unref(name);
    tc_validation_fini(&errors);
    return r;
}

struct tc_xds_resource *tc_fuzz_decode(const struct tc_xds_resource_type *type, const uint8_t *data, size_t size,
                                       struct tc_buf *bytes)
{
    if (size && data[0] == '{') {
        if (!from_json(type, tc_slice_of(data, size), bytes))
            return NULL;
    } else {
        tc_buf_append(bytes, data, size);
    }
    struct tc_xds_resource *one = decode(type, tc_buf_slice(bytes)), *two = decode(type, tc_buf_slice(bytes));
    TC_FUZZ_CHECK((one == NULL) == (two == NULL));
    TC_FUZZ_CHECK(!one || type->equal(one, two));
    tc_xds_resource_unref(two);
    return one;
}
