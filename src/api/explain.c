/* The text of torc_result_explain (`torc call --explain`), from the traces that the config selector, the filters and
 * the pick left in the call.
 *
 * For a call that was sent, the text says where it went. For a dry call (torc_explain) it says where the call would go:
 * the outcome of its pick, what the call would wait for, and the channel's tree of LB policies. */
#include "api/explain.h"

#include "base/json.h"
#include "base/mem.h"
#include "channel/explain.h"
#include "lb/describe.h"
#include "lb/session_affinity.h"

/* Returns a new JSON string; "" if the text is not UTF-8. */
static json_t *text_of(struct tc_slice s)
{
    json_t *v = json_stringn(s.data ? s.data : "", s.len);
    return v ? v : json_string("");
}

/* The session affinity of the RPC (A55): its cookie, whether the pick followed the cookie, if not why, and the
 * addresses of the picked endpoint. */
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

/* The endpoints that the picker passed over, in its order, and why. */
static json_t *walked_of(const struct tc_pick_trace *t)
{
    json_t *walked = json_array();
    for (size_t i = 0; i < t->n_walked; i++) {
        json_t *step = json_object();
        json_object_set_new(step, "endpoint", text_of(t->walked[i].endpoint));
        json_object_set_new(step, "reason", text_of(t->walked[i].reason));
        if (t->walked[i].error.len)
            json_object_set_new(step, "error", text_of(t->walked[i].error));
        json_array_append_new(walked, step);
    }
    return walked;
}

static void add_filters(json_t *o, const struct tc_filter_note *note)
{
    if (!note)
        return;
    json_t *filters = json_array();
    for (; note; note = note->next) {
        json_t *effect = json_object();
        json_object_set_new(effect, "filter", text_of(note->filter));
        json_object_set_new(effect, "effect", text_of(note->text));
        json_array_append_new(filters, effect);
    }
    json_object_set_new(o, "filters", filters);
}

static void add_route(json_t *o, const struct tc_call *c)
{
    const struct tc_pick_trace *t = &c->attempt.trace;
    json_object_set_new(o, "route", text_of(c->config.route));
    struct tc_slice cluster = t->cluster.len ? t->cluster : c->config.cluster;
    json_object_set_new(o, "cluster", text_of(cluster));
    if (t->leaf.len && !tc_slice_eq(t->leaf, cluster))
        json_object_set_new(o, "leaf", text_of(t->leaf));
    if (t->has_hash || c->config.has_hash) {
        char *hash = tc_asprintf("0x%016llx", (unsigned long long)(t->has_hash ? t->hash : c->config.hash));
        json_object_set_new(o, "hash", json_string(hash));
        tc_free(hash);
    }
}

static struct tc_slice endpoint_of(const struct tc_call *c)
{
    return c->attempt.trace.endpoint.len ? c->attempt.trace.endpoint : tc_rstr_slice(c->attempt.peer);
}

static void add_pick(json_t *o, const struct tc_call *c)
{
    const struct tc_pick_trace *t = &c->attempt.trace;
    json_object_set_new(o, "policy", text_of(t->policy));
    if (t->has_ring_index)
        json_object_set_new(o, "ring_index", json_integer(t->ring_index));
    json_object_set_new(o, "endpoint", text_of(endpoint_of(c)));
    if (t->authority.len)
        json_object_set_new(o, "authority", text_of(t->authority));
    if (t->security.len)
        json_object_set_new(o, "security", text_of(t->security));
    json_object_set_new(o, "walked", walked_of(t));
}

/* A dry call's outcome. For "wait" without an endpoint, also the addresses that the call would wait for, from
 * `channel`, the text of tc_channel_describe. */
static void add_outcome(json_t *o, const struct tc_call *c, const char *channel)
{
    const char *outcome = c->attempt.outcome ? c->attempt.outcome : "fail";
    json_object_set_new(o, "outcome", json_string(outcome));
    if (strcmp(outcome, "wait") == 0 && !endpoint_of(c).len)
        json_object_set_new(o, "waits_for", tc_call_awaited(c, channel));
}

const char *tc_call_explain(struct tc_call *c)
{
    struct tc_describe channel = {0};
    json_t *o = json_object();
    add_route(o, c);
    add_pick(o, c);
    add_filters(o, tc_call_filters_notes(c->filters));
    if (c->config.session)
        json_object_set_new(o, "session", session_of(c->config.session));
    if (c->asked.dry) {
        tc_channel_describe(c->channel, NULL, &channel);
        add_outcome(o, c, tc_buf_cstr(&channel.out));
    }
    char *text = tc_json_text(o, false);
    json_decref(o);
    struct tc_buf all = {0};
    tc_buf_append_str(&all, text);
    if (c->asked.dry) {
        all.len--; /* the closing brace: the channel's text is already JSON and is the last member */
        tc_buf_append_str(&all, ",\"channel\":");
        tc_buf_append_slice(&all, tc_buf_slice(&channel.out));
        tc_buf_append_char(&all, '}');
    }
    const char *out = tc_arena_dup(&c->arena, tc_buf_slice(&all));
    tc_buf_fini(&all);
    tc_buf_fini(&channel.out);
    tc_free(text);
    return out;
}
