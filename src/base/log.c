/* Levels by module, and where lines go.
 *
 * If the calling thread is inside a turn of a loop whose runtime has a sink, a line goes to that sink (`current`).
 * Otherwise it goes to the process's sink: the application's function, or standard error. Control characters in a line
 * are replaced, and a sink gets each line in one call. A line that is logged inside a sink is dropped.
 *
 * A line that is off costs a load and a compare: `hidden` is TORC_LOG_TRACE minus the highest level that any sink
 * wants. A line that passes is compared again, with the levels of the sink that would get it. Until TORC_LOG has been
 * read, `hidden` is 0, which lets all lines pass. TORC_LOG is read by the first line, or by the first
 * torc_log_set_levels or tc_log_sink_new if that is earlier.
 *
 * Once Torc's exit handler has begun on another thread no line is written: the application's sink may be gone. */
#include "base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/cancel.h"
#include "base/exit.h"
#include "base/fork.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/options.h"

struct tc_log_sink {
    struct tc_link link;     /* in `sinks` */
    struct torc_log_sink of; /* the application's, with `levels` NULL */
    bool has_levels;         /* false: the process's levels apply */
    unsigned char levels[TC_LOG_MODULES];
    unsigned generation; /* of the process that made the sink: a child's lines do not go to its parent's sinks */
};

/* The names in TORC_LOG and in docs/operations/logs.md. */
static const char *const module_names[TC_LOG_MODULES] = {
    [TC_LOG_BASE] = "base",       [TC_LOG_IO] = "io",         [TC_LOG_TLS] = "tls",
    [TC_LOG_HTTP2] = "http2",     [TC_LOG_LB] = "lb",         [TC_LOG_RESOLVER] = "resolver",
    [TC_LOG_CHANNEL] = "channel", [TC_LOG_XDS] = "xds",       [TC_LOG_RESOURCE] = "resource",
    [TC_LOG_MESH] = "mesh",       [TC_LOG_SERVER] = "server", [TC_LOG_ADMIN] = "admin",
};

static const char *const level_names[] = {"none", "error", "warn", "info", "debug", "trace"};

static atomic_uchar hidden[TC_LOG_MODULES];
static atomic_uchar levels[TC_LOG_MODULES]; /* the process's */
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* No lock: torc_log_set_sink must be called while no other thread logs. */
static torc_log_fn process_sink;
static void *process_sink_arg;

/* The runtimes' sinks; under the lock of rank TC_RANK_LOG. */
static struct tc_link sinks = {&sinks, &sinks};
atomic_uint tc_log_sinks;
static TC_THREAD_LOCAL struct tc_log_sink *current;
static TC_THREAD_LOCAL bool writing;

/* --- levels --- */

static int log_find_name(const char *const *names, size_t n, struct tc_slice s)
{
    for (size_t i = 0; i < n; i++)
        if (tc_slice_eq_str(s, names[i]))
            return (int)i;
    return -1;
}

/* Applies a text such as "warn,xds=info" to `to`. Returns TORC_EINVAL, with `to` unchanged, for an unknown name. */
static int log_read_spec(struct tc_slice spec, unsigned char to[TC_LOG_MODULES])
{
    unsigned char next[TC_LOG_MODULES];
    memcpy(next, to, sizeof(next));
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
            memset(next, level, sizeof(next));
            continue;
        }
        int module = log_find_name(module_names, TC_LOG_MODULES, tc_slice_of(part.data, (size_t)eq));
        if (module < 0)
            return TORC_EINVAL;
        next[module] = (unsigned char)level;
    }
    memcpy(to, next, sizeof(next));
    return 0;
}

/* Sets `hidden` from the process's levels and the levels of all sinks. With the lock of rank TC_RANK_LOG, or inside of
 * `once`, when no runtime has a sink yet. */
static void log_update_hidden(void)
{
    for (int i = 0; i < TC_LOG_MODULES; i++) {
        unsigned char most = atomic_load_explicit(&levels[i], memory_order_relaxed);
        TC_LIST_FOREACH(it, &sinks)
        {
            const struct tc_log_sink *s = TC_CONTAINER_OF(it, struct tc_log_sink, link);
            most = s->has_levels ? TC_MAX(most, s->levels[i]) : most;
        }
        atomic_store_explicit(&hidden[i], (unsigned char)(TORC_LOG_TRACE - most), memory_order_relaxed);
    }
}

/* Changes the process's levels. With the lock of rank TC_RANK_LOG, or inside of `once`. */
static int log_apply_spec(struct tc_slice spec)
{
    unsigned char next[TC_LOG_MODULES];
    for (int i = 0; i < TC_LOG_MODULES; i++)
        next[i] = atomic_load_explicit(&levels[i], memory_order_relaxed);
    int rc = log_read_spec(spec, next);
    for (int i = 0; i < TC_LOG_MODULES; i++)
        atomic_store_explicit(&levels[i], next[i], memory_order_relaxed);
    log_update_hidden();
    return rc;
}

/* Takes no lock: a fork holds the locks while it waits for foreign sections, in which a line may be logged. */
static void log_read_environment(void)
{
    const char *spec = getenv("TORC_LOG");
    if (log_apply_spec(tc_slice_str(spec ? spec : "")) != 0)
        fprintf(stderr, "torc: TORC_LOG=%s names an unknown module or level; ignored\n", spec);
}

int torc_log_set_levels(const char *spec)
{
    if (!spec)
        return TORC_EINVAL;
    pthread_once(&once, log_read_environment);
    tc_lock_take(tc_lock_of_process(TC_RANK_LOG));
    int rc = log_apply_spec(tc_slice_str(spec));
    tc_lock_give(tc_lock_of_process(TC_RANK_LOG));
    return rc;
}

/* --- sinks --- */

void torc_log_set_sink(torc_log_fn fn, void *arg)
{
    process_sink = fn;
    process_sink_arg = arg;
}

struct tc_log_sink *tc_log_sink_new(const struct torc_log_sink *given, torc_error **error)
{
    struct torc_log_sink of;
    unsigned char own[TC_LOG_MODULES] = {0};
    if (!tc_options_take(TC_OPTIONS_LOG_SINK, &of, given, error))
        return NULL;
    if (!of.write) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "log_sink: write: is NULL");
        return NULL;
    }
    if (of.levels && log_read_spec(tc_slice_str(of.levels), own) != 0) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API,
                     "log_sink: levels: \"" TC_SHOWN "\" names an unknown module or level", TC_SHOW(of.levels));
        return NULL;
    }
    pthread_once(&once, log_read_environment);
    struct tc_log_sink *s = TC_NEW(struct tc_log_sink);
    s->of = of;
    s->has_levels = of.levels;
    s->of.levels = NULL; /* the application's text */
    memcpy(s->levels, own, sizeof(own));
    s->generation = tc_fork_generation();
    tc_lock_take(tc_lock_of_process(TC_RANK_LOG));
    tc_list_append(&sinks, &s->link);
    atomic_fetch_add(&tc_log_sinks, 1);
    log_update_hidden();
    tc_lock_give(tc_lock_of_process(TC_RANK_LOG));
    return s;
}

void tc_log_sink_free(struct tc_log_sink *s, bool release)
{
    if (!s)
        return;
    tc_lock_take(tc_lock_of_process(TC_RANK_LOG));
    tc_list_remove(&s->link);
    atomic_fetch_sub(&tc_log_sinks, 1);
    log_update_hidden();
    tc_lock_give(tc_lock_of_process(TC_RANK_LOG));
    if (release && s->of.release)
        s->of.release(s->of.arg);
    tc_free(s);
}

struct tc_log_sink *tc_log_enter(struct tc_log_sink *s)
{
    struct tc_log_sink *before = current;
    current = s;
    return before;
}

/* Returns the sink of the runtime whose loop's turn this is; NULL: the process's. */
static const struct tc_log_sink *log_sink(void)
{
    return current && current->generation == tc_fork_generation() ? current : NULL;
}

/* --- lines --- */

/* Returns whether a line that has passed `hidden` passes the levels of the sink that would get it. */
static TC_APART bool log_wanted(enum tc_log_module module, enum torc_log_level level)
{
    pthread_once(&once, log_read_environment);
    const struct tc_log_sink *s = log_sink();
    unsigned char most =
        s && s->has_levels ? s->levels[module] : atomic_load_explicit(&levels[module], memory_order_relaxed);
    return (unsigned)level <= most;
}

bool tc_log_enabled(enum tc_log_module module, enum torc_log_level level)
{
    unsigned above = atomic_load_explicit(&hidden[module], memory_order_relaxed);
    return (unsigned)level + above <= TORC_LOG_TRACE && log_wanted(module, level);
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

/* Replaces the bytes of control characters, also of U+0080 to U+009F, by '?': a text that a peer chose must neither end
 * the line nor control a terminal. */
static void line_make_plain(struct tc_buf *line)
{
    unsigned char *at = (unsigned char *)line->data, before = 0;
    for (size_t i = 0; i < line->len; before = at[i++]) {
        bool second = before == 0xc2 && at[i] >= 0x80 && at[i] < 0xa0;
        if (second)
            at[i - 1] = '?';
        if (second || at[i] < 0x20 || at[i] == 0x7f)
            at[i] = '?';
    }
}

void tc_log_write(enum tc_log_module module, enum torc_log_level level, const char *fmt, ...)
{
    TC_NO_CANCEL;
    struct tc_buf b = {0};
    va_list ap;
    if (writing || tc_exiting_elsewhere())
        return;
    va_start(ap, fmt);
    tc_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    line_make_plain(&b);
    const struct tc_log_sink *s = log_sink();
    writing = true;
    if (s)
        s->of.write(level, module_names[module], tc_buf_cstr(&b), s->of.arg);
    else if (process_sink)
        process_sink(level, module_names[module], tc_buf_cstr(&b), process_sink_arg);
    else
        log_write_stderr(level, module_names[module], tc_buf_cstr(&b));
    writing = false;
    tc_buf_fini(&b);
}
