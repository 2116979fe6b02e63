/* Streaming for programs that wait: torc_call_open, torc_call_send, torc_call_receive, torc_call_finish.
 *
 * What the loop reports (messages, written, done) is kept in the call under the runtime's lock, and wakes the threads
 * on `waits`. A thread brackets its wait with wait_begin and wait_end, which hold the lock and a reference. Several
 * threads may wait on one call: one that sends and one that receives, for instance. */
#include "api/call.h"
#include "api/result.h"
#include "base/mem.h"
#include "base/thread.h"
#include "runtime/blocking.h"

static void call_wake_waits(torc_call *call)
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
    if (atomic_load(&call->detached) || (call->former.finished && call->first_received)) {
        tc_rstr_unref(message);
    } else {
        struct tc_received *r = TC_NEW(struct tc_received);
        r->message = message;
        *call->last_received = r;
        call->last_received = &r->next;
    }
    call_wake_waits(call);
    tc_runtime_unlock(rt);
}

static void on_written(void *arg)
{
    torc_call *call = arg;
    torc_runtime *rt = call->channel->rt;
    tc_call_written(call);
    tc_runtime_lock(rt);
    call->former.written = true;
    call_wake_waits(call);
    tc_runtime_unlock(rt);
}

static void on_done(void *arg, const struct tc_call_end *end)
{
    torc_call *call = arg;
    torc_runtime *rt = call->channel->rt;
    tc_call_over(call);
    struct torc_result outcome;
    tc_result_own(&outcome, call, end, NULL);
    tc_runtime_lock(rt);
    call->former.outcome = outcome;
    call->former.done = true;
    call_wake_waits(call);
    tc_runtime_unlock(rt);
}

static const struct tc_call_events blocking_events = {
    .on_message = on_message,
    .on_written = on_written,
    .on_done = on_done,
};

torc_call *torc_call_open(torc_channel *ch, const char *method, const struct torc_call_options *options,
                          torc_error **error)
{
    TC_NO_CANCEL;
    if (!tc_call_may_wait(ch, error))
        return NULL;
    torc_call *call = tc_call_make(ch, method, options, TC_CALL_STREAM_BLOCKING, &blocking_events, error);
    return tc_call_launch_or_drop(call, error);
}

/* A thread that waits for something of the call. */
struct waiting {
    torc_call *call;
    struct tc_wait wait;
    bool quietly; /* its wishes are posted without a wake-up, because it drives the loop itself */
};

static void wait_begin(struct waiting *w, torc_call *call)
{
    /* Keeps the call: another thread may free it meanwhile. */
    tc_ref_inc(&call->zeroed);
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
    tc_call_drop(w->call);
}

static int wait_once(struct waiting *w)
{
    return tc_runtime_wait(w->call->channel->rt, &w->wait, UINT64_MAX);
}

/* After a quiet post: the thread's own wait begins with a turn that takes it. Without a wait, or if another thread
 * drives the loop and may sleep, the loop must be woken. */
static void waiting_posted(struct waiting *w, bool waits)
{
    torc_runtime *rt = w->call->channel->rt;
    if (w->quietly && (!waits || tc_runtime_driven(rt)))
        tc_loop_wake(tc_runtime_loop(rt));
}

/* Asks for one more message. */
static void waiting_want_read(struct waiting *w)
{
    torc_call *call = w->call;
    call->reads_pending++;
    tc_runtime_unlock(call->channel->rt);
    tc_call_want_reads(call, 1, w->quietly);
    tc_runtime_lock(call->channel->rt);
}

/* Returns TORC_ESTATE for a call with events: it has nothing to wait for here. */
static int call_check_blocking(const torc_call *call)
{
    if (!call)
        return TORC_EINVAL;
    return call->kind == TC_CALL_STREAM_BLOCKING ? tc_runtime_check_blocking(call->channel->rt) : TORC_ESTATE;
}

int torc_call_send(torc_call *call, const void *message, size_t size, bool last)
{
    int rc = call_check_blocking(call);
    if (rc != 0)
        return rc;
    TC_NO_CANCEL;
    struct waiting w;
    wait_begin(&w, call);
    call->former.written = false;
    tc_runtime_unlock(call->channel->rt);
    rc = tc_call_want_write(call, tc_slice_of(message, size), last, w.quietly);
    tc_runtime_lock(call->channel->rt);
    if (rc == 0)
        waiting_posted(&w, !call->former.written && !call->former.done);
    while (rc == 0 && !call->former.written && !call->former.done)
        rc = wait_once(&w);
    if (rc == 0 && !call->former.written)
        rc = TORC_ECLOSED;
    wait_end(&w);
    return rc;
}

int torc_call_receive(torc_call *call, torc_message **message)
{
    int rc = message ? call_check_blocking(call) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    TC_NO_CANCEL;
    struct waiting w;
    wait_begin(&w, call);
    while (rc == 0 && !call->first_received && !call->former.done) {
        if (call->reads_pending == 0) {
            waiting_want_read(&w);
            waiting_posted(&w, !call->first_received && !call->former.done);
            continue;
        }
        rc = wait_once(&w);
    }
    struct tc_received *r = call->first_received;
    if (rc == 0 && r) {
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
    int rc = result ? call_check_blocking(call) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    TC_NO_CANCEL;
    struct waiting w;
    wait_begin(&w, call);
    if (call->former.finished) {
        wait_end(&w);
        return TORC_ESTATE;
    }
    call->former.finished = true;
    tc_runtime_unlock(call->channel->rt);
    /* An error means already half-closed, or over: both are fine. */
    rc = tc_call_want_end(call, w.quietly);
    tc_runtime_lock(call->channel->rt);
    if (rc == 0)
        waiting_posted(&w, !call->former.done);
    rc = 0;
    while (rc == 0 && !call->former.done) {
        /* The end comes behind the messages, so they must be read. */
        if (call->reads_pending == 0) {
            waiting_want_read(&w);
            waiting_posted(&w, !call->former.done);
            continue;
        }
        rc = wait_once(&w);
    }
    if (rc != 0) {
        wait_end(&w);
        return rc;
    }
    *result = call->former.outcome;
    /* Client streaming: the message that was not fetched is the response. */
    struct tc_received *r = call->first_received;
    if (r && result->code == TORC_STATUS_OK) {
        result->response = (torc_message *)r->message;
        r->message = NULL;
    }
    tc_call_drop_received(call); /* a receiver on another thread sees the end */
    wait_end(&w);
    return 0;
}
