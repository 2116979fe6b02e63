/* Interceptors of a channel and threads: delays that another thread ends, perhaps before the hook has returned, or
 * while a deadline or a cancellation ends the RPC. For the thread sanitizer.
 *
 * The runtime and the backend come from support/kits/watch.h. Each test frees the kit's channel and makes one with an
 * interceptor of its own; the teardown frees it. Hooks run on the thread that drives the runtime: the runtime's own
 * thread, or the test's in the first run of test_resumed_by_a_thread. Resumers are threads of the tests. A torc_pending
 * passes from the hook to one resumer, whose torc_rpc_resume takes it over. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "base/common.h"
#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/watch.h"

/* --- delays --- */

static void *resume_soon(void *arg)
{
    torc_rpc_resume(arg, 0, NULL);
    return NULL;
}

static pthread_t resumer; /* of the last delay; joined after each RPC, which has one delay */

/* Suspends the RPC, and has another thread resume it, perhaps before the hook has returned. */
static void suspend_for_thread(torc_rpc *rpc)
{
    torc_pending *p = torc_rpc_suspend(rpc);
    CHECK(pthread_create(&resumer, NULL, resume_soon, p) == 0);
}

/* Delays the RPC if this is the hook that the test chose. Returns the verdict. */
static int on_any(torc_rpc *rpc, enum kit_watch_hook at)
{
    if (kit_watch.inner.at != at)
        return 0;
    suspend_for_thread(rpc);
    return TORC_PENDING;
}

static int any_start(torc_rpc *rpc, void *state, void *arg)
{
    (void)state, (void)arg;
    return on_any(rpc, KIT_WATCH_START);
}

static int any_attempt(torc_rpc *rpc, uint32_t number, void *state, void *arg)
{
    (void)number, (void)state, (void)arg;
    return on_any(rpc, KIT_WATCH_ATTEMPT);
}

static int any_message(torc_rpc *rpc, int sent, torc_message **message, void *state, void *arg)
{
    (void)message, (void)state, (void)arg;
    return on_any(rpc, sent ? KIT_WATCH_SENT : KIT_WATCH_RECEIVED);
}

static int any_status(torc_rpc *rpc, int code, void *state, void *arg)
{
    (void)code, (void)state, (void)arg;
    return on_any(rpc, KIT_WATCH_STATUS);
}

static void test_resumed_by_a_thread(void **state)
{
    (void)state;
    const struct torc_interceptor a = {TORC_SIZE(torc_interceptor), .on_start = any_start, .on_attempt = any_attempt,
                                       .on_message = any_message, .on_status = any_status};
    const struct torc_interceptor *const list[] = {&a, NULL};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .interceptors = list};
    torc_channel_free(kit_watch.ch);
    kit_watch.ch = kit_backends_channel(kit_watch.kit, kit_watch.rt, &o, kit_watch_config);
    for (enum kit_watch_hook at = KIT_WATCH_START; at < KIT_WATCH_HOOKS; at++)
        for (int i = 0; i < 20; i++) {
            kit_watch.inner.at = at;
            kit_watch_expect(i % 2 ? KIT_WATCH_HEDGE : KIT_WATCH_ECHO, 0, TORC_STATUS_OK, "");
            pthread_join(resumer, NULL);
        }
}

/* --- everything at once: delays, resumptions in any order, deadlines, cancellations, handles that are freed --- */

enum { RPCS = 600, RESUMERS = 2 };

static struct {
    pthread_mutex_t mutex;           /* guards the fields below, except `turn` */
    pthread_cond_t changed;          /* `pending`, `over` or a count has changed */
    torc_pending *pending[RPCS * 8]; /* n delays that no resumer has taken yet */
    size_t n;
    bool over;                 /* no further delay comes: resumers end when n is 0 */
    unsigned turn;             /* calls of crowd_hook so far; used on the loop's thread only */
    int starts, ends, results; /* calls of crowd_start, crowd_end and crowd_result */
} crowd = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Delays two hooks of three: leaves the torc_pending for a resumer. Returns the verdict. */
static int crowd_hook(torc_rpc *rpc)
{
    if (crowd.turn++ % 3 == 0)
        return 0;
    torc_pending *p = torc_rpc_suspend(rpc);
    pthread_mutex_lock(&crowd.mutex);
    CHECK(crowd.n < TC_ARRAY_LEN(crowd.pending));
    crowd.pending[crowd.n++] = p;
    pthread_cond_broadcast(&crowd.changed);
    pthread_mutex_unlock(&crowd.mutex);
    return TORC_PENDING;
}

static void crowd_count(int *what)
{
    pthread_mutex_lock(&crowd.mutex);
    (*what)++;
    pthread_cond_broadcast(&crowd.changed);
    pthread_mutex_unlock(&crowd.mutex);
}

static int crowd_start(torc_rpc *rpc, void *state, void *arg)
{
    (void)arg;
    *(int *)state = 1;
    crowd_count(&crowd.starts);
    return crowd_hook(rpc);
}

static int crowd_attempt(torc_rpc *rpc, uint32_t number, void *state, void *arg)
{
    (void)number, (void)state, (void)arg;
    return crowd_hook(rpc);
}

static int crowd_message(torc_rpc *rpc, int sent, torc_message **message, void *state, void *arg)
{
    (void)sent, (void)message, (void)state, (void)arg;
    return crowd_hook(rpc);
}

static int crowd_status(torc_rpc *rpc, int code, void *state, void *arg)
{
    (void)code, (void)state, (void)arg;
    return crowd_hook(rpc);
}

static void crowd_end(torc_rpc *rpc, int code, void *state, void *arg)
{
    (void)rpc, (void)code, (void)arg;
    CHECK(*(int *)state == 1);
    *(int *)state = 2;
    crowd_count(&crowd.ends);
}

/* A resumer: ends delays, in another order than they began, until the crowd is over; one in seven with ABORTED. */
static void *crowd_resume(void *arg)
{
    unsigned i = 0;
    (void)arg;
    pthread_mutex_lock(&crowd.mutex);
    while (crowd.n || !crowd.over) {
        if (!crowd.n) {
            pthread_cond_wait(&crowd.changed, &crowd.mutex);
            continue;
        }
        size_t at = i++ % 2 ? crowd.n - 1 : crowd.n / 2;
        torc_pending *p = crowd.pending[at];
        crowd.pending[at] = crowd.pending[--crowd.n];
        pthread_mutex_unlock(&crowd.mutex);
        torc_pending_add_metadata(p, "x-added", "y", 1);
        torc_rpc_resume(p, i % 7 ? 0 : TORC_STATUS_ABORTED, i % 14 ? NULL : "aborted");
        pthread_mutex_lock(&crowd.mutex);
    }
    pthread_mutex_unlock(&crowd.mutex);
    return NULL;
}

static void crowd_result(const torc_result *result, void *arg)
{
    (void)result, (void)arg;
    crowd_count(&crowd.results);
}

static void test_crowd(void **state)
{
    (void)state;
    const struct torc_interceptor a = {
        TORC_SIZE(torc_interceptor), .state_size = sizeof(int), .on_start = crowd_start, .on_attempt = crowd_attempt,
        .on_message = crowd_message, .on_status = crowd_status, .on_end = crowd_end};
    const struct torc_interceptor *const list[] = {&a, NULL};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .interceptors = list};
    pthread_t resumers[RESUMERS];
    torc_channel_free(kit_watch.ch);
    kit_watch.ch = kit_backends_channel(kit_watch.kit, kit_watch.rt, &o, kit_watch_config);
    for (size_t i = 0; i < RESUMERS; i++)
        assert_int_equal(pthread_create(&resumers[i], NULL, crowd_resume, NULL), 0);
    static torc_stream *streams[RPCS];
    for (int i = 0; i < RPCS; i++) {
        struct torc_call_options co = {TORC_SIZE(torc_call_options), .timeout_ms = i % 5 ? 0 : 1 + i % 4};
        const char *method = i % 11 == 0 ? KIT_WATCH_HEDGE : i % 13 == 0 ? KIT_WATCH_HANG : KIT_WATCH_ECHO;
        assert_int_equal(torc_unary_async(kit_watch.ch, method, "m", 1, &co, crowd_result, NULL, &streams[i], NULL), 0);
        if (i >= 8 && i % 3 == 0)
            torc_stream_cancel(streams[i - 8]);
        else if (i >= 8 && i % 3 == 1) {
            torc_stream_free(streams[i - 8]);
            streams[i - 8] = NULL;
        }
    }
    for (int i = 0; i < RPCS; i++) { /* most RPCs of KIT_WATCH_HANG have no deadline */
        torc_stream_cancel(streams[i]);
        torc_stream_free(streams[i]);
    }
    pthread_mutex_lock(&crowd.mutex);
    while (crowd.results < RPCS)
        pthread_cond_wait(&crowd.changed, &crowd.mutex);
    assert_int_equal(crowd.starts, RPCS);
    assert_int_equal(crowd.ends, RPCS);
    crowd.over = true;
    pthread_cond_broadcast(&crowd.changed);
    pthread_mutex_unlock(&crowd.mutex);
    for (size_t i = 0; i < RESUMERS; i++)
        pthread_join(resumers[i], NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_watch_setup, kit_watch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_resumed_by_a_thread),
        cmocka_unit_test_setup_teardown(test_resumed_by_a_thread, kit_watch_setup_thread, kit_watch_teardown),
        cmocka_unit_test_setup_teardown(test_crowd, kit_watch_setup_thread, kit_watch_teardown),
    };
    return cmocka_run_group_tests(tests, kit_watch_group_setup, kit_watch_group_teardown);
}
