/* Service configs in JSON, and what calls read from an accepted one. */
#include "api/builtin.h"
#include "base/mem.h"
#include "base/parse.h"
#include "channel/service_config.h"
#include "fuzz.h"
#include "lb/registry.h"

static const char *const paths[] = {"/a.B/C", "/a.B/D", "/x/y", "/", "", "a.B/C"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct tc_lb_registry *registry = tc_builtin_policies();
    char *why = NULL;
    struct tc_service_config *c = tc_service_config_parse(registry, tc_slice_of(data, size), &why);
    if (!c) {
        TC_FUZZ_CHECK(why && why[0] && tc_utf8_valid(tc_slice_str(why)));
        tc_free(why);
        return 0;
    }
    TC_FUZZ_CHECK(!why);
    struct tc_lb_config *lb = tc_service_config_lb(c);
    TC_FUZZ_CHECK(!lb || tc_lb_registry_find(registry, tc_slice_str(lb->factory->name)) == lb->factory);
    for (size_t i = 0; i < TC_ARRAY_LEN(paths); i++) {
        const struct tc_method_config *m = tc_service_config_method(c, tc_slice_str(paths[i]));
        TC_FUZZ_CHECK(!m || (m->wait_for_ready >= -1 && m->wait_for_ready <= 1));
    }
    tc_service_config_unref(c);
    return 0;
}
