/* The xDS domain: xDS clients that several runtimes share, on a runtime of their own (torc/xds_domain.h).
 *
 * The handle and each runtime that shares the domain hold a reference. The thread that drops the last reference posts
 * part->end, frees the domain's runtime (which waits for the loop), and releases what xds/domain kept. So a runtime
 * must drop its reference outside of the domain's loop. */
#include "runtime/xds_domain.h"

#include <errno.h>
#include <pthread.h>

#include "base/mem.h"
#include "base/ref.h"
#include "base/thread.h"
#include "runtime/runtime.h"

struct torc_xds_domain {
    struct tc_ref ref; /* held by the handle, and by each runtime that shares the domain */
    torc_runtime *runtime;
    pthread_mutex_t mutex;
    /* Under the mutex until the last reference goes. */
    const struct tc_xds_domain_part *part;
    void *value;
};

torc_xds_domain *torc_xds_domain_new(torc_error **error)
{
    torc_runtime *runtime = torc_runtime_new(NULL, error);
    if (!runtime)
        return NULL;
    torc_xds_domain *d = TC_NEW(torc_xds_domain);
    tc_ref_init(&d->ref);
    d->runtime = runtime;
    pthread_mutex_init(&d->mutex, NULL);
    return d;
}

torc_runtime *tc_xds_domain_runtime(const torc_xds_domain *d)
{
    return d->runtime;
}

void *tc_xds_domain_get(torc_xds_domain *d, const struct tc_xds_domain_part *part)
{
    pthread_mutex_lock(&d->mutex);
    if (!d->part) {
        d->part = part;
        d->value = part->make(d);
    }
    void *value = d->value;
    pthread_mutex_unlock(&d->mutex);
    return value;
}

bool tc_xds_domain_hold(torc_xds_domain *d)
{
    if (tc_loop_forked(tc_runtime_loop(d->runtime)))
        return false;
    tc_ref_inc(&d->ref);
    return true;
}

void tc_xds_domain_drop(torc_xds_domain *d)
{
    if (!d || !tc_ref_dec(&d->ref))
        return;

    if (d->part)
        torc_runtime_post(d->runtime, d->part->end, d->value);
    if (torc_runtime_free(d->runtime) == TORC_EFORK)
        return; /* the thread that exits the process may be inside a turn, and call Torc */
    if (d->part)
        d->part->release(d->value);
    pthread_mutex_destroy(&d->mutex);
    tc_free(d);
}

int torc_xds_domain_free(torc_xds_domain *d)
{
    TC_NO_CANCEL;
    if (d && tc_loop_forked(tc_runtime_loop(d->runtime)))
        return TORC_EFORK;
    if (d && tc_loop_in_turn(tc_runtime_loop(d->runtime)))
        return TORC_EDEADLK;
    tc_xds_domain_drop(d);
    return 0;
}
