/* xds credentials (A29), as a channel sees them: it takes the fallback for what is not secured by a cluster. */
#ifndef TC_CREDS_XDS_H
#define TC_CREDS_XDS_H

#include "creds/creds.h"

#define TC_CREDS_XDS "xds"

/* Borrowed; NULL when the credentials are no xds credentials. */
torc_credentials *tc_credentials_xds_fallback(const torc_credentials *c);

#endif
