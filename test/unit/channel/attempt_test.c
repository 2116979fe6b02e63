/* The random number of a pick is drawn once for each attempt of an RPC, and kept while the pick is queued. Also the
 * delays of retries (test_backoff).
 *
 * Each test has a channel of kits/channel, which has virtual time and never connects, with retries or hedging in its
 * service config, and makes one call. The test's pickers queue or fail each pick, and record its number in `seen`. */
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "channel/call_internal.h"
#include "channel/call_start.h"
#include "support/cmocka.h"
#include "support/kits/channel.h"

#define CODES "\"retryableStatusCodes\":[\"UNAVAILABLE\"]"
#define RETRY                                                                                                          \
    "\"retryPolicy\":{\"maxAttempts\":4,\"initialBackoff\":\"1s\",\"maxBackoff\":\"1s\",\"backoffMultiplier\":"        \
    "1," CODES "}"
#define HEDGE "\"hedgingPolicy\":{\"maxAttempts\":4,\"hedgingDelay\":\"0s\"}"
#define CONFIG(policy) "{\"methodConfig\":[{\"name\":[{}]," policy "}]}"

static struct kit_channel k;
static enum tc_pick_kind answer;
static TC_VEC(uint64_t) seen; /* the random number of each pick */

static void close_channel(void)
{
    kit_channel_fini(&k);
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

/* Publishes a picker with this answer, and has the calls that wait pick again. The channel owns the picker. */
static void publish(enum tc_pick_kind kind)
{
    static const struct tc_picker_ops ops = {pick, free_picker};
    struct tc_picker *p = TC_NEW(struct tc_picker);
    p->ops = &ops;
    tc_lref_init(&p->ref);
    answer = kind;
    tc_channel_set_state(k.ch, TORC_CONNECTIVITY_READY, NULL, p);
    tc_loop_drain(k.loop);
}

static int ended; /* the call's code; -1: the call runs */

static void on_done(void *arg, const struct tc_call_end *end)
{
    (void)arg;
    ended = end->status.code;
}

/* Starts a call without a deadline. The call is valid until it ends; a test cancels one that still runs. */
static struct tc_call *begin(void)
{
    static const struct tc_call_events events = {.on_done = on_done};
    struct tc_call_opts opts = {.method = tc_slice_str("/s/a")};
    ended = -1;
    struct tc_call *c = tc_call_start(k.ch, &opts, &events, NULL);
    tc_loop_drain(k.loop);
    return c;
}

static void assert_all_differ(size_t n)
{
    assert_int_equal(seen.len, n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(seen.data[i] != seen.data[j]);
}

/* A queued pick keeps its number while pickers come and go: a policy that drops a share of the RPCs decides once for
 * each attempt. Each attempt after a failure has another number. */
static void test_retry(void **state)
{
    (void)state;
    kit_channel_init(&k, CONFIG(RETRY));
    begin();
    publish(TC_PICK_QUEUE);
    publish(TC_PICK_QUEUE);
    assert_int_equal(seen.len, 2);
    assert_true(seen.data[0] == seen.data[1]);
    seen.len = 0;
    publish(TC_PICK_FAIL); /* fails the first attempt, and the retries after their backoff */
    for (int i = 0; i < 3; i++)
        tc_loop_advance(k.loop, 1300);
    assert_int_equal(ended, TORC_STATUS_UNAVAILABLE);
    assert_all_differ(4);
    close_channel();
}

/* A6: the first retry comes after initialBackoff, even if maxBackoff is shorter. Each later retry, the n-th, comes
 * after initialBackoff * backoffMultiplier ** (n - 1), but after maxBackoff at most. All delays have a jitter of
 * 20 %. */
static void test_backoff(void **state)
{
    (void)state;
    kit_channel_init(&k, CONFIG("\"retryPolicy\":{\"maxAttempts\":5,\"initialBackoff\":\"10s\",\"maxBackoff\":\"1s\","
                                "\"backoffMultiplier\":0.4," CODES "}"));
    begin();
    publish(TC_PICK_FAIL);
    static const uint64_t expected_ms[] = {10000, 1000, 1000, 640};
    for (size_t n = 0; n < TC_ARRAY_LEN(expected_ms); n++) {
        uint64_t began_ms = tc_loop_now_ms(k.loop);
        assert_int_equal(seen.len, n + 1);
        while (seen.len < n + 2)
            tc_loop_advance(k.loop, 1);
        uint64_t delay_ms = tc_loop_now_ms(k.loop) - began_ms;
        assert_in_range(delay_ms, expected_ms[n] * 8 / 10, expected_ms[n] * 12 / 10);
    }
    assert_int_equal(ended, TORC_STATUS_UNAVAILABLE);
    close_channel();
}

/* The queued pick of a retry keeps its number when a new picker comes. */
static void test_retry_that_waits(void **state)
{
    (void)state;
    kit_channel_init(&k, CONFIG(RETRY));
    struct tc_call *c = begin();
    publish(TC_PICK_FAIL);
    assert_int_equal(seen.len, 1);
    publish(TC_PICK_QUEUE);
    tc_loop_advance(k.loop, 1300);
    publish(TC_PICK_QUEUE);
    assert_int_equal(seen.len, 3);
    assert_true(seen.data[0] != seen.data[1]);
    assert_true(seen.data[1] == seen.data[2]);
    tc_call_cancel(c);
    close_channel();
}

/* Each of the hedged attempts has a number of its own, and keeps the number while its pick is queued. */
static void test_hedges(void **state)
{
    (void)state;
    kit_channel_init(&k, CONFIG(HEDGE));
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
        cmocka_unit_test(test_backoff),
        cmocka_unit_test(test_retry_that_waits),
        cmocka_unit_test(test_hedges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
