/* Names of resources, old style and xdstp. The canonical form of an accepted name parses to itself. */
#include "base/mem.h"
#include "fuzz.h"
#include "xds/client/name.h"
#include "xds/resource/listener.h"

static void check_name(struct tc_slice text)
{
    struct tc_xds_name name = {0}, again = {0};
    char *why = NULL;
    if (!tc_xds_name_parse(&tc_listener_type, text, &name, &why)) {
        TC_FUZZ_CHECK(why && why[0]);
        tc_free(why);
        return;
    }
    TC_FUZZ_CHECK(name.federated == tc_slice_starts(text, tc_slice_str("xdstp:")));
    TC_FUZZ_CHECK(name.text && (name.authority != NULL) == name.federated);
    TC_FUZZ_CHECK(tc_xds_name_parse(&tc_listener_type, tc_rstr_slice(name.text), &again, &why));
    TC_FUZZ_CHECK(tc_rstr_eq(name.text, again.text));
    TC_FUZZ_CHECK(tc_rstr_eq(name.authority, again.authority));
    tc_xds_name_fini(&again);
    tc_xds_name_fini(&name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_name(tc_slice_of(data, size));
    return 0;
}
