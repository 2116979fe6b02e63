/* Large responses are decoded by another thread before they are applied, so that the loop, and with it all RPCs, does
 * not wait for that. What decoding leads to is then done on the loop as always. */
#ifndef TC_XDS_RESPONSE_AHEAD_H
#define TC_XDS_RESPONSE_AHEAD_H

#include "xds/response_impl.h"

/* A resource that was decoded, whatever came of it. */
struct tc_xds_decoded {
    size_t index; /* in the response */
    struct tc_slice bytes;
    struct tc_xds_resource *resource; /* NULL: none */
    struct tc_rstr *own_name;
    struct tc_rstr *faults; /* their text; NULL: there are none */
};

/* True when the response, unpacked into `arena` as `m`, is decoded elsewhere and applied later: all but ch and form is
 * taken over then, `done` by a reference. The channel gives up on it by tc_xds_ahead_abandon. */
bool tc_xds_ahead_begin(struct tc_xds_channel *ch, const struct tc_xds_form *form, struct tc_rstr *message,
                        struct tc_arena *arena, const ProtobufCMessage *m, struct tc_xds_done *done);
/* What was decoded of resource `index`, to be taken from; NULL: nothing. The indexes asked for grow. */
struct tc_xds_decoded *tc_xds_ahead_find(struct tc_xds_ahead *h, size_t index);

#endif
