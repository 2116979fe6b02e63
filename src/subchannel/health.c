/* Health checks of a channel's subchannels.
 *
 * A watch owns a struct tc_health_stream while its channel checks a service. The health stream watches a side stream
 * whose key is the service's name, and stores the health that follows from the server's last answer. When the name
 * changes, a task goes through all watches and starts, replaces or ends their health streams.
 *
 * A callback may end any watch. So the task moves the watches to a list of their own (`due`) first: a watch that ends
 * leaves whichever list it is on. The channel's tc_conn_config owns the checks; subchannels embed the watches. Loop
 * thread only, except the making and the freeing of checks. */
#include "subchannel/health.h"

#include "base/log.h"
#include "base/mem.h"
#include "proto/wire.h"

enum { MAX_RESPONSE = 1 << 10, STATUS_FIELD = 1, SERVING = 1 };

struct tc_health_checks {
    struct tc_loop *loop;
    struct tc_rstr *service; /* a reference; NULL: none is checked */
    struct tc_link all, due; /* struct tc_health_watch; due: on_changed has yet to go through it */
    struct tc_task changed;
};

struct tc_health_stream {
    struct tc_side_watch side;
    struct tc_health_watch *owner;
    struct tc_rstr *service; /* a reference; side.key is its text */
    struct tc_status health;
    /* owner->streams->uses at the server's last answer, or at the watch's start if there was none. A health that is set
     * without an answer leaves `uses` as it was. Tells transports apart. */
    uint64_t uses;
};

static struct tc_health_stream *stream_of(const struct tc_side_watch *side)
{
    return TC_CONTAINER_OF((struct tc_side_watch *)(uintptr_t)side, struct tc_health_stream, side);
}

/* HealthCheckRequest {service = 1}. All watches of a stream have its key. */
static void append_request(const struct tc_link *watches, struct tc_buf *out)
{
    struct tc_slice service = tc_side_watch_of(watches->next)->key;
    if (service.len)
        tc_wire_append(out, 1, service);
}

static const struct tc_side_kind kind = {
    .path = "/grpc.health.v1.Health/Watch",
    .name = "health checks",
    .max_message_bytes = MAX_RESPONSE,
    .request = append_request,
};

/* Takes over the status. The stream may be freed afterwards. */
static void stream_set_health(struct tc_health_stream *s, struct tc_status health)
{
    const struct tc_health_watch *w = s->owner;
    s->uses = w->streams->uses;
    bool told = tc_status_eq(&health, &s->health);
    tc_status_set(&s->health, tc_status_ref(&health));
    if (!told)
        w->on_health(w->arg, &health);
    tc_status_fini(&health);
}

/* Sets a health of UNAVAILABLE with the text `what`, then `detail`. The stream may be freed afterwards. */
static void stream_set_unhealthy(struct tc_health_stream *s, const char *what, const char *detail)
{
    stream_set_health(s, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB,
                                        "health check of \"" TC_SHOWN "\": %s" TC_SHOWN, TC_SHOW(s->service->data),
                                        what, TC_SHOW(detail)));
}

/* Parses HealthCheckResponse {status = 1}; the last value counts, and *status is 0 without one. Returns false if the
 * message is malformed. */
static bool response_parse(struct tc_slice message, uint64_t *status)
{
    struct tc_wire_field f;
    *status = 0;
    while (message.len) {
        if (!tc_wire_next(&message, &f))
            return false;
        if (f.number == STATUS_FIELD && f.is_varint)
            *status = f.varint;
    }
    return true;
}

static void on_message(struct tc_side_watch *side, struct tc_slice message)
{
    static const char *const names[] = {"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"};
    struct tc_health_stream *s = stream_of(side);
    uint64_t status;
    if (!response_parse(message, &status))
        stream_set_unhealthy(s, "the server's answer is malformed", "");
    else if (status == SERVING)
        stream_set_health(s, (struct tc_status){0});
    else
        stream_set_unhealthy(s, "the server says ",
                             status < TC_ARRAY_LEN(names) ? names[status] : "what Torc does not know");
}

static void on_end(struct tc_side_watch *side, const struct tc_status *status)
{
    struct tc_health_stream *s = stream_of(side);
    if (status->code == TORC_STATUS_UNIMPLEMENTED)
        stream_set_health(s, (struct tc_status){0});
    else
        stream_set_unhealthy(s, "the stream ended: ", tc_status_ok(status) ? "OK" : tc_status_text(status));
}

static void stream_free(struct tc_health_stream *s)
{
    if (!s)
        return;
    tc_side_watch_end(&s->side);
    tc_rstr_unref(s->service);
    tc_status_fini(&s->health);
    tc_free(s);
}

/* Starts checking the service. Takes over `health`, which counts until the server's first answer; `uses` tells the
 * transport that `health` is about. */
static void watch_start_stream(struct tc_health_watch *w, struct tc_rstr *service, struct tc_status health,
                               uint64_t uses)
{
    struct tc_health_stream *s = TC_NEW(struct tc_health_stream);
    s->owner = w;
    s->service = tc_rstr_ref(service);
    s->health = health;
    s->uses = uses;
    s->side = (struct tc_side_watch){
        .kind = &kind, .key = tc_rstr_slice(s->service), .on_message = on_message, .on_end = on_end};
    w->stream = s;
    tc_side_streams_watch(w->streams, &s->side);
}

/* Checks the service (NULL: none) from now on. The watch may have ended afterwards. */
static void watch_set_service(struct tc_health_watch *w, struct tc_rstr *service)
{
    static const struct tc_status pending = {.code = TC_HEALTH_PENDING}, fit;
    struct tc_health_stream *old = w->stream;
    bool was_fit = !old || tc_status_ok(&old->health);
    if (old ? tc_rstr_eq(old->service, service) && service : !service)
        return;
    w->stream = NULL;
    if (service)
        watch_start_stream(w, service, was_fit ? fit : pending, old ? old->uses : w->uses);
    stream_free(old);
    if (!was_fit)
        w->on_health(w->arg, service ? &pending : &fit);
}

static void on_changed(struct tc_task *task)
{
    struct tc_health_checks *checks = TC_CONTAINER_OF(task, struct tc_health_checks, changed);
    struct tc_link *link;
    tc_list_splice(&checks->due, &checks->all);
    while ((link = tc_list_pop(&checks->due))) {
        tc_list_append(&checks->all, link);
        watch_set_service(TC_CONTAINER_OF(link, struct tc_health_watch, link), checks->service);
    }
}

struct tc_health_checks *tc_health_checks_new(struct tc_loop *loop)
{
    struct tc_health_checks *checks = TC_NEW(struct tc_health_checks);
    checks->loop = loop;
    tc_list_init(&checks->all);
    tc_list_init(&checks->due);
    tc_task_init(&checks->changed, on_changed);
    return checks;
}

void tc_health_checks_free(struct tc_health_checks *checks)
{
    if (!checks)
        return;
    tc_rstr_unref(checks->service);
    tc_free(checks);
}

void tc_health_checks_set(struct tc_health_checks *checks, struct tc_rstr *service)
{
    if (!checks || (checks->service && service ? tc_rstr_eq(checks->service, service) : checks->service == service))
        return;
    tc_rstr_unref(checks->service);
    checks->service = tc_rstr_ref(service);
    tc_loop_defer(checks->loop, &checks->changed);
}

void tc_health_checks_end(struct tc_health_checks *checks)
{
    if (checks)
        tc_task_cancel(&checks->changed);
}

const struct tc_status *tc_health_watch_start(struct tc_health_watch *w, struct tc_health_checks *checks,
                                              struct tc_side_streams *streams, tc_subchannel_health_fn on_health,
                                              void *arg)
{
    static const struct tc_status fit;
    w->on_health = on_health;
    w->arg = arg;
    w->streams = streams;
    w->uses = streams->uses;
    if (!checks)
        return &fit;
    if (!w->link.next)
        tc_list_append(&checks->all, &w->link);
    if (checks->service && !w->stream)
        watch_start_stream(w, checks->service, (struct tc_status){.code = TC_HEALTH_PENDING}, w->uses);
    /* A105: the subchannel has connected again by itself, and the server has not answered on the new transport. */
    if (w->stream && w->stream->uses != streams->uses)
        tc_status_set(&w->stream->health, (struct tc_status){.code = TC_HEALTH_PENDING});
    return w->stream ? &w->stream->health : &fit;
}

void tc_health_watch_end(struct tc_health_watch *w)
{
    stream_free(w->stream);
    w->stream = NULL;
    if (w->link.next)
        tc_list_remove(&w->link);
    w->link.next = NULL;
}

bool tc_health_watch_pending(const struct tc_health_watch *w)
{
    return w->stream && w->stream->health.code == TC_HEALTH_PENDING;
}
