/* The embedded control plane: ADS streams on one side, resource sets by node on the other.
 *
 * A stream belongs to a call of the server. Its protocol is in ads.c or delta.c, which call back here for the set of
 * its node, to report requests, and to send. A new set gets its versions from a comparison with the set that it
 * replaces, and is then pushed to every stream; each stream sends a response for each type in which its client is not
 * up to date, once the client has answered the last response of the type. While more than MAX_QUEUED_BYTES of responses
 * wait for a client to take them, no further request of the stream is asked for (stream_read).
 *
 * The control plane owns the sets and the streams. A stream lives as long as its call. The control plane is freed after
 * the server, with the streams that are left. Everything runs on the thread of the server's loop. */
#include "controlplane/control_plane.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "controlplane/resource_load.h"
#include "controlplane/yaml.h"

struct node_set {
    char *node_id; /* NULL: for nodes without a set of their own */
    struct tc_resource_set *set;
};

struct tc_control_plane {
    TC_VEC(struct node_set) sets;
    struct tc_link streams; /* of struct ads_stream, the oldest first */
    size_t n_streams;       /* in `streams` */
    uint64_t n_opened;      /* streams so far */
    bool one_stream;
    tc_control_plane_request_fn on_request; /* NULL: no observer */
    void *arg;                              /* of on_request */
};

/* While responses that cost more (tc_server_call_queued_bytes) wait for a client to take them, no further request of
 * its stream is asked for. */
enum { MAX_QUEUED_BYTES = 65536 };

struct ads_stream {
    struct tc_link link;
    struct tc_control_plane *cp; /* borrowed */
    uint64_t id;
    struct tc_server_call *call; /* borrowed */
    struct tc_ads *ads;          /* one of `ads` and `delta`, by the method; the other is NULL */
    struct tc_delta *delta;
    bool ended;  /* the call got its status */
    bool paused; /* the next request is asked for when flow control has let through all responses */
};

static const struct tc_resource_set empty_set;

/* Returns the node's own set. If the node has none, returns NULL with `exact`, else the set for all other nodes. A
 * node_id without data asks for the set for all other nodes. Returns NULL if the set does not exist. Valid until a set
 * is added. */
static struct node_set *node_set_find(const struct tc_control_plane *cp, struct tc_slice node_id, bool exact)
{
    struct node_set *fallback = NULL;
    for (size_t i = 0; i < cp->sets.len; i++) {
        struct node_set *s = &cp->sets.data[i];
        if (!s->node_id)
            fallback = s;
        else if (tc_slice_eq_str(node_id, s->node_id))
            return s;
    }
    return exact && node_id.data ? NULL : fallback;
}

/* tc_ads_events.resources: a node for which there is no set has an empty one. */
static const struct tc_resource_set *stream_resources(void *arg, struct tc_slice node_id)
{
    struct ads_stream *s = arg;
    const struct node_set *found = node_set_find(s->cp, node_id, false);
    return found ? found->set : &empty_set;
}

static void stream_send(void *arg, struct tc_slice response)
{
    struct ads_stream *s = arg;
    if (!s->ended)
        tc_server_call_send(s->call, response);
}

static void stream_on_request(void *arg, const struct tc_ads_request *request)
{
    struct ads_stream *s = arg;
    if (request->has_error)
        TC_LOG(TC_LOG_SERVER, TORC_LOG_WARN, "node %.*s: rejects %.*s: %.*s", (int)request->node_id.len,
               request->node_id.data, (int)request->type_url.len, request->type_url.data, (int)request->error_text.len,
               request->error_text.data);
    if (s->cp->on_request) {
        struct tc_ads_request numbered = *request;
        numbered.stream = s->id;
        s->cp->on_request(s->cp->arg, &numbered);
    }
}

static const struct tc_ads_events ads_events = {stream_send, stream_on_request, stream_resources};

/* Asks for the next request; or pauses, if too many bytes of responses wait, until stream_on_written. */
static void stream_read(struct ads_stream *s)
{
    s->paused = tc_server_call_queued_bytes(s->call) > MAX_QUEUED_BYTES;
    if (!s->paused)
        tc_server_call_read(s->call);
}

static void stream_push(struct ads_stream *s)
{
    if (s->ended)
        return;
    if (s->ads)
        tc_ads_push(s->ads);
    else
        tc_delta_push(s->delta);
}

static void stream_end(struct ads_stream *s, int code, const char *text)
{
    if (s->ended)
        return;
    s->ended = true;
    tc_server_call_finish(s->call, code, text, NULL);
}

static void stream_on_message(void *arg, struct tc_rstr *message)
{
    struct ads_stream *s = arg;
    if (!s->ended) {
        struct tc_status status = s->ads ? tc_ads_on_message(s->ads, tc_rstr_slice(message))
                                         : tc_delta_on_message(s->delta, tc_rstr_slice(message));
        if (tc_status_ok(&status))
            stream_read(s);
        else
            stream_end(s, status.code, tc_status_text(&status));
        tc_status_fini(&status);
    }
    tc_rstr_unref(message);
}

static void stream_on_written(void *arg)
{
    struct ads_stream *s = arg;
    if (s->paused)
        stream_read(s);
}

static void stream_on_half_close(void *arg)
{
    stream_end(arg, TORC_STATUS_OK, "");
}

static void stream_free(struct ads_stream *s)
{
    s->cp->n_streams--;
    tc_list_remove(&s->link);
    tc_ads_free(s->ads);
    tc_delta_free(s->delta);
    tc_free(s);
}

static void stream_on_end(void *arg, const struct tc_status *why TC_UNUSED)
{
    stream_free(arg);
}

static const struct tc_server_call_events call_events = {.on_message = stream_on_message,
                                                         .on_half_close = stream_on_half_close,
                                                         .on_written = stream_on_written,
                                                         .on_end = stream_on_end};

static struct ads_stream *stream_new(struct tc_control_plane *cp, struct tc_server_call *call)
{
    struct ads_stream *s = TC_NEW(struct ads_stream);
    if (cp->one_stream)
        tc_control_plane_end_streams(cp, TORC_STATUS_OK, "");
    s->cp = cp;
    s->call = call;
    tc_list_append(&cp->streams, &s->link);
    cp->n_streams++;
    s->id = ++cp->n_opened;
    tc_server_call_set_events(call, &call_events, s);
    tc_server_call_read(call);
    return s;
}

static void control_plane_on_stream(void *arg, struct tc_server_call *call)
{
    struct ads_stream *s = stream_new(arg, call);
    s->ads = tc_ads_new(&ads_events, s);
}

static void control_plane_on_delta_stream(void *arg, struct tc_server_call *call)
{
    struct ads_stream *s = stream_new(arg, call);
    s->delta = tc_delta_new(&ads_events, s);
}

struct tc_control_plane *tc_control_plane_new(struct tc_server *server)
{
    struct tc_control_plane *cp = TC_NEW(struct tc_control_plane);
    tc_list_init(&cp->streams);
    tc_server_add_method(server, "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
                         control_plane_on_stream, cp);
    tc_server_add_method(server, "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
                         control_plane_on_delta_stream, cp);
    return cp;
}

void tc_control_plane_free(struct tc_control_plane *cp)
{
    if (!cp)
        return;
    struct tc_link *link;
    while ((link = tc_list_pop(&cp->streams)))
        stream_free(TC_CONTAINER_OF(link, struct ads_stream, link));
    for (size_t i = 0; i < cp->sets.len; i++) {
        tc_free(cp->sets.data[i].node_id);
        tc_resource_set_free(cp->sets.data[i].set);
    }
    tc_vec_fini(&cp->sets);
    tc_free(cp);
}

void tc_control_plane_observe(struct tc_control_plane *cp, tc_control_plane_request_fn fn, void *arg)
{
    cp->on_request = fn;
    cp->arg = arg;
}

void tc_control_plane_set(struct tc_control_plane *cp, const char *node_id, struct tc_resource_set *set)
{
    struct node_set *s = node_set_find(cp, node_id ? tc_slice_str(node_id) : tc_slice_of(NULL, 0), true);
    if (!s) {
        s = tc_vec_push(&cp->sets);
        s->node_id = node_id ? tc_strdup(node_id) : NULL;
    }
    tc_resource_set_version(set, s->set);
    tc_resource_set_free(s->set);
    s->set = set;
    TC_LIST_FOREACH(link, &cp->streams)
    stream_push(TC_CONTAINER_OF(link, struct ads_stream, link));
}

/* Returns a copy of the set for all other nodes, which the caller owns. Changes are made in a copy, because versions
 * come from a comparison of the old set with the new one. */
static struct tc_resource_set *default_set_copy(const struct tc_control_plane *cp)
{
    const struct node_set *s = node_set_find(cp, tc_slice_of(NULL, 0), true);
    return tc_resource_set_copy(s ? s->set : NULL);
}

int tc_control_plane_put(struct tc_control_plane *cp, const char *text, char **why)
{
    json_t *doc = tc_yaml_parse(tc_slice_str(text), why);
    if (!doc)
        return TORC_EPARSE;
    struct tc_resource_set *set = default_set_copy(cp);
    struct tc_validation_errors errors = {0};
    int rc = 0;
    tc_resource_set_add_json(set, doc, &errors);
    if (tc_validation_any(&errors)) {
        *why = tc_strdup(tc_validation_text(&errors));
        tc_resource_set_free(set);
        rc = TORC_EPARSE;
    } else {
        tc_control_plane_set(cp, NULL, set);
    }
    tc_validation_fini(&errors);
    json_decref(doc);
    return rc;
}

int tc_control_plane_remove(struct tc_control_plane *cp, const char *type_url, const char *name)
{
    struct tc_resource_set *set = default_set_copy(cp);
    if (!tc_resource_set_remove(set, tc_slice_str(type_url), tc_slice_str(name))) {
        tc_resource_set_free(set);
        return TORC_ENOTFOUND;
    }
    tc_control_plane_set(cp, NULL, set);
    return 0;
}

size_t tc_control_plane_streams(const struct tc_control_plane *cp)
{
    return cp->n_streams;
}

uint64_t tc_control_plane_opened(const struct tc_control_plane *cp)
{
    return cp->n_opened;
}

void tc_control_plane_set_one_stream(struct tc_control_plane *cp, bool one)
{
    cp->one_stream = one;
}

void tc_control_plane_send(struct tc_control_plane *cp, const char *type_url, const char *version,
                           const struct tc_slice *resources, size_t n)
{
    TC_LIST_FOREACH(link, &cp->streams)
    {
        struct ads_stream *s = TC_CONTAINER_OF(link, struct ads_stream, link);
        if (!s->ended && s->ads)
            tc_ads_send(s->ads, tc_slice_str(type_url), tc_slice_str(version), resources, n);
    }
}

void tc_control_plane_view(const struct tc_control_plane *cp, const struct tc_control_plane_view *view, void *arg)
{
    TC_LIST_FOREACH(link, &cp->streams)
    {
        const struct ads_stream *s = TC_CONTAINER_OF(link, struct ads_stream, link);
        struct tc_slice node = s->ads ? tc_ads_node(s->ads) : tc_delta_node(s->delta);
        if (s->ended || !node.data)
            continue;
        view->on_client(arg, node);
        if (s->ads)
            tc_ads_view(s->ads, view->on_served, arg);
        else
            tc_delta_view(s->delta, view->on_served, arg);
    }
}

void tc_control_plane_end_streams(struct tc_control_plane *cp, int code, const char *text)
{
    TC_LIST_FOREACH(link, &cp->streams)
    stream_end(TC_CONTAINER_OF(link, struct ads_stream, link), code, text);
}
