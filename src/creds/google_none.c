/* torc_credentials_google_default in a library that was built with TORC_HTTP_CREDENTIALS off: it always fails. */
#include "base/status.h"
#include "creds/creds.h"

torc_credentials *torc_credentials_google_default(const struct torc_google_options *options TC_UNUSED,
                                                  torc_error **error)
{
    if (!tc_error_pending(error))
        tc_error_set(error, TORC_EUNSUPPORTED, TORC_LAYER_CREDENTIALS, "Torc was built without credentials by HTTP");
    return NULL;
}
