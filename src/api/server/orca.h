/* ORCA of servers (torc/orca.h), for its tests. */
#ifndef TC_API_SERVER_ORCA_H
#define TC_API_SERVER_ORCA_H

#include <torc/orca.h>

#include "base/slice.h"

/* Returns the interval for a serialised OrcaLoadReportRequest: what it asks for, at most 1,000,000 s, or `least_ms` if
 * that is more. Returns 0 for a malformed request. */
uint64_t tc_orca_interval_ms(struct tc_slice request, uint64_t least_ms);

#endif
