/* For the fuzz targets of resource types. An input is a serialised resource or, so that seeds are readable, its proto3
 * JSON. It is JSON if it begins with a brace: in a message that byte begins a group, which proto/scan rejects. */
#ifndef TC_FUZZ_RESOURCE_H
#define TC_FUZZ_RESOURCE_H

#include "fuzz.h"
#include "xds/resource/registry.h"

/* Decodes the input twice, and checks the errors and that both results are equal. Returns the resource, which the
 * caller frees with tc_xds_resource_unref; NULL if the input is invalid. Stores the bytes that were decoded in `bytes`,
 * which is empty before, and which the caller frees. `bytes` stays empty if the input begins with a brace but is not
 * accepted as JSON of this type. */
struct tc_xds_resource *tc_fuzz_decode(const struct tc_xds_resource_type *type, const uint8_t *data, size_t size,
                                       struct tc_buf *bytes);

#endif
