/* For the targets of the resource types: an input is a serialised resource, or its proto3 JSON when it begins with a
 * brace, with which no message begins (so that seeds can be read). */
#ifndef TC_FUZZ_RESOURCE_H
#define TC_FUZZ_RESOURCE_H

#include "fuzz.h"
#include "resource/registry.h"

/* Decodes it twice, checks that both results are equal and their faults sound, and returns one; NULL when refused. The
 * bytes that were decoded are left in `bytes`, an initialised buffer. */
struct tc_xds_resource *tc_fuzz_decode(const struct tc_xds_resource_type *type, const uint8_t *data, size_t size,
                                       struct tc_buf *bytes);

#endif
