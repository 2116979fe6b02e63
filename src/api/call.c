/* Public calls: the requests of any thread, carried to the loop.
 *
 * torc_stream (api/call_object.h) has two sides. A thread writes its request under `mutex` and posts the stream's task,
 * unless the task is on its way (call_schedule). On the loop, on_task takes all requests and passes them to the loop's
 * call (struct tc_call). So no thread but the loop's changes a launched call, and several requests share one post. A
 * unary call without a handle has no such requests: its task (on_start) only begins it.
 *
 * References (`zeroed`): the handle's, or for a call without a handle that of the thread that makes the call; the
 * loop's while the call runs (given back by call_release); the task's while it is on its way; and one for each function
 * of the stream that runs, except torc_stream_free, which gives back the handle's. The last one returns the call to the
 * pool.
 *
 * Unary RPCs are in call_unary.c, streams in stream.c and stream_wait.c. */
#include "api/call.h"

#include "api/call_pool.h"
#include "api/metadata.h"
#include "base/mem.h"
#include "base/options.h"
#include "channel/call_setup.h"
#include "channel/call_start.h"
#include "runtime/blocking.h"

/* Returns "/service/method", with the leading slash added if need be; NULL data if the method is malformed. */
static struct tc_slice path_make(struct tc_arena *arena, const char *method)
{
    const char *name = method + (method[0] == '/'), *end = name, *slash;
    while (*end > ' ' && *end <= '~')
        end++;
    size_t len = (size_t)(end - name);
    if (*end || len > 65535 || !(slash = memrchr(name, '/', len)) || slash == name || slash + 1 == end)
        return tc_slice_of(NULL, 0);
    char *path = tc_arena_alloc(arena, len + 2);
    path[0] = '/';
    memcpy(path + 1, name, len + 1);
    return tc_slice_of(path, len + 1);
}

static void call_release(struct tc_call *core)
{
    tc_call_drop(TC_CONTAINER_OF(core, torc_stream, core));
}

/* Copies the options except the metadata. The deadline counts from here, not from when the loop takes the call. */
static void options_apply(torc_stream *call, const struct torc_call_options *o)
{
    struct tc_call *c = &call->core;
    const torc_channel *ch = c->channel;
    c->asked.wait_for_ready = o->wait_for_ready;
    c->asked.gzip = (o->gzip ? o->gzip : ch->opts.gzip) > 0;
    c->asked.explain = o->explain > 0;
    call->lent = o->lend_request > 0 && call->kind != TC_CALL_UNARY_BLOCKING;
    c->asked.max_receive_bytes = (uint64_t)o->max_receive_message_bytes; /* -1: UINT64_MAX */
    if (o->credentials)
        tc_call_use_credentials(c, o->credentials);
    c->deadline.started_ns = tc_loop_clock_ns(ch->loop);
    if (o->timeout_ms < 0)
        c->deadline.at_ns = 0; /* not started_ns: the time of the turn that begins the call may be earlier */
    else if (o->timeout_ms > 0 && (uint64_t)o->timeout_ms < (UINT64_MAX - c->deadline.started_ns) / TC_NS_PER_MS)
        c->deadline.at_ns = c->deadline.started_ns + (uint64_t)o->timeout_ms * TC_NS_PER_MS;
}

static bool switch_is_valid(int32_t value)
{
    return (uint32_t)value + 1 <= 2;
}

/* Returns the options to use: `given` itself, without a copy, if it is a valid struct of this version (the usual case);
 * the defaults for NULL; else a copy in `copy`, or NULL with an error. */
static const struct torc_call_options *options_read(const struct torc_call_options *given,
                                                    struct torc_call_options *copy, torc_error **error)
{
    static const struct torc_call_options none = {TORC_SIZE(torc_call_options)};
    if (!given)
        return &none;
    if (given->size == sizeof(*given) && given->max_receive_message_bytes >= -1 &&
        switch_is_valid(given->wait_for_ready) && switch_is_valid(given->gzip) && switch_is_valid(given->explain) &&
        switch_is_valid(given->lend_request))
        return given;
    return tc_options_take(TC_OPTIONS_CALL, copy, given, error) ? copy : NULL;
}

static void on_task(struct tc_task *task);
static void on_start(struct tc_task *task);

static bool can_start(torc_channel *ch, const char *method, torc_error **error)
{
    if (!ch || !method)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: it is NULL", ch ? "method" : "channel");
    int rc = tc_runtime_check(ch->rt);
    return rc == 0 || tc_error_set_code(error, rc, "channel");
}

torc_stream *tc_call_make(torc_channel *ch, const char *method, const struct torc_call_options *given,
                          enum tc_call_kind kind, const struct tc_call_events *events, torc_error **error)
{
    struct torc_call_options copy;
    if (tc_error_pending(error) || !can_start(ch, method, error))
        return NULL;
    const struct torc_call_options *options = options_read(given, &copy, error);
    if (!options)
        return NULL;
    torc_stream *call = tc_call_pool_get(tc_call_pool_of(ch->rt));
    tc_call_init(&call->core, ch);
    tc_ref_init(&call->zeroed);
    call->kind = kind;
    call->channel = ch;
    call->core.release = call_release;
    call->core.events = events;
    call->core.arg = call;
    call->last_received = &call->first_received;
    tc_list_init(&call->waits);
    tc_task_init(&call->task, on_task);
    call->core.asked.path = path_make(&call->core.arena, method);
    if (!call->core.asked.path.data || tc_metadata_to_headers(options->metadata, &call->core.asked.metadata) != 0) {
        if (call->core.asked.path.data)
            tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "options: metadata: it is too large");
        else
            tc_error_set(error, TORC_EINVAL, TORC_LAYER_API,
                         "method: \"" TC_SHOWN "\" must be \"/package.Service/Method\"", TC_SHOW(method));
        tc_call_drop(call);
        return NULL;
    }
    options_apply(call, options);
    return call;
}

struct tc_received *tc_call_take_received(torc_stream *call)
{
    struct tc_received *messages = call->first_received;
    call->first_received = NULL;
    call->last_received = &call->first_received;
    return messages;
}

void tc_received_free(struct tc_received *messages)
{
    while (messages) {
        struct tc_received *r = messages;
        messages = r->next;
        tc_rstr_unref(r->message);
        tc_free(r);
    }
}

void tc_call_drop(torc_stream *call)
{
    if (!tc_ref_dec(&call->zeroed))
        return;
    torc_channel *ch = call->core.channel;
    torc_runtime *rt = tc_runtime_ref(ch->rt);
    tc_call_fini(&call->core);
    tc_rstr_unref(call->want_message);
    tc_rstr_unref(call->response);
    tc_received_free(tc_call_take_received(call));
    tc_rstr_unref(call->lent_message.bytes);
    torc_result_free(call->end);
    if (call->lent_message.typed)
        call->lent_message.typed->free(call->lent_message.typed);
    tc_call_pool_put(tc_call_pool_of(rt), call);
    tc_channel_unref(ch);
    tc_runtime_unref(rt);
}

static bool call_post(torc_stream *call, bool quietly)
{
    torc_runtime *rt = call->channel->rt;
    return quietly ? tc_loop_post_quietly(tc_runtime_loop(rt), &call->task) : tc_runtime_run(rt, &call->task);
}

/* Posts the task that carries the requests to the loop, unless it is on its way. With the mutex held. Returns 0, or
 * TORC_ECLOSED if the loop has ended. */
static int call_schedule(torc_stream *call, bool quietly)
{
    if (call->task_queued)
        return 0;
    tc_ref_inc(&call->zeroed);
    call->task_queued = call_post(call, quietly);
    if (call->task_queued)
        return 0;
    tc_ref_dec(&call->zeroed); /* never the last: the caller holds a reference */
    return TORC_ECLOSED;
}

/* Needs no mutex: no other thread has the call yet. Takes the references before the post, because the call may end
 * before the post returns. */
int tc_call_launch(torc_stream *call, bool quietly)
{
    tc_ref_inc(&call->zeroed);
    tc_ref_inc(&call->zeroed);
    if (call->kind == TC_CALL_UNARY_BLOCKING || call->kind == TC_CALL_UNARY_ALONE)
        call->task.fn = on_start;
    else
        call->want_start = call->task_queued = true;
    if (call_post(call, quietly))
        return 0;
    tc_ref_dec(&call->zeroed);
    tc_ref_dec(&call->zeroed);
    return TORC_ECLOSED;
}

torc_stream *tc_call_launch_or_drop(torc_stream *call, torc_error **error)
{
    int rc = call ? tc_call_launch(call, false) : 0;
    if (rc == 0)
        return call;
    tc_call_drop(call);
    tc_error_set_code(error, rc, "channel");
    return NULL;
}

enum { CALL_BYTES = 4096 }; /* counted for a call beside its messages: its arena, and its share of fixed memory */

void tc_call_count(torc_stream *call, size_t message_bytes)
{
    if (call->counted)
        tc_runtime_count_memory(call->channel->rt, &call->counted, CALL_BYTES + message_bytes);
}

/* Ends the call, which has not begun, and returns true, if the runtime holds more memory than its limit. Otherwise
 * counts the call's memory. */
static bool call_refuse_over_limit(torc_stream *call, uint64_t limit)
{
    torc_runtime *rt = call->channel->rt;
    uint64_t held = tc_runtime_memory_held(rt);
    if (held <= limit) {
        tc_runtime_count_memory(rt, &call->counted, CALL_BYTES + call->request.len);
        return false;
    }
    tc_call_refuse(&call->core, tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, TORC_LAYER_LIMIT,
                                               "the runtime holds %llu bytes, more than memory_limit_bytes (%llu)",
                                               (unsigned long long)held, (unsigned long long)limit));
    return true;
}

static void call_begin(torc_stream *call)
{
    struct tc_call *c = &call->core;
    uint64_t limit = tc_runtime_memory_limit(call->channel->rt);
    if (!limit || !call_refuse_over_limit(call, limit))
        tc_call_begin(c);
    if (call->kind != TC_STREAM) {
        tc_call_send_borrowed(c, call->request, true);
        tc_call_read(c, 2); /* the response, and the end behind it */
    }
}

/* The task of a unary call without a handle. */
static void on_start(struct tc_task *task)
{
    torc_stream *call = TC_CONTAINER_OF(task, torc_stream, task);
    call_begin(call);
    tc_call_drop(call);
}

/* The task of all other calls: carries out the requests, in the order of a call's life. */
static void on_task(struct tc_task *task)
{
    torc_stream *call = TC_CONTAINER_OF(task, torc_stream, task);
    struct tc_call *c = &call->core;
    pthread_mutex_lock(&call->mutex);
    bool start = call->want_start, end = call->want_end, cancel = call->want_cancel, last = call->want_last,
         plain = call->want_plain;
    struct tc_rstr *message = call->want_message;
    size_t oversize = call->want_oversize;
    uint32_t reads = call->want_reads;
    call->want_start = call->want_end = call->want_cancel = false;
    call->want_message = NULL;
    call->want_oversize = 0;
    call->want_reads = 0;
    call->task_queued = false;
    bool over = call->over;
    pthread_mutex_unlock(&call->mutex);

    if (start)
        call_begin(call);
    if (over) { /* the loop's call has ended */
        tc_rstr_unref(message);
    } else {
        if (oversize)
            tc_call_too_large(c, oversize);
        if (message) {
            tc_call_count(call, message->len);
            if (plain)
                tc_call_send_plain(c, message, last);
            else
                tc_call_send(c, message, last);
        }
        if (end)
            tc_call_send_end(c);
        call->reads_owed += reads;
        tc_call_read_owed(call);
        if (cancel)
            tc_call_fail(c, tc_status_make(TORC_STATUS_CANCELLED, TORC_LAYER_DEADLINE, "cancelled by the application"));
    }
    tc_call_drop(call);
}

/* Locks the mutex and returns 0. Returns an error without the lock: TORC_EINVAL for NULL, an error of
 * tc_runtime_check, or TORC_ECLOSED if the call has ended. */
static int call_lock(torc_stream *call)
{
    int rc = call ? tc_runtime_check(call->channel->rt) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&call->mutex);
    if (!call->over)
        return 0;
    pthread_mutex_unlock(&call->mutex);
    return TORC_ECLOSED;
}

static int call_unlock(torc_stream *call, int rc)
{
    pthread_mutex_unlock(&call->mutex);
    return rc;
}

bool tc_call_is_heard(const torc_stream *call)
{
    return !atomic_load_explicit(&call->detached, memory_order_acquire) &&
           TC_LIKELY(!tc_loop_forked(call->channel->loop));
}

int tc_stream_try_send(torc_stream *s, struct tc_slice message, unsigned flags, bool tell, bool quietly)
{
    int rc = call_lock(s);
    if (rc != 0)
        return rc;
    if (s->write_over || s->kind != TC_STREAM || (flags & TORC_SEND_COMPRESS && !s->core.asked.gzip))
        return call_unlock(s, TORC_ESTATE);
    if (s->write_busy) {
        s->tell_writable |= tell;
        return call_unlock(s, TORC_EAGAIN);
    }
    if (message.len > TC_H2_MESSAGE_MAX)
        s->want_oversize = message.len;
    else
        s->want_message = tc_rstr_new(message.data, message.len);
    s->want_last = (flags & TORC_SEND_LAST) != 0;
    s->want_plain = (flags & TORC_SEND_PLAIN) != 0;
    s->write_busy = true;
    s->write_over = s->want_last;
    return call_unlock(s, call_schedule(s, quietly));
}

int tc_call_want_end(torc_stream *call, bool quietly)
{
    int rc = call_lock(call);
    if (rc != 0)
        return rc;
    if (call->write_over)
        return call_unlock(call, TORC_ESTATE);
    call->want_end = true;
    call->write_over = true;
    return call_unlock(call, call_schedule(call, quietly));
}

int tc_call_want_reads(torc_stream *call, uint32_t n, bool quietly)
{
    int rc = call_lock(call);
    if (rc != 0)
        return rc;
    if (n > UINT32_MAX - call->want_reads)
        return call_unlock(call, TORC_ELIMIT);
    call->want_reads += n;
    return call_unlock(call, call_schedule(call, quietly));
}

void tc_call_want_cancel(torc_stream *call)
{
    if (call_lock(call) != 0)
        return;
    call->want_cancel = true;
    call_schedule(call, false);
    pthread_mutex_unlock(&call->mutex);
}
