/* Resolvers of the application's own (torc/resolver.h) as resolvers of src/resolver. Any thread. */
#ifndef TC_API_RESOLVER_ADAPTER_H
#define TC_API_RESOLVER_ADAPTER_H

#include <torc/resolver.h>

#include "base/status.h"
#include "resolver/resolver.h"

/* A class of resolvers that call an application's factory. Owned by the channel, which outlives these resolvers. */
struct tc_app_resolver_class {
    struct tc_resolver_class base;
    struct torc_resolver_factory app; /* a copy: the application's struct may be gone */
};

/* Copies `app`, which is resolvers[i] of the channel's options. Its scheme is borrowed until its `release` is called.
 * Resolvers point at `c`, which must not move. Returns false with an error if `app` is malformed. */
bool tc_app_resolver_class_init(struct tc_app_resolver_class *c, const struct torc_resolver_factory *app, size_t i,
                                torc_error **error);

#endif
