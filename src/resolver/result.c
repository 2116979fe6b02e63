#include "resolver/resolver.h"

void tc_resolver_result_fini(struct tc_resolver_result *r)
{
    if (r->endpoints)
        tc_endpoints_unref(r->endpoints);
    tc_status_fini(&r->status);
    tc_rstr_unref(r->service_config);
    if (r->lb_config)
        tc_lb_config_unref(r->lb_config);
    tc_config_selector_unref(r->selector);
    if (r->attributes && r->attributes_unref)
        r->attributes_unref(r->attributes);
    *r = (struct tc_resolver_result){0};
}
