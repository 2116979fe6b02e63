#include "server/control_plane.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/yaml.h"

struct node_set {
    char *node_id; /* NULL: the default */
    struct tc_resource_set *set;
};

struct tc_control_plane {
    struct tc_server *server;
    TC_VEC(struct node_set) sets;
    struct tc_link streams;
    size_t n_streams;
    bool mute;
    tc_control_plane_request_fn on_request;
    void *arg;
};

struct stream {
    struct tc_link link;
    struct tc_control_plane *cp; /* NULL once the control plane is gone */
    struct tc_server_call *call;
    struct tc_ads *ads; /* one of the two */
    struct tc_delta *delta;
    bool ended;
};

static const struct tc_resource_set empty_set;

static struct node_set *find_set(const struct tc_control_plane *cp, struct tc_slice node_id, bool exact)
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

static const struct tc_resource_set *resources_of(void *arg, struct tc_slice node_id)
{
    struct stream *s = arg;
    const struct node_set *found = find_set(s->cp, node_id, false);
    if (s->cp->mute)
        return NULL;
    return found ? found->set : &empty_set;
}

static void send_response(void *arg, struct tc_slice response)
{
    struct stream *s = arg;
    if (!s->ended)
        tc_server_call_send(s->call, response);
}

static void on_ads_request(void *arg, const struct tc_ads_request *request)
{
    struct stream *s = arg;
    if (request->has_error)
        TC_LOG(TC_LOG_SERVER, TORC_LOG_WARN, "node %.*s rejects %.*s: %.*s", (int)request->node_id.len,
               request->node_id.data, (int)request->type_url.len, request->type_url.data, (int)request->error_text.len,
               request->error_text.data);
    if (s->cp->on_request)
        s->cp->on_request(s->cp->arg, request);
}

static const struct tc_ads_events ads_events = {send_response, on_ads_request, resources_of};

static void on_message(void *arg, struct tc_rstr *message)
{
    struct stream *s = arg;
    if (s->cp && !s->ended) {
        struct tc_status status = s->ads ? tc_ads_on_message(s->ads, tc_rstr_slice(message))
                                         : tc_delta_on_message(s->delta, tc_rstr_slice(message));
        if (tc_status_ok(&status)) {
            tc_server_call_read(s->call);
        } else {
            s->ended = true;
            tc_server_call_finish(s->call, status.code, tc_status_text(&status), NULL);
        }
        tc_status_fini(&status);
    }
    tc_rstr_unref(message);
}

static void on_half_close(void *arg)
{
    struct stream *s = arg;
    if (s->ended)
        return;
    s->ended = true;
    tc_server_call_finish(s->call, TORC_STATUS_OK, "", NULL);
}

static void stream_free(struct stream *s)
{
    if (s->cp)
        s->cp->n_streams--;
    tc_list_remove(&s->link);
    tc_ads_free(s->ads);
    tc_delta_free(s->delta);
    tc_free(s);
}

static void on_end(void *arg, const struct tc_status *why)
{
    (void)why;
    stream_free(arg);
}

static const struct tc_server_call_events call_events = {
    .on_message = on_message, .on_half_close = on_half_close, .on_end = on_end};

static struct stream *stream_new(struct tc_control_plane *cp, struct tc_server_call *call)
{
    struct stream *s = TC_NEW(struct stream);
    s->cp = cp;
    s->call = call;
    tc_list_init(&s->link);
    tc_list_append(&cp->streams, &s->link);
    cp->n_streams++;
    tc_server_call_set_events(call, &call_events, s);
    tc_server_call_read(call);
    return s;
}

static void on_stream(void *arg, struct tc_server_call *call)
{
    struct stream *s = stream_new(arg, call);
    s->ads = tc_ads_new(&ads_events, s);
}

static void on_delta_stream(void *arg, struct tc_server_call *call)
{
    struct stream *s = stream_new(arg, call);
    s->delta = tc_delta_new(&ads_events, s);
}

struct tc_control_plane *tc_control_plane_new(struct tc_server *server)
{
    struct tc_control_plane *cp = TC_NEW(struct tc_control_plane);
    cp->server = server;
    tc_list_init(&cp->streams);
    tc_server_add_method(server, "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
                         on_stream, cp);
    tc_server_add_method(server, "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
                         on_delta_stream, cp);
    return cp;
}

void tc_control_plane_free(struct tc_control_plane *cp)
{
    if (!cp)
        return;
    struct tc_link *link;
    while ((link = tc_list_pop(&cp->streams))) {
        struct stream *s = TC_CONTAINER_OF(link, struct stream, link);
        stream_free(s);
    }
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

static void push_all(struct tc_control_plane *cp)
{
    TC_LIST_FOREACH(link, &cp->streams)
    {
        struct stream *s = TC_CONTAINER_OF(link, struct stream, link);
        if (s->ended)
            continue;
        if (s->ads)
            tc_ads_push(s->ads);
        else
            tc_delta_push(s->delta);
    }
}

void tc_control_plane_set(struct tc_control_plane *cp, const char *node_id, struct tc_resource_set *set)
{
    struct node_set *s = find_set(cp, node_id ? tc_slice_str(node_id) : tc_slice_of(NULL, 0), true);
    if (!s) {
        s = tc_vec_push(&cp->sets);
        s->node_id = node_id ? tc_strdup(node_id) : NULL;
    }
    tc_resource_set_version(set, s->set);
    tc_resource_set_free(s->set);
    s->set = set;
    push_all(cp);
}

static struct tc_resource_set *copy_default(const struct tc_control_plane *cp)
{
    const struct node_set *s = find_set(cp, tc_slice_of(NULL, 0), true);
    return tc_resource_set_copy(s ? s->set : NULL);
}

int tc_control_plane_put(struct tc_control_plane *cp, const char *text, char **why)
{
    json_t *doc = tc_yaml_parse(tc_slice_str(text), why);
    if (!doc)
        return TORC_EPARSE;
    struct tc_resource_set *set = copy_default(cp);
    struct tc_faults faults;
    int rc = 0;
    tc_faults_init(&faults);
    tc_resource_set_add_json(set, doc, &faults);
    if (tc_faults_any(&faults)) {
        *why = tc_strdup(tc_faults_text(&faults));
        tc_resource_set_free(set);
        rc = TORC_EPARSE;
    } else {
        tc_control_plane_set(cp, NULL, set);
    }
    tc_faults_fini(&faults);
    json_decref(doc);
    return rc;
}

int tc_control_plane_remove(struct tc_control_plane *cp, const char *type_url, const char *name)
{
    struct tc_resource_set *set = copy_default(cp);
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

void tc_control_plane_send(struct tc_control_plane *cp, const char *type_url, const char *version,
                           const struct tc_slice *resources, size_t n)
{
    TC_LIST_FOREACH(link, &cp->streams)
    {
        struct stream *s = TC_CONTAINER_OF(link, struct stream, link);
        if (!s->ended && s->ads)
            tc_ads_send(s->ads, tc_slice_str(type_url), tc_slice_str(version), resources, n);
    }
}

void tc_control_plane_send_delta(struct tc_control_plane *cp, const char *type_url, const char *system_version,
                                 const struct tc_delta_resource *resources, size_t n, const struct tc_slice *removed,
                                 size_t n_removed)
{
    TC_LIST_FOREACH(link, &cp->streams)
    {
        struct stream *s = TC_CONTAINER_OF(link, struct stream, link);
        if (!s->ended && s->delta)
            tc_delta_send(s->delta, tc_slice_str(type_url), tc_slice_str(system_version), resources, n, removed,
                          n_removed);
    }
}

void tc_control_plane_view(const struct tc_control_plane *cp, const struct tc_control_plane_view *view, void *arg)
{
    TC_LIST_FOREACH(link, &cp->streams)
    {
        const struct stream *s = TC_CONTAINER_OF(link, struct stream, link);
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
    {
        struct stream *s = TC_CONTAINER_OF(link, struct stream, link);
        if (s->ended)
            continue;
        s->ended = true;
        tc_server_call_finish(s->call, code, text, NULL);
    }
}

void tc_control_plane_set_mute(struct tc_control_plane *cp, bool mute)
{
    cp->mute = mute;
    push_all(cp);
}
