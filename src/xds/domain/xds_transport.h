/* The xDS client's transport on Torc's own channels (xds/client/transport.h). Loop thread only. */
#ifndef TC_XDS_DOMAIN_XDS_TRANSPORT_H
#define TC_XDS_DOMAIN_XDS_TRANSPORT_H

#include <torc/credentials.h>
#include <torc/runtime.h>

#include "io/backoff.h"
#include "xds/client/transport.h"

/* The default of the bootstrap's ads_message_bytes: 64 MiB. */
#define TC_XDS_ADS_MAX_MESSAGE_BYTES (UINT64_C(64) << 20)

/* Embedded in the object that owns the client; must outlive the client. */
struct tc_channel_transport_factory {
    struct tc_xds_transport_factory base;
    torc_runtime *runtime; /* borrowed */
    /* Channel credentials for servers without channel_creds; NULL: insecure. A reference, which the owner of the
     * factory releases. */
    torc_credentials *credentials;
    struct tc_backoff_opts backoff; /* of the channels */
    uint64_t max_message_bytes;     /* of one response */
};

/* Initialises the factory; max_message_bytes becomes TC_XDS_ADS_MAX_MESSAGE_BYTES. Takes a reference of the
 * credentials, which may be NULL, and copies `backoff`. */
void tc_channel_transport_init(struct tc_channel_transport_factory *f, torc_runtime *runtime,
                               torc_credentials *credentials, const struct tc_backoff_opts *backoff);

#endif
