/* The frame around the decoding of a resource of any type: tc_decode_begin, the type's own part, tc_decode_end. A
 * type's struct has struct tc_decoded first. Any thread decodes, each with a context of its own. */
#ifndef TC_XDS_RESOURCE_DECODED_H
#define TC_XDS_RESOURCE_DECODED_H

#include "xds/resource/decoder.h"

/* Prepares a resource, zeroed from TC_NEW, with one reference, and the decoder that fills it. `bytes` is the
 * message. */
void tc_decode_begin(struct tc_decoder *dec, struct tc_decoded *out, const struct tc_xds_resource_type *type,
                     const struct tc_xds_decode_context *ctx, struct tc_slice bytes,
                     struct tc_validation_errors *errors);
/* Stores the resource's name in *name, a new reference. The name is `text`. If `text` is NULL (the message cannot be
 * unpacked) the name is tc_decode_name of the bytes, which may be NULL. Returns a string that the resource keeps, or
 * NULL if `text` is NULL. */
struct tc_rstr *tc_decode_take_name(struct tc_decoder *dec, const char *text, struct tc_slice bytes,
                                    struct tc_rstr **name);
/* Ends the decoder. Returns the resource, which now has a copy of the bytes. Frees it and returns NULL if errors were
 * added since tc_decode_begin. */
struct tc_xds_resource *tc_decode_end(struct tc_decoder *dec, struct tc_decoded *out, struct tc_slice bytes);

/* For struct tc_xds_resource_type: `free`, and `equal` for types whose meaning depends on the bytes alone. */
void tc_decoded_free(struct tc_xds_resource *r);
bool tc_decoded_equal(const struct tc_xds_resource *a, const struct tc_xds_resource *b);

#endif
