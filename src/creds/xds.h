/* xds credentials (A29), as a channel sees them: its connections use the fallback, unless a cluster brings security of
 * its own. Any thread. */
#ifndef TC_CREDS_XDS_H
#define TC_CREDS_XDS_H

#include "creds/creds.h"

#define TC_CREDS_XDS "xds"

/* Returns the fallback, borrowed; NULL if `c` is not xds credentials. A composite is not: pass its channel's part
 * (tc_creds_channel). */
torc_credentials *tc_credentials_xds_fallback(const torc_credentials *c);

#endif
