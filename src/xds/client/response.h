/* Taking in a response: resources decoded and delivered, errors collected for one NACK (A46), the answer prepared. Loop
 * thread only. */
#ifndef TC_XDS_CLIENT_RESPONSE_H
#define TC_XDS_CLIENT_RESPONSE_H

#include "xds/client/response_context.h"

/* The two forms: a DiscoveryResponse, state of the world, and a DeltaDiscoveryResponse, incremental. */
extern const struct tc_xds_response_variant tc_xds_response_sotw, tc_xds_response_delta;

/* Decodes a resource, and delivers it, or its errors, to its entry. */
void tc_xds_response_apply_resource(struct tc_xds_response_context *ctx,
                                    const struct tc_xds_response_resource *resource);
/* xRFC TP3: the server says why it does not send a resource. Ignores an error without a name or with the code OK, of a
 * resource that nobody watches or that the response has named before, and one for which another server speaks (A71). */
void tc_xds_response_apply_error(struct tc_xds_response_context *ctx,
                                 const Envoy__Service__Discovery__V3__ResourceError *error);
/* The server has taken away a resource that is held. Does nothing if another server speaks for the resource (A71). */
void tc_xds_response_apply_deletion(struct tc_xds_response_context *ctx, struct tc_xds_entry *e);

/* Unpacks a response of this form and applies it, or has another thread decode it and applies it later
 * (decode_thread.h). A response that cannot be unpacked is answered with a NACK; if its type or nonce cannot be read
 * either, or the stream never asked for the type, it is ignored, and the function returns false. True for every other
 * response, also for a readable one of a type that the stream never asked for, which is ignored, too. Message and token
 * are borrowed. */
bool tc_xds_on_response(struct tc_xds_channel *ch, struct tc_rstr *message, struct tc_xds_token *token,
                        const struct tc_xds_response_variant *variant);

#endif
