/* Inside of teardown_world. */
#ifndef TC_SUPPORT_TEARDOWN_WORLD_IMPL_H
#define TC_SUPPORT_TEARDOWN_WORLD_IMPL_H

#include <stdatomic.h>

#include "support/http_stub.h"
#include "support/name_server.h"
#include "support/teardown_answers.h"
#include "support/teardown_world.h"
#include "support/tls_world.h"

enum { PLAIN_A, PLAIN_B, HELD, SECURE, OPEN, BACKENDS }; /* SECURE demands certificates of clients, OPEN does not */

#define TEARDOWN_NAME "b.mesh.test" /* of the servers' certificate */

enum { TEARDOWN_FLOWS = 23 };

struct teardown_world {
    struct tls_world tls;
    struct mesh_kit *k; /* of it */
    struct http_stub *proxy, *metadata;
    struct tc_rng proxy_rng, metadata_rng; /* of their threads */
    struct name_server *names;
    struct answers *answers;
    struct tc_cert renewed; /* another certificate of the client */
    torc_credentials *mutual, *open, *xds;
    uint64_t load_streams, opened[TEARDOWN_FLOWS];
    atomic_uint_fast64_t succeeded[TEARDOWN_FLOWS], failed[TEARDOWN_FLOWS];
};

#endif
