/* One deadline for several RPCs. SPDX-License-Identifier: Apache-2.0
 *
 *     int64_t end = torc_time_ms() + 5000;
 *     struct torc_call_options o = {TORC_SIZE(torc_call_options)};
 *     for (int i = 0; i < 3; i++) {
 *         o.timeout_ms = torc_time_left(end);
 *         results[i] = torc_unary(channel, method, request, size, &o);
 *     }
 *
 * An RPC's timeout_ms counts from when the RPC begins, so that three RPCs with 5000 may take 15 s. A server that calls
 * others has torc_server_call_time_left instead. Both functions may be called on any thread, and do not fail. */
#ifndef TORC_TIME_H
#define TORC_TIME_H

#include <stdint.h>

#include <torc/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns milliseconds of a clock that only moves on (CLOCK_MONOTONIC), above 0. They count from an arbitrary moment:
 * compare them within one machine, and do not store them. */
TORC_API int64_t torc_time_ms(void);

/* Returns how much is left until torc_time_ms returns `end_ms`, for torc_call_options.timeout_ms: milliseconds, or -1
 * when `end_ms` has come. Never 0, which would mean no deadline there. */
TORC_API int64_t torc_time_left(int64_t end_ms);

#ifdef __cplusplus
}
#endif
#endif
