/* The context of applying a response: its type, its errors, its answer. Changes no entry, and does not know the decode
 * thread.
 *
 * Errors are collected over the whole response (tc_xds_response_add_error), at most NACK_MAX_BYTES of text.
 * tc_xds_response_end answers the response with an ACK, or with a NACK that has the text.
 *
 * A response in the usual form is unpacked without the bytes of its resources (response_values.h). The bytes stay where
 * they are in the message: a response of 64 MiB is not copied. */
#include "xds/client/response_context.h"

#include <limits.h>

#include "proto/unpack.h"
#include "xds/client/cache.h"
#include "xds/client/response_values.h"
#include "xds/client/subscriptions.h"

enum { NACK_MAX_BYTES = 8192 };

/* --- one resource --- */

void tc_xds_response_add_error(struct tc_xds_response_context *ctx, size_t index, struct tc_slice name,
                               const char *text)
{
    if (name.len)
        tc_validation_add(&ctx->errors, "resource index %zu: %s \"%.*s\": %s", index, ctx->type->short_name,
                          (int)TC_MIN(name.len, INT_MAX), name.data, text);
    else
        tc_validation_add(&ctx->errors, "resource index %zu: %s: %s", index, ctx->type->short_name, text);
}

bool tc_xds_response_open_wrapper(struct tc_xds_response_context *ctx,
                                  const Envoy__Service__Discovery__V3__Resource *wrapper,
                                  struct tc_xds_response_resource *out)
{
    out->wrapper_name = tc_xds_text(wrapper->name);
    if (out->wrapper_name.len == 0 && wrapper->resource_name)
        out->wrapper_name = tc_xds_text(wrapper->resource_name->name);
    if (!wrapper->resource) {
        ctx->nameless = true; /* the resource that the wrapper names must not count as deleted */
        tc_xds_response_add_error(ctx, out->index, out->wrapper_name, "field resource: missing");
        return false;
    }
    out->type_url = tc_xds_text(wrapper->resource->type_url);
    out->bytes = tc_proto_bytes(wrapper->resource->value);
    return true;
}

struct tc_xds_entry *tc_xds_response_entry(const struct tc_xds_response_context *ctx, struct tc_slice name)
{
    struct tc_xds_name parsed;
    char *why = NULL;
    if (!tc_xds_name_parse(ctx->type, name, &parsed, &why)) {
        tc_free(why);
        return NULL;
    }
    struct tc_xds_entry *e = tc_xds_channel_entry(ctx->ch, ctx->type_index, &parsed);
    tc_xds_name_fini(&parsed);
    return e;
}

struct tc_xds_entry *tc_xds_response_unchanged(struct tc_xds_response_context *ctx,
                                               const struct tc_xds_response_resource *r)
{
    struct tc_slice name = r->wrapper_name.len ? r->wrapper_name : ctx->type->peek_name(r->bytes);
    if (name.len == 0 || !tc_slice_eq_str(r->type_url, ctx->type->type_url))
        return NULL;
    struct tc_xds_entry *e = tc_xds_response_entry(ctx, name);
    return e && e->resource && e->source == ctx->ch->server && tc_slice_eq(tc_rstr_slice(e->bytes), r->bytes) ? e
                                                                                                              : NULL;
}

/* --- the answer --- */

void tc_xds_response_errors_init(struct tc_validation_errors *f)
{
    *f = (struct tc_validation_errors){.max_text_bytes = NACK_MAX_BYTES - sizeof("...") + 1};
}

void tc_xds_response_answer(struct tc_xds_channel *ch, size_t type, struct tc_slice version, struct tc_slice nonce,
                            struct tc_validation_errors *errors, struct tc_xds_token *token)
{
    struct tc_xds_ads_type *t = tc_xds_ads_type(ch, type);
    tc_rstr_clear(&t->nonce);
    tc_rstr_clear(&t->nack);
    t->nonce = tc_rstr_new(nonce.data, nonce.len);
    if (tc_validation_any(errors)) {
        ch->ads.refused = true;
        t->nack = tc_rstr_str(tc_validation_text(errors));
        TC_XDS_LOG(WARN, "xds %s: %s version \"%.*s\" rejected: %s", tc_rstr_cstr(ch->server->uri),
                   ch->client->types.data[type]->type_url, (int)TC_MIN(version.len, INT_MAX),
                   version.data ? version.data : "", t->nack->data);
    } else if (!ch->server->incremental) {
        tc_rstr_unref(t->version);
        t->version = tc_rstr_new(version.data, version.len);
    }
    if (ch->server->incremental && !t->token) {
        t->token = token;
        tc_xds_token_ref(token);
    }
    tc_xds_ads_request(ch, type);
}

size_t tc_xds_response_type(struct tc_xds_channel *ch, struct tc_slice type_url)
{
    size_t type = tc_xds_type_index(ch->client, type_url);
    return type != TC_XDS_NO_TYPE && tc_xds_ads_type(ch, type)->asked ? type : TC_XDS_NO_TYPE;
}

bool tc_xds_response_begin(struct tc_xds_response_context *ctx, struct tc_slice type_url)
{
    struct tc_xds_local_client *c = ctx->ch->client;
    ctx->type_index = tc_xds_response_type(ctx->ch, type_url);
    if (ctx->type_index == TC_XDS_NO_TYPE) {
        TC_XDS_LOG(WARN, "xds %s: response of type \"%.*s\", which was not asked for, is ignored",
                   tc_rstr_cstr(ctx->ch->server->uri), (int)TC_MIN(type_url.len, INT_MAX), type_url.data);
        ctx->ch->ads.refused = true;
        return false;
    }
    ctx->type = c->types.data[ctx->type_index];
    tc_xds_response_errors_init(&ctx->errors);
    c->responses++;
    tc_xds_entries_check_log(c);
    return true;
}

void tc_xds_response_end(struct tc_xds_response_context *ctx, struct tc_slice version, struct tc_slice nonce)
{
    tc_xds_response_answer(ctx->ch, ctx->type_index, version, nonce, &ctx->errors, ctx->token);
    tc_validation_fini(&ctx->errors);
}

/* --- memory --- */

size_t tc_xds_decode_budget(const struct tc_xds_local_client *c, size_t bytes)
{
    uint64_t most = c->base.bootstrap->limits.decode_bytes;
    return (size_t)TC_MIN((uint64_t)tc_unpack_budget(bytes), most ? most : TC_XDS_DECODE_BYTES);
}

int tc_xds_response_unpack(const struct tc_xds_response_variant *variant, struct tc_slice message,
                           const struct tc_scan_options *options, struct tc_arena *arena, ProtobufCMessage **out,
                           struct tc_validation_errors *f)
{
    tc_xds_values values = {0};
    struct tc_buf rest = {0};
    bool lifted = tc_xds_values_lift(message, variant->levels, &rest, &values) &&
                  (variant->most == 0 || values.len <= variant->most);
    int rv = tc_unpack(variant->type, lifted ? tc_buf_slice(&rest) : message, options, arena, out, f);
    for (size_t i = 0; rv == 0 && lifted && i < variant->count(*out); i++)
        variant->any(*out, i)->value =
            (ProtobufCBinaryData){values.data[i].len, (uint8_t *)(uintptr_t)values.data[i].data};
    tc_vec_fini(&values);
    tc_buf_fini(&rest);
    return rv;
}
