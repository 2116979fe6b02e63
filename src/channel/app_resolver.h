/* Resolvers of the application's own (torc/resolver.h) as resolvers of src/resolver. */
#ifndef TC_CHANNEL_APP_RESOLVER_H
#define TC_CHANNEL_APP_RESOLVER_H

#include <torc/resolver.h>

#include "resolver/resolver.h"

struct tc_app_resolver_class {
    struct tc_resolver_class base;
    struct torc_resolver_class app; /* a copy: the resolver may end after the application's is gone */
};

void tc_app_resolver_class_init(struct tc_app_resolver_class *c, const struct torc_resolver_class *app);

#endif
