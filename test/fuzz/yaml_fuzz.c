/* YAML, as files of resources are read; what it gives is JSON that reads as YAML to the same. */
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "fuzz.h"
#include "server/resource_set.h"
#include "server/yaml.h"

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
    struct tc_faults faults;
    struct tc_resource_set *set = tc_resource_set_new();
    tc_faults_init(&faults);
    tc_resource_set_add_json(set, v, &faults);
    tc_resource_set_version(set, NULL);
    tc_resource_set_free(set);
    tc_faults_fini(&faults);

    char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    TC_FUZZ_CHECK(text);
    json_t *again = tc_yaml_parse(tc_slice_str(text), &why);
    TC_FUZZ_CHECK(again ? json_equal(v, again) : why != NULL); /* libyaml's keys are at most 1,024 characters */
    tc_free(why);
    free(text);
    json_decref(again);
    json_decref(v);
    return 0;
}
