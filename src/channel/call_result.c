/* Outcomes of calls in the public form, messages, and what explains a call. */
#include <pthread.h>

#include "base/json.h"
#include "base/mem.h"
#include "channel/call_api.h"
#include "channel/metadata.h"
#include "lb/describe.h"
#include "lb/session.h"

const void *torc_message_data(const torc_message *message)
{
    return message ? ((const struct tc_rstr *)message)->data : NULL;
}

size_t torc_message_size(const torc_message *message)
{
    return message ? ((const struct tc_rstr *)message)->len : 0;
}

torc_message *torc_message_ref(torc_message *message)
{
    return (torc_message *)tc_rstr_ref((struct tc_rstr *)message);
}

void torc_message_unref(torc_message *message)
{
    tc_rstr_unref((struct tc_rstr *)message);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct tc_rstr *empty;

static void make_empty(void)
{
    empty = tc_rstr_str("");
}

/* Strings of a result that is owned are the bytes of shared strings, so that the usual outcome allocates none. */
static char *shared_text(struct tc_rstr *s)
{
    if (s)
        return tc_rstr_ref(s)->data;
    pthread_once(&once, make_empty);
    return tc_rstr_ref(empty)->data;
}

static void drop_text(char *text)
{
    if (text)
        tc_rstr_unref(TC_CONTAINER_OF(text, struct tc_rstr, data));
}

void tc_result_own(struct torc_result *r, torc_call *call, const struct tc_call_end *end, struct tc_rstr *response)
{
    *r = (struct torc_result){
        .code = end->status.code,
        .message = shared_text(end->status.text),
        .response = (torc_message *)response,
        .peer = shared_text(end->peer),
        .attempts = end->attempts,
    };
    tc_metadata_copy_pair(tc_loop_blocks(call->channel->loop), end->headers, end->trailers, &r->headers, &r->trailers);
    if (call->core.explain) {
        struct tc_rstr *text = tc_rstr_str(tc_call_explain(&call->core));
        r->explain_json = text->data;
    }
}

void torc_result_fini(struct torc_result *r)
{
    if (!r)
        return;
    drop_text(r->message);
    drop_text(r->peer);
    drop_text(r->explain_json);
    torc_message_unref(r->response);
    /* The first may hold the second. */
    torc_metadata_free(r->trailers);
    torc_metadata_free(r->headers);
    *r = (struct torc_result){0};
}

static char *borrowed_text(const struct tc_rstr *s)
{
    static char none[1];
    return s ? (char *)(uintptr_t)s->data : none;
}

void tc_result_borrow(struct torc_result *r, torc_call *call, const struct tc_call_end *end, struct tc_rstr *response)
{
    *r = (struct torc_result){
        .code = end->status.code,
        .message = borrowed_text(end->status.text),
        .response = (torc_message *)response,
        .headers = tc_metadata_in_arena(&call->core.arena, end->headers),
        .trailers = tc_metadata_in_arena(&call->core.arena, end->trailers),
        .peer = borrowed_text(end->peer),
        .attempts = end->attempts,
        .explain_json = call->core.explain ? (char *)(uintptr_t)tc_call_explain(&call->core) : NULL,
    };
}

static json_t *text_of(struct tc_slice s)
{
    json_t *v = json_stringn(s.data ? s.data : "", s.len);
    return v ? v : json_string("");
}

/* The RPC's part in a session: what its cookie says, whether the pick went by it, and whose addresses come of it. */
static json_t *session_of(const struct tc_session *s)
{
    json_t *o = json_object();
    if (s->has_cookie) {
        json_object_set_new(o, "cookie", text_of(s->cookie));
        json_object_set_new(o, "followed", json_boolean(s->picked.len && !s->passed_over));
    }
    if (s->passed_over || (s->has_cookie && !s->picked.len))
        json_object_set_new(o, "reason", json_string(s->passed_over ? s->passed_over : "no connection yet"));
    json_object_set_new(o, "endpoint", text_of(s->picked));
    return o;
}

const char *tc_call_explain(struct tc_call *c)
{
    const struct tc_pick_trace *t = &c->trace;
    bool has_hash = t->has_hash || c->config.has_hash;
    json_t *walked = json_array();
    for (size_t i = 0; i < t->n_walked; i++) {
        json_t *step = json_object();
        json_object_set_new(step, "endpoint", text_of(t->walked[i].endpoint));
        json_object_set_new(step, "reason", text_of(t->walked[i].reason));
        if (t->walked[i].error.len)
            json_object_set_new(step, "error", text_of(t->walked[i].error));
        json_array_append_new(walked, step);
    }
    json_t *filters = json_array();
    for (const struct tc_filter_note *n = tc_call_filters_notes(c); n; n = n->next) {
        json_t *effect = json_object();
        json_object_set_new(effect, "filter", text_of(n->filter));
        json_object_set_new(effect, "effect", text_of(n->text));
        json_array_append_new(filters, effect);
    }
    json_t *o = json_object();
    json_object_set_new(o, "route", text_of(c->config.route));
    struct tc_slice cluster = t->cluster.len ? t->cluster : c->config.cluster;
    json_object_set_new(o, "cluster", text_of(cluster));
    if (t->leaf.len && !tc_slice_eq(t->leaf, cluster))
        json_object_set_new(o, "leaf", text_of(t->leaf));
    if (has_hash) {
        char *hash = tc_asprintf("0x%016llx", (unsigned long long)(t->has_hash ? t->hash : c->config.hash));
        json_object_set_new(o, "hash", json_string(hash));
        tc_free(hash);
    }
    json_object_set_new(o, "policy", text_of(t->policy));
    if (t->has_ring_index)
        json_object_set_new(o, "ring_index", json_integer(t->ring_index));
    struct tc_slice endpoint = t->endpoint.len ? t->endpoint : tc_rstr_slice(c->peer);
    json_object_set_new(o, "endpoint", text_of(endpoint));
    if (t->authority.len)
        json_object_set_new(o, "authority", text_of(t->authority));
    json_object_set_new(o, "walked", walked);
    if (json_array_size(filters))
        json_object_set(o, "filters", filters);
    json_decref(filters);
    if (c->config.session)
        json_object_set_new(o, "session", session_of(c->config.session));
    struct tc_describe d = {0};
    if (c->dry) {
        const char *outcome = c->outcome ? c->outcome : "fail";
        tc_channel_describe(c->channel, NULL, &d);
        json_object_set_new(o, "outcome", json_string(outcome));
        if (strcmp(outcome, "wait") == 0 && !endpoint.len)
            json_object_set_new(o, "waits_for", tc_call_awaited(c, tc_buf_cstr(&d.out)));
    }
    char *text = tc_json_text(o, false);
    json_decref(o);
    struct tc_buf all = {0};
    tc_buf_append_str(&all, text);
    if (c->dry) {
        all.len--; /* one member more */
        tc_buf_append_str(&all, ",\"channel\":");
        tc_buf_append_slice(&all, tc_buf_slice(&d.out));
        tc_buf_append_char(&all, '}');
    }
    const char *out = tc_arena_dup(&c->arena, tc_buf_slice(&all));
    tc_buf_fini(&all);
    tc_buf_fini(&d.out);
    tc_free(text);
    return out;
}
