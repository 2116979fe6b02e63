/* The filter types without settings (router, RBAC), and the lookup of overrides. parse_no_settings does not look at the
 * bytes: settings of the router, and a route's RBAC rules on a client, have no effect. */
#include "xds/resource/http_filter.h"

#include <stdlib.h>

static const void *parse_no_settings(const struct tc_http_filter_type *type, struct tc_slice config,
                                     struct tc_decoder *dec)
{
    (void)config;
    (void)dec;
    return type;
}

const struct tc_http_filter_type tc_http_filter_router = {
    .config_name = "envoy.extensions.filters.http.router.v3.Router",
    .terminal = true,
    .on_clients = true,
    .parse = parse_no_settings,
};

const struct tc_http_filter_type tc_http_filter_rbac = {
    .config_name = "envoy.extensions.filters.http.rbac.v3.RBAC",
    .override_name = "envoy.extensions.filters.http.rbac.v3.RBACPerRoute",
    .parse = parse_no_settings,
    .parse_override = parse_no_settings,
};

static int compare_overrides(const void *a, const void *b)
{
    const struct tc_http_filter_override *x = a, *y = b;
    return tc_slice_cmp(x->name, y->name);
}

void tc_http_filter_overrides_sort(struct tc_http_filter_override *at, size_t n)
{
    if (n)
        qsort(at, n, sizeof(*at), compare_overrides);
}

const struct tc_http_filter_override *tc_http_filter_override_find(const struct tc_http_filter_overrides *o,
                                                                   struct tc_slice name)
{
    const struct tc_http_filter_override key = {.name = name};
    return o->n ? bsearch(&key, o->at, o->n, sizeof(key), compare_overrides) : NULL;
}
