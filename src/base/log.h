/* Logging: TC_LOG(TC_LOG_LB, TORC_LOG_INFO, "format", ...). A line whose level is off costs a load and a compare. Lines
 * of the levels ERROR, WARN and INFO have a row in docs/operations/logs.md; test/lint/logs.py compares them. Any
 * thread. */
#ifndef TC_BASE_LOG_H
#define TC_BASE_LOG_H

#include <stdatomic.h>
#include <torc/log.h>

#include "base/common.h"

enum tc_log_module {
    TC_LOG_BASE,
    TC_LOG_IO,
    TC_LOG_TLS,
    TC_LOG_HTTP2,
    TC_LOG_LB,
    TC_LOG_RESOLVER,
    TC_LOG_CHANNEL,
    TC_LOG_XDS,
    TC_LOG_RESOURCE,
    TC_LOG_MESH,
    TC_LOG_SERVER,
    TC_LOG_ADMIN,
    TC_LOG_MODULES
};

bool tc_log_enabled(enum tc_log_module module, enum torc_log_level level);
void tc_log_write(enum tc_log_module module, enum torc_log_level level, const char *fmt, ...) TC_PRINTF(3, 4);

/* A sink: where the lines of a runtime go. tc_log_sink_new copies the application's struct; it returns NULL with an
 * error if the struct is malformed, and the release callback is not called then. */
struct tc_log_sink;
struct tc_log_sink *tc_log_sink_new(const struct torc_log_sink *given, torc_error **error);
/* Frees a sink that no turn uses any longer. With `release`, calls the application's release callback, the last
 * callback of the sink. NULL is allowed. */
void tc_log_sink_free(struct tc_log_sink *sink, bool release);
/* The number of sinks. While it is 0, turns need not call tc_log_enter. */
extern atomic_uint tc_log_sinks;
/* Makes lines of the calling thread go to `sink` (NULL: the process's). Returns the previous sink, which the thread
 * must enter again when the turn ends. */
struct tc_log_sink *tc_log_enter(struct tc_log_sink *sink);

#define TC_LOG(module, level, ...)                                                                                     \
    do {                                                                                                               \
        if (TC_UNLIKELY(tc_log_enabled(module, level)))                                                                \
            tc_log_write(module, level, __VA_ARGS__);                                                                  \
    } while (0)

#endif
