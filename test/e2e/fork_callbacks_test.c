/* A callback forks, and returns in the child too. Several callbacks are due at once: those behind the one that forked
 * are the parent's, and must not be called in the child (process_moments_test.c has this for events of streams and for
 * posted functions). Two scenes differ. In pool_handler a handler on a pool forks, and the pool's thread must end in
 * the child. In exit_while_handling nothing forks, and the process exits while a handler runs.
 *
 * Each scene is a process of its own, whose exit status is the outcome. A scene frees nothing. Its thread drives its
 * runtimes, and so runs the callbacks, with two exceptions: the handler of pool_handler runs on the pool's thread, and
 * the handlers of exit_while_handling on the thread of the server's runtime, which is not driven by the scene. */
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <torc/torc.h>

#include "support/cmocka.h"

/* Exit statuses. TWICE: the child ran a callback that is its parent's. HANGS: the child does not end. LATE: a
 * callback began after Torc's exit handler had returned. HANG_S is not a status: a scene is killed after that
 * many seconds. */
enum { FINE, WRONG = 4, TWICE = 5, HANGS = 6, LATE = 7, HANG_S = 30 };

static bool is_child;
static unsigned n_called;

/* A callback was called. The first one forks; the parent waits for the child's end. */
static void called(void)
{
    int status = 0;
    if (is_child)
        _exit(TWICE);
    if (++n_called > 1)
        return;
    pid_t child = fork();
    is_child = child == 0;
    if (is_child)
        return;
    for (int ms = 0; ms < HANG_S / 3 * 1000 && waitpid(child, &status, WNOHANG) == 0; ms += 10)
        poll(NULL, 0, 10);
    if (kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child) /* a thread of a pool blocks other signals */
        _exit(HANGS);
    if (status != 0)
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : WRONG);
}

static void run_scene(void (*scene)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        alarm(HANG_S);
        scene();
        _exit(WRONG);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status >> 8, FINE);
    assert_int_equal(status, 0);
}

static torc_runtime *rt_server, *rt;
static torc_server *server;
static torc_channel *ch;

static void poll_both(void)
{
    torc_runtime_poll(rt, 0);
    torc_runtime_poll(rt_server, 0);
    if (is_child)
        _exit(FINE);
}

static void handle(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    called();
    torc_server_call_reply(call, "x", 1);
}

static void stream_begins(torc_server_call *call, void *arg)
{
    (void)arg;
    called();
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

static void start(bool connects)
{
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    struct torc_handler unary = {TORC_SIZE(torc_handler), .unary = handle},
                        stream = {TORC_SIZE(torc_handler), .stream = stream_begins};
    char *bound = NULL;
    torc_error *error = NULL;
    rt_server = torc_runtime_new(&o, &error);
    rt = torc_runtime_new(&o, &error);
    struct torc_server_options so = {TORC_SIZE(torc_server_options), .runtime = rt_server};
    server = torc_server_new(&so, &error);
    torc_server_add_method(server, "/t.S/Unary", &unary, &error);
    torc_server_add_method(server, "/t.S/Stream", &stream, &error);
    torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error);
    torc_server_start(server, &error);
    ch = torc_channel_new(rt, bound, NULL, &error);
    if (error)
        _exit(WRONG);
    while (connects && torc_channel_state(ch, true) != TORC_CONNECTIVITY_READY)
        poll_both();
}

static unsigned n_results;

static void on_result(const torc_result *result, void *arg)
{
    (void)result, (void)arg;
    n_results++;
}

static void call_twice(const char *method)
{
    start(true);
    for (int i = 0; i < 2; i++)
        torc_unary_async(ch, method, "x", 1, NULL, on_result, NULL, NULL, NULL);
    while (n_results < 2)
        poll_both();
    _exit(n_called == 2 ? FINE : WRONG);
}

static void unary_handlers(void)
{
    call_twice("/t.S/Unary");
}

static void stream_handlers(void)
{
    call_twice("/t.S/Stream");
}

static void on_state(torc_channel *channel, enum torc_connectivity state, const char *reason, void *arg)
{
    (void)channel, (void)state, (void)reason, (void)arg;
    called();
}

static void watches(void)
{
    start(false);
    for (int i = 0; i < 2; i++)
        torc_channel_watch_state(ch, TORC_CONNECTIVITY_IDLE, on_state, NULL);
    torc_channel_state(ch, true);
    while (n_called < 2)
        poll_both();
    _exit(FINE);
}

static void on_event(const char *kind, const char *detail, const char *reason, void *arg)
{
    (void)kind, (void)detail, (void)reason, (void)arg;
    called();
}

/* The observer is called first, then the watch. */
static void observer_and_watch(void)
{
    start(false);
    torc_channel_observe(ch, on_event, NULL);
    torc_channel_watch_state(ch, TORC_CONNECTIVITY_IDLE, on_state, NULL);
    torc_channel_state(ch, true);
    while (n_called < 3)
        poll_both();
    _exit(FINE);
}

static void on_connect(const char *kind, const char *detail, const char *reason, void *arg)
{
    (void)detail, (void)reason, (void)arg;
    if (strcmp(kind, "connect") == 0)
        called();
}

/* Two connections begin in one turn. */
static void events(void)
{
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .service_config_json = "{\"loadBalancingConfig\":[{\"round_robin\":{}}]}"};
    torc_error *error = NULL;
    start(false);
    ch = torc_channel_new(rt, "ipv4:127.0.0.1:1,127.0.0.1:2", &o, &error);
    torc_channel_observe(ch, on_connect, NULL);
    torc_channel_state(ch, true);
    while (n_called < 2)
        poll_both();
    _exit(FINE);
}

struct policy {
    torc_lb_helper *helper;
    torc_lb_child *child;
};

static void *policy_create(torc_lb_helper *helper, void *arg)
{
    struct policy *p = arg;
    p->helper = helper;
    p->child = torc_lb_child_create(helper, "pick_first", NULL);
    return p;
}

static void policy_update(void *state, const torc_lb_endpoint *const *endpoints, size_t n, const char *config_json)
{
    struct policy *p = state;
    (void)config_json;
    torc_lb_child_set_endpoints(p->child, endpoints, n);
}

static void policy_on_child_state(void *state, torc_lb_child *child, void *child_arg, enum torc_connectivity now)
{
    struct policy *p = state;
    (void)child_arg;
    if (now == TORC_CONNECTIVITY_IDLE)
        torc_lb_child_connect(child);
    torc_lb_update_state(p->helper, now, NULL);
}

static torc_lb_child *policy_pick(void *state, torc_lb_pick *pick)
{
    struct policy *p = state;
    (void)pick;
    if (torc_lb_child_state(p->child) != TORC_CONNECTIVITY_READY)
        return NULL;
    called();
    return p->child;
}

/* RPCs that wait for the connection are picked for together. */
static void picks(void)
{
    struct policy policy;
    struct torc_lb_factory factory = {TORC_SIZE(torc_lb_factory),
                                      .name = "own",
                                      .create = policy_create,
                                      .update = policy_update,
                                      .on_child_state = policy_on_child_state,
                                      .pick = policy_pick,
                                      .arg = &policy};
    const struct torc_lb_factory *factories[] = {&factory, NULL};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .lb_policies = factories,
                                     .service_config_json = "{\"loadBalancingConfig\":[{\"own\":{}}]}"};
    torc_error *error = NULL;
    start(false);
    ch = torc_channel_new(rt, torc_channel_target(ch), &o, &error);
    if (error)
        _exit(WRONG);
    for (int i = 0; i < 2; i++)
        torc_unary_async(ch, "/t.S/None", "x", 1, NULL, on_result, NULL, NULL, NULL);
    while (n_results < 2)
        poll_both();
    _exit(n_called == 2 ? FINE : WRONG);
}

static void policy_check_config(torc_lb_check *check, const char *config_json, void *arg)
{
    (void)check, (void)config_json, (void)arg;
    called();
}

/* One service config has two configs of the application's policy. */
static void configs(void)
{
    struct torc_lb_factory factory = {TORC_SIZE(torc_lb_factory), .name = "own",
                                      .create = policy_create,    .update = policy_update,
                                      .pick = policy_pick,        .check_config = policy_check_config};
    const struct torc_lb_factory *factories[] = {&factory, NULL};
    struct torc_channel_options o = {
        TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(), .lb_policies = factories,
        .service_config_json = "{\"loadBalancingConfig\":[{\"weighted_target_experimental\":{\"targets\":{"
                               "\"a\":{\"weight\":1,\"childPolicy\":[{\"own\":{}}]},"
                               "\"b\":{\"weight\":1,\"childPolicy\":[{\"own\":{}}]}}}}]}"};
    torc_error *error = NULL;
    start(false);
    torc_channel *channel = torc_channel_new(rt, torc_channel_target(ch), &o, &error);
    _exit(is_child || (channel && n_called >= 2) ? FINE : WRONG);
}

static void on_stopped(void *arg)
{
    (void)arg;
    called();
}

static void stops(void)
{
    start(true);
    for (int i = 0; i < 2; i++)
        torc_server_stop_async(server, 0, on_stopped, NULL);
    while (n_called < 2)
        poll_both();
    _exit(FINE);
}

static void test_unary_handlers(void **state)
{
    (void)state;
    run_scene(unary_handlers);
}

static void test_stream_handlers(void **state)
{
    (void)state;
    run_scene(stream_handlers);
}

static void test_watches(void **state)
{
    (void)state;
    run_scene(watches);
}

static void test_observer_and_watch(void **state)
{
    (void)state;
    run_scene(observer_and_watch);
}

static void test_events(void **state)
{
    (void)state;
    run_scene(events);
}

static void test_picks(void **state)
{
    (void)state;
    run_scene(picks);
}

static void test_configs(void **state)
{
    (void)state;
    run_scene(configs);
}

static void test_stops(void **state)
{
    (void)state;
    run_scene(stops);
}

/* --- a handler on a pool forks --- */

static pthread_key_t at_end; /* its destructor runs when the thread ends */

static void end_child(void *arg)
{
    (void)arg;
    _exit(FINE); /* not exit: a look for leaks would miss the stacks of the parent's other threads */
}

static void handle_on_pool(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    called();
    if (is_child)
        pthread_setspecific(at_end, &at_end);
    torc_server_call_reply(call, "x", 1);
}

/* The handler returns in the child, too, where the pool's thread is the only one. That thread must end, and end_child
 * ends the process. */
static void pool_handler(void)
{
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    struct torc_handler unary = {TORC_SIZE(torc_handler), .unary = handle_on_pool};
    char *bound = NULL;
    torc_error *error = NULL;
    if (pthread_key_create(&at_end, end_child))
        _exit(WRONG);
    rt = torc_runtime_new(&o, &error);
    torc_pool *pool = torc_pool_new(1, 16, &error);
    struct torc_server_options so = {TORC_SIZE(torc_server_options), .runtime = rt};
    struct torc_method_options mo = {TORC_SIZE(torc_method_options), .pool = pool};
    server = torc_server_new(&so, &error);
    torc_server_add_method(server, "/t.S/Unary", &unary, &error);
    torc_server_limit(server, "t.S/Unary", &mo, &error);
    torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error);
    torc_server_start(server, &error);
    ch = torc_channel_new(rt, bound, NULL, &error);
    if (error)
        _exit(WRONG);
    torc_result *r = torc_unary(ch, "/t.S/Unary", "x", 1, NULL);
    _exit(torc_result_code(r) == TORC_STATUS_OK ? FINE : WRONG);
}

static void test_pool_handler(void **state)
{
    (void)state;
    run_scene(pool_handler);
}

/* --- an exit while a handler runs --- */

static atomic_int stopped, begun;

static int n_threads(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    for (const struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* Registered before Torc's exit handler: runs when Torc has stopped. The server's thread ends after the turn in which
 * the first handler was called. */
static void after_torc(void)
{
    atomic_store(&stopped, 1);
    while (n_threads() > 1)
        poll(NULL, 0, 10);
    _exit(FINE);
}

/* In the first call the handler runs longer than Torc's exit handler waits, which is 1 s at most. */
static void handle_slowly(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    if (atomic_load(&stopped))
        _exit(LATE);
    atomic_store(&begun, 1);
    while (!atomic_load(&stopped))
        poll(NULL, 0, 10);
    torc_server_call_reply(call, "x", 1);
}

/* The process exits while the first call's handler runs. The second call came in the same turn: its handler must not be
 * called after Torc's exit handler has returned. */
static void exit_while_handling(void)
{
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    struct torc_handler unary = {TORC_SIZE(torc_handler), .unary = handle_slowly};
    char *bound = NULL;
    torc_error *error = NULL;
    atexit(after_torc);
    rt = torc_runtime_new(&o, &error);
    rt_server = torc_runtime_new(NULL, &error);
    struct torc_server_options so = {TORC_SIZE(torc_server_options), .runtime = rt_server};
    server = torc_server_new(&so, &error);
    torc_server_add_method(server, "/t.S/Unary", &unary, &error);
    torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error);
    torc_server_start(server, &error);
    ch = torc_channel_new(rt, bound, NULL, &error);
    if (error || torc_channel_connect(ch, 10000) != 0)
        _exit(WRONG);
    for (int i = 0; i < 2; i++) /* both in one write */
        torc_unary_async(ch, "/t.S/Unary", "x", 1, NULL, on_result, NULL, NULL, NULL);
    while (!atomic_load(&begun))
        torc_runtime_poll(rt, 0);
    exit(WRONG);
}

static void test_exit_while_handling(void **state)
{
    (void)state;
    run_scene(exit_while_handling);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary_handlers), cmocka_unit_test(test_stream_handlers),
        cmocka_unit_test(test_watches),        cmocka_unit_test(test_observer_and_watch),
        cmocka_unit_test(test_events),         cmocka_unit_test(test_picks),
        cmocka_unit_test(test_configs),        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_pool_handler),   cmocka_unit_test(test_exit_while_handling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
