/* YAML as in resource files. A parsed document is loaded as resources, whether it has any or not. Its JSON form parses
 * to the same value, or is refused with a reason. */
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "controlplane/resource_load.h"
#include "controlplane/yaml.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *why = NULL;
    json_t *v = tc_yaml_parse(tc_slice_of(data, size), &why);
    if (!v) {
        TC_FUZZ_CHECK(why && why[0]);
        tc_free(why);
        return 0;
    }
    TC_FUZZ_CHECK(!why);
    struct tc_validation_errors errors = {0};
    struct tc_resource_set *set = tc_resource_set_new();
    tc_resource_set_add_json(set, v, &errors);
    tc_resource_set_version(set, NULL);
    tc_resource_set_free(set);
    tc_validation_fini(&errors);

    char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    TC_FUZZ_CHECK(text);
    json_t *again = tc_yaml_parse(tc_slice_str(text), &why);
    /* The JSON is refused if it has a surrogate pair: libyaml does not read one, and JSON_ENSURE_ASCII writes one for a
     * character above U+FFFF. The JSON is also refused if it has U+007F: jansson does not escape it, and libyaml reads
     * it only as an escape. The JSON is also refused if a key has more than 1,024 characters, quotes included, which
     * happens because escapes lengthen keys, and because YAML has no limit for a key written with '?'. */
    TC_FUZZ_CHECK(again ? json_equal(v, again) : why != NULL);
    tc_free(why);
    free(text);
    json_decref(again);
    json_decref(v);
    return 0;
}
