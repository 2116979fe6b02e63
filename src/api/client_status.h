/* The resources of an xDS client and their states, as messages of envoy.service.status.v3 (A40, A88; client_scope:
 * A71). The functions read their arguments alone: any thread that may read these. `arena` must have no budget, so that
 * no function returns NULL. */
#ifndef TC_API_CLIENT_STATUS_H
#define TC_API_CLIENT_STATUS_H

#include "base/arena.h"
#include "pb/envoy/service/status/v3/csds.pb-c.h"
#include "xds/client/client.h"

/* Returns, in the arena, the status of a client with its node and client_scope (`target`), and no resources yet. */
Envoy__Service__Status__V3__ClientConfig *tc_client_status_new(struct tc_arena *arena,
                                                               const struct tc_xds_bootstrap *bootstrap,
                                                               struct tc_slice target);
/* Returns, in the arena, the status of a resource. Borrows the entry's bytes and type URL, so the caller keeps a
 * reference to the bytes as long as the message; copies the rest. A resource that has no value in use has neither
 * version nor content. without_contents leaves the content out. */
Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig *tc_client_status_resource(struct tc_arena *arena,
                                                                                      const struct tc_xds_dump_entry *e,
                                                                                      bool without_contents);

#endif
