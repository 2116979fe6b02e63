/* The handling that state-of-the-world and incremental responses share: resources are decoded and delivered to their
 * entries, errors are collected for one NACK (A46), errors from the server and deletions are delivered (A88).
 *
 *   tc_xds_on_response               unpacks, or rejects what cannot be unpacked but must be answered
 *     variant->apply                 response_sotw.c, response_delta.c: walks the resources
 *       tc_xds_response_apply_resource   unchanged bytes: accepts the value in use again; else decodes and delivers
 *         response_deliver               checks name, size, duplicates; accept or fail of the entry
 *       tc_xds_response_end              the next request of the type is an ACK or a NACK
 *
 * If the background thread decodes the response (decode_thread.c), the loop calls variant->apply later.
 *
 * Each resource is accepted or refused by itself. The NACK names all bad resources, as far as its text has room.
 *
 * Fast path: a state-of-the-world server may send all resources of a type when one changes. A resource is found by its
 * name without unpacking (peek_name), and not decoded again if its bytes equal those in use from the same server.
 *
 * The unpacked response lives until variant->apply returns: entries copy what they keep. Loop thread only. */
#include "xds/client/response.h"

#include <limits.h>
#include <stdio.h>

#include "base/parse.h"
#include "proto/unpack.h"
#include "proto/wire.h"
#include "xds/client/authority.h"
#include "xds/client/cache.h"
#include "xds/client/decode_thread.h"
#include "xds/client/server_order.h"
#include "xds/client/subscriptions.h"

/* --- one resource --- */

/* Delivers a decoded resource to its entry; if `resource` is NULL, delivers `text`, its errors. Takes over the
 * resource. */
static void response_deliver(struct tc_xds_response_context *ctx, const struct tc_xds_response_resource *r,
                             struct tc_slice name, struct tc_xds_resource *resource, const char *text)
{
    struct tc_xds_local_client *c = ctx->ch->client;
    struct tc_xds_name parsed;
    char *why = NULL, too_much[128];
    uint64_t most;
    if (!tc_xds_name_parse(ctx->type, name, &parsed, &why)) {
        tc_xds_response_add_error(ctx, r->index, name, why);
        tc_free(why);
        tc_xds_resource_unref(resource);
        return;
    }
    struct tc_xds_entry *e = tc_xds_channel_entry(ctx->ch, ctx->type_index, &parsed);
    tc_xds_name_fini(&parsed);
    if (resource && e && !tc_xds_entry_fits(e, r->bytes.len, &most)) {
        snprintf(too_much, sizeof(too_much), "with its %zu bytes all resources have more than held_bytes, %llu",
                 r->bytes.len, (unsigned long long)most);
        text = too_much;
        tc_xds_resource_unref(resource);
        resource = NULL;
    }
    if (!resource)
        tc_xds_response_add_error(ctx, r->index, name, text);
    if (!e) { /* not subscribed */
        tc_xds_ads_type(ctx->ch, ctx->type_index)->sent_dropped = true;
        tc_xds_resource_unref(resource);
        return;
    }
    if (e->seen_in == c->responses) {
        tc_xds_response_add_error(ctx, r->index, name, "the response has it twice");
        tc_xds_resource_unref(resource);
        return;
    }
    e->seen_in = c->responses;
    if (resource) {
        tc_xds_authority_end_fallback(e->authority, (size_t)tc_xds_authority_channel_index(e->authority, ctx->ch));
        tc_xds_entry_accept(e, ctx->ch->server, resource, r->bytes, ctx->version, ctx->token);
    } else if (tc_xds_channel_speaks_for(ctx->ch, e)) {
        tc_xds_entry_fail(e, TC_XDS_NACKED,
                          tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS,
                                         "invalid xDS %s resource: %s (node ID:%s)", ctx->type->short_name, text,
                                         tc_xds_node_id(&c->base)),
                          ctx->version, ctx->ch->server->fail_on_data_errors, ctx->ch->server, ctx->token);
    }
}

/* Accepts the value in use again, and returns true, if the response has the same bytes. Does nothing and returns false
 * for other bytes, and for a second resource of one name. */
static bool response_apply_unchanged(struct tc_xds_response_context *ctx, const struct tc_xds_response_resource *r)
{
    struct tc_xds_entry *e = tc_xds_response_unchanged(ctx, r);
    if (!e || e->seen_in == ctx->ch->client->responses)
        return false;
    e->seen_in = ctx->ch->client->responses;
    tc_xds_authority_end_fallback(e->authority, (size_t)tc_xds_authority_channel_index(e->authority, ctx->ch));
    tc_xds_entry_accept(e, ctx->ch->server, tc_xds_resource_ref(e->resource), r->bytes, ctx->version, ctx->token);
    return true;
}

/* Returns the resource, which another thread may have decoded already, and its name in *own_name: new references.
 * Returns NULL with errors if the resource is invalid. */
static struct tc_xds_resource *response_decode(struct tc_xds_response_context *ctx,
                                               const struct tc_xds_response_resource *r, struct tc_rstr **own_name,
                                               struct tc_validation_errors *f)
{
    const struct tc_xds_decode_context decode_ctx = {ctx->ch->client->base.bootstrap, ctx->ch->server,
                                                     ctx->ch->client->opts.registries, &ctx->regex_bytes};
    struct tc_xds_decode_result *d = ctx->decoded_by ? tc_xds_decode_thread_result(ctx->decoded_by, r->index) : NULL;
    if (!d)
        return ctx->type->decode(ctx->type, &decode_ctx, r->bytes, own_name, f);
    struct tc_xds_resource *resource = d->resource;
    *own_name = d->own_name;
    d->resource = NULL;
    d->own_name = NULL;
    if (d->errors)
        tc_validation_add(f, "%s", d->errors->data);
    return resource;
}

void tc_xds_response_apply_resource(struct tc_xds_response_context *ctx, const struct tc_xds_response_resource *r)
{
    if (response_apply_unchanged(ctx, r))
        return;
    struct tc_rstr *own_name = NULL;
    struct tc_xds_resource *resource = NULL;
    struct tc_validation_errors f = {0};

    if (tc_slice_eq_str(r->type_url, ctx->type->type_url)) {
        resource = response_decode(ctx, r, &own_name, &f);
        if (!resource && !tc_validation_any(&f))
            tc_validation_add(&f, "invalid");
    } else {
        tc_validation_add(&f, "is of type \"%.*s\", not %s", (int)TC_MIN(r->type_url.len, INT_MAX), r->type_url.data,
                          ctx->type->type_url);
    }
    struct tc_slice name = r->wrapper_name.len ? r->wrapper_name : tc_rstr_slice(own_name);
    if (name.len) {
        response_deliver(ctx, r, name, resource, tc_validation_text(&f));
    } else {
        ctx->nameless = true;
        tc_xds_response_add_error(ctx, r->index, name, resource ? "has no name" : tc_validation_text(&f));
        tc_xds_resource_unref(resource);
    }
    tc_validation_fini(&f);
    tc_rstr_unref(own_name);
}

/* --- errors and deletion --- */

void tc_xds_response_apply_error(struct tc_xds_response_context *ctx,
                                 const Envoy__Service__Discovery__V3__ResourceError *error)
{
    struct tc_xds_local_client *c = ctx->ch->client;
    struct tc_slice name = error->resource_name ? tc_xds_text(error->resource_name->name) : tc_slice_of(NULL, 0);
    int code = error->error_detail ? error->error_detail->code : TORC_STATUS_OK;
    if (name.len == 0 || code == TORC_STATUS_OK)
        return;
    struct tc_xds_entry *e = tc_xds_response_entry(ctx, name);
    if (!e || e->seen_in == c->responses)
        return;
    e->seen_in = c->responses;
    if (!tc_xds_channel_speaks_for(ctx->ch, e))
        return;
    /* A88: NOT_FOUND and PERMISSION_DENIED are data errors; every other code is a transient error. */
    bool data_error = code == TORC_STATUS_NOT_FOUND || code == TORC_STATUS_PERMISSION_DENIED;
    tc_xds_entry_fail(e, TC_XDS_RECEIVED_ERROR,
                      tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS,
                                     "xDS server %s has no %s resource: %s: " TC_SHOWN " (node ID:%s)",
                                     tc_rstr_cstr(ctx->ch->server->uri), ctx->type->short_name,
                                     torc_status_code_name(code), TC_SHOW(error->error_detail->message),
                                     tc_xds_node_id(&c->base)),
                      ctx->version, data_error && ctx->ch->server->fail_on_data_errors, ctx->ch->server, ctx->token);
    e->absent = code == TORC_STATUS_NOT_FOUND;
}

void tc_xds_response_apply_deletion(struct tc_xds_response_context *ctx, struct tc_xds_entry *e)
{
    const struct tc_xds_server *server = ctx->ch->server;
    if (!tc_xds_channel_speaks_for(ctx->ch, e))
        return;
    TC_XDS_LOG(WARN, "xds %s: %s \"" TC_SHOWN "\" was deleted%s", tc_rstr_cstr(server->uri), ctx->type->short_name,
               TC_SHOW(e->name->data), server->fail_on_data_errors ? "" : "; the last value stays in use");
    tc_xds_entry_fail(e, TC_XDS_DOES_NOT_EXIST,
                      tc_status_make(TORC_STATUS_NOT_FOUND, TORC_LAYER_XDS,
                                     "xDS %s resource was deleted by server %s (node ID:%s)", ctx->type->short_name,
                                     tc_rstr_cstr(server->uri), tc_xds_node_id(&ctx->ch->client->base)),
                      ctx->version, server->fail_on_data_errors, server, ctx->token);
}

/* --- a response that cannot be unpacked, but must be answered --- */

static bool slice_is_text(struct tc_slice s)
{
    return tc_utf8_valid(s) && (s.len == 0 || !memchr(s.data, '\0', s.len));
}

/* Answers with a NACK that has the text. Returns false, and ignores the response, if the stream did not ask for its
 * type or its nonce is not text. A type or nonce that stands behind an unreadable part counts as empty. */
static bool response_reject(struct tc_xds_channel *ch, struct tc_slice message, struct tc_xds_token *token,
                            const char *text)
{
    enum { TYPE_URL = 4, NONCE = 5 }; /* in both forms */
    struct tc_slice url = tc_wire_find(message, TYPE_URL), nonce = tc_wire_find(message, NONCE);
    struct tc_validation_errors f;
    size_t type = tc_xds_response_type(ch, url);
    if (type == TC_XDS_NO_TYPE || !slice_is_text(nonce)) {
        TC_XDS_LOG(WARN, "xds %s: unreadable response is ignored: %s", tc_rstr_cstr(ch->server->uri), text);
        return false;
    }
    tc_xds_response_errors_init(&f);
    tc_validation_add(&f, "DiscoveryResponse: %s", text);
    tc_xds_response_answer(ch, type, tc_slice_of(NULL, 0), nonce, &f, token);
    tc_validation_fini(&f);
    return true;
}

bool tc_xds_on_response(struct tc_xds_channel *ch, struct tc_rstr *message, struct tc_xds_token *token,
                        const struct tc_xds_response_variant *variant)
{
    const struct tc_scan_options options = {.max_repeated = ch->client->opts.max_resources_per_response};
    struct tc_arena arena;
    struct tc_validation_errors f = {0};
    ProtobufCMessage *m;
    bool ok = true;

    tc_arena_init(&arena, 0, tc_xds_decode_budget(ch->client, message->len));
    if (tc_xds_response_unpack(variant, tc_rstr_slice(message), &options, &arena, &m, &f) == 0) {
        if (!tc_xds_decode_thread_begin(ch, variant, message, &arena, m, token)) {
            struct tc_xds_response_context ctx = {.ch = ch, .token = token};
            tc_xds_channel_healthy(ch, token);
            variant->apply(&ctx, m);
        }
    } else {
        ok = response_reject(ch, tc_rstr_slice(message), token, tc_validation_text(&f));
        if (ok)
            tc_xds_channel_healthy(ch, token);
    }
    tc_validation_fini(&f);
    tc_arena_fini(&arena);
    return ok;
}
