/* The value of grpc-timeout: at most 8 digits and a unit (PROTOCOL-HTTP2.md). Pure functions, any thread. */
#ifndef TC_HTTP2_TIMEOUT_H
#define TC_HTTP2_TIMEOUT_H

#include "base/slice.h"

/* Writes the value in the finest unit that holds it in 8 digits, rounded up, and a NUL. Returns its length without the
 * NUL. */
size_t tc_h2_timeout_encode(char out[16], uint64_t timeout_ns);
/* Returns 0, or TORC_EPARSE if the value is malformed. A value beyond 64 bits of nanoseconds becomes UINT64_MAX. */
int tc_h2_timeout_decode(struct tc_slice s, uint64_t *timeout_ns);

#endif
