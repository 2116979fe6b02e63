/* Random numbers of an RPC: some are drawn once for the RPC, others for each attempt. A channel on virtual time, whose
 * picker records the numbers of its picks. */
#include <string.h>

#include "api/builtin.h"
#include "base/mem.h"
#include "base/vec.h"
#include "channel/call_internal.h"
#include "channel/call_start.h"
#include "channel/create.h"
#include "runtime/create.h"
#include "subchannel/connection.h"
#include "subchannel/pool.h"
#include "support/cmocka.h"

#define CODES "\"retryableStatusCodes\":[\"UNAVAILABLE\"]"
#define RETRY                                                                                                          \
    "\"retryPolicy\":{\"maxAttempts\":4,\"initialBackoff\":\"1s\",\"maxBackoff\":\"1s\",\"backoffMultiplier\":"        \
    "1," CODES "}"
#define HEDGE "\"hedgingPolicy\":{\"maxAttempts\":4,\"hedgingDelay\":\"0s\"}"
#define CONFIG(policy) "{\"methodConfig\":[{\"name\":[{}]," policy "}]}"

static struct tc_loop *loop;
static torc_runtime *rt;
static torc_channel *ch;
static enum tc_pick_kind answer;
static TC_VEC(uint64_t) seen; /* the random number of each pick */

/* Connections that never become ready. */
static int dummy_attempt;

static struct tc_connect *start(struct tc_loop *l, const struct tc_addr *addr, const struct tc_connect_opts *opts,
                                tc_connect_fn fn, void *arg)
{
    (void)l, (void)addr, (void)opts, (void)fn, (void)arg;
    return (struct tc_connect *)&dummy_attempt;
}

static void cancel(struct tc_connect *c)
{
    assert_ptr_equal(c, &dummy_attempt);
}

static void open_channel(const char *config)
{
    static const struct tc_connector connector = {.start = start, .cancel = cancel};
    struct tc_status why = {0};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .service_config_json = config};
    loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 1});
    rt = tc_runtime_new_on(loop, NULL);
    tc_pool_set_connector(tc_runtime_pool(rt), &connector);
    ch = tc_channel_new_private(rt, "ipv4:10.0.0.1:80", &o, tc_builtin_policies(), &why);
    if (!ch)
        fail_msg("%s", tc_status_text(&why));
}

static void close_channel(void)
{
    tc_channel_shutdown(ch);
    tc_loop_drain(loop);
    assert_int_equal(torc_runtime_free(rt), 0);
    tc_loop_free(loop);
    tc_vec_fini(&seen);
}

static enum tc_pick_kind pick(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    (void)picker;
    *tc_vec_push(&seen) = args->random;
    if (answer == TC_PICK_FAIL)
        out->status = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "as scripted");
    return answer;
}

static void free_picker(struct tc_picker *picker)
{
    tc_free(picker);
}

/* Publishes a picker with this answer, and picks for the calls that wait. */
static void publish(enum tc_pick_kind kind)
{
    static const struct tc_picker_ops ops = {pick, free_picker};
    struct tc_picker *p = TC_NEW(struct tc_picker);
    p->ops = &ops;
    tc_lref_init(&p->ref);
    answer = kind;
    tc_channel_set_state(ch, TORC_CONNECTIVITY_READY, NULL, p);
    tc_loop_drain(loop);
}

static int ended; /* the call's code; -1: the call runs */

static void on_done(void *arg, const struct tc_call_end *end)
{
    (void)arg;
    ended = end->status.code;
}

static struct tc_call *begin(void)
{
    static const struct tc_call_events events = {.on_done = on_done};
    struct tc_call_opts opts = {.method = tc_slice_str("/s/a")};
    ended = -1;
    struct tc_call *c = tc_call_start(ch, &opts, &events, NULL);
    tc_loop_drain(loop);
    return c;
}

static void assert_all_differ(size_t n)
{
    assert_int_equal(seen.len, n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(seen.data[i] != seen.data[k]);
}

/* A queued pick keeps its number, so that no share is drawn for twice. The attempt after a failure has another number.
 */
static void test_retry(void **state)
{
    (void)state;
    open_channel(CONFIG(RETRY));
    begin();
    publish(TC_PICK_QUEUE);
    publish(TC_PICK_QUEUE);
    assert_int_equal(seen.len, 2);
    assert_true(seen.data[0] == seen.data[1]);
    seen.len = 0;
    publish(TC_PICK_FAIL); /* fails the first attempt, and the retries after their backoff */
    for (int i = 0; i < 3; i++)
        tc_loop_advance(loop, 1300);
    assert_int_equal(ended, TORC_STATUS_UNAVAILABLE);
    assert_all_differ(4);
    close_channel();
}

/* A queued pick of a retry keeps its number, too. */
static void test_retry_that_waits(void **state)
{
    (void)state;
    open_channel(CONFIG(RETRY));
    struct tc_call *c = begin();
    publish(TC_PICK_FAIL);
    assert_int_equal(seen.len, 1);
    publish(TC_PICK_QUEUE);
    tc_loop_advance(loop, 1300);
    publish(TC_PICK_QUEUE);
    assert_int_equal(seen.len, 3);
    assert_true(seen.data[0] != seen.data[1]);
    assert_true(seen.data[1] == seen.data[2]);
    tc_call_cancel(c);
    close_channel();
}

static void test_hedges(void **state)
{
    (void)state;
    open_channel(CONFIG(HEDGE));
    struct tc_call *c = begin();
    publish(TC_PICK_QUEUE);
    assert_all_differ(4);
    publish(TC_PICK_QUEUE);
    assert_int_equal(seen.len, 8);
    for (size_t i = 0; i < 4; i++)
        assert_true(seen.data[i] == seen.data[i + 4]);
    tc_call_cancel(c);
    close_channel();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retry),
        cmocka_unit_test(test_retry_that_waits),
        cmocka_unit_test(test_hedges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
