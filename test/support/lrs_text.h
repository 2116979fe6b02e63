/* Load reports to the fake server of an xds_kit, in a line each. */
#ifndef TC_SUPPORT_LRS_TEXT_H
#define TC_SUPPORT_LRS_TEXT_H

#include "support/xds_kit.h"

/* The next message as "cluster/service SECONDS ZONE:good+bad/issued~open ... dropped n category=n;", "node" for the
 * first, "empty", or "" when there is none. Borrowed until the next call or request. */
const char *tc_kit_report(struct tc_kit *k);
/* Tells the client to report that often. `name`: a cluster that is asked for; NULL: all. */
void tc_kit_lrs_answer(struct tc_kit *k, int64_t seconds, char *name);

#endif
