#include "channel/xds_domain.h"

#include <errno.h>
#include <pthread.h>

#include "base/mem.h"
#include "base/ref.h"
#include "channel/runtime.h"

struct torc_xds_domain {
    struct tc_ref ref; /* the application's, and one for each runtime that shares it */
    torc_runtime *runtime;
    pthread_mutex_t mutex;
    /* Under the mutex until the last reference goes. */
    const struct tc_xds_domain_part *part;
    void *value;
};

torc_xds_domain *torc_xds_domain_new(void)
{
    torc_runtime *runtime = torc_runtime_new(NULL);
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
    /* Posts run in order: what was sent to the loop before is through when it ends. */
    if (d->part)
        torc_runtime_post(d->runtime, d->part->end, d->value);
    torc_runtime_free(d->runtime);
    if (d->part)
        d->part->release(d->value);
    pthread_mutex_destroy(&d->mutex);
    tc_free(d);
}

int torc_xds_domain_free(torc_xds_domain *d)
{
    if (d && tc_loop_forked(tc_runtime_loop(d->runtime)))
        return TORC_EFORK;
    if (d && tc_loop_in_turn(tc_runtime_loop(d->runtime)))
        return TORC_EDEADLK;
    tc_xds_domain_drop(d);
    return 0;
}
