/* Load reports to the fake server of kits/xds, one line each. */
#ifndef TC_SUPPORT_KITS_XDS_LRS_H
#define TC_SUPPORT_KITS_XDS_LRS_H

#include "support/kits/xds.h"

/* Returns the next message as one line:
 *
 *   message    "node ID;" if the message has a node whose client features say that it can send all clusters, then the
 *              clusters; "empty" for a message without both; "" if there is no message
 *   cluster    "CLUSTER/SERVICE SECONDS.MILLISs", localities, " dropped N", " CATEGORY=N" for each category, ";"
 *   locality   " ZONE:GOOD+BAD/ISSUED~OPEN", metrics (CPU utilization as "cpu"), endpoints
 *   metric     " NAME=TOTAL/REQUESTS"
 *   endpoint   " [ADDRESS:PORT GOOD+BAD/ISSUED~OPEN", metrics, "]"; the path of a Unix socket instead of ADDRESS:PORT
 *
 * Borrowed until the next call or kit_xds_request. */
const char *kit_xds_report(struct kit_xds *k);
/* Tells the client how often to report, and by endpoint if k->lrs_endpoints. `name`: the cluster to report; NULL: all.
 */
void kit_xds_lrs_answer(struct kit_xds *k, int64_t seconds, char *name);

#endif
