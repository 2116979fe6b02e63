/* Levels by module, and where lines go.
 *
 * TORC_LOG is read once, with the first line that asks for its level, or the first call of torc_log_set_levels. A level
 * is one atomic byte, so that a line that is off costs a load and a compare. A line is formatted in full before it is
 * handed to the sink or written to standard error in one call. While another thread runs Torc's exit handler no line is
 * written: the application's sink may be gone. */
#include "base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/cancel.h"
#include "base/exit.h"

/* The names of TORC_LOG and of docs/operations/logs.md. */
static const char *const module_names[TC_LOG_MODULES] = {
    [TC_LOG_BASE] = "base",       [TC_LOG_IO] = "io",         [TC_LOG_TLS] = "tls",
    [TC_LOG_HTTP2] = "http2",     [TC_LOG_LB] = "lb",         [TC_LOG_RESOLVER] = "resolver",
    [TC_LOG_CHANNEL] = "channel", [TC_LOG_XDS] = "xds",       [TC_LOG_RESOURCE] = "resource",
    [TC_LOG_MESH] = "mesh",       [TC_LOG_SERVER] = "server", [TC_LOG_ADMIN] = "admin",
};

static const char *const level_names[] = {"none", "error", "warn", "info", "debug", "trace"};

static atomic_uchar levels[TC_LOG_MODULES];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static torc_log_fn sink;
static void *sink_arg;

static int log_find_name(const char *const *names, size_t n, struct tc_slice s)
{
    for (size_t i = 0; i < n; i++)
        if (tc_slice_eq_str(s, names[i]))
            return (int)i;
    return -1;
}

/* Applies "warn,xds=info" to `levels`, all of it or nothing. Returns TORC_EINVAL for an unknown name. */
static int log_apply_spec(struct tc_slice spec)
{
    unsigned char next[TC_LOG_MODULES];
    for (int i = 0; i < TC_LOG_MODULES; i++)
        next[i] = atomic_load_explicit(&levels[i], memory_order_relaxed);
    bool more = true;
    struct tc_slice part;
    while (tc_slice_split(&spec, &more, ',', &part)) {
        part = tc_slice_trim(part);
        if (part.len == 0)
            continue;
        ptrdiff_t eq = tc_slice_find(part, tc_slice_str("="));
        struct tc_slice level_text = eq < 0 ? part : tc_slice_of(part.data + eq + 1, part.len - (size_t)eq - 1);
        int level = log_find_name(level_names, TC_ARRAY_LEN(level_names), level_text);
        if (level < 0)
            return TORC_EINVAL;
        if (eq < 0) {
            for (int i = 0; i < TC_LOG_MODULES; i++)
                next[i] = (unsigned char)level;
            continue;
        }
        int module = log_find_name(module_names, TC_LOG_MODULES, tc_slice_of(part.data, (size_t)eq));
        if (module < 0)
            return TORC_EINVAL;
        next[module] = (unsigned char)level;
    }
    for (int i = 0; i < TC_LOG_MODULES; i++)
        atomic_store_explicit(&levels[i], next[i], memory_order_relaxed);
    return 0;
}

static void log_read_environment(void)
{
    const char *spec = getenv("TORC_LOG");
    if (spec && log_apply_spec(tc_slice_str(spec)) != 0)
        fprintf(stderr, "torc: TORC_LOG=%s names an unknown module or level; ignored\n", spec);
}

int torc_log_set_levels(const char *spec)
{
    if (!spec)
        return TORC_EINVAL;
    pthread_once(&once, log_read_environment);
    return log_apply_spec(tc_slice_str(spec));
}

void torc_log_set_sink(torc_log_fn fn, void *arg)
{
    sink = fn;
    sink_arg = arg;
}

bool tc_log_enabled(enum tc_log_module module, enum torc_log_level level)
{
    pthread_once(&once, log_read_environment);
    return (unsigned)level <= atomic_load_explicit(&levels[module], memory_order_relaxed);
}

static void log_write_stderr(enum torc_log_level level, const char *module, const char *message)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    /* Not gmtime_r, which takes the C library's lock of the time zone: a fork does not wait for it. */
    int s = (int)(ts.tv_sec % 86400);
    fprintf(stderr, "%02d:%02d:%02d.%03ld %-5s %s: %s\n", s / 3600, s / 60 % 60, s % 60, ts.tv_nsec / 1000000,
            level_names[level], module, message);
}

void tc_log_write(enum tc_log_module module, enum torc_log_level level, const char *fmt, ...)
{
    TC_NO_CANCEL;
    struct tc_buf b = {0};
    va_list ap;
    if (tc_exiting_elsewhere())
        return; /* the application's sink may be gone */
    va_start(ap, fmt);
    tc_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    if (sink)
        sink(level, module_names[module], tc_buf_cstr(&b), sink_arg);
    else
        log_write_stderr(level, module_names[module], tc_buf_cstr(&b));
    tc_buf_fini(&b);
}
