/* Unary calls, blocking and asynchronous, and calls that are explained instead of sent.
 *
 * A blocking call is the fast path: the request is borrowed from the caller, and the call has no handle. In a runtime
 * whose callers drive the loop, the call is posted without a wake-up: the thread then turns the loop itself, or wakes
 * the thread that drives it. A call that is explained takes the same way and ends at the pick (asked.dry).
 *
 * The events of the loop's call (unary_events) and the application's callback run on the loop. The public functions are
 * for any thread. */
#include "api/call.h"
#include "api/result.h"
#include "base/status.h"
#include "base/thread.h"
#include "runtime/blocking.h"

static void on_message(void *arg, struct tc_rstr *message)
{
    torc_stream *call = arg;
    if (!call->response) {
        call->response = message;
        return;
    }
    tc_rstr_unref(message);
    tc_call_fail(&call->core, tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2,
                                             "the server sent more than one response to a unary "
                                             "call"));
}

static void settle(void *arg, struct tc_status *status)
{
    const torc_stream *call = arg;
    if (!call->response && !call->core.asked.dry)
        tc_status_set(status, tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2,
                                             "the server sent no response message to a unary call"));
}

static void on_done(void *arg, const struct tc_call_end *end)
{
    torc_stream *call = arg;
    tc_call_over(call);
    struct tc_rstr *response = end->status.code == TORC_STATUS_OK ? call->response : NULL;
    torc_result *result = tc_result_make(call, end, response);
    if (call->kind != TC_CALL_UNARY_ALONE) {
        tc_stream_deliver_end(call, result);
        return;
    }
    if (TC_LIKELY(!tc_loop_forked(call->channel->loop)))
        call->fn(result, call->arg);
    torc_result_free(result);
}

static const struct tc_call_events unary_events = {.on_message = on_message, .settle = settle, .on_done = on_done};

/* torc_unary; with `dry`, torc_explain. The request is borrowed. Returns the result, which the caller frees; never
 * NULL. */
static torc_result *unary_wait(torc_channel *ch, const char *method, struct tc_slice request,
                               const struct torc_call_options *options, bool dry)
{
    torc_error *error = NULL;
    int rc = ch ? tc_runtime_check_blocking(ch->rt) : TORC_EINVAL;
    if (TC_UNLIKELY(rc != 0))
        return tc_result_refused_code(rc, "channel");
    if (TC_UNLIKELY(!request.data && request.len))
        return tc_result_refused_code(TORC_EINVAL, "request");
    torc_stream *call = tc_call_make(ch, method, options, TC_CALL_UNARY_BLOCKING, &unary_events, &error);
    if (TC_UNLIKELY(!call))
        return tc_result_refused(error);
    TC_NO_CANCEL;
    torc_runtime *rt = ch->rt;
    struct tc_wait wait;
    tc_wait_init(&wait);
    wait.ends_ns = &call->core.deadline.at_ns;
    call->request = request;
    call->core.asked.dry = dry;
    call->core.asked.explain |= dry;
    tc_list_append(&call->waits, &wait.owner);
    bool drives = tc_runtime_caller_drives(rt);
    rc = tc_call_launch(call, drives);
    tc_runtime_lock(rt);
    if (drives && tc_runtime_driven(rt))
        tc_loop_wake(tc_runtime_loop(rt)); /* another thread drives the loop, and may sleep in it */
    while (!call->end && rc == 0)
        rc = tc_runtime_wait(rt, &wait, UINT64_MAX);
    tc_list_remove(&wait.owner);
    torc_result *result = call->end;
    call->end = NULL;
    tc_runtime_unlock(rt);
    tc_wait_fini(&wait);
    if (rc != TORC_EFORK) /* else the call is leaked: the loop, which does not run again, may refer to the call */
        tc_call_drop(call);
    return result ? result : tc_result_refused_code(rc, "channel");
}

torc_result *torc_unary(torc_channel *ch, const char *method, const void *request, size_t request_size,
                        const struct torc_call_options *options)
{
    return unary_wait(ch, method, tc_slice_of(request, request_size), options, false);
}

torc_result *torc_explain(torc_channel *ch, const char *method, const struct torc_call_options *options)
{
    return unary_wait(ch, method, tc_slice_of(NULL, 0), options, true);
}

/* torc_unary_async; with `dry`, torc_explain_async. Copies the request unless options.lend_request is set. */
static int unary_start(torc_channel *ch, const char *method, struct tc_slice request,
                       const struct torc_call_options *options, bool dry, torc_result_fn fn, void *arg,
                       torc_stream **handle, torc_error **error)
{
    torc_error *own = NULL;
    torc_error **why = error ? error : &own;
    torc_stream *call = NULL, *before = handle ? *handle : NULL;
    if (!tc_error_pending(why) && (!fn || (!request.data && request.len)))
        tc_error_set(why, TORC_EINVAL, TORC_LAYER_API, "%s: it is NULL", fn ? "request" : "fn");
    else
        call =
            tc_call_make(ch, method, options, handle ? TC_CALL_UNARY_ASYNC : TC_CALL_UNARY_ALONE, &unary_events, why);
    if (call) {
        /* A request that is too large for gRPC is refused before its bytes are read. */
        call->request = call->lent || request.len > TC_H2_MESSAGE_MAX
                            ? request
                            : tc_slice_of(tc_arena_dup(&call->core.arena, request), request.len);
        call->core.asked.dry = dry;
        call->core.asked.explain |= dry;
        call->fn = fn;
        call->arg = arg;
        if (handle)
            *handle = call; /* before the launch, because fn may look at *handle */
        call = tc_call_launch_or_drop(call, why);
        if (!call && handle)
            *handle = before;
    }
    int rc = call ? 0 : torc_error_code(*why);
    if (call && !handle)
        tc_call_drop(call);
    torc_error_free(own);
    return rc;
}

int torc_unary_async(torc_channel *ch, const char *method, const void *request, size_t request_size,
                     const struct torc_call_options *options, torc_result_fn fn, void *arg, torc_stream **handle,
                     torc_error **error)
{
    return unary_start(ch, method, tc_slice_of(request, request_size), options, false, fn, arg, handle, error);
}

int torc_explain_async(torc_channel *ch, const char *method, const struct torc_call_options *options, torc_result_fn fn,
                       void *arg, torc_stream **handle, torc_error **error)
{
    return unary_start(ch, method, tc_slice_of(NULL, 0), options, true, fn, arg, handle, error);
}
