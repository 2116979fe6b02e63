/* References of channel credentials. Static ones (ops->free NULL) are not counted. Any thread. */
#include "base/cancel.h"
#include "creds/creds.h"

torc_credentials *torc_credentials_ref(torc_credentials *c)
{
    if (c && c->ops->free)
        tc_ref_inc(&c->ref);
    return c;
}

void torc_credentials_unref(torc_credentials *c)
{
    TC_NO_CANCEL;
    if (c && c->ops->free && tc_ref_dec(&c->ref))
        c->ops->free(c);
}
