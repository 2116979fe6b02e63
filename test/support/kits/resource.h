/* xDS resources from proto3 JSON, in which ' stands for ". */
#ifndef TC_SUPPORT_KITS_RESOURCE_H
#define TC_SUPPORT_KITS_RESOURCE_H

#include "xds/resource/registry.h"

/* Returns the message of the type `full_name` ("envoy.config.cluster.v3.Cluster"), serialised. Fails the test if the
 * JSON is not valid. The caller ends the buffer (tc_buf_fini). */
struct tc_buf kit_resource_message(const char *full_name, const char *json);
/* Decodes the resource. ctx NULL: with the validation context of the process, and without a bootstrap. Returns the
 * resource, for tc_xds_resource_unref, and sets *errors to NULL. If the resource is invalid, returns NULL and sets
 * *errors to the text, which the caller frees with tc_free. */
struct tc_xds_resource *kit_resource_decode(const struct tc_xds_resource_type *type,
                                            const struct tc_xds_decode_context *ctx, const char *json, char **errors);
/* Decodes as kit_resource_decode does. Fails the test unless the resource is valid. The caller unrefs the resource. */
struct tc_xds_resource *kit_resource_valid(const struct tc_xds_resource_type *type,
                                           const struct tc_xds_decode_context *ctx, const char *json);
/* Fails the test unless the resource is rejected with a text that contains `fault`. */
void kit_resource_refused(const struct tc_xds_resource_type *type, const struct tc_xds_decode_context *ctx,
                          const char *json, const char *fault);

#endif
