/* From JSON with single quotes to a serialised message, and through the decoder of its type. */
#include "support/kits/resource.h"

#include "support/cmocka.h"

#include "api/builtin.h"
#include "base/mem.h"
#include "proto/json.h"

struct tc_buf kit_resource_message(const char *full_name, const char *json)
{
    struct tc_buf text = {0}, bytes = {0};
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m = NULL;
    char *why = NULL;
    for (const char *c = json; *c; c++)
        tc_buf_append_char(&text, *c == '\'' ? '"' : *c);
    const ProtobufCMessageDescriptor *type = tc_proto_type(tc_slice_str(full_name));
    json_t *v = tc_json_parse(tc_buf_slice(&text), &why);
    if (!v)
        fail_msg("%s: %s", json, why);
    tc_arena_init(&arena, 0, 0);
    if (tc_proto_from_json(type, v, NULL, &arena, &m, &errors))
        fail_msg("%s", tc_validation_text(&errors));
    size_t size = protobuf_c_message_get_packed_size(m);
    protobuf_c_message_pack(m, (uint8_t *)tc_buf_reserve(&bytes, size));
    bytes.len += size;
    json_decref(v);
    tc_buf_fini(&text);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
    return bytes;
}

struct tc_xds_resource *kit_resource_decode(const struct tc_xds_resource_type *type,
                                            const struct tc_xds_decode_context *ctx, const char *json, char **errors)
{
    struct tc_validation_errors f = {0};
    struct tc_rstr *name = NULL;
    struct tc_buf bytes = kit_resource_message(strrchr(type->type_url, '/') + 1, json);
    const struct tc_xds_decode_context standard = {.registries = tc_builtin_validation_context()};
    struct tc_xds_resource *r = type->decode(type, ctx ? ctx : &standard, tc_buf_slice(&bytes), &name, &f);
    assert_true((r == NULL) == tc_validation_any(&f));
    assert_int_equal(f.path.len, 0); /* every push has been popped */
    *errors = r ? NULL : tc_strdup(tc_validation_text(&f));
    tc_validation_fini(&f);
    tc_buf_fini(&bytes);
    tc_rstr_unref(name);
    return r;
}

struct tc_xds_resource *kit_resource_valid(const struct tc_xds_resource_type *type,
                                           const struct tc_xds_decode_context *ctx, const char *json)
{
    char *errors;
    struct tc_xds_resource *r = kit_resource_decode(type, ctx, json, &errors);
    if (!r)
        fail_msg("refused: %s", errors);
    return r;
}

void kit_resource_refused(const struct tc_xds_resource_type *type, const struct tc_xds_decode_context *ctx,
                          const char *json, const char *fault)
{
    char *errors;
    struct tc_xds_resource *r = kit_resource_decode(type, ctx, json, &errors);
    if (r)
        fail_msg("not refused: %s", json);
    if (!strstr(errors, fault))
        fail_msg("\"%s\" is not in: %s", fault, errors);
    tc_free(errors);
}
