/* The targets of the resource types: an input is a serialised resource, or its proto3 JSON if it begins with a brace
 * (no message begins with one), so that seeds are readable. */
#ifndef TC_FUZZ_RESOURCE_H
#define TC_FUZZ_RESOURCE_H

#include "fuzz.h"
#include "xds/resource/registry.h"

/* Decodes the input twice, checks that both results are equal and their errors sound, and returns one, or NULL if it is
 * invalid. `bytes`, an initialised buffer, receives the decoded bytes. */
struct tc_xds_resource *tc_fuzz_decode(const struct tc_xds_resource_type *type, const uint8_t *data, size_t size,
                                       struct tc_buf *bytes);

#endif
