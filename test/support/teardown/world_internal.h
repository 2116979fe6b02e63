/* struct teardown, for world.c and flows.c. */
#ifndef TC_SUPPORT_TEARDOWN_WORLD_INTERNAL_H
#define TC_SUPPORT_TEARDOWN_WORLD_INTERNAL_H

#include <stdatomic.h>

#include "support/kits/tls_mesh.h"
#include "support/net/http_server.h"
#include "support/net/name_server.h"
#include "support/teardown/answers.h"
#include "support/teardown/world.h"

/* The backends. HELD never answers. SECURE and OPEN use TLS; SECURE requires a client certificate, OPEN does not. */
enum { PLAIN_A, PLAIN_B, HELD, SECURE, OPEN, BACKENDS };

#define TEARDOWN_NAME "b.mesh.test" /* in the servers' certificate */

enum { TEARDOWN_FLOWS = 23 };

struct teardown {
    struct kit_tls_mesh tls;
    struct kit_mesh *k; /* borrowed from `tls` */
    /* teardown_free frees the objects that the members below point to. */
    struct http_server *proxy, *metadata;
    struct tc_rng proxy_rng, metadata_rng; /* one for each server thread */
    struct name_server *names;
    struct answers *answers;
    struct kit_cert renewed; /* another certificate for the client */
    /* TLS with the client's certificate; TLS without a certificate; xds whose fallback is insecure. */
    torc_credentials *mutual, *open, *xds;
    uint64_t load_streams, opened[TEARDOWN_FLOWS];                          /* streams of load reports; channels */
    atomic_uint_fast64_t succeeded[TEARDOWN_FLOWS], failed[TEARDOWN_FLOWS]; /* RPCs */
};

#endif
