/* Log sinks of runtimes: which lines they get, by which levels, until when, and what is refused. Also the characters of
 * a line that are replaced, seen in the process's sink.
 *
 * set_up gives the process a sink of its own, `process`, and turns the process's levels off; tear_down restores
 * standard error. Sinks are called on the test's thread, which drives their runtimes. Only make_and_free differs: it
 * runs on four threads, and its runtimes have threads of their own, which call the sinks. The argument of a sink
 * outlives the sink's runtime. Each test frees its runtimes. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <torc/torc.h>

#include "base/log.h"
#include "support/check.h"
#include "support/cmocka.h"

/* The argument of on_line and on_release. n: lines; released: calls of on_release; after_release: lines that came after
 * such a call. */
struct lines {
    int n, released, after_release;
    char last[64]; /* "LEVEL MODULE MESSAGE", the level as a number */
    bool logs;     /* on_line writes a line itself */
};

static void on_line(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    struct lines *l = arg;
    l->n++;
    l->after_release += l->released;
    snprintf(l->last, sizeof(l->last), "%d %s %s", level, module, message);
    if (l->logs)
        TC_LOG(TC_LOG_IO, TORC_LOG_ERROR, "from within");
}

static void on_release(void *arg)
{
    ((struct lines *)arg)->released++;
}

static struct lines process;

static int set_up(void **state)
{
    (void)state;
    process = (struct lines){0};
    torc_log_set_sink(on_line, &process);
    return torc_log_set_levels("none");
}

static int tear_down(void **state)
{
    (void)state;
    torc_log_set_sink(NULL, NULL);
    return torc_log_set_levels("none");
}

/* Returns a runtime that the caller drives and frees. `to` may be NULL: the runtime has no sink. `levels` may be NULL:
 * the process's. */
static torc_runtime *runtime_new(struct lines *to, const char *levels)
{
    struct torc_log_sink sink = {TORC_SIZE(torc_log_sink), .write = on_line, .release = on_release, .arg = to,
                                 .levels = levels};
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER,
                                     .log_sink = to ? &sink : NULL};
    torc_runtime *rt = torc_runtime_new(&o, NULL);
    assert_non_null(rt);
    memset(&sink, 0xdd, sizeof(sink)); /* the runtime has a copy */
    return rt;
}

static void say(void *arg)
{
    TC_LOG(TC_LOG_IO, TORC_LOG_WARN, "%s", (const char *)arg);
}

/* Writes a line of at most 31 bytes in a turn of the runtime. */
static void say_in(torc_runtime *rt, const char *text)
{
    char copy[32];
    snprintf(copy, sizeof(copy), "%s", text);
    assert_int_equal(torc_runtime_post(rt, say, copy), 0);
    assert_int_equal(torc_runtime_poll(rt, 0), 1);
}

static void each_line_has_one_sink(void **state)
{
    (void)state;
    struct lines a = {0}, b = {0};
    torc_runtime *ra = runtime_new(&a, "warn"), *rb = runtime_new(&b, "warn"), *none = runtime_new(NULL, NULL);
    say_in(ra, "a");
    say_in(rb, "b");
    assert_string_equal(a.last, "2 io a");
    assert_string_equal(b.last, "2 io b");
    assert_int_equal(process.n, 0);
    say_in(none, "off");
    say("off");
    assert_int_equal(torc_log_set_levels("warn"), 0);
    say_in(none, "without");
    assert_string_equal(process.last, "2 io without");
    say("outside"); /* not in a turn */
    assert_string_equal(process.last, "2 io outside");
    assert_int_equal(a.n, 1);
    assert_int_equal(b.n, 1);
    assert_int_equal(process.n, 2);
    assert_int_equal(torc_runtime_free(ra), 0);
    assert_int_equal(torc_runtime_free(rb), 0);
    assert_int_equal(torc_runtime_free(none), 0);
}

static void levels_are_the_sinks_or_the_process(void **state)
{
    (void)state;
    struct lines own = {0}, follows = {0};
    torc_runtime *ro = runtime_new(&own, "xds=trace,io=error"), *rf = runtime_new(&follows, NULL);
    say_in(ro, "too low");
    say_in(rf, "off");
    assert_int_equal(own.n, 0);
    assert_int_equal(follows.n, 0);
    assert_int_equal(torc_log_set_levels("io=warn"), 0);
    say_in(ro, "too low");
    say_in(rf, "follows");
    assert_int_equal(own.n, 0);
    assert_string_equal(follows.last, "2 io follows");
    assert_int_equal(torc_runtime_free(rf), 0);
    assert_int_equal(torc_runtime_free(ro), 0);
    assert_false(tc_log_enabled(TC_LOG_XDS, TORC_LOG_TRACE)); /* the sink that asked for TRACE is gone */
    assert_int_equal(process.n, 0);
}

struct nest {
    torc_runtime *inner;
};

static void poll_inner(void *arg)
{
    struct nest *n = arg;
    say_in(n->inner, "inner");
    TC_LOG(TC_LOG_IO, TORC_LOG_WARN, "outer");
}

/* A callback of one runtime drives another. */
static void turns_within_turns(void **state)
{
    (void)state;
    struct lines outer = {0}, inner = {0};
    torc_runtime *ro = runtime_new(&outer, "warn");
    struct nest with = {runtime_new(&inner, "warn")}, without = {runtime_new(NULL, NULL)};
    assert_int_equal(torc_log_set_levels("warn"), 0);
    assert_int_equal(torc_runtime_post(ro, poll_inner, &with), 0);
    assert_int_equal(torc_runtime_poll(ro, 0), 1);
    assert_string_equal(inner.last, "2 io inner");
    assert_string_equal(outer.last, "2 io outer");
    assert_int_equal(torc_runtime_post(ro, poll_inner, &without), 0);
    assert_int_equal(torc_runtime_poll(ro, 0), 1);
    assert_string_equal(process.last, "2 io inner");
    assert_int_equal(process.n, 1);
    assert_int_equal(outer.n, 2);
    assert_int_equal(torc_runtime_free(with.inner), 0);
    assert_int_equal(torc_runtime_free(without.inner), 0);
    assert_int_equal(torc_runtime_free(ro), 0);
}

static void a_sink_is_not_called_within_itself(void **state)
{
    (void)state;
    struct lines l = {.logs = true};
    torc_runtime *rt = runtime_new(&l, "trace");
    process.logs = true;
    assert_int_equal(torc_log_set_levels("trace"), 0);
    say_in(rt, "once");
    assert_int_equal(l.n, 1);
    assert_string_equal(l.last, "2 io once");
    say("once");
    assert_int_equal(process.n, 1);
    assert_int_equal(torc_runtime_free(rt), 0);
}

/* The last turn is inside torc_runtime_free; then the sink is released, before the function returns. */
static void the_release_is_last(void **state)
{
    (void)state;
    struct lines l = {0};
    torc_runtime *rt = runtime_new(&l, "warn");
    char text[] = "last";
    assert_int_equal(torc_runtime_post(rt, say, text), 0);
    assert_int_equal(l.n, 0);
    assert_int_equal(torc_runtime_free(rt), 0);
    assert_string_equal(l.last, "2 io last");
    assert_int_equal(l.released, 1);
    assert_int_equal(l.after_release, 0);
}

/* Asserts that a runtime with this sink is refused with this code, and that the error contains `text`. */
static void refused(const struct torc_log_sink *sink, int code, const char *text)
{
    torc_error *error = NULL;
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .log_sink = sink};
    assert_null(torc_runtime_new(&o, &error));
    assert_int_equal(torc_error_code(error), code);
    assert_non_null(strstr(torc_error_text(error), text));
    torc_error_clear(&error);
}

static void what_is_malformed_is_refused(void **state)
{
    (void)state;
    struct lines l = {0};
    struct {
        struct torc_log_sink known;
        void *newer;
    } more = {{TORC_SIZE(torc_log_sink), .write = on_line, .release = on_release, .arg = &l}, &more};
    struct torc_log_sink s = more.known;
    s.levels = "nosuch=warn";
    refused(&s, TORC_EINVAL, "log_sink: levels: \"nosuch=warn\" names an unknown module or level");
    s.write = NULL;
    refused(&s, TORC_EINVAL, "log_sink: write: is NULL");
    s.size = 0;
    refused(&s, TORC_EINVAL, "log_sink: size is 0");
    more.known.size = sizeof(more);
    refused(&more.known, TORC_EUNSUPPORTED, "log_sink: fields are set");
    struct torc_xds_domain *domain = torc_xds_domain_new(NULL);
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .xds_domain = domain, .log_sink = &s};
    assert_null(torc_runtime_new(&o, NULL)); /* gives back its hold on the domain */
    assert_int_equal(torc_xds_domain_free(domain), 0);
    assert_int_equal(l.released, 0);
    /* An older program's struct, without levels. */
    s = (struct torc_log_sink){.size = offsetof(struct torc_log_sink, levels), .write = on_line, .arg = &l};
    s.levels = "nosuch";
    o = (struct torc_runtime_options){TORC_SIZE(torc_runtime_options), .log_sink = &s};
    torc_runtime *rt = torc_runtime_new(&o, NULL);
    assert_non_null(rt);
    assert_int_equal(torc_runtime_free(rt), 0);
}

/* As a binding does it: options and sink are made by the names of their fields, without a struct. */
static void options_by_name(void **state)
{
    (void)state;
    struct lines l = {0};
    torc_error *error = NULL;
    void (*write)(enum torc_log_level, const char *, const char *, void *) = on_line;
    void *write_address;
    memcpy(&write_address, &write, sizeof(write));
    torc_options *sink = torc_options_new("torc_log_sink", &error);
    torc_options_set_pointer(sink, "write", write_address, &error);
    torc_options_set_pointer(sink, "arg", &l, &error);
    torc_options_set(sink, "levels", "io=warn", &error);
    torc_options *o = torc_options_new("torc_runtime_options", &error);
    torc_options_set(o, "mode", "1", &error);
    torc_options_set_pointer(o, "log_sink", torc_options_data(sink), &error);
    torc_runtime *rt = torc_runtime_new(torc_options_data(o), &error);
    assert_null(error);
    torc_options_free(o);
    torc_options_free(sink);
    say_in(rt, "by name");
    assert_string_equal(l.last, "2 io by name");
    assert_int_equal(torc_runtime_free(rt), 0);
}

/* Forks; the child logs a line and ends. *arg, an int, becomes the child's wait status: 0 if the process's sink got the
 * line. */
static void fork_here(void *arg)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        TC_LOG(TC_LOG_IO, TORC_LOG_WARN, "child");
        _exit(strcmp(process.last, "2 io child") == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    *(int *)arg = status;
}

/* After a fork inside a callback the child logs to the process's sink. */
static void a_child_has_the_process_sink(void **state)
{
    (void)state;
    struct lines l = {0};
    int status = -1;
    torc_runtime *rt = runtime_new(&l, "warn");
    assert_int_equal(torc_log_set_levels("warn"), 0);
    assert_int_equal(torc_runtime_post(rt, fork_here, &status), 0);
    assert_int_equal(torc_runtime_poll(rt, 0), 1);
    assert_int_equal(status, 0);
    assert_int_equal(torc_runtime_free(rt), 0);
}

/* --- threads --- */

enum { ROUNDS = 200, THREADS = 4 };

/* Counts without atomics: a runtime makes one call of its sink at a time, and none after torc_runtime_free has
 * returned. */
static void count_line(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    (void)level;
    (void)module;
    (void)message;
    ++*(int *)arg;
}

static void *make_and_free(void *arg)
{
    (void)arg;
    char text[] = "line";
    for (int i = 0; i < ROUNDS; i++) {
        int n = 0;
        struct torc_log_sink sink = {TORC_SIZE(torc_log_sink), .write = count_line, .arg = &n,
                                     .levels = i % 2 ? "warn" : NULL};
        struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .log_sink = &sink};
        torc_runtime *rt = torc_runtime_new(&o, NULL);
        CHECK(rt);
        for (int k = 0; k < 5; k++)
            CHECK(torc_runtime_post(rt, say, text) == 0);
        CHECK(torc_log_set_levels(i % 3 ? "io=error" : "none") == 0);
        CHECK(torc_runtime_free(rt) == 0);
        CHECK(n == (i % 2 ? 5 : 0));
    }
    return NULL;
}

static void runtimes_come_and_go(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_and_free, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(process.n, 0);
}

/* --- the text of a line --- */

/* A name or a text that a peer chose must not end a line, or send control characters to a terminal. */
static void a_line_has_no_control_characters(void **state)
{
    (void)state;
    assert_int_equal(torc_log_set_levels("warn"), 0);
    say((void *)(uintptr_t) "a\nb\r\x1b[c\x7f\xc2\x9b\xc2\xa0\xc3\xa9");
    assert_string_equal(process.last, "2 io a?b??[c???\xc2\xa0\xc3\xa9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_line_has_one_sink, set_up, tear_down),
        cmocka_unit_test_setup_teardown(levels_are_the_sinks_or_the_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(turns_within_turns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_sink_is_not_called_within_itself, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_line_has_no_control_characters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_release_is_last, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_malformed_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(options_by_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_child_has_the_process_sink, set_up, tear_down),
        cmocka_unit_test_setup_teardown(runtimes_come_and_go, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
