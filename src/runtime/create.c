/* Makes and ends runtimes.
 *
 * Three ways to drive the loop of a runtime:
 *
 *   TORC_RUNTIME_THREAD              a thread of the runtime's own (run_thread);
 *   TORC_RUNTIME_CALLER              the application's threads that wait inside Torc or call torc_runtime_poll
 *                                    (blocking.c);
 *   TORC_RUNTIME_CALLER, with a      an event loop of the application's own, which watches torc_runtime_fd and calls
 *   descriptor                       torc_runtime_poll when the descriptor is readable, or torc_runtime_timeout_ms is
 *                                    over.
 *
 * Unit tests may use tc_runtime_new_on: the test drives a loop of its own, in virtual time.
 *
 * torc_runtime_free posts on_shutdown, which runs on the loop and ends, in this order: the public channels and the
 * servers, what the modules keep (tc_runtime_set_extra: the xDS clients and CSDS services), the private channels, the
 * connections. Then on_shutdown sets `stopped`, and torc_runtime_free ends the loop. The memory stays until the last
 * reference goes. on_shutdown runs on the thread that drives the loop. Public functions are for any thread. */
#include "runtime/create.h"

#include <errno.h>

#include "base/fork.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/thread.h"
#include "runtime/blocking.h"
#include "runtime/process.h"
#include "runtime/runtime_internal.h"
#include "runtime/xds_domain.h"
#include "subchannel/pool.h"

static struct tc_runtime_member *member_first_public(torc_runtime *rt)
{
    TC_LIST_FOREACH(it, &rt->members)
    {
        struct tc_runtime_member *m = TC_CONTAINER_OF(it, struct tc_runtime_member, link);
        if (!m->is_private)
            return m;
    }
    return NULL;
}

static void on_shutdown(struct tc_task *task)
{
    torc_runtime *rt = TC_CONTAINER_OF(task, torc_runtime, shutdown);
    struct tc_status status = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_API, "the runtime was shut down");
    struct tc_runtime_member *m;
    /* Ending a member may end private members too, so each round begins at the head of the list. */
    while ((m = member_first_public(rt)))
        m->on_shutdown(m, &status);
    while (rt->slots) {
        struct tc_runtime_slot *slot = rt->slots;
        rt->slots = slot->next;
        slot->destroy(slot->value);
        tc_free(slot);
    }
    while (!tc_list_empty(&rt->members)) {
        m = TC_CONTAINER_OF(rt->members.next, struct tc_runtime_member, link);
        m->on_shutdown(m, &status);
    }
    tc_status_fini(&status);
    tc_pool_shutdown(rt->pool);
    tc_runtime_lock(rt);
    atomic_store(&rt->stopped, true);
    if (rt->freer)
        tc_wait_wake(rt->freer);
    tc_runtime_unlock(rt);
}

static void run_thread(void *arg)
{
    torc_runtime *rt = arg;
    while (!atomic_load(&rt->stopped))
        if (!tc_loop_turn(rt->loop, -1) && tc_loop_forked(rt->loop))
            return; /* the process is exiting, or is a child that a callback forked */
    tc_runtime_lock(rt);
    rt->driven = false;
    if (rt->freer)
        tc_wait_wake(rt->freer);
    tc_runtime_unlock(rt);
}

/* Takes over the sink, and the reference to the options' domain. */
static torc_runtime *runtime_make(struct tc_loop *loop, bool own_loop, const struct torc_runtime_options *options,
                                  struct tc_log_sink *log_sink)
{
    torc_runtime *rt = TC_NEW(torc_runtime);
    tc_ref_init(&rt->ref);
    rt->loop = tc_loop_ref(loop); /* a thread that holds the runtime may post when the loop has ended */
    rt->fd = tc_loop_fd(loop);
    rt->own_loop = own_loop;
    rt->mode = (enum torc_runtime_mode)options->mode;
    rt->xds_domain = options->xds_domain;
    rt->log_sink = log_sink;
    rt->csds_answer_bytes = (size_t)TC_MIN((uint64_t)options->csds_answer_bytes, SIZE_MAX);
    rt->memory_limit_bytes = (uint64_t)options->memory_limit_bytes;
    tc_list_init(&rt->members);
    tc_list_init(&rt->waiters);
    tc_list_init(&rt->pollers);
    rt->generation = tc_fork_generation();
    pthread_mutex_init(&rt->mutex, NULL);
    tc_task_init(&rt->shutdown, on_shutdown);
    rt->pool = tc_pool_new(loop, (uint64_t)options->idle_connection_ms,
                           options->idle_connection_ms ? (uint32_t)options->max_idle_connections : 0);
    tc_loop_on_stopped(loop, tc_runtime_wake_all, rt);
    if (log_sink)
        tc_loop_set_log(loop, log_sink);
    return rt;
}

/* Gives back what options_accept took, since the runtime cannot be made. */
static void options_drop(const struct torc_runtime_options *options, struct tc_log_sink *log_sink)
{
    tc_xds_domain_drop(options->xds_domain);
    tc_log_sink_free(log_sink, false);
}

/* Fills in the options, takes a reference to their domain and makes their log sink (NULL: the options have none).
 * Returns false with an error, and holds nothing then. */
static bool options_accept(struct torc_runtime_options *out, const struct torc_runtime_options *given,
                           struct tc_log_sink **log_sink, torc_error **error)
{
    *log_sink = NULL;
    if (!tc_options_complete(TC_OPTIONS_RUNTIME, out, given, error) || !tc_process_admit(out, error))
        return false;
    if (out->xds_domain && !tc_xds_domain_hold(out->xds_domain))
        return tc_error_set(error, TORC_EFORK, TORC_LAYER_API, "options: xds_domain: it belongs to the parent process");
    *log_sink = out->log_sink ? tc_log_sink_new(out->log_sink, error) : NULL;
    if (*log_sink || !out->log_sink)
        return true;
    options_drop(out, NULL);
    return false;
}

torc_runtime *torc_runtime_new(const struct torc_runtime_options *given, torc_error **error)
{
    TC_NO_CANCEL;
    struct torc_runtime_options options;
    struct tc_log_sink *log_sink;
    if (tc_error_pending(error) || !options_accept(&options, given, &log_sink, error))
        return NULL;
    struct tc_loop *loop = tc_loop_new(NULL);
    if (!loop) {
        tc_error_set(error, TORC_EIO, TORC_LAYER_API, "cannot make an event loop: %s", strerror(errno));
        options_drop(&options, log_sink);
        return NULL;
    }
    torc_runtime *rt = runtime_make(loop, true, &options, log_sink);
    if (rt->mode == TORC_RUNTIME_THREAD) {
        rt->driven = true;
        int rc = tc_thread_start(&rt->thread, run_thread, rt);
        if (rc != 0) {
            tc_pool_shutdown(rt->pool);
            tc_loop_free(loop);
            tc_pool_free(rt->pool);
            options_drop(&options, log_sink);
            tc_runtime_unref(rt);
            tc_error_set(error, TORC_EIO, TORC_LAYER_API, "cannot start a thread: %s", strerror(rc));
            return NULL;
        }
    }
    return rt;
}

torc_runtime *tc_runtime_new_on(struct tc_loop *loop, const struct torc_runtime_options *given)
{
    struct torc_runtime_options options;
    tc_options_complete(TC_OPTIONS_RUNTIME, &options, given, NULL);
    options.mode = TORC_RUNTIME_CALLER;
    struct tc_log_sink *log_sink = options.log_sink ? tc_log_sink_new(options.log_sink, NULL) : NULL;
    if (options.xds_domain)
        tc_xds_domain_hold(options.xds_domain);
    return runtime_make(loop, false, &options, log_sink);
}

static void wait_for_shutdown(torc_runtime *rt)
{
    struct tc_wait w;
    tc_wait_init(&w);
    tc_runtime_lock(rt);
    rt->freer = &w;
    /* Another thread that drives the loop may run on_shutdown; then its turn has to end. A thread in an exit handler
     * may wait for this thread, so the wait ends with tc_loop_left and is not a join. */
    while ((!atomic_load(&rt->stopped) || rt->driven) && !tc_loop_left(rt->loop))
        tc_runtime_wait(rt, &w, tc_loop_clock_ns(rt->loop) + 10 * TC_NS_PER_MS);
    rt->freer = NULL;
    tc_runtime_unlock(rt);
    tc_wait_fini(&w);
}

int torc_runtime_free(torc_runtime *rt)
{
    TC_NO_CANCEL;
    if (!rt)
        return 0;
    if (tc_loop_forked(rt->loop))
        return TORC_EFORK;
    if (tc_process_keeps(rt))
        return TORC_ESTATE;
    if (tc_loop_in_turn(rt->loop) || tc_runtime_drives(rt))
        return TORC_EDEADLK;
    if (atomic_exchange(&rt->closed, true))
        return TORC_ECLOSED;
    tc_loop_post(rt->loop, &rt->shutdown);
    wait_for_shutdown(rt);
    if (tc_loop_forked(rt->loop))
        return TORC_EFORK; /* the process is exiting, or is a child that a callback forked */
    if (rt->mode == TORC_RUNTIME_THREAD)
        tc_thread_join(rt->thread);
    if (rt->own_loop)
        tc_loop_free(rt->loop);
    else
        tc_loop_drain(rt->loop);
    tc_pool_free(rt->pool);
    rt->pool = NULL;
    tc_xds_domain_drop(rt->xds_domain);
    rt->xds_domain = NULL;
    if (rt->log_sink)
        tc_loop_set_log(rt->loop, NULL); /* a test may go on turning its loop */
    tc_log_sink_free(rt->log_sink, true);
    rt->log_sink = NULL;
    tc_runtime_unref(rt);
    return 0;
}

torc_runtime *torc_runtime_default(void)
{
    return tc_process_runtime(NULL);
}

torc_runtime *tc_runtime_or_default(torc_runtime *given, const char *name, torc_error **error)
{
    if (!given)
        return tc_process_runtime(error);
    int rc = tc_runtime_check(given);
    if (rc != 0)
        tc_error_set_code(error, rc, name);
    return rc == 0 ? given : NULL;
}
