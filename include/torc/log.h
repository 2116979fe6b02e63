/* Torc's log lines: their levels, and the function that receives them. SPDX-License-Identifier: Apache-2.0
 *
 * Each line belongs to a module ("base", "io", "tls", "http2", "lb", "resolver", "channel", "xds", "resource", "mesh",
 * "server", "admin") and has a level. Nothing is written by default. The environment variable TORC_LOG sets levels at
 * the first use of the library, for instance TORC_LOG=xds=debug,lb=info or TORC_LOG=warn for all modules. */
#ifndef TORC_LOG_H
#define TORC_LOG_H

#include <torc/export.h>

#ifdef __cplusplus
extern "C" {
#endif

enum torc_log_level {
    TORC_LOG_NONE = 0,
    TORC_LOG_ERROR = 1,
    TORC_LOG_WARN = 2,
    TORC_LOG_INFO = 3,
    TORC_LOG_DEBUG = 4,
    TORC_LOG_TRACE = 5,
};

/* Called for each line, from the thread that wrote it; the strings are borrowed for the call. It must not call into
 * Torc. */
typedef void (*torc_log_fn)(enum torc_log_level level, const char *module, const char *message, void *arg);

/* Replaces the sink (stderr by default; NULL restores it). Not safe while another thread logs: set it first. */
TORC_API void torc_log_set_sink(torc_log_fn fn, void *arg);

/* Sets levels from a specification as TORC_LOG has it. TORC_EINVAL when it names an unknown module or level; then
 * nothing changes. Any thread. */
TORC_API int torc_log_set_levels(const char *spec);

#ifdef __cplusplus
}
#endif
#endif
