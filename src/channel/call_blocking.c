/* Streaming for programs that wait. What the loop tells is kept in the call under the runtime's lock. */
#include "base/mem.h"
#include "channel/call_api.h"

static void wake(torc_call *call)
{
    TC_LIST_FOREACH(it, &call->waits)
    tc_wait_wake(TC_CONTAINER_OF(it, struct tc_wait, owner));
}

static void on_message(void *arg, struct tc_rstr *message)
{
    torc_call *call = arg;
    torc_runtime *rt = call->channel->rt;
    tc_runtime_lock(rt);
    if (call->reads_pending)
        call->reads_pending--;
    if (atomic_load(&call->detached) || (call->finished && call->first_received)) {
        tc_rstr_unref(message);
    } else {
        struct tc_received *r = TC_NEW(struct tc_received);
        r->message = message;
        *call->last_received = r;
        call->last_received = &r->next;
    }
    wake(call);
    tc_runtime_unlock(rt);
}

static void on_written(void *arg)
{
    torc_call *call = arg;
    torc_runtime *rt = call->channel->rt;
    pthread_mutex_lock(&call->mutex);
    call->write_busy = false;
    pthread_mutex_unlock(&call->mutex);
    tc_runtime_lock(rt);
    call->written = true;
    wake(call);
    tc_runtime_unlock(rt);
}

static void on_done(void *arg, const struct tc_call_end *end)
{
    torc_call *call = arg;
    torc_runtime *rt = call->channel->rt;
    pthread_mutex_lock(&call->mutex);
    call->over = true;
    pthread_mutex_unlock(&call->mutex);
    struct torc_result outcome;
    tc_result_own(&outcome, call, end, NULL);
    tc_runtime_lock(rt);
    call->outcome = outcome;
    call->done = true;
    wake(call);
    tc_runtime_unlock(rt);
}

const struct tc_call_events tc_call_blocking_events = {
    .on_message = on_message,
    .on_written = on_written,
    .on_done = on_done,
};

torc_call *torc_call_open(torc_channel *ch, const char *method, const struct torc_call_options *options, int *error)
{
    int rc = ch ? tc_runtime_check_blocking(ch->rt) : TORC_EINVAL;
    torc_call *call = rc == 0 ? tc_call_make(ch, method, options, TC_CALL_STREAM_BLOCKING, &rc) : NULL;
    if (call)
        tc_call_launch(call);
    else if (error)
        *error = rc;
    return call;
}

/* A thread that waits for something of the call. */
struct waiting {
    torc_call *call;
    struct tc_wait wait;
    bool quietly; /* what it wants of the loop is posted without a wake-up, since it drives the loop itself */
};

static void wait_begin(struct waiting *w, torc_call *call)
{
    w->call = call;
    w->quietly = tc_runtime_caller_drives(call->channel->rt);
    tc_wait_init(&w->wait);
    tc_runtime_lock(call->channel->rt);
    tc_list_append(&call->waits, &w->wait.owner);
}

static void wait_end(struct waiting *w)
{
    tc_list_remove(&w->wait.owner);
    tc_runtime_unlock(w->call->channel->rt);
    tc_wait_fini(&w->wait);
}

static void wait_once(struct waiting *w)
{
    tc_runtime_wait(w->call->channel->rt, &w->wait, UINT64_MAX);
}

/* What was posted quietly goes with the turn that the wait begins with; not where there is none, or where another
 * thread drives, which may sleep. */
static void posted(struct waiting *w, bool waits)
{
    torc_runtime *rt = w->call->channel->rt;
    if (w->quietly && (!waits || tc_runtime_driven(rt)))
        tc_loop_wake(tc_runtime_loop(rt));
}

/* One more message is wanted. */
static void want_read(struct waiting *w)
{
    torc_call *call = w->call;
    call->reads_pending++;
    tc_runtime_unlock(call->channel->rt);
    tc_call_want_read(call, w->quietly);
    tc_runtime_lock(call->channel->rt);
}

/* A call with events of the application's own has nothing to wait for here. */
static int check(const torc_call *call)
{
    if (!call)
        return TORC_EINVAL;
    return call->kind == TC_CALL_STREAM_BLOCKING ? tc_runtime_check_blocking(call->channel->rt) : TORC_ESTATE;
}

int torc_call_send(torc_call *call, const void *message, size_t size, bool last)
{
    int rc = check(call);
    if (rc != 0)
        return rc;
    struct waiting w;
    wait_begin(&w, call);
    call->written = false;
    tc_runtime_unlock(call->channel->rt);
    rc = tc_call_want_write(call, tc_slice_of(message, size), last, w.quietly);
    tc_runtime_lock(call->channel->rt);
    if (rc == 0)
        posted(&w, !call->written && !call->done);
    while (rc == 0 && !call->written && !call->done)
        wait_once(&w);
    if (rc == 0 && !call->written)
        rc = TORC_ECLOSED;
    wait_end(&w);
    return rc;
}

int torc_call_receive(torc_call *call, torc_message **message)
{
    int rc = message ? check(call) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    struct waiting w;
    wait_begin(&w, call);
    while (!call->first_received && !call->done) {
        if (call->reads_pending == 0) {
            want_read(&w);
            posted(&w, !call->first_received && !call->done);
            continue;
        }
        wait_once(&w);
    }
    struct tc_received *r = call->first_received;
    if (r) {
        call->first_received = r->next;
        if (!r->next)
            call->last_received = &call->first_received;
        *message = (torc_message *)r->message;
        tc_free(r);
        rc = 1;
    }
    wait_end(&w);
    return rc;
}

int torc_call_finish(torc_call *call, struct torc_result *result)
{
    int rc = result ? check(call) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    struct waiting w;
    wait_begin(&w, call);
    if (call->finished) {
        wait_end(&w);
        return TORC_ESTATE;
    }
    call->finished = true;
    tc_runtime_unlock(call->channel->rt);
    /* Already half-closed, or over: both are fine. */
    rc = tc_call_want_end(call, w.quietly);
    tc_runtime_lock(call->channel->rt);
    if (rc == 0)
        posted(&w, !call->done);
    while (!call->done) {
        /* Messages must flow for the end to come. */
        if (call->reads_pending == 0) {
            want_read(&w);
            posted(&w, !call->done);
            continue;
        }
        wait_once(&w);
    }
    *result = call->outcome;
    /* Client streaming: what was not fetched is the response. */
    struct tc_received *r = call->first_received;
    if (r && result->code == TORC_STATUS_OK) {
        result->response = (torc_message *)r->message;
        r->message = NULL;
    }
    wait_end(&w);
    return 0;
}
