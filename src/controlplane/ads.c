/* The server's side of a state-of-the-world ADS stream.
 *
 * For each type the stream knows the client's subscriptions, the resources that the client has from our responses, and
 * the version and nonce of the last response. A request with that nonce is an ACK or a NACK. A request with another
 * nonce changes no subscription; a request without a nonce only subscribes.
 *
 * A response is sent after a request or on a push (type_respond) if the client lacks a resource that it should have, or
 * has other contents of it. If the type is full state (LDS, CDS), a response is also sent if the client has a resource
 * too many, and after the first request of the type. A push waits for the answer to the last response of the type: a
 * client that reads more slowly than resources change gets the newest ones next, and not a queue of old ones.
 *
 * The caller owns the stream and calls it on one thread. The stream keeps references to the names and values that it
 * has sent, and nothing else of a set: a set may be freed between two calls.
 *
 * Read type_respond first. The incremental variant of the protocol is in delta.c. */
#include "controlplane/ads.h"

#include <stdlib.h>

#include "base/mem.h"
#include "controlplane/request.h"
#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"
#include "proto/pack.h"

#define WRAPPER_URL "type.googleapis.com/envoy.service.discovery.v3.Resource"
/* The resources of this type have no names of their own. */
#define COLLECTION_URL "type.googleapis.com/envoy.config.endpoint.v3.LbEndpointCollection"

/* A client's resources of one type. */
struct ads_type {
    struct tc_rstr *type_url;
    struct tc_rstr *nonce;              /* of the last response; NULL: none sent */
    struct tc_rstr *version;            /* of the last response */
    struct tc_rstr *nack;               /* the error of the last response's NACK; NULL: none */
    bool answered;                      /* the last response was ACKed or NACKed */
    bool asked;                         /* a request for the type came that was not stale */
    bool owed;                          /* the first request came, and there was no set yet from which to answer */
    bool named;                         /* a request had names, or "*" */
    bool wildcard;                      /* everything is subscribed to */
    TC_VEC(struct tc_rstr *) names;     /* subscribed to by name, sorted, each once, without "*" */
    TC_VEC(struct tc_set_resource) has; /* the resources that the client has from us, sorted by name */
};

struct tc_ads {
    const struct tc_ads_events *events;
    void *arg; /* of the events */
    struct tc_request_node node;
    uint64_t last_nonce; /* of the last response, of any type; 0: none */
    TC_VEC(struct ads_type) types;
};

struct tc_ads *tc_ads_new(const struct tc_ads_events *events, void *arg)
{
    struct tc_ads *a = TC_NEW(struct tc_ads);
    a->events = events;
    a->arg = arg;
    return a;
}

static void type_clear_names(struct ads_type *t)
{
    for (size_t i = 0; i < t->names.len; i++)
        tc_rstr_unref(t->names.data[i]);
    t->names.len = 0;
}

static void type_clear_sent(struct ads_type *t)
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
        struct ads_type *t = &a->types.data[i];
        type_clear_names(t);
        type_clear_sent(t);
        tc_vec_fini(&t->names);
        tc_vec_fini(&t->has);
        tc_rstr_unref(t->type_url);
        tc_rstr_unref(t->nonce);
        tc_rstr_unref(t->version);
        tc_rstr_unref(t->nack);
    }
    tc_vec_fini(&a->types);
    tc_request_node_fini(&a->node);
    tc_free(a);
}

struct tc_slice tc_ads_node(const struct tc_ads *a)
{
    return tc_rstr_slice(a->node.message);
}

/* Returns the state of a type, made if there is none. Valid until another type is made. */
static struct ads_type *ads_type(struct tc_ads *a, struct tc_slice type_url)
{
    for (size_t i = 0; i < a->types.len; i++)
        if (tc_slice_eq(tc_rstr_slice(a->types.data[i].type_url), type_url))
            return &a->types.data[i];
    struct ads_type *t = tc_vec_push(&a->types);
    t->type_url = tc_rstr_new(type_url.data, type_url.len);
    return t;
}

/* A response of these types is the full state: a resource that is missing from it is deleted. */
static bool type_is_full_state(struct tc_slice type_url)
{
    return tc_slice_eq_str(type_url, "type.googleapis.com/envoy.config.listener.v3.Listener") ||
           tc_slice_eq_str(type_url, "type.googleapis.com/envoy.config.cluster.v3.Cluster");
}

/* Sends a response. `wrapped`: `resources` are Resource messages, each around a resource of the type. */
static void ads_send(struct tc_ads *a, struct tc_slice type_url, struct tc_slice version,
                     const struct tc_slice *resources, size_t n, bool wrapped)
{
    struct ads_type *t = ads_type(a, type_url);
    Envoy__Service__Discovery__V3__DiscoveryResponse response = ENVOY__SERVICE__DISCOVERY__V3__DISCOVERY_RESPONSE__INIT;
    Google__Protobuf__Any *anys = tc_calloc(n, sizeof(*anys));
    Google__Protobuf__Any **list = tc_calloc(n, sizeof(*list));
    struct tc_buf out = {0};
    tc_rstr_unref(t->nonce);
    t->nonce = tc_rstr_printf("%llu", (unsigned long long)++a->last_nonce);
    tc_rstr_unref(t->version);
    t->version = tc_rstr_new(version.data, version.len);
    tc_rstr_unref(t->nack);
    t->nack = NULL;
    t->answered = false;
    for (size_t i = 0; i < n; i++) {
        google__protobuf__any__init(&anys[i]);
        anys[i].type_url = wrapped ? (char *)(uintptr_t)WRAPPER_URL : t->type_url->data;
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

void tc_ads_send(struct tc_ads *a, struct tc_slice type_url, struct tc_slice version, const struct tc_slice *resources,
                 size_t n)
{
    ads_send(a, type_url, version, resources, n, false);
}

static int compare_names(const void *a, const void *b)
{
    const struct tc_rstr *const *x = a, *const *y = b;
    return strcmp((*x)->data, (*y)->data);
}

static bool type_subscribed(const struct ads_type *t, const struct tc_rstr *name)
{
    return t->wildcard ||
           (t->names.len && bsearch(&name, t->names.data, t->names.len, sizeof(t->names.data[0]), compare_names));
}

/* Stores the resources that the client should have now in `out`, borrowed from `have`, sorted by name. Returns how
 * many. `out` has room for all resources of `have` with a wildcard, else for one of each name. */
static size_t type_wanted(const struct ads_type *t, const struct tc_set_type *have, const struct tc_set_resource **out)
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

/* Returns the client's resource of that name, or NULL. */
static const struct tc_set_resource *type_find_sent(const struct ads_type *t, struct tc_rstr *name)
{
    struct tc_set_resource key = {.name = name};
    return t->has.len ? bsearch(&key, t->has.data, t->has.len, sizeof(key), compare_resources) : NULL;
}

/* Returns true if the client has the resources of `want` already; with `removals_count`, only if it has no others. */
static bool type_up_to_date(const struct ads_type *t, const struct tc_set_resource **want, size_t n,
                            bool removals_count)
{
    if (removals_count && t->has.len != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct tc_set_resource *has = i < t->has.len && tc_rstr_eq(t->has.data[i].name, want[i]->name)
                                                ? &t->has.data[i]
                                                : type_find_sent(t, want[i]->name);
        if (!has || !tc_rstr_eq(has->value, want[i]->value))
            return false;
    }
    return true;
}

/* Writes a Resource message, which names what it holds. */
static void resource_wrap(const struct ads_type *t, const struct tc_set_resource *from, struct tc_buf *out)
{
    Envoy__Service__Discovery__V3__Resource resource = ENVOY__SERVICE__DISCOVERY__V3__RESOURCE__INIT;
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    any.type_url = t->type_url->data;
    any.value.data = (uint8_t *)(uintptr_t)from->value->data;
    any.value.len = from->value->len;
    resource.name = from->name->data;
    resource.resource = &any;
    tc_pack(&resource.base, out);
}

/* Sends a response of the type if the client is not up to date. Also sends the response that the first request of the
 * type is owed, unless the response would be empty and the type is not full state. Does nothing while the node has no
 * set. */
static void type_respond(struct tc_ads *a, struct ads_type *t)
{
    const struct tc_resource_set *set = a->events->resources(a->arg, tc_rstr_slice(a->node.id));
    if (!set)
        return;
    const struct tc_set_type *have = tc_resource_set_type(set, tc_rstr_slice(t->type_url));
    static const struct tc_set_type nothing;
    bool full = type_is_full_state(tc_rstr_slice(t->type_url));
    if (!have)
        have = &nothing;
    size_t room = t->wildcard ? have->resources.len : t->names.len;
    const struct tc_set_resource **want = tc_calloc(room, sizeof(*want));
    size_t n = type_wanted(t, have, want);
    bool first = t->owed;
    t->owed = false;
    if (!(first && (full || n)) && type_up_to_date(t, want, n, full)) {
        tc_free(want);
        return;
    }
    struct tc_slice *values = tc_calloc(n, sizeof(*values));
    struct tc_buf *wrappers = tc_calloc(n, sizeof(*wrappers));
    bool wrapped = tc_slice_eq_str(tc_rstr_slice(t->type_url), COLLECTION_URL);
    type_clear_sent(t);
    for (size_t i = 0; i < n; i++) {
        if (wrapped)
            resource_wrap(t, want[i], &wrappers[i]);
        values[i] = wrapped ? tc_buf_slice(&wrappers[i]) : tc_rstr_slice(want[i]->value);
        *tc_vec_push(&t->has) =
            (struct tc_set_resource){.name = tc_rstr_ref(want[i]->name), .value = tc_rstr_ref(want[i]->value)};
    }
    ads_send(a, tc_rstr_slice(t->type_url), have->version ? tc_rstr_slice(have->version) : tc_slice_str("0"), values, n,
             wrapped);
    for (size_t i = 0; i < n; i++)
        tc_buf_fini(&wrappers[i]);
    tc_free(wrappers);
    tc_free(values);
    tc_free(want);
}

void tc_ads_push(struct tc_ads *a)
{
    for (size_t i = 0; i < a->types.len; i++) {
        struct ads_type *t = &a->types.data[i];
        if (t->asked && (!t->nonce || t->answered))
            type_respond(a, t);
    }
}

/* Replaces the names by those of a request: sorted, each once. */
static void type_take_names(struct ads_type *t, const Envoy__Service__Discovery__V3__DiscoveryRequest *request)
{
    size_t n = 0;
    type_clear_names(t);
    for (size_t i = 0; i < request->n_resource_names; i++)
        if (strcmp(request->resource_names[i], "*") != 0)
            *tc_vec_push(&t->names) = tc_rstr_str(request->resource_names[i]);
    if (t->names.len)
        qsort(t->names.data, t->names.len, sizeof(t->names.data[0]), compare_names);
    for (size_t i = 0; i < t->names.len; i++)
        if (n && tc_rstr_eq(t->names.data[n - 1], t->names.data[i]))
            tc_rstr_unref(t->names.data[i]);
        else
            t->names.data[n++] = t->names.data[i];
    t->names.len = n;
}

/* Applies the subscriptions of a request. The client drops resources that it is no longer subscribed to. */
static void type_subscribe(struct ads_type *t, const Envoy__Service__Discovery__V3__DiscoveryRequest *request)
{
    type_take_names(t, request);
    /* "*" means everything, and so does a request without names, until a request has names (xDS protocol, "How the
     * client specifies what resources to return"). */
    t->named |= request->n_resource_names > 0;
    t->wildcard = !t->named;
    for (size_t i = 0; i < request->n_resource_names; i++)
        t->wildcard |= strcmp(request->resource_names[i], "*") == 0;
    for (size_t i = t->has.len; i-- > 0;) {
        if (type_subscribed(t, t->has.data[i].name))
            continue;
        tc_rstr_unref(t->has.data[i].name);
        tc_rstr_unref(t->has.data[i].value);
        tc_vec_remove(&t->has, i);
    }
}

static void ads_report_request(struct tc_ads *a, const Envoy__Service__Discovery__V3__DiscoveryRequest *request)
{
    if (!a->events->on_request)
        return;
    struct tc_slice *names = tc_calloc(request->n_resource_names, sizeof(*names));
    for (size_t i = 0; i < request->n_resource_names; i++)
        names[i] = tc_slice_str(request->resource_names[i]);
    struct tc_ads_request r = {
        .node_id = tc_rstr_slice(a->node.id),
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

/* Takes in a decoded request. The observer is told first, so that it also sees requests with a stale nonce. */
static struct tc_status ads_on_request(void *arg, const ProtobufCMessage *message)
{
    struct tc_ads *a = arg;
    const Envoy__Service__Discovery__V3__DiscoveryRequest *request =
        (const Envoy__Service__Discovery__V3__DiscoveryRequest *)message;
    tc_request_node_take(&a->node, request->node);
    if (request->type_url[0] == '\0')
        return tc_status_make(TORC_STATUS_INVALID_ARGUMENT, TORC_LAYER_HTTP2, "type_url is empty");
    ads_report_request(a, request);
    struct ads_type *t = ads_type(a, tc_slice_str(request->type_url));
    /* A stale nonce: the client has not answered our last response yet, and will. */
    if (request->response_nonce[0] != '\0' && !tc_slice_eq_str(tc_rstr_slice(t->nonce), request->response_nonce))
        return (struct tc_status){0};
    if (request->response_nonce[0] != '\0') {
        tc_rstr_unref(t->nack);
        t->nack = request->error_detail ? tc_rstr_str(request->error_detail->message) : NULL;
        t->answered = true;
    }
    bool first = !t->asked;
    type_subscribe(t, request);
    t->asked = true;
    t->owed |= first;
    type_respond(a, t);
    return (struct tc_status){0};
}

struct tc_status tc_ads_on_message(struct tc_ads *a, struct tc_slice bytes)
{
    return tc_request_unpack(&envoy__service__discovery__v3__discovery_request__descriptor, bytes, ads_on_request, a);
}

/* Returns the state of a resource for CSDS; `sent`: the client has the resource. */
static enum tc_served_state resource_state(const struct ads_type *t, bool sent)
{
    if (!t->nonce)
        return TC_SERVED_ASKED;
    if (!sent)
        return type_is_full_state(tc_rstr_slice(t->type_url)) ? TC_SERVED_ABSENT : TC_SERVED_ASKED;
    if (!t->answered)
        return TC_SERVED_SENT;
    return t->nack ? TC_SERVED_NACKED : TC_SERVED_ACKED;
}

static void type_view_resource(const struct ads_type *t, struct tc_rstr *name, const struct tc_set_resource *has,
                               tc_served_fn fn, void *arg)
{
    struct tc_served served = {.type_url = tc_rstr_slice(t->type_url),
                               .name = tc_rstr_slice(name),
                               .state = resource_state(t, has != NULL),
                               .version = tc_rstr_slice(has ? t->version : NULL),
                               .value = has ? has->value : NULL,
                               .error = tc_rstr_slice(has ? t->nack : NULL)};
    fn(arg, &served);
}

void tc_ads_view(const struct tc_ads *a, tc_served_fn fn, void *arg)
{
    for (size_t i = 0; i < a->types.len; i++) {
        const struct ads_type *t = &a->types.data[i];
        for (size_t k = 0; t->wildcard && k < t->has.len; k++)
            type_view_resource(t, t->has.data[k].name, &t->has.data[k], fn, arg);
        for (size_t k = 0; k < t->names.len; k++) {
            const struct tc_set_resource *has = type_find_sent(t, t->names.data[k]);
            if (!t->wildcard || !has) /* the loop above has shown what the client has by a wildcard */
                type_view_resource(t, t->names.data[k], has, fn, arg);
        }
    }
}
