/* Responses: decodes and delivers the resources, collects errors for one NACK (A46), and queues the answer. Loop thread
 * only. */
#ifndef TC_XDS_CLIENT_RESPONSE_H
#define TC_XDS_CLIENT_RESPONSE_H

#include "xds/client/response_context.h"

/* The two forms: a DiscoveryResponse, state of the world, and a DeltaDiscoveryResponse, incremental. */
extern const struct tc_xds_response_variant tc_xds_response_sotw, tc_xds_response_delta;

/* Decodes a resource, unless its bytes are unchanged, and delivers the resource or its errors to the entry. Errors also
 * go into the NACK. */
void tc_xds_response_apply_resource(struct tc_xds_response_context *ctx,
                                    const struct tc_xds_response_resource *resource);
/* Delivers the server's reason for not sending a resource (xRFC TP3). Ignores an error without a name or with the code
 * OK, and an error of a resource that nobody watches, that the response has named before, or for which another server
 * speaks (A71). */
void tc_xds_response_apply_error(struct tc_xds_response_context *ctx,
                                 const Envoy__Service__Discovery__V3__ResourceError *error);
/* The server has deleted a resource whose value is in use. Does nothing if another server speaks for the resource
 * (A71). */
void tc_xds_response_apply_deletion(struct tc_xds_response_context *ctx, struct tc_xds_entry *e);

/* Unpacks a response of this form and applies it, or has another thread decode it and applies it later
 * (decode_thread.h). Ignores a response of a type that the stream never asked for. A response that cannot be unpacked
 * is answered with a NACK. Returns false if a response cannot be unpacked and is ignored, because its nonce has a NUL
 * or invalid UTF-8, or its type is not one that the stream asked for. Message and token are borrowed. */
bool tc_xds_on_response(struct tc_xds_channel *ch, struct tc_rstr *message, struct tc_xds_token *token,
                        const struct tc_xds_response_variant *variant);

#endif
