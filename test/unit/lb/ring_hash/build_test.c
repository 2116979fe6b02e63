/* Rings that the background thread builds: the old ring serves meanwhile, and newer updates may make a build useless
 * before it is done. Also rings that policies share.
 *
 * The setup lets the loop's thread build rings of up to 64 entries, so the policies' rings of 256 entries are built in
 * the background, unless the process has an equal one (ring/cache). A gate (support/gate.h) holds the background
 * thread: while the gate is closed no ring is finished. let_build opens the gate, and runs the loop, which brings the
 * ring to the policy. A gate is a local variable, and is open again when its function returns. Everything but these
 * builds runs on the test's thread; endpoints_freed_during_the_build, which has no policy, builds there, too. */
#include "support/cmocka.h"
#include "support/fakes/lb.h"
#include "support/gate.h"

#include "base/hash.h"
#include "lb/ring_hash/build.h"
#include "lb/ring_hash/policy.h"
#include "ring/cache.h"
#include "ring/ring_internal.h"

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
    return fake_lb_update(f, fake_lb_endpoints(endpoints), tc_ring_hash_config_new(256, 256, tc_slice_of(NULL, 0)),
                          NULL);
}

/* Picks with the hash of the entry, such as A "_0". Returns what fake_lb_pick does. */
static const char *pick(struct fake_lb *f, const char *entry)
{
    return fake_lb_pick_hash(f, tc_xxh64(entry, strlen(entry)));
}

/* Opens the gate. Waits until the background thread has built the ring and the policy has it. */
static void let_build(struct fake_lb *f, struct gate *g)
{
    gate_open(g);
    tc_loop_drain(f->loop);
}

/* Waits for the ring that is being built, and for the ring that is built next. Leaves the gate open. */
static void let_build_both(struct fake_lb *f, struct gate *g)
{
    let_build(f, g);
    gate_close(g);
    let_build(f, g);
}

static void the_first_ring(void **state)
{
    struct fake_lb *f = *state;
    struct gate g;
    gate_close(&g);
    assert_true(update(f, A));
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    assert_string_equal(pick(f, A "_0"), "QUEUE");
    assert_connects(f, "");
    /* An equal update waits for the same build. */
    assert_true(update(f, A));
    unsigned reports = f->reports;
    let_build(f, &g);
    assert_int_equal(f->reports, reports + 1);
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE);
    assert_string_equal(pick(f, A "_0"), "QUEUE");
    assert_connects(f, A " ");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(pick(f, A "_0"), A);
}

/* A117: exit_idle comes before the first ring. The policy connects as soon as it has the ring. */
static void asked_to_connect_before_the_ring(void **state)
{
    struct fake_lb *f = *state;
    struct gate g;
    gate_close(&g);
    assert_true(update(f, A));
    f->policy->ops->exit_idle(f->policy);
    assert_connects(f, "");
    let_build(f, &g);
    assert_connects(f, A " ");
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
}

/* Gives the policy a ring of A alone, and makes A READY. */
static void ready_with_a(struct fake_lb *f)
{
    struct gate g;
    gate_close(&g);
    update(f, A);
    let_build(f, &g);
    pick(f, A "_0");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_take_connects(f);
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
    /* States change while the ring is built, and move to the new set. */
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_take_connects(f);
    pick(f, A "_0");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(pick(f, B "_0"), A);
    fake_lb_take_connects(f);
    let_build(f, &g);
    assert_string_equal(pick(f, A "_0"), A);
    assert_string_equal(pick(f, B "_0"), "QUEUE");
    assert_connects(f, B " ");
    assert_int_equal(fake_lb_count(f, A), 1);
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
    let_build_both(f, &g);
    assert_string_equal(pick(f, A "_0"), "QUEUE");
    assert_connects(f, B " ");
    assert_int_equal(fake_lb_count(f, A), 0);
}

/* Gives ten updates in a row, each with a config of its own. Returns how many of these configs the policy and the
 * background thread still hold. */
static unsigned updates_in_a_row(struct fake_lb *f, unsigned round)
{
    struct tc_lb_config *configs[10];
    char list[128];
    unsigned held = 0;
    for (unsigned i = 0; i < TC_ARRAY_LEN(configs); i++) {
        snprintf(list, sizeof(list), A " " B " 3.3.3.%u:%u", round, i + 1);
        configs[i] = tc_lb_config_ref(tc_ring_hash_config_new(256, 256, tc_slice_of(NULL, 0)));
        assert_true(fake_lb_update(f, fake_lb_endpoints(list), configs[i], NULL));
    }
    for (unsigned i = 0; i < TC_ARRAY_LEN(configs); i++) {
        held += atomic_load(&configs[i]->ref.n) > 1;
        tc_lb_config_unref(configs[i]);
    }
    return held;
}

/* Each ring that was built is used, even when newer updates came meanwhile. Of those updates only the newest is built
 * next. So frequent updates neither keep the policy on an old ring nor queue up. */
static void updates_in_quick_succession(void **state)
{
    struct fake_lb *f = *state;
    struct gate g;
    ready_with_a(f);
    gate_close(&g);
    assert_true(update(f, A " " B));
    for (unsigned round = 0; round < 20; round++) {
        /* The ring is built, and the policy learns of it in the next turn. The next build waits for the gate. */
        gate_open(&g);
        gate_close(&g);
        unsigned reports = f->reports;
        assert_int_equal(updates_in_a_row(f, round), 2); /* the update that is being built, and the newest */
        assert_int_equal(f->reports, reports + 1);
        if (round == 0) {
            assert_string_equal(pick(f, B "_0"), "QUEUE");
            assert_connects(f, B " ");
            fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
        }
        assert_string_equal(pick(f, B "_0"), B);
    }
    let_build_both(f, &g);
    assert_string_equal(pick(f, "3.3.3.19:10_0"), "QUEUE");
    assert_connects(f, "3.3.3.19:10 ");
}

/* A ring of an older update does not replace a newer update that needed no build, or had no endpoints. */
static void a_ring_that_comes_too_late(void **state)
{
    struct fake_lb *f = *state;
    struct gate g;
    ready_with_a(f);
    gate_close(&g);
    assert_true(update(f, A " " B));
    assert_true(update(f, A));              /* needs no build: the present set has the ring */
    assert_true(update(f, A " 3.3.3.3:3")); /* waits for the build of A and B, which is useless */
    assert_false(update(f, ""));
    assert_true(update(f, B));
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    let_build_both(f, &g);
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE);
    assert_string_equal(pick(f, A "_0"), "QUEUE");
    assert_connects(f, B " ");
}

/* An update back to the endpoints in use needs no build, and makes the build that waits useless. */
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

static void an_empty_update_fails_at_once(void **state)
{
    struct fake_lb *f = *state;
    struct gate g;
    ready_with_a(f);
    gate_close(&g);
    assert_true(update(f, A " " B));
    assert_false(update(f, ""));
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    let_build(f, &g);
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_int_equal(fake_lb_count(f, NULL), 0);
}

/* An empty list comes while a build waits for the background thread: that ring is not wanted. The next list gets a ring
 * of its own. */
static void an_unwanted_build_is_dropped(void **state)
{
    struct fake_lb *f = *state;
    struct gate g;
    gate_close(&g);
    update(f, A " " B);
    assert_false(update(f, ""));
    let_build(f, &g);
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    gate_close(&g);
    update(f, B "#the-key-of-a");
    let_build(f, &g);
    assert_string_equal(pick(f, "the-key-of-a_0"), "QUEUE");
    assert_connects(f, B " ");
}

/* Returns a set of the endpoints with one reference, and stores in was[i] where endpoint i of the set is in `old` (may
 * be NULL). `was` has room for all endpoints of the text. */
static struct tc_rh_set *set_of(const char *endpoints, const struct tc_rh_set *old, struct tc_lb_config *config,
                                uint32_t *was)
{
    struct tc_endpoints *list = fake_lb_endpoints(endpoints);
    struct tc_rh_set *set = tc_rh_set_new(list->n, (struct tc_ring_hash_config *)config);
    tc_rh_set_merge(set, old, list, was);
    tc_endpoints_unref(list);
    return set;
}

/* The build of an updated ring has copies of all keys, those of removed endpoints too, since both sets may be freed
 * while the background thread builds (AddressSanitizer would see a borrowed key). */
static void endpoints_freed_during_the_build(void **state)
{
    (void)state;
    static const char before[] =
        "1.1.1.1:1#key-a 1.1.1.1:2#key-b 1.1.1.1:3#key-c 1.1.1.1:4#key-d 2.2.2.2:2#the-key-that-goes",
                      after[] = "1.1.1.1:1#key-a 1.1.1.1:2#key-b 1.1.1.1:3#key-c 1.1.1.1:4#key-d";
    struct tc_lb_config *config = tc_ring_hash_config_new(256, 256, tc_slice_of(NULL, 0));
    uint32_t was[5];
    struct tc_rh_set *old = set_of(before, NULL, config, was);
    struct tc_rh_build *build = tc_rh_build_new(old, NULL, was, 256);
    tc_rh_set_take_ring(old, tc_rh_build_run(build));
    tc_rh_build_free(build);
    struct tc_rh_set *set = set_of(after, old, config, was);
    build = tc_rh_build_new(set, old, was, 256);
    tc_rh_set_unref(old);
    tc_rh_set_unref(set);
    struct tc_ring *ring = tc_rh_build_run(build);
    tc_rh_build_free(build);
    const struct tc_ring_item items[] = {
        {tc_slice_str("key-a"), 1}, {tc_slice_str("key-b"), 1}, {tc_slice_str("key-c"), 1}, {tc_slice_str("key-d"), 1}};
    struct tc_ring *expected = tc_ring_new(items, 4, 256, 256, 256);
    assert_int_equal(tc_ring_fingerprint(ring), tc_ring_fingerprint(expected));
    tc_ring_unref(expected);
    tc_ring_unref(ring);
    tc_lb_config_unref(config);
}

/* A failed resolution is ignored while the first ring is being built. */
static void an_error_while_building(void **state)
{
    struct fake_lb *f = *state;
    struct gate g;
    struct tc_status error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "no luck");
    gate_close(&g);
    assert_true(update(f, A));
    fake_lb_update_error(f, &error, tc_ring_hash_config_new(256, 256, tc_slice_of(NULL, 0)));
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    let_build(f, &g);
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE);
    tc_status_fini(&error);
}

/* The policy ends while its ring is being built: fake_lb_free asserts that the policy reports nothing more. */
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

/* Two policies share one ring. The second policy finds the ring that was built for the first, and builds nothing. */
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
    assert_int_equal(other->state, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(atomic_load(&ring->ref.n), 3);
    gate_open(&g);
    fake_lb_free(other);
    assert_int_equal(atomic_load(&ring->ref.n), 2);
    tc_ring_unref(ring);
}

/* A small table of many endpoints is built in the background, too: the build looks at each endpoint. */
static void a_table_smaller_than_its_endpoints(void **state)
{
    (void)state;
    struct gate g;
    struct fake_lb *f = fake_lb_new("maglev_experimental");
    f->env.ring_inline_entries = 3;
    gate_close(&g);
    fake_lb_update(f, fake_lb_endpoints(A " " B " 3.3.3.3:3 4.4.4.4:4"),
                   fake_lb_config(f, "maglev_experimental", "{\"tableSize\": 3}", NULL), NULL);
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    let_build(f, &g);
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE);
    fake_lb_free(f);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(asked_to_connect_before_the_ring),
        TEST(the_first_ring),
        TEST(the_old_ring_serves_meanwhile),
        TEST(the_newest_update_counts),
        TEST(an_update_is_taken_back),
        TEST(an_empty_update_fails_at_once),
        TEST(an_unwanted_build_is_dropped),
        cmocka_unit_test(endpoints_freed_during_the_build),
        TEST(an_error_while_building),
        cmocka_unit_test(the_policy_ends_first),
        TEST(policies_share_a_ring),
        TEST(updates_in_quick_succession),
        TEST(a_ring_that_comes_too_late),
        cmocka_unit_test(a_table_smaller_than_its_endpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
