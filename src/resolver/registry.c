#include <pthread.h>

#include "resolver/builtin.h"

/* "xds" and room for what later modules add; the application's own resolvers belong to a channel, not here. */
#define MAX_ADDED 16

static const struct tc_resolver_class *const standard[] = {
    &tc_resolver_ipv4, &tc_resolver_ipv6, &tc_resolver_unix, &tc_resolver_unix_abstract, &tc_resolver_dns,
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const struct tc_resolver_class *added[MAX_ADDED];
static size_t n_added;

static const struct tc_resolver_class *find(struct tc_slice scheme)
{
    for (size_t i = 0; i < TC_ARRAY_LEN(standard); i++)
        if (tc_slice_eq_str(scheme, standard[i]->scheme))
            return standard[i];
    for (size_t i = 0; i < n_added; i++)
        if (tc_slice_eq_str(scheme, added[i]->scheme))
            return added[i];
    return NULL;
}

int tc_resolver_register(const struct tc_resolver_class *cls)
{
    int rc = 0;
    pthread_mutex_lock(&mutex);
    if (find(tc_slice_str(cls->scheme)))
        rc = TORC_EEXIST;
    else if (n_added == MAX_ADDED)
        rc = TORC_ELIMIT;
    else
        added[n_added++] = cls;
    pthread_mutex_unlock(&mutex);
    return rc;
}

const struct tc_resolver_class *tc_resolver_find(struct tc_slice scheme)
{
    pthread_mutex_lock(&mutex);
    const struct tc_resolver_class *cls = find(scheme);
    pthread_mutex_unlock(&mutex);
    return cls;
}

void tc_resolver_schemes(struct tc_buf *out)
{
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < TC_ARRAY_LEN(standard); i++)
        tc_buf_printf(out, "%s%s", i ? ", " : "", standard[i]->scheme);
    for (size_t i = 0; i < n_added; i++)
        tc_buf_printf(out, ", %s", added[i]->scheme);
    pthread_mutex_unlock(&mutex);
}
