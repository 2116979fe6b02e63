/* ring_hash with more endpoints than the ring has entries. An endpoint without an entry gets no pick, is not
 * connected, and does not count in the policy's state.
 *
 * Each test makes a fake channel (fakes/lb) with virtual time and frees it. One thread. */
#include "lb/ring_hash/policy.h"

#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/hash.h"
#include "base/mem.h"

static const char *const E[] = {"1.1.1.1:1", "2.2.2.2:2", "3.3.3.3:3", "4.4.4.4:4"};
#define E0 "1.1.1.1:1"
#define E1 "2.2.2.2:2"
#define E2 "3.3.3.3:3"
#define E3 "4.4.4.4:4"
#define ALL E0 " " E1 " " E2 " " E3

static void update(struct fake_lb *f, uint64_t ring_size)
{
    fake_lb_update(f, fake_lb_endpoints(ALL), tc_ring_hash_config_new(ring_size, ring_size, tc_slice_of(NULL, 0)),
                   NULL);
}

/* Picks with the hash of the key's entry 0, whether or not the ring has that entry. Returns what fake_lb_pick does. */
static const char *pick(struct fake_lb *f, const char *key)
{
    char *text = tc_asprintf("%s_0", key);
    uint64_t hash = tc_xxh64(text, strlen(text));
    tc_free(text);
    return fake_lb_pick_hash(f, hash);
}

/* A ring of two entries over four endpoints: E0 and E2 have one each. E1 and E3, which no pick can reach, are not
 * connected and not counted. */
static void endpoints_without_an_entry_do_not_count(void **state)
{
    (void)state;
    struct fake_lb *f = fake_lb_new("ring_hash");
    update(f, 2);
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE);
    assert_string_equal(pick(f, E0), "QUEUE");
    assert_int_equal(fake_lb_count(f, NULL), 1);
    const char *first = fake_lb_state(f, E0) == TORC_CONNECTIVITY_CONNECTING ? E0 : E2,
               *second = first[0] == '1' ? E2 : E0;
    fake_lb_set_failed(f, first, "down");
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set_failed(f, second, "down");
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(pick(f, E0), "FAIL");
    tc_loop_advance(f->loop, 1000);
    assert_int_equal(fake_lb_count(f, E1) + fake_lb_count(f, E3), 0);
    assert_string_equal(tc_buf_cstr(&f->history), "IDLE CONNECTING TF ");
    /* The policy's own attempts (A61) connect no endpoint without an entry, either: while `second` fails, the policy
     * connects `first` as soon as `first` is IDLE. So exit_idle finds the policy in CONNECTING, and does nothing. */
    fake_lb_set(f, first, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, first, TORC_CONNECTIVITY_READY);
    assert_string_equal(pick(f, E0), first);
    for (unsigned i = 0; i < 20; i++) {
        fake_lb_set(f, first, TORC_CONNECTIVITY_IDLE);
        assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
        assert_int_equal(fake_lb_state(f, first), TORC_CONNECTIVITY_CONNECTING);
        f->policy->ops->exit_idle(f->policy);
        tc_loop_drain(f->loop);
        fake_lb_set(f, first, TORC_CONNECTIVITY_READY);
    }
    assert_int_equal(fake_lb_count(f, E1) + fake_lb_count(f, E3), 0);
    fake_lb_free(f);
}

/* A ring of one entry over four endpoints: the policy fails when the endpoint that has the entry does. */
static void one_endpoint_has_the_only_entry(void **state)
{
    (void)state;
    struct fake_lb *f = fake_lb_new("ring_hash");
    update(f, 1);
    assert_string_equal(pick(f, E0), "QUEUE");
    assert_int_equal(fake_lb_count(f, NULL), 1);
    for (size_t i = 0; i < 4; i++)
        if (fake_lb_count(f, E[i]))
            fake_lb_set_failed(f, E[i], "down");
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(pick(f, E0), "FAIL");
    fake_lb_free(f);
}

/* An endpoint that loses its last entry is released. When it has an entry again it starts without a connection. */
static void endpoints_that_lose_their_entry(void **state)
{
    (void)state;
    struct fake_lb *f = fake_lb_new("ring_hash");
    update(f, 1024);
    for (size_t i = 0; i < 4; i++) {
        pick(f, E[i]);
        fake_lb_set(f, E[i], i == 1 ? TORC_CONNECTIVITY_READY : TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    }
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    update(f, 2);
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_int_equal(fake_lb_count(f, E1) + fake_lb_count(f, E3), 0);
    assert_string_equal(pick(f, E1), "FAIL");
    update(f, 1024);
    fake_lb_take_connects(f);
    assert_true(fake_lb_count(f, E1) + fake_lb_count(f, E3) == 1); /* the policy connects an endpoint without a pick */
    assert_string_equal(pick(f, E1), "QUEUE");
    assert_int_equal(fake_lb_state(f, E1), TORC_CONNECTIVITY_CONNECTING);
    fake_lb_free(f);
}

/* The next priority is used when all endpoints with an entry fail. */
static void the_lower_priority_is_used(void **state)
{
    (void)state;
    struct fake_lb *f = fake_lb_new("priority");
    fake_lb_update(f, fake_lb_endpoint_tree("p0", ALL, "p1", "5.5.5.5:5", NULL),
                   fake_lb_config(f, "priority",
                                  "{'priorities': ['p0', 'p1'], 'children': {"
                                  "'p0': {'config': [{'ring_hash': {'minRingSize': 2, 'maxRingSize': 2}}]}, "
                                  "'p1': {'config': [{'round_robin': {}}]}}}",
                                  NULL),
                   NULL);
    pick(f, E0);
    for (unsigned i = 0; i < 2; i++)
        fake_lb_set_failed(f, fake_lb_state(f, E0) == TORC_CONNECTIVITY_CONNECTING ? E0 : E2, "down");
    assert_string_equal(fake_lb_take_connects(f) + 20, "5.5.5.5:5 "); /* after E0 and E2, of ten characters each */
    fake_lb_set(f, "5.5.5.5:5", TORC_CONNECTIVITY_READY);
    assert_string_equal(pick(f, E0), "5.5.5.5:5");
    fake_lb_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints_without_an_entry_do_not_count),
        cmocka_unit_test(one_endpoint_has_the_only_entry),
        cmocka_unit_test(endpoints_that_lose_their_entry),
        cmocka_unit_test(the_lower_priority_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
