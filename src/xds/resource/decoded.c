#include "xds/resource/decoded.h"

#include "base/mem.h"
#include "xds/resource/registry.h"

void tc_decode_begin(struct tc_decoder *dec, struct tc_decoded *out, const struct tc_xds_resource_type *type,
                     const struct tc_xds_decode_context *ctx, struct tc_slice bytes,
                     struct tc_validation_errors *errors)
{
    tc_ref_init(&out->head.ref);
    out->head.type = type;
    tc_resource_arena_init(&out->arena);
    tc_decoder_init(dec, ctx, tc_xds_registries_of(ctx), &out->arena, bytes.len, errors);
}

struct tc_rstr *tc_decode_take_name(struct tc_decoder *dec, const char *text, struct tc_slice bytes,
                                    struct tc_rstr **name)
{
    struct tc_rstr *own = text ? tc_resource_arena_rstr(dec->arena, text) : NULL;
    *name = text ? tc_rstr_ref(own) : tc_decode_name(bytes);
    return own;
}

struct tc_xds_resource *tc_decode_end(struct tc_decoder *dec, struct tc_decoded *out, struct tc_slice bytes)
{
    tc_decoder_fini(dec);
    if (dec->errors->count == dec->errors_before) {
        tc_resource_arena_set_bytes(&out->arena, bytes);
        return &out->head;
    }
    tc_decoded_free(&out->head);
    return NULL;
}

void tc_decoded_free(struct tc_xds_resource *r)
{
    struct tc_decoded *d = TC_CONTAINER_OF(r, struct tc_decoded, head);
    tc_resource_arena_fini(&d->arena);
    tc_free(d);
}

bool tc_decoded_equal(const struct tc_xds_resource *a, const struct tc_xds_resource *b)
{
    return tc_slice_eq(TC_CONTAINER_OF(a, const struct tc_decoded, head)->arena.bytes,
                       TC_CONTAINER_OF(b, const struct tc_decoded, head)->arena.bytes);
}
