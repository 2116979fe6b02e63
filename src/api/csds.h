/* The client status of a runtime's xDS clients, as a snapshot that any thread may read (A40). */
#ifndef TC_API_CSDS_H
#define TC_API_CSDS_H

#include <torc/admin.h>

#include "base/buf.h"
#include "pb/envoy/service/status/v3/csds.pb-c.h"

/* The client status of all xDS clients of a runtime at one moment. Immutable. */
struct tc_csds_snapshot;

/* Returns the runtime that has the xDS clients of `rt`: `rt` itself, or the runtime of its xDS domain. Borrowed, valid
 * until `rt` is freed. Any thread. */
torc_runtime *tc_csds_source(torc_runtime *rt);
/* Returns a snapshot for tc_csds_snapshot_free. without_contents leaves the bytes of resources out. Called on the loop
 * of `source`, which tc_csds_source returned. */
struct tc_csds_snapshot *tc_csds_snapshot_new(torc_runtime *source, bool without_contents);
/* Returns the response, which lives as long as the snapshot. Any thread. */
const Envoy__Service__Status__V3__ClientStatusResponse *tc_csds_snapshot_response(const struct tc_csds_snapshot *s);
/* NULL is allowed. Any thread. */
void tc_csds_snapshot_free(struct tc_csds_snapshot *s);

#endif
