/* loadBalancingConfig lists. A list parsed twice gives the same outcome, and equal configs if its policy compares
 * configs. */
#include "api/builtin.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "fuzz.h"
#include "lb/registry.h"

static struct tc_lb_config *parse(const struct tc_lb_registry *registry, const json_t *list)
{
    struct tc_validation_errors errors = {0};
    struct tc_lb_config *c = tc_lb_parse_list(registry, list, 0, &errors);
    TC_FUZZ_CHECK((c == NULL) == tc_validation_any(&errors));
    TC_FUZZ_CHECK(errors.path.len == 0 && tc_utf8_valid(tc_slice_str(tc_validation_text(&errors))));
    tc_validation_fini(&errors);
    return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct tc_lb_registry *registry = tc_builtin_policies();
    char *why = NULL;
    json_t *list = tc_json_parse(tc_slice_of(data, size), &why);
    TC_FUZZ_CHECK((list == NULL) == (why != NULL));
    if (list) {
        struct tc_lb_config *a = parse(registry, list), *b = parse(registry, list);
        TC_FUZZ_CHECK((a == NULL) == (b == NULL));
        TC_FUZZ_CHECK(!a || !a->factory->equal_config || tc_lb_config_eq(a, b));
        tc_lb_config_unref(a);
        tc_lb_config_unref(b);
    }
    tc_free(why);
    json_decref(list);
    return 0;
}
