/* Torc's log lines: their levels, and the function that receives them. SPDX-License-Identifier: Apache-2.0
 *
 * Each line belongs to a module ("base", "io", "tls", "http2", "lb", "resolver", "channel", "xds", "resource", "mesh",
 * "server", "admin") and has a level; "base" and "admin" have no line yet. Nothing is written by default. The
 * environment variable TORC_LOG sets levels at the first use of the log, for instance TORC_LOG=xds=debug,lb=info or
 * TORC_LOG=warn for all modules.
 *
 * A line goes to one sink. Lines that are written while a runtime's loop turns (its channels, policies, connections and
 * xDS clients live there) go to that runtime's sink, if it was given one. All other lines go to the process's sink:
 * lines of runtimes without a sink, of functions that the application calls outside of a loop's turn, of threads that
 * serve several runtimes (fetches of tokens, long computations, an xDS domain) and of the services of torc/admin.h.
 *
 *     static void write_line(enum torc_log_level level, const char *module, const char *message, void *arg)
 *     {
 *         fprintf(arg, "%d %s: %s\n", level, module, message);
 *     }
 *
 *     struct torc_log_sink sink = {TORC_SIZE(torc_log_sink), .write = write_line, .arg = stdout, .levels = "warn"};
 *     struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .log_sink = &sink};
 */
#ifndef TORC_LOG_H
#define TORC_LOG_H

#include <torc/export.h>
#include <torc/size.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The level of a line. A module's level lets lines of that level and of smaller numbers pass. In TORC_LOG the levels
 * are none, error, warn, info, debug and trace. */
enum torc_log_level {
    TORC_LOG_NONE = 0,  /* nothing; no line has this level */
    TORC_LOG_ERROR = 1, /* stays broken until somebody acts */
    TORC_LOG_WARN = 2,  /* what an operator should look at: refused resources, skipped checks */
    TORC_LOG_INFO = 3,  /* changes of state: connections, configurations */
    TORC_LOG_DEBUG = 4, /* the steps between; may cost time under load */
    TORC_LOG_TRACE = 5, /* each event; for tests of Torc itself */
};

/* Called for each line, on the thread that wrote it, in the middle of what Torc does there; the strings are borrowed
 * for the call. It must not block for long, and must not call Torc, except torc_log_set_levels. A line that would be
 * written while it runs, on its thread, is dropped: a sink is never called from within a sink.
 *
 * The process's sink is called from any thread, by several at once. A runtime's is called by the thread that drives the
 * loop, one call at a time; in a runtime without a thread (TORC_RUNTIME_CALLER) that is any thread that waits in Torc
 * or polls. A runtime's sink is not called in a child of a fork. No sink is called once another thread has begun to
 * exit the process. */
typedef void (*torc_log_fn)(enum torc_log_level level, const char *module, const char *message, void *arg);

/* The sink of a runtime, for struct torc_runtime_options. */
struct torc_log_sink {
    uint64_t size;
    torc_log_fn write; /* required */
    /* The last callback: `arg` is the application's again. Called inside torc_runtime_free, on its caller's thread, if
     * that function returns 0. Not called if torc_runtime_new fails, in a child of a fork, or by an exit of the
     * process. NULL: none. */
    void (*release)(void *arg);
    void *arg;          /* handed to the functions; may be NULL */
    const char *levels; /* as TORC_LOG has them ("warn,xds=debug"); a module that they do not name is off. Copied; NULL:
                           the process's levels, also as they change */
};

/* Replaces the process's sink (stderr by default; NULL restores it). Not safe while another thread logs: set the sink
 * first. */
TORC_API void torc_log_set_sink(torc_log_fn fn, void *arg);

/* Sets the process's levels from a specification as TORC_LOG has it; a module that the specification does not name
 * keeps its level. Returns 0; or TORC_EINVAL when `spec` is NULL, or names an unknown module or level, and then nothing
 * changes. Any thread. */
TORC_API int torc_log_set_levels(const char *spec);

#ifdef __cplusplus
}
#endif
#endif
