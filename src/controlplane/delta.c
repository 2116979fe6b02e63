/* The server's side of an incremental ADS stream (DeltaDiscoveryRequest).
 *
 * The stream keeps an entry (struct delta_entry) for each resource that the client subscribed to by name, and for each
 * that a wildcard brings. An entry holds the version that the client has, from our responses or from
 * initial_resource_versions. type_respond compares each entry with the set. It sends new and changed resources, and the
 * names of resources that are removed or do not exist. A version is a hash of the content (content_version): a client
 * that reconnects gets only the changes, also after a restart of the control plane. A push waits for the answer to the
 * last response of the type, as in ads.c.
 *
 * The caller owns the stream and calls it on one thread. An entry holds references to its bytes: a set may be freed
 * between two calls. Read type_respond first. */
#include "controlplane/delta.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/table.h"
#include "controlplane/request.h"
#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"
#include "proto/pack.h"

typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest delta_request;
typedef Envoy__Service__Discovery__V3__DeltaDiscoveryResponse delta_response;
typedef Envoy__Service__Discovery__V3__Resource delta_resource;

/* One resource that the client asked for, or that its wildcard brings. */
struct delta_entry {
    UT_hash_handle hh;
    struct tc_rstr *name;
    struct tc_rstr *version; /* sent last (also if rejected), or listed by the client as its own; NULL: none */
    struct tc_rstr *value;   /* the bytes of that version; NULL: none, or only the version is known */
    bool named;              /* subscribed to by name, not by a wildcard alone */
    bool owed;               /* to be sent whatever the client has */
    bool absence_sent;       /* a response named it as removed, and no later one had it */
    uint64_t nonce;          /* of the last response with the resource or its removal; 0: none on this stream */
    enum tc_served_state state;
    struct tc_rstr *nack; /* the error of the NACK, in the state TC_SERVED_NACKED; NULL: none */
};

struct delta_type {
    struct tc_rstr *type_url;
    struct delta_entry *entries; /* a hash table by name; owned */
    uint64_t unanswered;         /* nonce of the last response; 0: none, or the client has answered it */
    bool asked;                  /* a request for the type came */
    bool wildcard;               /* everything is subscribed to */
    bool owed;                   /* a response is due, even an empty one: the answer to a wildcard */
};

struct tc_delta {
    const struct tc_ads_events *events;
    void *arg; /* of the events */
    struct tc_request_node node;
    uint64_t last_nonce; /* of the last response, of any type; 0: none */
    TC_VEC(struct delta_type) types;
};

/* The content of the next response, borrowed from the entries and the set. */
struct response_changes {
    TC_VEC(struct tc_delta_resource) resources;
    TC_VEC(struct tc_slice) removed;
};

/* --- life --- */

struct tc_delta *tc_delta_new(const struct tc_ads_events *events, void *arg)
{
    struct tc_delta *d = TC_NEW(struct tc_delta);
    d->events = events;
    d->arg = arg;
    return d;
}

static struct delta_entry *entry_find(const struct delta_type *t, struct tc_slice name)
{
    struct delta_entry *e = NULL;
    HASH_FIND(hh, t->entries, name.data, name.len, e);
    return e;
}

/* Returns the entry of a name, made if there is none. */
static struct delta_entry *entry_get(struct delta_type *t, struct tc_slice name)
{
    struct delta_entry *e = entry_find(t, name);
    if (!e) {
        e = TC_NEW(struct delta_entry);
        e->name = tc_rstr_new(name.data, name.len);
        e->state = TC_SERVED_ASKED;
        HASH_ADD_KEYPTR(hh, t->entries, e->name->data, e->name->len, e);
    }
    return e;
}

static void entry_free(struct delta_type *t, struct delta_entry *e)
{
    HASH_DELETE(hh, t->entries, e);
    tc_rstr_unref(e->name);
    tc_rstr_unref(e->version);
    tc_rstr_unref(e->value);
    tc_rstr_unref(e->nack);
    tc_free(e);
}

void tc_delta_free(struct tc_delta *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->types.len; i++) {
        struct delta_type *t = &d->types.data[i];
        struct delta_entry *e, *next;
        HASH_ITER(hh, t->entries, e, next)
        {
            entry_free(t, e);
        }
        tc_rstr_unref(t->type_url);
    }
    tc_vec_fini(&d->types);
    tc_request_node_fini(&d->node);
    tc_free(d);
}

struct tc_slice tc_delta_node(const struct tc_delta *d)
{
    return tc_rstr_slice(d->node.message);
}

/* Returns the version of a resource: a hash of its content, so that it outlives restarts of the control plane. */
static struct tc_rstr *content_version(const struct tc_rstr *value)
{
    return tc_rstr_printf("%016llx", (unsigned long long)tc_xxh64(value->data, value->len));
}

/* Returns the state of a type, made if there is none. Valid until another type is made. */
static struct delta_type *delta_type(struct tc_delta *d, struct tc_slice type_url)
{
    for (size_t i = 0; i < d->types.len; i++)
        if (tc_slice_eq(tc_rstr_slice(d->types.data[i].type_url), type_url))
            return &d->types.data[i];
    struct delta_type *t = tc_vec_push(&d->types);
    t->type_url = tc_rstr_new(type_url.data, type_url.len);
    return t;
}

/* --- responses --- */

/* Sends one response. Resources and removed names are borrowed. */
static void delta_send_response(struct tc_delta *d, struct delta_type *t, struct tc_slice system_version,
                                const struct tc_delta_resource *resources, size_t n, const struct tc_slice *removed,
                                size_t n_removed)
{
    delta_response response = ENVOY__SERVICE__DISCOVERY__V3__DELTA_DISCOVERY_RESPONSE__INIT;
    struct tc_arena arena;
    struct tc_buf out = {0};
    char nonce[24];
    tc_arena_init(&arena, 4096, 0);
    t->unanswered = ++d->last_nonce;
    snprintf(nonce, sizeof(nonce), "%llu", (unsigned long long)t->unanswered);
    response.nonce = nonce;
    response.type_url = t->type_url->data;
    response.system_version_info = tc_arena_dup(&arena, system_version);
    response.n_resources = n;
    response.resources = tc_arena_calloc(&arena, n, sizeof(response.resources[0]));
    for (size_t i = 0; i < n; i++) {
        delta_resource *r = tc_arena_calloc(&arena, 1, sizeof(*r));
        Google__Protobuf__Any *any = tc_arena_calloc(&arena, 1, sizeof(*any));
        envoy__service__discovery__v3__resource__init(r);
        google__protobuf__any__init(any);
        any->type_url = t->type_url->data;
        any->value.data = (uint8_t *)(uintptr_t)resources[i].value.data;
        any->value.len = resources[i].value.len;
        r->name = tc_arena_dup(&arena, resources[i].name);
        r->version = tc_arena_dup(&arena, resources[i].version);
        r->resource = any;
        response.resources[i] = r;
    }
    response.n_removed_resources = n_removed;
    response.removed_resources = tc_arena_calloc(&arena, n_removed, sizeof(response.removed_resources[0]));
    for (size_t i = 0; i < n_removed; i++)
        response.removed_resources[i] = tc_arena_dup(&arena, removed[i]);
    tc_pack(&response.base, &out);
    d->events->send(d->arg, tc_buf_slice(&out));
    tc_buf_fini(&out);
    tc_arena_fini(&arena);
}

/* Records that the next response has this version and value, and takes over their references. Both NULL: the response
 * has the removal. */
static void entry_mark_sent(const struct tc_delta *d, struct delta_entry *e, struct tc_rstr *version,
                            struct tc_rstr *value)
{
    tc_rstr_unref(e->version);
    tc_rstr_unref(e->value);
    tc_rstr_unref(e->nack);
    e->version = version;
    e->value = value;
    e->nack = NULL;
    e->owed = false;
    e->absence_sent = value == NULL;
    e->nonce = d->last_nonce + 1;
    e->state = value ? TC_SERVED_SENT : TC_SERVED_ABSENT;
}

/* The set has the resource: adds it to the next response if the client has another version or none, or it is owed. */
static void entry_check_present(const struct tc_delta *d, struct delta_entry *e, const struct tc_set_resource *r,
                                struct response_changes *c)
{
    if (!e->owed && e->version && e->value == r->value)
        return;
    struct tc_rstr *version = content_version(r->value);
    if (!e->owed && tc_rstr_eq(e->version, version)) {
        /* The client has this content, from this stream or from before it connected. */
        tc_rstr_unref(version);
        tc_rstr_unref(e->value);
        e->value = tc_rstr_ref(r->value);
        if (e->state == TC_SERVED_ASKED)
            e->state = TC_SERVED_ACKED;
        return;
    }
    entry_mark_sent(d, e, version, tc_rstr_ref(r->value));
    *tc_vec_push(&c->resources) =
        (struct tc_delta_resource){tc_rstr_slice(r->name), tc_rstr_slice(version), tc_rstr_slice(r->value)};
}

/* The set does not have the resource: adds its name to the next response if the client was not told yet, or it is owed.
 */
static void entry_check_absent(const struct tc_delta *d, struct delta_entry *e, struct response_changes *c)
{
    if (!e->version && !e->owed && e->absence_sent)
        return;
    entry_mark_sent(d, e, NULL, NULL);
    *tc_vec_push(&c->removed) = tc_rstr_slice(e->name);
}

/* Drops the entries that only a wildcard brought once their removal was sent; nothing else would drop them while the
 * wildcard lasts. */
static void type_forget_absent(struct delta_type *t)
{
    struct delta_entry *e, *next;
    HASH_ITER(hh, t->entries, e, next)
    {
        if (!e->named && e->absence_sent)
            entry_free(t, e);
    }
}

/* Compares all entries with the set. Sends the difference and what is owed. Does nothing as long as there is no set for
 * the node. */
static void type_respond(struct tc_delta *d, struct delta_type *t)
{
    const struct tc_resource_set *set = d->events->resources(d->arg, tc_rstr_slice(d->node.id));
    if (!set)
        return;
    const struct tc_set_type *have = tc_resource_set_type(set, tc_rstr_slice(t->type_url));
    struct response_changes c = {0};
    for (size_t i = 0; t->wildcard && have && i < have->resources.len; i++)
        entry_get(t, tc_rstr_slice(have->resources.data[i].name));
    for (struct delta_entry *e = t->entries; e; e = e->hh.next) {
        const struct tc_set_resource *r = have ? tc_set_type_find(have, tc_rstr_slice(e->name)) : NULL;
        if (r)
            entry_check_present(d, e, r, &c);
        else
            entry_check_absent(d, e, &c);
    }
    if (c.resources.len || c.removed.len || t->owed)
        delta_send_response(d, t, have && have->version ? tc_rstr_slice(have->version) : tc_slice_str("0"),
                            c.resources.data, c.resources.len, c.removed.data, c.removed.len);
    t->owed = false;
    type_forget_absent(t);
    tc_vec_fini(&c.resources);
    tc_vec_fini(&c.removed);
}

void tc_delta_push(struct tc_delta *d)
{
    for (size_t i = 0; i < d->types.len; i++)
        if (d->types.data[i].asked && !d->types.data[i].unanswered)
            type_respond(d, &d->types.data[i]);
}

void tc_delta_send(struct tc_delta *d, struct tc_slice type_url, struct tc_slice system_version,
                   const struct tc_delta_resource *resources, size_t n, const struct tc_slice *removed,
                   size_t n_removed)
{
    struct delta_type *t = delta_type(d, type_url);
    for (size_t i = 0; i < n; i++) {
        struct delta_entry *e = t->wildcard ? entry_get(t, resources[i].name) : entry_find(t, resources[i].name);
        if (e)
            entry_mark_sent(d, e, tc_rstr_new(resources[i].version.data, resources[i].version.len),
                            tc_rstr_new(resources[i].value.data, resources[i].value.len));
    }
    for (size_t i = 0; i < n_removed; i++) {
        struct delta_entry *e = entry_find(t, removed[i]);
        if (e)
            entry_mark_sent(d, e, NULL, NULL);
    }
    delta_send_response(d, t, system_version, resources, n, removed, n_removed);
}

/* --- requests --- */

/* Ends the subscription to a name, or to the wildcard ("*"). */
static void type_unsubscribe(struct delta_type *t, struct tc_slice name)
{
    struct delta_entry *e, *next;
    if (tc_slice_eq_str(name, "*")) {
        t->wildcard = false;
        HASH_ITER(hh, t->entries, e, next)
        {
            if (!e->named)
                entry_free(t, e);
        }
        return;
    }
    e = entry_find(t, name);
    if (!e)
        return;
    if (t->wildcard) {
        /* xDS protocol: the resource, or its removal, is sent again. So the client learns whether the wildcard still
         * brings it. */
        e->named = false;
        e->owed = true;
    } else {
        entry_free(t, e);
    }
}

static void type_subscribe(struct delta_type *t, struct tc_slice name)
{
    if (tc_slice_eq_str(name, "*")) {
        t->wildcard = true;
        t->owed = true;
        return;
    }
    /* xDS protocol: a client that subscribes again may have dropped the resource, and gets it again. */
    struct delta_entry *e = entry_get(t, name);
    e->owed = e->named || e->version;
    e->named = true;
}

/* Takes in the first request of a type on the stream. A first request without names asks for everything. A first
 * request may list the resources that the client has from an earlier stream. */
static void type_begin(struct delta_type *t, const delta_request *request)
{
    t->asked = true;
    if (request->n_resource_names_subscribe == 0 && request->n_resource_names_unsubscribe == 0)
        t->wildcard = t->owed = true;
    for (size_t i = 0; i < request->n_resource_names_subscribe; i++)
        type_subscribe(t, tc_slice_str(request->resource_names_subscribe[i]));
    for (size_t i = 0; i < request->n_initial_resource_versions; i++) {
        struct tc_slice name = tc_slice_str(request->initial_resource_versions[i]->key);
        struct delta_entry *e = t->wildcard ? entry_get(t, name) : entry_find(t, name);
        if (!e)
            continue;
        tc_rstr_unref(e->version);
        e->version = tc_rstr_str(request->initial_resource_versions[i]->value);
        e->owed = false;
    }
}

/* A request with an old nonce is not stale: it answers the response of that nonce, and its subscriptions count. */
static void type_on_ack(struct delta_type *t, const delta_request *request)
{
    uint64_t nonce;
    if (tc_parse_u64(tc_slice_str(request->response_nonce), UINT64_MAX, &nonce) != 0 || nonce == 0)
        return; /* an entry whose nonce is 0 was never sent */
    if (nonce == t->unanswered)
        t->unanswered = 0;
    for (struct delta_entry *e = t->entries; e; e = e->hh.next) {
        if (e->nonce != nonce || e->state == TC_SERVED_ABSENT)
            continue;
        e->state = request->error_detail ? TC_SERVED_NACKED : TC_SERVED_ACKED;
        tc_rstr_unref(e->nack);
        e->nack = request->error_detail ? tc_rstr_str(request->error_detail->message) : NULL;
    }
}

static struct tc_slice *slices_of(char *const *names, size_t n)
{
    struct tc_slice *out = tc_calloc(n, sizeof(*out));
    for (size_t i = 0; i < n; i++)
        out[i] = tc_slice_str(names[i]);
    return out;
}

static void delta_report_request(struct tc_delta *d, const delta_request *request)
{
    if (!d->events->on_request)
        return;
    struct tc_slice *names = slices_of(request->resource_names_subscribe, request->n_resource_names_subscribe);
    struct tc_slice *gone = slices_of(request->resource_names_unsubscribe, request->n_resource_names_unsubscribe);
    struct tc_ads_request r = {
        .node_id = tc_rstr_slice(d->node.id),
        .type_url = tc_slice_str(request->type_url),
        .nonce = tc_slice_str(request->response_nonce),
        .names = names,
        .n_names = request->n_resource_names_subscribe,
        .has_error = request->error_detail != NULL,
        .error_code = request->error_detail ? request->error_detail->code : 0,
        .error_text = tc_slice_str(request->error_detail ? request->error_detail->message : ""),
        .delta = true,
        .unsubscribed = gone,
        .n_unsubscribed = request->n_resource_names_unsubscribe,
        .n_initial = request->n_initial_resource_versions,
    };
    d->events->on_request(d->arg, &r);
    tc_free(names);
    tc_free(gone);
}

static struct tc_status delta_on_request(void *arg, const ProtobufCMessage *message)
{
    struct tc_delta *d = arg;
    const delta_request *request = (const delta_request *)message;
    tc_request_node_take(&d->node, request->node);
    if (request->type_url[0] == '\0')
        return tc_status_make(TORC_STATUS_INVALID_ARGUMENT, TORC_LAYER_HTTP2, "type_url is empty");
    delta_report_request(d, request);
    struct delta_type *t = delta_type(d, tc_slice_str(request->type_url));
    type_on_ack(t, request);
    if (!t->asked) {
        type_begin(t, request);
    } else {
        for (size_t i = 0; i < request->n_resource_names_subscribe; i++)
            type_subscribe(t, tc_slice_str(request->resource_names_subscribe[i]));
    }
    for (size_t i = 0; i < request->n_resource_names_unsubscribe; i++)
        type_unsubscribe(t, tc_slice_str(request->resource_names_unsubscribe[i]));
    type_respond(d, t);
    return (struct tc_status){0};
}

struct tc_status tc_delta_on_message(struct tc_delta *d, struct tc_slice bytes)
{
    return tc_request_unpack(&envoy__service__discovery__v3__delta_discovery_request__descriptor, bytes,
                             delta_on_request, d);
}

void tc_delta_view(const struct tc_delta *d, tc_served_fn fn, void *arg)
{
    for (size_t i = 0; i < d->types.len; i++) {
        const struct delta_type *t = &d->types.data[i];
        for (const struct delta_entry *e = t->entries; e; e = e->hh.next) {
            struct tc_served served = {.type_url = tc_rstr_slice(t->type_url),
                                       .name = tc_rstr_slice(e->name),
                                       .state = e->state,
                                       .version = tc_rstr_slice(e->version),
                                       .value = e->value,
                                       .error = tc_rstr_slice(e->nack)};
            fn(arg, &served);
        }
    }
}
