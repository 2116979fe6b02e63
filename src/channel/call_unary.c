/* Unary calls, blocking and asynchronous. */
#include "channel/call_api.h"

static void on_message(void *arg, struct tc_rstr *message)
{
    torc_call *call = arg;
    if (!call->response) {
        call->response = message;
        return;
    }
    tc_rstr_unref(message);
    tc_call_fail(&call->core, tc_status_make(TORC_STATUS_INTERNAL, "the server sent more than one response to a unary "
                                                                   "call"));
}

static void deliver(torc_call *call, const struct tc_call_end *end)
{
    struct tc_rstr *response = end->status.code == TORC_STATUS_OK ? call->response : NULL;
    if (call->kind == TC_CALL_UNARY_BLOCKING) {
        torc_runtime *rt = call->channel->rt;
        tc_result_own(call->result, call, end, tc_rstr_ref(response));
        tc_runtime_lock(rt);
        call->done = true;
        TC_LIST_FOREACH(it, &call->waits)
        tc_wait_wake(TC_CONTAINER_OF(it, struct tc_wait, owner));
        tc_runtime_unlock(rt);
    } else if (!atomic_load_explicit(&call->detached, memory_order_acquire)) {
        struct torc_result result;
        tc_result_borrow(&result, call, end, response);
        call->unary_fn(&result, call->arg);
    }
}

static void on_done(void *arg, const struct tc_call_end *end)
{
    torc_call *call = arg;
    /* A blocking call has no handle, by which other threads could ask for something. */
    if (call->kind != TC_CALL_UNARY_BLOCKING) {
        pthread_mutex_lock(&call->mutex);
        call->over = true;
        pthread_mutex_unlock(&call->mutex);
    }
    if (end->status.code != TORC_STATUS_OK || call->response || call->core.dry) {
        deliver(call, end);
        return;
    }
    struct tc_call_end missing = *end;
    missing.status = tc_status_make(TORC_STATUS_INTERNAL, "the server sent no response message to a unary call");
    deliver(call, &missing);
    tc_status_fini(&missing.status);
}

const struct tc_call_events tc_call_unary_events = {.on_message = on_message, .on_done = on_done};

int tc_call_unary_blocking(torc_channel *ch, const char *method, struct tc_slice request,
                           const struct torc_call_options *options, bool dry, struct torc_result *result)
{
    int rc = ch && result && (request.data || !request.len) ? tc_runtime_check_blocking(ch->rt) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    torc_call *call = tc_call_make(ch, method, options, TC_CALL_UNARY_BLOCKING, &rc);
    if (!call)
        return rc;
    torc_runtime *rt = ch->rt;
    struct tc_wait wait;
    tc_wait_init(&wait);
    call->request = request;
    call->core.dry = dry;
    call->core.explain |= dry;
    call->result = result;
    tc_list_append(&call->waits, &wait.owner);
    bool drives = tc_runtime_caller_drives(rt);
    if (drives)
        tc_call_launch_quietly(call);
    else
        tc_call_launch(call);
    tc_runtime_lock(rt);
    if (drives && tc_runtime_driven(rt))
        tc_loop_wake(tc_runtime_loop(rt)); /* another thread does, and may sleep */
    while (!call->done)
        tc_runtime_wait(rt, &wait, UINT64_MAX);
    tc_list_remove(&wait.owner);
    /* The result is the caller's. */
    call->finished = true;
    tc_runtime_unlock(rt);
    tc_wait_fini(&wait);
    tc_call_drop(call);
    return 0;
}

int torc_call_unary(torc_channel *ch, const char *method, const void *request, size_t request_size,
                    const struct torc_call_options *options, struct torc_result *result)
{
    return tc_call_unary_blocking(ch, method, tc_slice_of(request, request_size), options, false, result);
}

int tc_call_unary_async(torc_channel *ch, const char *method, struct tc_slice request,
                        const struct torc_call_options *options, bool dry, torc_unary_fn fn, void *arg,
                        torc_call **handle)
{
    int rc = TORC_EINVAL;
    torc_call *call =
        fn && (request.data || !request.len) ? tc_call_make(ch, method, options, TC_CALL_UNARY_ASYNC, &rc) : NULL;
    if (!call)
        return rc;
    call->request = call->lent ? request : tc_slice_of(tc_arena_dup(&call->core.arena, request), request.len);
    call->core.dry = dry;
    call->core.explain |= dry;
    call->unary_fn = fn;
    call->arg = arg;
    tc_call_launch(call);
    if (handle)
        *handle = call;
    else
        tc_call_drop(call);
    return 0;
}

int torc_call_unary_async(torc_channel *ch, const char *method, const void *request, size_t request_size,
                          const struct torc_call_options *options, torc_unary_fn fn, void *arg, torc_call **handle)
{
    return tc_call_unary_async(ch, method, tc_slice_of(request, request_size), options, false, fn, arg, handle);
}
