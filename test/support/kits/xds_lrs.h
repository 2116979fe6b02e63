/* Load reports to kit_xds.server (kits/xds.h), one line each. */
#ifndef TC_SUPPORT_KITS_XDS_LRS_H
#define TC_SUPPORT_KITS_XDS_LRS_H

#include "support/kits/xds.h"

/* Returns the next message as one line:
 *
 *   message    "node ID;" if the message's node has the client feature envoy.lrs.supports_send_all_clusters, then the
 *              clusters; "empty" for a message with neither; "" if there is no message
 *   cluster    "CLUSTER/SERVICE SECONDS.MILLISs" (without "/SERVICE" if the service name is empty), localities,
 *              " dropped N" unless N is 0, " CATEGORY=N" for each category, ";"
 *   locality   " ZONE:GOOD+BAD/ISSUED~OPEN", metrics (CPU utilization as "cpu"), endpoints
 *   metric     " NAME=TOTAL/REQUESTS"
 *   endpoint   " [ADDRESS:PORT GOOD+BAD/ISSUED~OPEN", metrics, "]"; the path of a Unix socket instead of ADDRESS:PORT
 *
 * Borrowed until the next call, kit_xds_request or kit_xds_fini. */
const char *kit_xds_report(struct kit_xds *k);
/* Sends a response with this reporting interval and runs the loop. name: the cluster to report, borrowed for the call;
 * NULL: all clusters. The client is to report endpoints if k->lrs_endpoints is set. */
void kit_xds_lrs_answer(struct kit_xds *k, int64_t seconds, char *name);

#endif
