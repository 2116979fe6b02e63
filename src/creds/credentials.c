#include "creds/creds.h"

torc_credentials *torc_credentials_ref(torc_credentials *c)
{
    if (c)
        tc_ref_inc(&c->ref);
    return c;
}

void torc_credentials_unref(torc_credentials *c)
{
    if (c && tc_ref_dec(&c->ref))
        c->ops->free(c);
}
