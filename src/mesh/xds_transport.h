/* The xDS client's transport on Torc's own channels (xds/transport.h). */
#ifndef TC_MESH_XDS_TRANSPORT_H
#define TC_MESH_XDS_TRANSPORT_H

#include <torc/credentials.h>
#include <torc/runtime.h>

#include "io/backoff.h"
#include "xds/transport.h"

/* What a response of the control plane may have at most, by default. */
#define TC_MESH_ADS_MAX_MESSAGE_BYTES (UINT64_C(64) << 20)

/* Embedded in whoever owns the client; must outlive it. */
struct tc_mesh_transport_factory {
    struct tc_xds_transport_factory base;
    torc_runtime *runtime;
    torc_credentials *credentials; /* for servers without channel_creds; a reference; NULL: insecure */
    struct tc_backoff_opts backoff;
    uint64_t max_message_bytes; /* of a response; TC_MESH_ADS_MAX_MESSAGE_BYTES */
};

void tc_mesh_transport_factory_init(struct tc_mesh_transport_factory *f, torc_runtime *runtime,
                                    torc_credentials *credentials, const struct tc_backoff_opts *backoff);
void tc_mesh_transport_factory_fini(struct tc_mesh_transport_factory *f);

#endif
