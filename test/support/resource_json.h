/* xDS resources for tests out of proto3 JSON, in which ' stands for ". */
#ifndef TC_SUPPORT_RESOURCE_JSON_H
#define TC_SUPPORT_RESOURCE_JSON_H

#include "resource/registry.h"

/* The serialised message of that type; fails the test when the JSON is none of it. The caller ends the buffer. */
struct tc_buf tc_test_message(const char *full_name, const char *json);
/* Decodes the resource; ctx may be NULL. When it is refused: NULL, and *faults (tc_free) gets the text. When it is
 * valid *faults is NULL. */
struct tc_xds_resource *tc_test_decode(const struct tc_xds_resource_type *type, const struct tc_xds_decode_context *ctx,
                                       const char *json, char **faults);
/* Fails the test unless the resource is valid; the caller unrefs it. */
struct tc_xds_resource *tc_test_valid(const struct tc_xds_resource_type *type, const struct tc_xds_decode_context *ctx,
                                      const char *json);
/* Fails the test unless the resource is refused and the fault text contains `fault`. */
void tc_test_refused(const struct tc_xds_resource_type *type, const struct tc_xds_decode_context *ctx, const char *json,
                     const char *fault);

#endif
