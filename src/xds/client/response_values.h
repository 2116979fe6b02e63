/* The resources' own bytes taken out of a response before it is unpacked, so that large ones are not copied. Any
 * thread. */
#ifndef TC_XDS_CLIENT_RESPONSE_VALUES_H
#define TC_XDS_CLIENT_RESPONSE_VALUES_H

#include "base/buf.h"
#include "base/vec.h"

typedef TC_VEC(struct tc_slice) tc_xds_values;

/* Appends the response to `rest`, without the bytes inside of its Anys. Appends those bytes to `values`, borrowed, one
 * slice for each resource in order. `levels` is the number of messages around the Any: 1 for a DiscoveryResponse or a
 * Resource, 2 for a DeltaDiscoveryResponse, whose Anys stand in Resources. Returns false if the response is not in the
 * usual form; what was appended must then not be used. */
bool tc_xds_values_lift(struct tc_slice response, unsigned levels, struct tc_buf *rest, tc_xds_values *values);

#endif
