/* Rings that another thread builds: what serves meanwhile, and what becomes of a build that is not wanted any more; and
 * rings that policies share. */
#include "support/cmocka.h"
#include "support/fake_lb.h"
#include "support/gate.h"

#include "base/hash.h"
#include "lb/ring_cache.h"
#include "lb/ring_hash.h"
#include "lb/ring_impl.h"

#define A "1.1.1.1:1"
#define B "2.2.2.2:2"

static int setup(void **state)
{
    struct fake_lb *f = fake_lb_new("ring_hash_experimental");
    f->env.ring_inline_entries = 64;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fake_lb_free(*state);
    return 0;
}

static bool update(struct fake_lb *f, const char *endpoints)
{
    return fake_update(f, fake_endpoints(endpoints), tc_ring_hash_config_new(256, 256, tc_slice_of(NULL, 0)), NULL);
}

static const char *pick(struct fake_lb *f, const char *entry)
{
    return fake_pick_hash(f, tc_xxh64(entry, strlen(entry)));
}

/* The worker has built what it was given; the policy hears of it. */
static void let_build(struct fake_lb *f, struct gate *g)
{
    gate_open(g);
    tc_loop_drain(f->loop);
}

static void the_first_ring(void **state)
{
    struct fake_lb *f = *state;
    struct gate g;
    gate_close(&g);
    assert_true(update(f, A));
    assert_int_equal(f->state, TORC_CONNECTING);
    assert_string_equal(pick(f, A "_0"), "QUEUE");
    assert_connects(f, "");
    /* The same again waits for the same build. */
    assert_true(update(f, A));
    unsigned reports = f->reports;
    let_build(f, &g);
    assert_int_equal(f->reports, reports + 1);
    assert_int_equal(f->state, TORC_IDLE);
    assert_string_equal(pick(f, A "_0"), "QUEUE");
    assert_connects(f, A " ");
    fake_set(f, A, TORC_READY);
    assert_string_equal(pick(f, A "_0"), A);
}

static void ready_with_a(struct fake_lb *f)
{
    struct gate g;
    gate_close(&g);
    update(f, A);
    let_build(f, &g);
    pick(f, A "_0");
    fake_set(f, A, TORC_READY);
    fake_take_connects(f);
}

static void the_old_ring_serves_meanwhile(void **state)
{
    struct fake_lb *f = *state;
    struct gate g;
    ready_with_a(f);
    gate_close(&g);
    assert_true(update(f, A " " B));
    assert_string_equal(pick(f, B "_0"), A);
    assert_connects(f, "");
    /* States still change, and what they are then goes along. */
    fake_set(f, A, TORC_IDLE);
    fake_take_connects(f);
    pick(f, A "_0");
    fake_set(f, A, TORC_READY);
    assert_string_equal(pick(f, B "_0"), A);
    fake_take_connects(f);
    let_build(f, &g);
    assert_string_equal(pick(f, A "_0"), A);
    assert_string_equal(pick(f, B "_0"), "QUEUE");
    assert_connects(f, B " ");
    assert_int_equal(fake_count(f, A), 1);
}

static void the_newest_update_counts(void **state)
{
    struct fake_lb *f = *state;
    struct gate g;
    ready_with_a(f);
    gate_close(&g);
    assert_true(update(f, A " " B));
    assert_true(update(f, B));
    assert_string_equal(pick(f, B "_0"), A);
    let_build(f, &g);
    assert_string_equal(pick(f, A "_0"), "QUEUE");
    assert_connects(f, B " ");
    assert_int_equal(fake_count(f, A), 0);
}

/* Back to what is in use: nothing is to be built. */
static void an_update_is_taken_back(void **state)
{
    struct fake_lb *f = *state;
    struct gate g;
    ready_with_a(f);
    gate_close(&g);
    assert_true(update(f, A " " B));
    assert_true(update(f, A));
    let_build(f, &g);
    assert_string_equal(pick(f, B "_0"), A);
    assert_connects(f, "");
}

static void no_endpoints_are_told_at_once(void **state)
{
    struct fake_lb *f = *state;
    struct gate g;
    ready_with_a(f);
    gate_close(&g);
    assert_true(update(f, A " " B));
    assert_false(update(f, ""));
    assert_int_equal(f->state, TORC_TRANSIENT_FAILURE);
    let_build(f, &g);
    assert_int_equal(f->state, TORC_TRANSIENT_FAILURE);
    assert_int_equal(fake_count(f, NULL), 0);
}

/* A resolution that fails while the first ring is built is no reason to fail. */
static void an_error_meanwhile(void **state)
{
    struct fake_lb *f = *state;
    struct gate g;
    struct tc_status error = tc_status_make(TORC_STATUS_UNAVAILABLE, "no luck");
    gate_close(&g);
    assert_true(update(f, A));
    fake_update_error(f, &error, tc_ring_hash_config_new(256, 256, tc_slice_of(NULL, 0)));
    assert_int_equal(f->state, TORC_CONNECTING);
    let_build(f, &g);
    assert_int_equal(f->state, TORC_IDLE);
    tc_status_fini(&error);
}

static void the_policy_ends_first(void **state)
{
    (void)state;
    struct gate g;
    struct fake_lb *f = fake_lb_new("ring_hash_experimental");
    f->env.ring_inline_entries = 64;
    gate_close(&g);
    assert_true(update(f, A " " B));
    fake_lb_free(f);
    gate_open(&g);
}

/* Two policies, one ring: also when it was built elsewhere, and then for the second at once. */
static void policies_share_a_ring(void **state)
{
    struct fake_lb *f = *state, *other = fake_lb_new("ring_hash_experimental");
    other->env.ring_inline_entries = 64;
    const struct tc_ring_item items[] = {{tc_slice_str(A), 1}, {tc_slice_str(B), 1}};
    struct tc_ring_id id = tc_ring_id(items, 2, 256, 256, f->env.ring_size_cap);
    struct gate g;
    gate_close(&g);
    assert_true(update(f, A " " B));
    let_build(f, &g);
    struct tc_ring *ring = tc_ring_cache_find(&id);
    assert_non_null(ring);
    assert_int_equal(atomic_load(&ring->ref.n), 2);
    gate_close(&g);
    assert_true(update(other, A " " B));
    assert_int_equal(other->state, TORC_IDLE);
    assert_int_equal(atomic_load(&ring->ref.n), 3);
    gate_open(&g);
    fake_lb_free(other);
    assert_int_equal(atomic_load(&ring->ref.n), 2);
    tc_ring_unref(ring);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_ring),          TEST(the_old_ring_serves_meanwhile), TEST(the_newest_update_counts),
        TEST(an_update_is_taken_back), TEST(no_endpoints_are_told_at_once), TEST(an_error_meanwhile),
        TEST(the_policy_ends_first),   TEST(policies_share_a_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
