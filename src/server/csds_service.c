/* The client status discovery service (CSDS, A40): many requests share one answer.
 *
 * Requests wait on one of two lists (with resource contents, without). csds_begin_next has an answer made for one of
 * the lists, unless one of these forbids it:
 *
 *   making           An answer is being made.
 *   rest_until_ms    The rest after the last answer is not over: a rest is REST_TIMES as long as its answer took, at
 *                    most MAX_REST_MS.
 *   csds_has_room    The answers that clients have not read yet leave no room in max_bytes for an answer as large as
 *                    the last one of its kind.
 *
 * csds_begin_next runs again whenever one of these may have ended. It marks the requests of that list as `in_time`;
 * tc_csds_service_made sends the answer to the marked ones, and later requests wait for the next answer, which shows
 * what happened since. An answer is freed when its last call has sent it or is over, at the latest by
 * tc_csds_service_end. All functions run on one thread, the loop's. */
#include "server/csds_service.h"

#include "base/mem.h"
#include "base/status.h"
#include "pb/envoy/service/status/v3/csds.pb-c.h"
#include "proto/unpack.h"

enum { STALLED_MS = 5000, REST_TIMES = 20, MAX_REST_MS = 1000 };

/* A response that calls send. Owned by its calls: freed when `calls` becomes empty, or with the service. */
struct csds_answer {
    struct tc_link link;
    struct tc_link calls; /* the calls that have not written the response yet */
    struct tc_rstr *response;
    uint64_t made_ms;
};

static void csds_begin_next(struct tc_csds_service *svc);

/* --- answers --- */

void tc_csds_call_release(struct tc_csds_call *c)
{
    struct tc_csds_service *svc = c->service;
    struct csds_answer *a = c->answer;
    tc_list_remove(&c->link);
    c->answer = NULL;
    if (!a || !tc_list_empty(&a->calls))
        return;
    svc->answer_bytes -= a->response->len;
    tc_list_remove(&a->link);
    tc_rstr_unref(a->response);
    tc_free(a);
    tc_loop_defer(svc->loop, &svc->begin);
}

static bool csds_fits(const struct tc_csds_service *svc, size_t bytes)
{
    return tc_list_empty(&svc->answers) || svc->answer_bytes + bytes <= tc_csds_service_max_bytes(svc);
}

/* Returns false if max_bytes has no room for another answer of that size. Then the timer, or the end of another answer,
 * runs csds_begin_next again. Resets the calls whose client has not taken the oldest answer for STALLED_MS: a stalled
 * client must not keep all others from the service. */
static bool csds_has_room(struct tc_csds_service *svc, size_t bytes)
{
    if (csds_fits(svc, bytes))
        return true;
    const struct csds_answer *oldest = TC_CONTAINER_OF(svc->answers.next, struct csds_answer, link);
    uint64_t waited_ms = tc_loop_now_ms(svc->loop) - oldest->made_ms;
    if (waited_ms < STALLED_MS) {
        tc_timer_start(&svc->timer, STALLED_MS - waited_ms);
        return false;
    }
    TC_LIST_FOREACH(it, &oldest->calls)
    {
        struct tc_csds_call *c = TC_CONTAINER_OF(it, struct tc_csds_call, link);
        c->ops->reset(c);
    }
    return false; /* these calls end later, from the loop; tc_csds_call_release then runs csds_begin_next again */
}

static void csds_begin_next(struct tc_csds_service *svc)
{
    if (svc->making || (tc_list_empty(&svc->waiting[0]) && tc_list_empty(&svc->waiting[1])))
        return;
    uint64_t now_ms = tc_loop_now_ms(svc->loop);
    if (now_ms < svc->rest_until_ms) {
        tc_timer_start(&svc->timer, svc->rest_until_ms - now_ms);
        return;
    }
    /* The two kinds take turns. A kind for which there is no room keeps its turn. */
    bool without = !svc->without_contents;
    if (tc_list_empty(&svc->waiting[without]))
        without = !without;
    if (!csds_has_room(svc, svc->last_bytes[without]))
        return;
    TC_LIST_FOREACH(it, &svc->waiting[without])
    TC_CONTAINER_OF(it, struct tc_csds_call, link)->in_time = true;
    svc->making = true;
    svc->without_contents = without;
    svc->make(svc, without);
}

static void csds_on_timer(struct tc_timer *timer)
{
    csds_begin_next(TC_CONTAINER_OF(timer, struct tc_csds_service, timer));
}

static void csds_on_begin(struct tc_task *task)
{
    csds_begin_next(TC_CONTAINER_OF(task, struct tc_csds_service, begin));
}

size_t tc_csds_service_max_bytes(const struct tc_csds_service *svc)
{
    return svc->max_bytes ? svc->max_bytes : TC_CSDS_MAX_BYTES;
}

void tc_csds_call_finish(struct tc_csds_call *c, int code, const char *text)
{
    if (c->ended)
        return;
    c->ended = true;
    c->ops->finish(c, code, text);
}

void tc_csds_call_no_more(struct tc_csds_call *c)
{
    if (tc_list_linked(&c->link) && !c->answer)
        c->unary = true; /* the answer that it waits for ends it */
    else
        tc_csds_call_finish(c, TORC_STATUS_OK, "");
}

static void csds_call_send(struct tc_csds_call *c, struct csds_answer *a)
{
    c->answer = a;
    tc_list_append(&a->calls, &c->link);
    c->ops->send(c, a->response);
    if (c->unary)
        tc_csds_call_finish(c, TORC_STATUS_OK, "");
}

/* Answers the requests that are in_time, which stand first in the list: with `a`, or with `rejection` if `a` is NULL.
 */
static void csds_answer_waiting(struct tc_csds_service *svc, struct csds_answer *a, const struct tc_status *rejection)
{
    struct tc_link *list = &svc->waiting[svc->without_contents];
    while (!tc_list_empty(list)) {
        struct tc_csds_call *c = TC_CONTAINER_OF(list->next, struct tc_csds_call, link);
        if (!c->in_time)
            break;
        c->in_time = false;
        tc_list_remove(&c->link);
        if (a)
            csds_call_send(c, a);
        else
            tc_csds_call_finish(c, rejection->code, tc_status_text(rejection));
    }
}

void tc_csds_service_made(struct tc_csds_service *svc, struct tc_rstr *response, size_t bytes, uint64_t took_ns)
{
    uint64_t now_ms = tc_loop_now_ms(svc->loop);
    svc->making = false;
    svc->rest_until_ms = now_ms + TC_MIN(took_ns * REST_TIMES / TC_NS_PER_MS, (uint64_t)MAX_REST_MS);
    svc->last_bytes[svc->without_contents] = response ? response->len : 0;
    if (response && !csds_fits(svc, response->len)) {
        tc_rstr_unref(response); /* larger than the last one: made again when there is room for it */
    } else if (response) {
        struct csds_answer *a = TC_NEW(struct csds_answer);
        a->response = response;
        a->made_ms = now_ms;
        tc_list_init(&a->calls);
        tc_list_append(&svc->answers, &a->link);
        svc->answer_bytes += response->len;
        /* `holder` keeps the answer until all requests have it, even if every client has gone. */
        struct tc_csds_call holder = {.service = svc, .answer = a};
        tc_list_append(&a->calls, &holder.link);
        csds_answer_waiting(svc, a, NULL);
        tc_csds_call_release(&holder);
    } else {
        size_t max = tc_csds_service_max_bytes(svc);
        struct tc_status why = bytes > max
                                   ? tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, TORC_LAYER_HTTP2,
                                                    "client status larger than max (%zu vs. %zu)%s", bytes, max,
                                                    svc->without_contents ? "" : "; ask with exclude_resource_contents")
                                   : tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, TORC_LAYER_HTTP2,
                                                    "no memory for a client status of %zu bytes", bytes);
        csds_answer_waiting(svc, NULL, &why);
        tc_status_fini(&why);
    }
    tc_loop_defer(svc->loop, &svc->begin);
}

struct tc_rstr *tc_csds_pack(const ProtobufCMessage *response, size_t max, size_t *bytes)
{
    *bytes = protobuf_c_message_get_packed_size(response);
    struct tc_rstr *packed = *bytes <= max ? tc_rstr_room(NULL, *bytes) : NULL;
    if (!packed)
        return NULL;
    packed->len = protobuf_c_message_pack(response, (uint8_t *)packed->data);
    packed->data[packed->len] = '\0';
    return packed;
}

/* --- requests --- */

/* Stores what a request asks for. Returns the status that rejects it, or OK. */
static struct tc_status csds_read_request(struct tc_slice bytes, bool *without_contents)
{
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    struct tc_status status = {0};
    ProtobufCMessage *message = NULL;
    tc_arena_init(&arena, 1024, tc_unpack_budget(bytes.len));
    int rc = tc_unpack(&envoy__service__status__v3__client_status_request__descriptor, bytes, NULL, &arena, &message,
                       &errors);
    const Envoy__Service__Status__V3__ClientStatusRequest *m = (void *)message;
    if (rc != 0)
        status = tc_status_make(TORC_STATUS_INVALID_ARGUMENT, TORC_LAYER_HTTP2, "malformed ClientStatusRequest: %s",
                                tc_validation_text(&errors));
    else if (m->n_node_matchers)
        status = tc_status_make(TORC_STATUS_INVALID_ARGUMENT, TORC_LAYER_HTTP2, "node_matchers are not supported");
    else
        *without_contents = m->exclude_resource_contents;
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
    return status;
}

void tc_csds_call_ask(struct tc_csds_call *c, struct tc_slice bytes)
{
    bool without_contents = false;
    struct tc_status status = csds_read_request(bytes, &without_contents);
    if (tc_status_ok(&status)) {
        tc_list_append(&c->service->waiting[without_contents], &c->link);
        /* Begun from the loop: other requests of this turn share the answer. */
        tc_loop_defer(c->service->loop, &c->service->begin);
    } else {
        tc_csds_call_finish(c, status.code, tc_status_text(&status));
    }
    tc_status_fini(&status);
}

bool tc_csds_call_sends(const struct tc_csds_call *c)
{
    return c->answer != NULL;
}

void tc_csds_call_init(struct tc_csds_call *c)
{
    tc_list_init(&c->link);
}

/* --- the service --- */

void tc_csds_service_init(struct tc_csds_service *svc, struct tc_loop *loop)
{
    svc->loop = loop;
    tc_list_init(&svc->waiting[0]);
    tc_list_init(&svc->waiting[1]);
    tc_list_init(&svc->answers);
    tc_timer_init(&svc->timer, svc->loop, csds_on_timer);
    tc_task_init(&svc->begin, csds_on_begin);
}

void tc_csds_service_end(struct tc_csds_service *svc)
{
    struct tc_link *link;
    tc_timer_stop(&svc->timer);
    tc_task_cancel(&svc->begin);
    while ((link = tc_list_pop(&svc->answers))) {
        struct csds_answer *a = TC_CONTAINER_OF(link, struct csds_answer, link);
        tc_rstr_unref(a->response);
        tc_free(a);
    }
}
