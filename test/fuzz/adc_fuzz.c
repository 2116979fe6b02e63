/* Application default credentials files: an accepted file gives credentials, a rejected one gives a reason. */
#include "base/mem.h"
#include "creds/call/adc.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *why = NULL;
    torc_call_credentials *c = tc_adc_parse(tc_slice_of(data, size), NULL, &why);
    TC_FUZZ_CHECK(c ? !why : why && why[0]);
    TC_FUZZ_CHECK(!c || strcmp(c->ops->type, "google_default") == 0);
    torc_call_credentials_unref(c);
    tc_free(why);
    return 0;
}
