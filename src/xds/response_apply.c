/* What both forms of responses share: resources decoded and delivered, faults collected for one NACK (A46), the answer
 * prepared. */
#include "xds/response_ahead.h"

#include <limits.h>
#include <stdio.h>

#include "base/parse.h"
#include "proto/unpack.h"
#include "proto/wire.h"
#include "xds/response_values.h"

#define NACK_MAX_BYTES 8192

/* --- one resource --- */

void tc_xds_complain(struct tc_xds_applying *a, size_t index, struct tc_slice name, const char *text)
{
    if (name.len)
        tc_faults_add(&a->faults, "resource index %zu: %s \"%.*s\": %s", index, a->type->short_name,
                      (int)TC_MIN(name.len, INT_MAX), name.data, text);
    else
        tc_faults_add(&a->faults, "resource index %zu: %s: %s", index, a->type->short_name, text);
}

bool tc_xds_open_wrapper(struct tc_xds_applying *a, const Envoy__Service__Discovery__V3__Resource *wrapper,
                         struct tc_xds_found *out)
{
    out->wrapper_name = tc_xds_text(wrapper->name);
    if (out->wrapper_name.len == 0 && wrapper->resource_name)
        out->wrapper_name = tc_xds_text(wrapper->resource_name->name);
    if (!wrapper->resource) {
        a->nameless = true; /* nor is what it names absent */
        tc_xds_complain(a, out->index, out->wrapper_name, "field resource: missing");
        return false;
    }
    out->type_url = tc_xds_text(wrapper->resource->type_url);
    out->bytes = tc_proto_bytes(wrapper->resource->value);
    return true;
}

/* Puts a decoded resource, or what is wrong with it, where it belongs. Takes the resource. */
static void deliver(struct tc_xds_applying *a, const struct tc_xds_found *r, struct tc_slice name,
                    struct tc_xds_resource *resource, const char *text)
{
    struct tc_xds_client *c = a->ch->client;
    struct tc_xds_name parsed;
    char *why = NULL, too_much[128];
    uint64_t most;
    if (!tc_xds_name_parse(a->type, name, &parsed, &why)) {
        tc_xds_complain(a, r->index, name, why);
        tc_free(why);
        tc_xds_resource_unref(resource);
        return;
    }
    struct tc_xds_entry *e = tc_xds_channel_entry(a->ch, a->type_index, &parsed);
    tc_xds_name_fini(&parsed);
    if (resource && e && !tc_xds_entry_fits(e, r->bytes.len, &most)) {
        snprintf(too_much, sizeof(too_much), "with its %zu bytes all resources have more than held_bytes, %llu",
                 r->bytes.len, (unsigned long long)most);
        text = too_much;
        tc_xds_resource_unref(resource);
        resource = NULL;
    }
    if (!resource)
        tc_xds_complain(a, r->index, name, text);
    if (!e) { /* not subscribed */
        tc_xds_resource_unref(resource);
        return;
    }
    if (e->seen_in == c->responses) {
        tc_xds_complain(a, r->index, name, "the response has it twice");
        tc_xds_resource_unref(resource);
        return;
    }
    e->seen_in = c->responses;
    if (resource) {
        tc_xds_realm_cut(e->realm, (size_t)tc_xds_realm_index(e->realm, a->ch));
        tc_xds_entry_accept(e, a->ch->server, resource, r->bytes, a->version, a->done);
    } else {
        tc_xds_entry_fail(e, TC_XDS_NACKED,
                          tc_status_make(TORC_STATUS_UNAVAILABLE, "invalid xDS %s resource: %s (node ID:%s)",
                                         a->type->short_name, text, tc_xds_node_id(c)),
                          a->version, a->ch->server->fail_on_data_errors, a->done);
    }
}

struct tc_xds_entry *tc_xds_unchanged(struct tc_xds_applying *a, const struct tc_xds_found *r)
{
    struct tc_slice name = r->wrapper_name.len ? r->wrapper_name : a->type->peek_name(r->bytes);
    struct tc_xds_name parsed;
    char *why = NULL;
    if (name.len == 0 || !tc_slice_eq_str(r->type_url, a->type->type_url))
        return NULL;
    if (!tc_xds_name_parse(a->type, name, &parsed, &why)) {
        tc_free(why);
        return NULL;
    }
    struct tc_xds_entry *e = tc_xds_channel_entry(a->ch, a->type_index, &parsed);
    tc_xds_name_fini(&parsed);
    return e && e->resource && e->source == a->ch->server && tc_slice_eq(tc_rstr_slice(e->bytes), r->bytes) ? e : NULL;
}

static bool apply_unchanged(struct tc_xds_applying *a, const struct tc_xds_found *r)
{
    struct tc_xds_entry *e = tc_xds_unchanged(a, r);
    if (!e || e->seen_in == a->ch->client->responses)
        return false;
    e->seen_in = a->ch->client->responses;
    tc_xds_realm_cut(e->realm, (size_t)tc_xds_realm_index(e->realm, a->ch));
    tc_xds_entry_accept(e, a->ch->server, tc_xds_resource_ref(e->resource), r->bytes, a->version, a->done);
    return true;
}

/* What came of it may have been found ahead. */
static struct tc_xds_resource *decode(struct tc_xds_applying *a, const struct tc_xds_found *r,
                                      struct tc_rstr **own_name, struct tc_faults *f)
{
    const struct tc_xds_decode_context ctx = {a->ch->client->bootstrap, a->ch->server, a->ch->client->opts.registries,
                                              &a->regex_bytes};
    struct tc_xds_decoded *d = a->ahead ? tc_xds_ahead_find(a->ahead, r->index) : NULL;
    if (!d)
        return a->type->decode(a->type, &ctx, r->bytes, own_name, f);
    struct tc_xds_resource *resource = d->resource;
    *own_name = d->own_name;
    d->resource = NULL;
    d->own_name = NULL;
    if (d->faults)
        tc_faults_add(f, "%s", d->faults->data);
    return resource;
}

void tc_xds_apply_found(struct tc_xds_applying *a, const struct tc_xds_found *r)
{
    if (apply_unchanged(a, r))
        return;
    struct tc_rstr *own_name = NULL;
    struct tc_xds_resource *resource = NULL;
    struct tc_faults f;

    tc_faults_init(&f);
    if (tc_slice_eq_str(r->type_url, a->type->type_url)) {
        resource = decode(a, r, &own_name, &f);
        if (!resource && !tc_faults_any(&f))
            tc_faults_add(&f, "invalid");
    } else {
        tc_faults_add(&f, "is of type \"%.*s\", not %s", (int)TC_MIN(r->type_url.len, INT_MAX), r->type_url.data,
                      a->type->type_url);
    }
    struct tc_slice name = r->wrapper_name.len ? r->wrapper_name : tc_rstr_slice(own_name);
    if (name.len) {
        deliver(a, r, name, resource, tc_faults_text(&f));
    } else {
        a->nameless = true;
        tc_xds_complain(a, r->index, name, resource ? "has no name" : tc_faults_text(&f));
        tc_xds_resource_unref(resource);
    }
    tc_faults_fini(&f);
    tc_rstr_unref(own_name);
}

/* --- errors and deletion --- */

void tc_xds_apply_error(struct tc_xds_applying *a, const Envoy__Service__Discovery__V3__ResourceError *error)
{
    struct tc_xds_client *c = a->ch->client;
    struct tc_xds_name parsed;
    char *why = NULL;
    struct tc_slice name = error->resource_name ? tc_xds_text(error->resource_name->name) : tc_slice_of(NULL, 0);
    int code = error->error_detail ? error->error_detail->code : TORC_STATUS_OK;
    if (name.len == 0 || code == TORC_STATUS_OK)
        return;
    if (!tc_xds_name_parse(a->type, name, &parsed, &why)) {
        tc_free(why);
        return;
    }
    struct tc_xds_entry *e = tc_xds_channel_entry(a->ch, a->type_index, &parsed);
    tc_xds_name_fini(&parsed);
    if (!e || e->seen_in == c->responses)
        return;
    e->seen_in = c->responses;
    /* A88: these two are data errors, all others transient. */
    bool data_error = code == TORC_STATUS_NOT_FOUND || code == TORC_STATUS_PERMISSION_DENIED;
    tc_xds_entry_fail(e, TC_XDS_RECEIVED_ERROR,
                      tc_status_make(TORC_STATUS_UNAVAILABLE, "xDS server %s has no %s resource: %s: %s (node ID:%s)",
                                     tc_rstr_cstr(a->ch->server->uri), a->type->short_name, torc_status_code_name(code),
                                     error->error_detail->message, tc_xds_node_id(c)),
                      a->version, data_error && a->ch->server->fail_on_data_errors, a->done);
}

void tc_xds_apply_deletion(struct tc_xds_applying *a, struct tc_xds_entry *e)
{
    const struct tc_xds_server *server = a->ch->server;
    TC_XDS_LOG(WARN, "xds %s: %s \"%s\" was deleted%s", tc_rstr_cstr(server->uri), a->type->short_name, e->name->data,
               server->fail_on_data_errors ? "" : "; the last value stays in use");
    tc_xds_entry_fail(e, TC_XDS_DOES_NOT_EXIST,
                      tc_status_make(TORC_STATUS_NOT_FOUND, "xDS %s resource was deleted by server %s (node ID:%s)",
                                     a->type->short_name, tc_rstr_cstr(server->uri), tc_xds_node_id(a->ch->client)),
                      a->version, server->fail_on_data_errors, a->done);
}

/* --- the response --- */

/* The next request of the type says what became of the response. */
static void acknowledge(struct tc_xds_channel *ch, size_t type, struct tc_slice version, struct tc_slice nonce,
                        struct tc_faults *faults, struct tc_xds_done *done)
{
    struct tc_xds_ads_type *t = tc_xds_ads_type(ch, type);
    tc_rstr_unref(t->nonce);
    t->nonce = tc_rstr_new(nonce.data, nonce.len);
    tc_rstr_unref(t->nack);
    t->nack = NULL;
    if (tc_faults_any(faults)) {
        ch->ads.refused = true;
        t->nack = tc_rstr_str(tc_faults_text(faults));
        TC_XDS_LOG(WARN, "xds %s: %s version \"%.*s\" rejected: %s", tc_rstr_cstr(ch->server->uri),
                   ch->client->types.data[type]->type_url, (int)TC_MIN(version.len, INT_MAX),
                   version.data ? version.data : "", t->nack->data);
    } else if (!ch->server->incremental) {
        tc_rstr_unref(t->version);
        t->version = tc_rstr_new(version.data, version.len);
    }
    if (ch->server->incremental && !t->ack) {
        t->ack = done;
        tc_xds_done_ref(done);
    }
    tc_xds_ads_request(ch, type);
}

static void faults_init(struct tc_faults *f)
{
    tc_faults_init(f);
    f->max_text_bytes = NACK_MAX_BYTES - sizeof("...") + 1;
}

bool tc_xds_applying_begin(struct tc_xds_applying *a, struct tc_slice type_url)
{
    struct tc_xds_client *c = a->ch->client;
    a->type_index = tc_xds_type_index(c, type_url);
    if (a->type_index == TC_XDS_NO_TYPE) {
        TC_XDS_LOG(WARN, "xds %s: response of type \"%.*s\", which was not asked for, is ignored",
                   tc_rstr_cstr(a->ch->server->uri), (int)TC_MIN(type_url.len, INT_MAX), type_url.data);
        return false;
    }
    a->type = c->types.data[a->type_index];
    faults_init(&a->faults);
    c->responses++;
    return true;
}

void tc_xds_applying_end(struct tc_xds_applying *a, struct tc_slice version, struct tc_slice nonce)
{
    acknowledge(a->ch, a->type_index, version, nonce, &a->faults, a->done);
    tc_faults_fini(&a->faults);
}

/* --- a response that cannot be unpacked, but must be answered --- */

static bool is_text(struct tc_slice s)
{
    return tc_utf8_valid(s) && (s.len == 0 || !memchr(s.data, '\0', s.len));
}

static bool refuse(struct tc_xds_channel *ch, struct tc_slice message, struct tc_xds_done *done, const char *text)
{
    enum { TYPE_URL = 4, NONCE = 5 }; /* in both forms */
    struct tc_slice url = tc_wire_find(message, TYPE_URL), nonce = tc_wire_find(message, NONCE);
    struct tc_faults f;
    size_t type = tc_xds_type_index(ch->client, url);
    if (type == TC_XDS_NO_TYPE || !is_text(nonce)) {
        TC_XDS_LOG(WARN, "xds %s: unreadable response is ignored: %s", tc_rstr_cstr(ch->server->uri), text);
        return false;
    }
    faults_init(&f);
    tc_faults_add(&f, "DiscoveryResponse: %s", text);
    acknowledge(ch, type, tc_slice_of(NULL, 0), nonce, &f, done);
    tc_faults_fini(&f);
    return true;
}

size_t tc_xds_decode_budget(const struct tc_xds_client *c, size_t bytes)
{
    uint64_t most = c->bootstrap->limits.decode_bytes;
    return (size_t)TC_MIN((uint64_t)tc_unpack_budget(bytes), most ? most : TC_XDS_DECODE_BYTES);
}

int tc_xds_unpack(const struct tc_xds_form *form, struct tc_slice message, const struct tc_scan_options *options,
                  struct tc_arena *arena, ProtobufCMessage **out, struct tc_faults *f)
{
    tc_xds_values values = {0};
    struct tc_buf rest = {0};
    bool lifted =
        tc_xds_values_lift(message, form->levels, &rest, &values) && (form->most == 0 || values.len <= form->most);
    int rv = tc_unpack(form->type, lifted ? tc_buf_slice(&rest) : message, options, arena, out, f);
    for (size_t i = 0; rv == 0 && lifted && i < form->count(*out); i++)
        form->any(*out, i)->value =
            (ProtobufCBinaryData){values.data[i].len, (uint8_t *)(uintptr_t)values.data[i].data};
    tc_vec_fini(&values);
    tc_buf_fini(&rest);
    return rv;
}

bool tc_xds_take_response(struct tc_xds_channel *ch, struct tc_rstr *message, struct tc_xds_done *done,
                          const struct tc_xds_form *form)
{
    const struct tc_scan_options options = {.max_repeated = ch->client->opts.max_resources_per_response};
    struct tc_arena arena;
    struct tc_faults f;
    ProtobufCMessage *m;
    bool ok = true;

    tc_arena_init(&arena, 0, tc_xds_decode_budget(ch->client, message->len));
    tc_faults_init(&f);
    if (tc_xds_unpack(form, tc_rstr_slice(message), &options, &arena, &m, &f) == 0) {
        if (!tc_xds_ahead_begin(ch, form, message, &arena, m, done)) {
            struct tc_xds_applying a = {.ch = ch, .done = done};
            tc_xds_channel_healthy(ch, done);
            form->apply(&a, m);
        }
    } else {
        ok = refuse(ch, tc_rstr_slice(message), done, tc_faults_text(&f));
        if (ok)
            tc_xds_channel_healthy(ch, done);
    }
    tc_faults_fini(&f);
    tc_arena_fini(&arena);
    return ok;
}
