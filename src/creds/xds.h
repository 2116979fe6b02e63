/* xds credentials (A29), as a channel sees them: its connections use the fallback, unless a cluster brings security of
 * its own. Any thread. */
#ifndef TC_CREDS_XDS_H
#define TC_CREDS_XDS_H

#include "creds/creds.h"

#define TC_CREDS_XDS "xds"

/* Returns the fallback, borrowed; NULL when `c` are not xds credentials. */
torc_credentials *tc_credentials_xds_fallback(const torc_credentials *c);

#endif
