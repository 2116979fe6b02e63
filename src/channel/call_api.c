/* The public calls: what any thread may ask, carried to the loop. */
#include "channel/call_api.h"
#include "base/mem.h"
#include "base/options.h"
#include "channel/metadata.h"

void torc_call_options_init(struct torc_call_options *options)
{
    *options = (struct torc_call_options){.size = sizeof(*options), .timeout_ms = -1, .gzip = -1};
}

/* "/service/method", the leading slash added if need be; NULL data when it is malformed. */
static struct tc_slice make_path(struct tc_arena *arena, const char *method)
{
    struct tc_slice s = tc_slice_str(method ? method : "");
    const char *slash;
    if (s.len && s.data[0] == '/')
        s = tc_slice_of(s.data + 1, s.len - 1);
    if (s.len == 0 || s.len > 65535 || !(slash = memrchr(s.data, '/', s.len)) || slash == s.data ||
        slash + 1 == s.data + s.len)
        return tc_slice_of(NULL, 0);
    for (size_t i = 0; i < s.len; i++)
        if (s.data[i] <= ' ' || s.data[i] > '~')
            return tc_slice_of(NULL, 0);
    char *path = tc_arena_alloc(arena, s.len + 2);
    path[0] = '/';
    memcpy(path + 1, s.data, s.len);
    path[s.len + 1] = '\0';
    return tc_slice_of(path, s.len + 1);
}

static void release_api(struct tc_call *core)
{
    tc_call_drop(TC_CONTAINER_OF(core, torc_call, core));
}

static const struct tc_call_events stream_events;

static const struct tc_call_events *events_of(enum tc_call_kind kind)
{
    switch (kind) {
    case TC_CALL_UNARY_BLOCKING:
    case TC_CALL_UNARY_ASYNC:
        return &tc_call_unary_events;
    case TC_CALL_STREAM:
        return &stream_events;
    default:
        return &tc_call_blocking_events;
    }
}

static void apply_options(torc_call *call, const struct torc_call_options *o)
{
    struct tc_call *c = &call->core;
    const torc_channel *ch = c->channel;
    c->wait_for_ready = o->wait_for_ready;
    c->gzip = o->gzip < 0 ? ch->opts.gzip : o->gzip != 0;
    c->explain = o->explain;
    call->lent = o->lend_request && call->kind == TC_CALL_UNARY_ASYNC;
    c->max_receive_bytes = o->max_receive_message_bytes;
    if (o->credentials)
        tc_call_auth_use(c, o->credentials);
    c->started_ns = tc_loop_clock_ns(ch->loop);
    if (o->timeout_ms >= 0 && (uint64_t)o->timeout_ms < (UINT64_MAX - c->started_ns) / TC_NS_PER_MS)
        c->deadline_ns = c->started_ns + (uint64_t)o->timeout_ms * TC_NS_PER_MS;
}

static void on_task(struct tc_task *task);
static void on_start(struct tc_task *task);

torc_call *tc_call_make(torc_channel *ch, const char *method, const struct torc_call_options *given,
                        enum tc_call_kind kind, int *error)
{
    struct torc_call_options options;
    torc_call_options_init(&options);
    *error = ch && method ? tc_options_take(&options, sizeof(options), given, "options", "torc_call_options_init", NULL)
                          : TORC_EINVAL;
    if (*error == 0)
        *error = tc_runtime_check(ch->rt);
    if (*error != 0)
        return NULL;
    torc_call *call = tc_call_pool_get(tc_runtime_calls(ch->rt));
    tc_call_init(&call->core, ch);
    tc_ref_init(&call->zeroed);
    call->kind = kind;
    call->channel = ch;
    call->core.release = release_api;
    call->core.events = events_of(kind);
    call->core.arg = call;
    call->last_received = &call->first_received;
    tc_list_init(&call->waits);
    tc_task_init(&call->task, on_task);
    call->core.path = make_path(&call->core.arena, method);
    if (!call->core.path.data || tc_metadata_to_headers(options.metadata, &call->core.metadata) != 0) {
        tc_call_drop(call);
        *error = TORC_EINVAL;
        return NULL;
    }
    apply_options(call, &options);
    return call;
}

void tc_call_drop(torc_call *call)
{
    if (!tc_ref_dec(&call->zeroed))
        return;
    torc_channel *ch = call->core.channel;
    torc_runtime *rt = tc_runtime_ref(ch->rt);
    tc_call_fini(&call->core);
    tc_rstr_unref(call->want_message);
    tc_rstr_unref(call->response);
    while (call->first_received) {
        struct tc_received *r = call->first_received;
        call->first_received = r->next;
        tc_rstr_unref(r->message);
        tc_free(r);
    }
    if (call->done && !call->finished)
        torc_result_fini(&call->outcome);
    tc_call_pool_put(tc_runtime_calls(rt), call);
    tc_channel_unref(ch);
    tc_runtime_unref(rt);
}

/* With the mutex held: gets the loop to take what is wanted. */
static void schedule(torc_call *call, bool quietly)
{
    if (call->task_queued)
        return;
    call->task_queued = true;
    tc_ref_inc(&call->zeroed);
    if (quietly)
        tc_loop_post_quietly(tc_runtime_loop(call->channel->rt), &call->task);
    else
        tc_runtime_run(call->channel->rt, &call->task);
}

void tc_call_launch_quietly(torc_call *call)
{
    tc_ref_inc(&call->zeroed); /* the loop's, and the task's */
    tc_ref_inc(&call->zeroed);
    /* Nobody else has the call, who could want something of it. */
    call->task.fn = on_start;
    tc_loop_post_quietly(tc_runtime_loop(call->channel->rt), &call->task);
}

void tc_call_launch(torc_call *call)
{
    tc_ref_inc(&call->zeroed);
    pthread_mutex_lock(&call->mutex);
    call->want_start = true;
    schedule(call, false);
    pthread_mutex_unlock(&call->mutex);
}

static void begin(torc_call *call)
{
    struct tc_call *c = &call->core;
    tc_call_begin(c);
    if (call->kind == TC_CALL_UNARY_BLOCKING || call->kind == TC_CALL_UNARY_ASYNC) {
        tc_call_send_borrowed(c, call->request, true);
        /* One response, and the end behind it. */
        tc_call_read(c);
        tc_call_read(c);
    }
}

static void on_start(struct tc_task *task)
{
    torc_call *call = TC_CONTAINER_OF(task, torc_call, task);
    begin(call);
    tc_call_drop(call);
}

/* On the loop: what was wanted, in the order that a call has. */
static void on_task(struct tc_task *task)
{
    torc_call *call = TC_CONTAINER_OF(task, torc_call, task);
    struct tc_call *c = &call->core;
    pthread_mutex_lock(&call->mutex);
    bool start = call->want_start, end = call->want_end, cancel = call->want_cancel, last = call->want_last;
    struct tc_rstr *message = call->want_message;
    uint32_t reads = call->want_reads;
    call->want_start = call->want_end = false;
    call->want_message = NULL;
    call->want_reads = 0;
    call->task_queued = false;
    bool over = call->over;
    pthread_mutex_unlock(&call->mutex);

    if (start)
        begin(call);
    if (over) {
        tc_rstr_unref(message);
    } else {
        if (message)
            tc_call_send(c, message, last);
        if (end)
            tc_call_send_end(c);
        for (uint32_t i = 0; i < reads && c->stage != TC_CALL_DONE; i++)
            tc_call_read(c);
        if (cancel)
            tc_call_fail(c, tc_status_make(TORC_STATUS_CANCELLED, "cancelled by the application"));
    }
    tc_call_drop(call);
}

/* Streaming, asynchronous. */

static bool heard(const torc_call *call)
{
    return !atomic_load_explicit(&call->detached, memory_order_acquire);
}

static void on_headers(void *arg, const struct tc_headers *headers)
{
    torc_call *call = arg;
    if (heard(call) && call->events->on_headers)
        call->events->on_headers(call, tc_metadata_in_arena(&call->core.arena, headers), call->arg);
}

static void on_message(void *arg, struct tc_rstr *message)
{
    torc_call *call = arg;
    if (heard(call) && call->events->on_message)
        call->events->on_message(call, (torc_message *)message, call->arg);
    tc_rstr_unref(message);
}

static void on_written(void *arg)
{
    torc_call *call = arg;
    pthread_mutex_lock(&call->mutex);
    call->write_busy = false;
    pthread_mutex_unlock(&call->mutex);
    if (heard(call) && call->events->on_written)
        call->events->on_written(call, call->arg);
}

static void on_done(void *arg, const struct tc_call_end *end)
{
    torc_call *call = arg;
    pthread_mutex_lock(&call->mutex);
    call->over = true;
    pthread_mutex_unlock(&call->mutex);
    if (!heard(call))
        return;
    struct torc_result result;
    tc_result_borrow(&result, call, end, NULL);
    call->events->on_done(call, &result, call->arg);
}

static const struct tc_call_events stream_events = {
    .on_headers = on_headers,
    .on_message = on_message,
    .on_written = on_written,
    .on_done = on_done,
};

torc_call *torc_call_start(torc_channel *ch, const char *method, const struct torc_call_options *options,
                           const struct torc_call_events *events, void *arg, int *error)
{
    int rc = TORC_EINVAL;
    torc_call *call = events && events->on_done ? tc_call_make(ch, method, options, TC_CALL_STREAM, &rc) : NULL;
    if (!call) {
        if (error)
            *error = rc;
        return NULL;
    }
    call->events = events;
    call->arg = arg;
    tc_call_launch(call);
    return call;
}

int tc_call_want_write(torc_call *call, struct tc_slice message, bool last, bool quietly)
{
    int rc = call ? tc_runtime_check(call->channel->rt) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&call->mutex);
    if (call->over) {
        rc = TORC_ECLOSED;
    } else if (call->write_busy || call->write_over) {
        rc = TORC_ESTATE;
    } else {
        call->want_message = tc_rstr_new(message.data, message.len);
        call->want_last = last;
        call->write_busy = true;
        call->write_over = last;
        schedule(call, quietly);
    }
    pthread_mutex_unlock(&call->mutex);
    return rc;
}

int tc_call_want_end(torc_call *call, bool quietly)
{
    int rc = call ? tc_runtime_check(call->channel->rt) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&call->mutex);
    if (call->over) {
        rc = TORC_ECLOSED;
    } else if (call->write_over) {
        rc = TORC_ESTATE;
    } else {
        call->want_end = true;
        call->write_over = true;
        schedule(call, quietly);
    }
    pthread_mutex_unlock(&call->mutex);
    return rc;
}

int tc_call_want_read(torc_call *call, bool quietly)
{
    int rc = call ? tc_runtime_check(call->channel->rt) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&call->mutex);
    if (call->over) {
        rc = TORC_ECLOSED;
    } else if (call->want_reads == UINT32_MAX) {
        rc = TORC_ELIMIT;
    } else {
        call->want_reads++;
        schedule(call, quietly);
    }
    pthread_mutex_unlock(&call->mutex);
    return rc;
}

int torc_call_write(torc_call *call, const void *message, size_t size, bool last)
{
    return tc_call_want_write(call, tc_slice_of(message, size), last, false);
}

int torc_call_write_done(torc_call *call)
{
    return tc_call_want_end(call, false);
}

int torc_call_read(torc_call *call)
{
    return tc_call_want_read(call, false);
}

void torc_call_cancel(torc_call *call)
{
    if (!call || tc_runtime_check(call->channel->rt) != 0)
        return;
    pthread_mutex_lock(&call->mutex);
    if (!call->over) {
        call->want_cancel = true;
        schedule(call, false);
    }
    pthread_mutex_unlock(&call->mutex);
}

void torc_call_free(torc_call *call)
{
    if (!call || tc_runtime_check(call->channel->rt) == TORC_EFORK)
        return;
    if (!call->lent)
        atomic_store_explicit(&call->detached, true, memory_order_release);
    torc_call_cancel(call);
    tc_call_drop(call);
}
