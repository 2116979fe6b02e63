/* The process's resolvers, by scheme. Any thread. */
#include "base/fork.h"
#include "resolver/builtin.h"

enum { MAX_ADDED = 16 }; /* "xds", and room. An application's own resolvers belong to its channels */

static const struct tc_resolver_class *const standard[] = {
    &tc_resolver_ipv4,  &tc_resolver_ipv6, &tc_resolver_unix, &tc_resolver_unix_abstract,
    &tc_resolver_vsock, &tc_resolver_fd,   &tc_resolver_dns,
};

/* Guarded by the process's lock of rank TC_RANK_RESOLVERS. */
static const struct tc_resolver_class *added[MAX_ADDED];
static size_t n_added;

static const struct tc_resolver_class *class_find(struct tc_slice scheme)
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
    tc_lock_take(tc_lock_of_process(TC_RANK_RESOLVERS));
    if (class_find(tc_slice_str(cls->scheme)))
        rc = TORC_EEXIST;
    else if (n_added == MAX_ADDED)
        rc = TORC_ELIMIT;
    else
        added[n_added++] = cls;
    tc_lock_give(tc_lock_of_process(TC_RANK_RESOLVERS));
    return rc;
}

const struct tc_resolver_class *tc_resolver_find(struct tc_slice scheme)
{
    tc_lock_take(tc_lock_of_process(TC_RANK_RESOLVERS));
    const struct tc_resolver_class *cls = class_find(scheme);
    tc_lock_give(tc_lock_of_process(TC_RANK_RESOLVERS));
    return cls;
}

void tc_resolver_schemes(struct tc_buf *out)
{
    tc_lock_take(tc_lock_of_process(TC_RANK_RESOLVERS));
    for (size_t i = 0; i < TC_ARRAY_LEN(standard); i++)
        tc_buf_printf(out, "%s%s", i ? ", " : "", standard[i]->scheme);
    for (size_t i = 0; i < n_added; i++)
        tc_buf_printf(out, ", %s", added[i]->scheme);
    tc_lock_give(tc_lock_of_process(TC_RANK_RESOLVERS));
}
