/* loadBalancingConfig lists: what parses twice is equal. */
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "fuzz.h"
#include "mesh/registries.h"

static struct tc_lb_config *parse(const struct tc_lb_registry *registry, const json_t *list)
{
    struct tc_faults faults;
    tc_faults_init(&faults);
    struct tc_lb_config *c = tc_lb_parse_list(registry, list, 0, &faults);
    TC_FUZZ_CHECK((c == NULL) == tc_faults_any(&faults));
    TC_FUZZ_CHECK(faults.path.len == 0 && tc_utf8_valid(tc_slice_str(tc_faults_text(&faults))));
    tc_faults_fini(&faults);
    return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct tc_lb_registry *registry = tc_mesh_lb_registry();
    char *why = NULL;
    json_t *list = tc_json_parse(tc_slice_of(data, size), &why);
    TC_FUZZ_CHECK((list == NULL) == (why != NULL));
    if (list) {
        struct tc_lb_config *a = parse(registry, list), *b = parse(registry, list);
        TC_FUZZ_CHECK((a == NULL) == (b == NULL));
        TC_FUZZ_CHECK(!a || !a->cls->equal_config || tc_lb_config_eq(a, b));
        tc_lb_config_unref(a);
        tc_lb_config_unref(b);
    }
    tc_free(why);
    json_decref(list);
    return 0;
}
