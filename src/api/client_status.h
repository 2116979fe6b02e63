/* The resources of an xDS client and their states, as messages of envoy.service.status.v3 (A40, A88; client_scope:
 * A71). Loop thread of the client.
 */
#ifndef TC_API_CLIENT_STATUS_H
#define TC_API_CLIENT_STATUS_H

#include "base/arena.h"
#include "pb/envoy/service/status/v3/csds.pb-c.h"
#include "xds/client/client.h"

/* Returns the status of a client without resources yet: node and scope. In the arena. */
Envoy__Service__Status__V3__ClientConfig *tc_client_status_new(struct tc_arena *arena,
                                                               const struct tc_xds_bootstrap *bootstrap,
                                                               struct tc_slice target);
/* Returns the status of a resource. Borrows the entry's bytes and type, copies the rest. A resource that was never
 * received has no content; a resource that is not used has no version. */
Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig *tc_client_status_resource(struct tc_arena *arena,
                                                                                      const struct tc_xds_dump_entry *e,
                                                                                      bool without_contents);

#endif
