#include "server/ads.h"

#include <stdlib.h>

#include "base/mem.h"
#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"
#include "proto/pack.h"
#include "proto/unpack.h"

/* What a client has of one type. */
struct type_state {
    struct tc_rstr *type_url;
    struct tc_rstr *nonce;   /* of the last response; NULL: none sent */
    struct tc_rstr *version; /* of the last response */
    struct tc_rstr *nack;    /* what the client complained of in it; NULL: nothing */
    bool answered;           /* the last response was ACKed or NACKed */
    bool asked;              /* a request for the type was seen */
    bool owed;               /* the first request was not answered yet */
    bool wildcard;
    TC_VEC(struct tc_rstr *) names;     /* subscribed */
    TC_VEC(struct tc_set_resource) has; /* what the last responses gave it, sorted by name */
};

struct tc_ads {
    const struct tc_ads_events *events;
    void *arg;
    struct tc_rstr *node_id, *node;
    uint64_t next_nonce;
    TC_VEC(struct type_state) types;
};

struct tc_ads *tc_ads_new(const struct tc_ads_events *events, void *arg)
{
    struct tc_ads *a = TC_NEW(struct tc_ads);
    a->events = events;
    a->arg = arg;
    return a;
}

static void clear_names(struct type_state *t)
{
    for (size_t i = 0; i < t->names.len; i++)
        tc_rstr_unref(t->names.data[i]);
    t->names.len = 0;
}

static void clear_has(struct type_state *t)
{
    for (size_t i = 0; i < t->has.len; i++) {
        tc_rstr_unref(t->has.data[i].name);
        tc_rstr_unref(t->has.data[i].value);
    }
    t->has.len = 0;
}

void tc_ads_free(struct tc_ads *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->types.len; i++) {
        struct type_state *t = &a->types.data[i];
        clear_names(t);
        clear_has(t);
        tc_vec_fini(&t->names);
        tc_vec_fini(&t->has);
        tc_rstr_unref(t->type_url);
        tc_rstr_unref(t->nonce);
        tc_rstr_unref(t->version);
        tc_rstr_unref(t->nack);
    }
    tc_vec_fini(&a->types);
    tc_rstr_unref(a->node_id);
    tc_rstr_unref(a->node);
    tc_free(a);
}

struct tc_slice tc_ads_node_id(const struct tc_ads *a)
{
    return tc_rstr_slice(a->node_id);
}

struct tc_slice tc_ads_node(const struct tc_ads *a)
{
    return tc_rstr_slice(a->node);
}

static struct type_state *type_of(struct tc_ads *a, struct tc_slice type_url)
{
    for (size_t i = 0; i < a->types.len; i++)
        if (tc_slice_eq(tc_rstr_slice(a->types.data[i].type_url), type_url))
            return &a->types.data[i];
    struct type_state *t = tc_vec_push(&a->types);
    t->type_url = tc_rstr_new(type_url.data, type_url.len);
    return t;
}

/* Listener and Cluster: a response must hold everything that the client asked for; what is missing is deleted. */
static bool is_full_state_type(struct tc_slice type_url)
{
    return tc_slice_eq_str(type_url, "type.googleapis.com/envoy.config.listener.v3.Listener") ||
           tc_slice_eq_str(type_url, "type.googleapis.com/envoy.config.cluster.v3.Cluster");
}

void tc_ads_send(struct tc_ads *a, struct tc_slice type_url, struct tc_slice version, const struct tc_slice *resources,
                 size_t n)
{
    struct type_state *t = type_of(a, type_url);
    Envoy__Service__Discovery__V3__DiscoveryResponse response = ENVOY__SERVICE__DISCOVERY__V3__DISCOVERY_RESPONSE__INIT;
    Google__Protobuf__Any *anys = tc_calloc(n, sizeof(*anys));
    Google__Protobuf__Any **list = tc_calloc(n, sizeof(*list));
    struct tc_buf out = {0};
    tc_rstr_unref(t->nonce);
    t->nonce = tc_rstr_printf("%llu", (unsigned long long)++a->next_nonce);
    tc_rstr_unref(t->version);
    t->version = tc_rstr_new(version.data, version.len);
    tc_rstr_unref(t->nack);
    t->nack = NULL;
    t->answered = false;
    for (size_t i = 0; i < n; i++) {
        google__protobuf__any__init(&anys[i]);
        anys[i].type_url = t->type_url->data;
        anys[i].value.data = (uint8_t *)(uintptr_t)resources[i].data;
        anys[i].value.len = resources[i].len;
        list[i] = &anys[i];
    }
    response.type_url = t->type_url->data;
    response.nonce = t->nonce->data;
    response.version_info = t->version->data;
    response.n_resources = n;
    response.resources = list;
    tc_pack(&response.base, &out);
    a->events->send(a->arg, tc_buf_slice(&out));
    tc_buf_fini(&out);
    tc_free(anys);
    tc_free(list);
}

static int compare_names(const void *a, const void *b)
{
    const struct tc_rstr *const *x = a, *const *y = b;
    return strcmp((*x)->data, (*y)->data);
}

static bool subscribed(const struct type_state *t, const struct tc_rstr *name)
{
    return t->wildcard ||
           (t->names.len && bsearch(&name, t->names.data, t->names.len, sizeof(t->names.data[0]), compare_names));
}

/* The resources that the client should have now: a borrowed list in the order of the set. */
static size_t wanted(const struct type_state *t, const struct tc_set_type *have, const struct tc_set_resource **out)
{
    size_t n = 0;
    if (t->wildcard) {
        for (size_t i = 0; i < have->resources.len; i++)
            out[n++] = &have->resources.data[i];
        return n;
    }
    for (size_t i = 0; i < t->names.len; i++) {
        const struct tc_set_resource *r = tc_set_type_find(have, tc_rstr_slice(t->names.data[i]));
        if (r)
            out[n++] = r;
    }
    return n;
}

static int compare_resources(const void *a, const void *b)
{
    const struct tc_set_resource *x = a, *y = b;
    return strcmp(x->name->data, y->name->data);
}

static const struct tc_set_resource *find_has(const struct type_state *t, struct tc_rstr *name)
{
    struct tc_set_resource key = {.name = name};
    return t->has.len ? bsearch(&key, t->has.data, t->has.len, sizeof(key), compare_resources) : NULL;
}

/* The client has the same already; under `removals_count`, no more than the same. */
static bool up_to_date(const struct type_state *t, const struct tc_set_resource **want, size_t n, bool removals_count)
{
    if (removals_count && t->has.len != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct tc_set_resource *has = i < t->has.len && tc_rstr_eq(t->has.data[i].name, want[i]->name)
                                                ? &t->has.data[i]
                                                : find_has(t, want[i]->name);
        if (!has || !tc_rstr_eq(has->value, want[i]->value))
            return false;
    }
    return true;
}

static void answer(struct tc_ads *a, struct type_state *t)
{
    const struct tc_resource_set *set = a->events->resources(a->arg, tc_ads_node_id(a));
    if (!set)
        return;
    const struct tc_set_type *have = tc_resource_set_type(set, tc_rstr_slice(t->type_url));
    static const struct tc_set_type nothing;
    bool full = is_full_state_type(tc_rstr_slice(t->type_url));
    if (!have)
        have = &nothing;
    size_t room = t->wildcard ? have->resources.len : t->names.len;
    const struct tc_set_resource **want = tc_calloc(room, sizeof(*want));
    size_t n = wanted(t, have, want);
    bool first = t->owed;
    t->owed = false;
    if (!(first && (full || n)) && up_to_date(t, want, n, full)) {
        tc_free(want);
        return;
    }
    struct tc_slice *values = tc_calloc(n, sizeof(*values));
    clear_has(t);
    for (size_t i = 0; i < n; i++) {
        values[i] = tc_rstr_slice(want[i]->value);
        *tc_vec_push(&t->has) =
            (struct tc_set_resource){.name = tc_rstr_ref(want[i]->name), .value = tc_rstr_ref(want[i]->value)};
    }
    tc_ads_send(a, tc_rstr_slice(t->type_url), have->version ? tc_rstr_slice(have->version) : tc_slice_str("0"), values,
                n);
    tc_free(values);
    tc_free(want);
}

void tc_ads_push(struct tc_ads *a)
{
    for (size_t i = 0; i < a->types.len; i++)
        if (a->types.data[i].asked)
            answer(a, &a->types.data[i]);
}

/* Takes over the names of a request; what the client no longer wants it no longer has. */
static void subscribe(struct type_state *t, const Envoy__Service__Discovery__V3__DiscoveryRequest *request)
{
    clear_names(t);
    for (size_t i = 0; i < request->n_resource_names; i++)
        *tc_vec_push(&t->names) = tc_rstr_str(request->resource_names[i]);
    if (t->names.len)
        qsort(t->names.data, t->names.len, sizeof(t->names.data[0]), compare_names);
    /* An empty list asks for everything only while no name was ever given (xDS protocol, "How the client specifies what
     * resources to return"). */
    if (request->n_resource_names)
        t->wildcard = false;
    else if (!t->asked)
        t->wildcard = true;
    for (size_t i = t->has.len; i-- > 0;) {
        if (subscribed(t, t->has.data[i].name))
            continue;
        tc_rstr_unref(t->has.data[i].name);
        tc_rstr_unref(t->has.data[i].value);
        tc_vec_remove(&t->has, i);
    }
}

static void report(struct tc_ads *a, const Envoy__Service__Discovery__V3__DiscoveryRequest *request)
{
    if (!a->events->on_request)
        return;
    struct tc_slice *names = tc_calloc(request->n_resource_names, sizeof(*names));
    for (size_t i = 0; i < request->n_resource_names; i++)
        names[i] = tc_slice_str(request->resource_names[i]);
    struct tc_ads_request r = {
        .node_id = tc_ads_node_id(a),
        .type_url = tc_slice_str(request->type_url),
        .version = tc_slice_str(request->version_info),
        .nonce = tc_slice_str(request->response_nonce),
        .names = names,
        .n_names = request->n_resource_names,
        .has_error = request->error_detail != NULL,
        .error_code = request->error_detail ? request->error_detail->code : 0,
        .error_text = tc_slice_str(request->error_detail ? request->error_detail->message : ""),
    };
    a->events->on_request(a->arg, &r);
    tc_free(names);
}

static struct tc_status take_in(struct tc_ads *a, const Envoy__Service__Discovery__V3__DiscoveryRequest *request)
{
    if (!a->node_id && request->node) {
        struct tc_buf node = {0};
        tc_pack(&request->node->base, &node);
        a->node = tc_rstr_new(node.data, node.len);
        a->node_id = tc_rstr_str(request->node->id);
        tc_buf_fini(&node);
    }
    if (request->type_url[0] == '\0')
        return tc_status_make(TORC_STATUS_INVALID_ARGUMENT, "type_url is empty");
    report(a, request);
    struct type_state *t = type_of(a, tc_slice_str(request->type_url));
    /* An answer to a response that is not our last: the client will answer that one, too. */
    if (request->response_nonce[0] != '\0' && !tc_slice_eq_str(tc_rstr_slice(t->nonce), request->response_nonce))
        return (struct tc_status){0};
    if (request->response_nonce[0] != '\0') {
        tc_rstr_unref(t->nack);
        t->nack = request->error_detail ? tc_rstr_str(request->error_detail->message) : NULL;
        t->answered = true;
    }
    bool first = !t->asked;
    subscribe(t, request);
    t->asked = true;
    t->owed |= first;
    answer(a, t);
    return (struct tc_status){0};
}

struct tc_status tc_ads_on_message(struct tc_ads *a, struct tc_slice bytes)
{
    struct tc_arena arena;
    struct tc_faults faults;
    struct tc_status status;
    ProtobufCMessage *message = NULL;
    tc_arena_init(&arena, 4096, tc_unpack_budget(bytes.len));
    tc_faults_init(&faults);
    if (tc_unpack(&envoy__service__discovery__v3__discovery_request__descriptor, bytes, NULL, &arena, &message,
                  &faults) == 0)
        status = take_in(a, (const Envoy__Service__Discovery__V3__DiscoveryRequest *)message);
    else
        status =
            tc_status_make(TORC_STATUS_INVALID_ARGUMENT, "malformed DiscoveryRequest: %s", tc_faults_text(&faults));
    tc_faults_fini(&faults);
    tc_arena_fini(&arena);
    return status;
}

static enum tc_served_state state_of(const struct type_state *t, bool sent)
{
    if (!t->nonce)
        return TC_SERVED_ASKED;
    if (!sent)
        return is_full_state_type(tc_rstr_slice(t->type_url)) ? TC_SERVED_ABSENT : TC_SERVED_ASKED;
    if (!t->answered)
        return TC_SERVED_SENT;
    return t->nack ? TC_SERVED_NACKED : TC_SERVED_ACKED;
}

static void view_one(const struct type_state *t, struct tc_rstr *name, const struct tc_set_resource *has,
                     tc_served_fn fn, void *arg)
{
    struct tc_served served = {.type_url = tc_rstr_slice(t->type_url),
                               .name = tc_rstr_slice(name),
                               .state = state_of(t, has != NULL),
                               .version = tc_rstr_slice(has ? t->version : NULL),
                               .value = has ? has->value : NULL,
                               .error = tc_rstr_slice(has ? t->nack : NULL)};
    fn(arg, &served);
}

void tc_ads_view(const struct tc_ads *a, tc_served_fn fn, void *arg)
{
    for (size_t i = 0; i < a->types.len; i++) {
        const struct type_state *t = &a->types.data[i];
        for (size_t k = 0; t->wildcard && k < t->has.len; k++)
            view_one(t, t->has.data[k].name, &t->has.data[k], fn, arg);
        for (size_t k = 0; k < t->names.len; k++)
            view_one(t, t->names.data[k], find_has(t, t->names.data[k]), fn, arg);
    }
}
