#include <errno.h>
#include <signal.h>

#include "base/mem.h"
#include "base/options.h"
#include "channel/call_pool.h"
#include "channel/channel_struct.h"
#include "channel/pool.h"
#include "channel/runtime_struct.h"
#include "channel/xds_domain.h"

void torc_runtime_options_init(struct torc_runtime_options *options)
{
    *options = (struct torc_runtime_options){
        .size = sizeof(*options),
        .mode = TORC_RUNTIME_THREAD,
        .idle_connection_ms = 30000,
        .max_idle_connections = 1000,
    };
}

static torc_channel *first_public(torc_runtime *rt)
{
    TC_LIST_FOREACH(it, &rt->channels)
    {
        torc_channel *ch = TC_CONTAINER_OF(it, torc_channel, runtime_link);
        if (!ch->is_private)
            return ch;
    }
    return NULL;
}

/* What has to be ended while the loop still turns. */
static void on_shutdown(struct tc_task *task)
{
    torc_runtime *rt = TC_CONTAINER_OF(task, torc_runtime, shutdown);
    struct tc_status status = tc_status_make(TORC_STATUS_UNAVAILABLE, "the runtime was shut down");
    torc_channel *ch;
    /* Ending one may end private ones with it, so each round begins anew. */
    while ((ch = first_public(rt)))
        tc_channel_end(ch, &status, true);
    while (rt->slots) {
        struct tc_runtime_slot *slot = rt->slots;
        rt->slots = slot->next;
        slot->destroy(slot->value);
        tc_free(slot);
    }
    while (!tc_list_empty(&rt->channels))
        tc_channel_end(TC_CONTAINER_OF(rt->channels.next, torc_channel, runtime_link), &status, true);
    tc_status_fini(&status);
    tc_pool_shutdown(rt->pool);
    tc_runtime_lock(rt);
    atomic_store(&rt->stopped, true);
    if (rt->freer)
        tc_wait_wake(rt->freer);
    tc_runtime_unlock(rt);
}

static void *run_thread(void *arg)
{
    torc_runtime *rt = arg;
    while (!atomic_load(&rt->stopped))
        tc_loop_turn(rt->loop, -1);
    return NULL;
}

static int start_thread(torc_runtime *rt)
{
    /* Signals are the application's: its own threads take them. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&rt->thread, NULL, run_thread, rt);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static torc_runtime *make(struct tc_loop *loop, bool own_loop, const struct torc_runtime_options *options)
{
    torc_runtime *rt = TC_NEW(torc_runtime);
    tc_ref_init(&rt->ref);
    rt->loop = loop;
    rt->own_loop = own_loop;
    rt->mode = options->mode;
    rt->xds_domain = options->xds_domain;
    tc_list_init(&rt->channels);
    tc_list_init(&rt->waiters);
    tc_list_init(&rt->pollers);
    pthread_mutex_init(&rt->mutex, NULL);
    tc_task_init(&rt->shutdown, on_shutdown);
    rt->pool = tc_pool_new(loop, options->idle_connection_ms, options->max_idle_connections);
    rt->calls = tc_call_pool_new();
    return rt;
}

static void destroy(torc_runtime *rt)
{
    tc_call_pool_free(rt->calls);
    pthread_mutex_destroy(&rt->mutex);
    tc_free(rt);
}

static int complete(struct torc_runtime_options *out, const struct torc_runtime_options *given)
{
    torc_runtime_options_init(out);
    int rc = tc_options_take(out, sizeof(*out), given, "options", "torc_runtime_options_init", NULL);
    out->size = sizeof(*out);
    return rc;
}

torc_runtime *torc_runtime_new(const struct torc_runtime_options *given)
{
    struct torc_runtime_options options;
    int fault = complete(&options, given);
    if (fault != 0) {
        errno = fault == TORC_EUNSUPPORTED ? E2BIG : EINVAL;
        return NULL;
    }
    if (options.mode != TORC_RUNTIME_THREAD && options.mode != TORC_RUNTIME_CALLER) {
        errno = EINVAL;
        return NULL;
    }
    if (options.xds_domain && !tc_xds_domain_hold(options.xds_domain)) {
        errno = EINVAL;
        return NULL;
    }
    struct tc_loop *loop = tc_loop_new(NULL);
    if (!loop) {
        int error = errno;
        tc_xds_domain_drop(options.xds_domain);
        errno = error;
        return NULL;
    }
    torc_runtime *rt = make(loop, true, &options);
    if (rt->mode == TORC_RUNTIME_THREAD) {
        int rc = start_thread(rt);
        if (rc != 0) {
            tc_pool_shutdown(rt->pool);
            tc_loop_free(loop);
            tc_pool_free(rt->pool);
            tc_xds_domain_drop(rt->xds_domain);
            destroy(rt);
            errno = rc;
            return NULL;
        }
    }
    return rt;
}

torc_runtime *tc_runtime_new_on(struct tc_loop *loop, const struct torc_runtime_options *given)
{
    struct torc_runtime_options options;
    complete(&options, given);
    options.mode = TORC_RUNTIME_CALLER;
    if (options.xds_domain)
        tc_xds_domain_hold(options.xds_domain);
    return make(loop, false, &options);
}

static _Atomic(torc_runtime *) default_runtime;

torc_runtime *torc_runtime_default(void)
{
    torc_runtime *have = atomic_load(&default_runtime);
    while (!have || tc_loop_forked(have->loop)) {
        torc_runtime *made = torc_runtime_new(NULL);
        if (!made)
            return NULL;
        if (atomic_compare_exchange_strong(&default_runtime, &have, made))
            return made;
        torc_runtime_free(made);
    }
    return have;
}

static void wait_for_shutdown(torc_runtime *rt)
{
    struct tc_wait w;
    tc_wait_init(&w);
    tc_runtime_lock(rt);
    rt->freer = &w;
    /* Whoever drives may do it for us; then only its turn has to end. */
    while (!atomic_load(&rt->stopped) || rt->driven)
        tc_runtime_wait(rt, &w, tc_loop_clock_ns(rt->loop) + 10 * TC_NS_PER_MS);
    rt->freer = NULL;
    tc_runtime_unlock(rt);
    tc_wait_fini(&w);
}

int torc_runtime_free(torc_runtime *rt)
{
    if (!rt)
        return 0;
    if (tc_loop_forked(rt->loop))
        return TORC_EFORK;
    if (tc_loop_in_turn(rt->loop))
        return TORC_EDEADLK;
    if (atomic_exchange(&rt->closed, true))
        return TORC_ECLOSED;
    tc_loop_post(rt->loop, &rt->shutdown);
    if (rt->mode == TORC_RUNTIME_THREAD)
        pthread_join(rt->thread, NULL);
    else
        wait_for_shutdown(rt);
    if (rt->own_loop)
        tc_loop_free(rt->loop);
    else
        tc_loop_drain(rt->loop);
    tc_pool_free(rt->pool);
    rt->pool = NULL;
    tc_xds_domain_drop(rt->xds_domain);
    rt->xds_domain = NULL;
    tc_runtime_unref(rt);
    return 0;
}

torc_runtime *tc_runtime_ref(torc_runtime *rt)
{
    tc_ref_inc(&rt->ref);
    return rt;
}

void tc_runtime_unref(torc_runtime *rt)
{
    if (rt && tc_ref_dec(&rt->ref))
        destroy(rt);
}

int torc_runtime_fd(const torc_runtime *rt)
{
    int rc = tc_runtime_check(rt);
    if (rc != 0)
        return rc;
    return rt->mode == TORC_RUNTIME_CALLER ? tc_loop_fd(rt->loop) : TORC_ESTATE;
}

int torc_runtime_timeout_ms(const torc_runtime *rt)
{
    if (tc_runtime_check(rt) != 0)
        return -1;
    return tc_loop_timeout_ms(rt->loop);
}

struct post {
    struct tc_task task;
    void (*fn)(void *arg);
    void *arg;
};

static void on_post(struct tc_task *task)
{
    struct post *p = TC_CONTAINER_OF(task, struct post, task);
    void (*fn)(void *) = p->fn;
    void *arg = p->arg;
    tc_free(p);
    fn(arg);
}

int torc_runtime_post(torc_runtime *rt, void (*fn)(void *arg), void *arg)
{
    int rc = tc_runtime_check(rt);
    if (rc == 0 && !fn)
        rc = TORC_EINVAL;
    if (rc != 0)
        return rc;
    struct post *p = TC_NEW(struct post);
    p->fn = fn;
    p->arg = arg;
    tc_task_init(&p->task, on_post);
    tc_runtime_run(rt, &p->task);
    return 0;
}

struct tc_loop *tc_runtime_loop(const torc_runtime *rt)
{
    return rt->loop;
}

struct tc_pool *tc_runtime_pool(const torc_runtime *rt)
{
    return rt->pool;
}

struct tc_call_pool *tc_runtime_calls(const torc_runtime *rt)
{
    return rt->calls;
}

struct tc_link *tc_runtime_channels(torc_runtime *rt)
{
    return &rt->channels;
}

torc_xds_domain *tc_runtime_xds_domain(const torc_runtime *rt)
{
    return rt->xds_domain;
}

void *tc_runtime_extra(torc_runtime *rt, const void *key)
{
    for (struct tc_runtime_slot *slot = rt->slots; slot; slot = slot->next)
        if (slot->key == key)
            return slot->value;
    return NULL;
}

void tc_runtime_set_extra(torc_runtime *rt, const void *key, void *value, void (*fn)(void *value))
{
    struct tc_runtime_slot *slot = TC_NEW(struct tc_runtime_slot);
    slot->key = key;
    slot->value = value;
    slot->destroy = fn;
    slot->next = rt->slots;
    rt->slots = slot;
}

int tc_runtime_check(const torc_runtime *rt)
{
    if (!rt)
        return TORC_EINVAL;
    /* First: the loop is gone some time after it. */
    if (atomic_load_explicit(&rt->closed, memory_order_acquire))
        return TORC_ECLOSED;
    return tc_loop_forked(rt->loop) ? TORC_EFORK : 0;
}

void tc_runtime_run(torc_runtime *rt, struct tc_task *task)
{
    if (tc_loop_in_turn(rt->loop))
        tc_loop_defer(rt->loop, task);
    else
        tc_loop_post(rt->loop, task);
}
