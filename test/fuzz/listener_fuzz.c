/* Listeners (resource.h). An accepted Listener with an api_listener has filters, and either an RDS name or inline
 * routes. */
#include "resource.h"
#include "xds/resource/listener.h"
#include "xds/resource/route_match.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_buf bytes = {0};
    struct tc_xds_resource *r = tc_fuzz_decode(&tc_listener_type, data, size, &bytes);
    if (r) {
        const struct tc_listener *l = tc_listener_of(r);
        TC_FUZZ_CHECK(l->name);
        if (l->is_api)
            TC_FUZZ_CHECK((l->rds_name != NULL) != (l->routes != NULL) && l->n_filters > 0);
        if (l->routes)
            (void)tc_route_table_find(l->routes, tc_slice_str("a.b"));
    }
    tc_xds_resource_unref(r);
    tc_buf_fini(&bytes);
    return 0;
}
