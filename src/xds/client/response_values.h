/* Takes the bytes of the resources out of a response before it is unpacked, so that they are not copied. Any thread. */
#ifndef TC_XDS_CLIENT_RESPONSE_VALUES_H
#define TC_XDS_CLIENT_RESPONSE_VALUES_H

#include "base/buf.h"
#include "base/vec.h"

typedef TC_VEC(struct tc_slice) tc_xds_values;

/* Appends the response without the `value` of its Anys to `rest`. Appends each `value` to `values` in order, one slice
 * for each resource, borrowed from the response. `levels` is the number of messages around the Any: 1 for a
 * DiscoveryResponse or a Resource, 2 for a DeltaDiscoveryResponse, whose Anys stand in Resources. Returns false if the
 * response has an unusual form (an Any with two values, with 2 levels a Resource without Any or with two, bytes that
 * are not protobuf): `rest` and `values` must then not be used. The caller frees both in any case. */
bool tc_xds_values_lift(struct tc_slice response, unsigned levels, struct tc_buf *rest, tc_xds_values *values);

#endif
