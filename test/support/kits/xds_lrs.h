/* Load reports to the fake server of kits/xds, one line each. */
#ifndef TC_SUPPORT_KITS_XDS_LRS_H
#define TC_SUPPORT_KITS_XDS_LRS_H

#include "support/kits/xds.h"

/* Returns the next message as "cluster/service SECONDSs ZONE:good+bad/issued~open METRIC=total/requests [ADDRESS:PORT
 * good+bad/issued~open ...]... dropped n category=n;" for each cluster, behind "node ID;" if it has a node whose
 * client features say that it can send all clusters; "empty" if it has neither; or "" if there is no message. Borrowed
 * until the next call or kit_xds_request. */
const char *kit_xds_report(struct kit_xds *k);
/* Tells the client how often to report, and by endpoint if k->lrs_endpoints. `name`: the cluster to report; NULL: all.
 */
void kit_xds_lrs_answer(struct kit_xds *k, int64_t seconds, char *name);

#endif
