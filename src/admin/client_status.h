/* What an xDS client holds, as envoy.service.status.v3 has it (A40, A88; client_scope: A71). */
#ifndef TC_ADMIN_CLIENT_STATUS_H
#define TC_ADMIN_CLIENT_STATUS_H

#include "base/arena.h"
#include "pb/envoy/service/status/v3/csds.pb-c.h"
#include "xds/client.h"

/* The frame of one client's status: node and scope, no resources yet. All in the arena. */
Envoy__Service__Status__V3__ClientConfig *tc_client_status_new(struct tc_arena *arena,
                                                               const struct tc_xds_bootstrap *bootstrap,
                                                               struct tc_slice target);
/* One resource. Borrows the entry's bytes (and its type), copies the rest. A resource that was never received has no
 * content; one that is not used has no version. */
Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig *tc_client_status_resource(struct tc_arena *arena,
                                                                                      const struct tc_xds_dump_entry *e,
                                                                                      bool without_contents);

#endif
