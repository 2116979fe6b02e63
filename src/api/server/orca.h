/* The interval of out-of-band ORCA reports (torc/orca.h); here for a test. */
#ifndef TC_API_SERVER_ORCA_H
#define TC_API_SERVER_ORCA_H

#include <torc/orca.h>

#include "base/slice.h"

/* Returns the interval for a serialised OrcaLoadReportRequest, in milliseconds: what it asks for, but at most 1,000,000
 * s, and in any case at least `least_ms`, which must not be 0. Returns 0 for a malformed request. Any thread. */
uint64_t tc_orca_interval_ms(struct tc_slice request, uint64_t least_ms);

#endif
