/* grpc-status-details-bin. Pure functions, any thread. */
#ifndef TC_HTTP2_STATUS_DETAILS_H
#define TC_HTTP2_STATUS_DETAILS_H

#include "base/slice.h"

/* Stores the code of a serialised google.rpc.Status. Returns false if the bytes are malformed or have no code. */
bool tc_h2_details_code(struct tc_slice details, uint64_t *code);

#endif
