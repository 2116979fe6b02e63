/* ring_hash on virtual time: the walk of a pick, connecting, aggregated states, shares, and rings that change.
 *
 * The policy runs in fakes/lb, which the setup of each test makes and the teardown frees. Endpoint i is E[i]. pick(f,
 * E[i]) uses the hash of the endpoint's own entry 0, so the pick's walk begins at that endpoint; `walk` tells which
 * endpoints follow. "The policy connects" means an attempt that no pick asked for (A61, A117). One thread. */
#include "lb/ring_hash/policy.h"

#include <stdlib.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/hash.h"
#include "base/mem.h"
#include "ring/ring.h"

static const char *const E[] = {"1.1.1.1:1", "2.2.2.2:2", "3.3.3.3:3", "4.4.4.4:4"};
#define E0 "1.1.1.1:1"
#define E1 "2.2.2.2:2"
#define E2 "3.3.3.3:3"
#define E3 "4.4.4.4:4"

static int setup(void **state)
{
    *state = fake_lb_new("ring_hash_experimental");
    return 0;
}

static int teardown(void **state)
{
    fake_lb_free(*state);
    return 0;
}

static struct tc_lb_config *config(void)
{
    return tc_ring_hash_config_new(1024, 4096, tc_slice_of(NULL, 0));
}

static bool update(struct fake_lb *f, const char *endpoints)
{
    return fake_lb_update(f, fake_lb_endpoints(endpoints), config(), NULL);
}

/* Returns the hash of the key's entry 0, which hits the key's endpoint. */
static uint64_t hash_of(const char *key)
{
    char *text = tc_asprintf("%s_0", key);
    uint64_t hash = tc_xxh64(text, strlen(text));
    tc_free(text);
    return hash;
}

/* Walks the ring of the first n of E from entry 0 of the key `from` on. Returns the endpoint that the walk meets after
 * k other endpoints; k < n. */
static const char *walk(size_t n, const char *from, unsigned k)
{
    struct tc_ring_item items[4];
    for (size_t i = 0; i < n; i++)
        items[i] = (struct tc_ring_item){tc_slice_str(E[i]), 1};
    struct tc_ring *ring = tc_ring_new(items, n, 1024, 4096, 4096);
    unsigned seen = 0, distinct = 0;
    uint32_t e = tc_ring_find(ring, hash_of(from)), item = 0;
    for (;; e = (e + 1) % tc_ring_size(ring)) {
        item = tc_ring_item_at(ring, e);
        if (seen & (1u << item))
            continue;
        seen |= 1u << item;
        if (distinct++ == k)
            break;
    }
    tc_ring_unref(ring);
    return E[item];
}

/* Picks with the hash of the key's entry 0. Returns what fake_lb_pick does. */
static const char *pick(struct fake_lb *f, const char *key)
{
    return fake_lb_pick_hash(f, hash_of(key));
}

static void lazy_start(void **state)
{
    TC_CASE(RH01);
    TC_CASE(RH02);
    TC_CASE(RH03);
    TC_CASE(RH04);
    struct fake_lb *f = *state;
    assert_true(update(f, E0 " " E1 " " E2));
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(fake_lb_count(f, NULL), 0);
    assert_string_equal(pick(f, E0), "QUEUE");
    assert_connects(f, E0 " ");
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    assert_string_equal(pick(f, E0), "QUEUE");
    assert_connects(f, "");
    fake_lb_set(f, E0, TORC_CONNECTIVITY_READY);
    assert_string_equal(pick(f, E0), E0);
    assert_string_equal(tc_buf_cstr(&f->history), "IDLE CONNECTING READY ");
    for (unsigned i = 0; i < 100; i++)
        assert_string_equal(pick(f, E0), E0);
    assert_connects(f, "");
}

static void several_picks_before_the_task_connect_once(void **state)
{
    struct fake_lb *f = *state;
    update(f, E0 " " E1);
    f->args.has_hash = true;
    f->args.hash = hash_of(E0);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(tc_picker_pick(f->picker, &f->args, &f->pick), TC_PICK_QUEUE);
    tc_loop_drain(f->loop);
    assert_connects(f, E0 " ");
}

static void failing_endpoints_are_passed_over(void **state)
{
    TC_CASE(RH05);
    TC_CASE(RH06);
    TC_CASE(RH33);
    struct fake_lb *f = *state;
    update(f, E0 " " E1 " " E2);
    const char *next = walk(3, E0, 1);
    pick(f, next);
    fake_lb_set(f, next, TORC_CONNECTIVITY_READY);
    pick(f, E0);
    fake_lb_set_failed(f, E0, "refused");
    assert_string_equal(pick(f, E0), next);
    fake_lb_set(f, next, TORC_CONNECTIVITY_IDLE); /* now the policy connects an IDLE endpoint itself */
    fake_lb_take_connects(f);
    pick(f, next);
    assert_int_equal(fake_lb_state(f, next), TORC_CONNECTIVITY_CONNECTING);
    fake_lb_take_connects(f);
    assert_string_equal(pick(f, E0), "QUEUE");
    assert_connects(f, "");
}

static void the_next_idle_endpoint_is_connected(void **state)
{
    TC_CASE(RH07);
    struct fake_lb *f = *state;
    update(f, E0 " " E1 " " E2 " " E3);
    /* While another endpoint is READY the policy connects nothing by itself. */
    const char *next = walk(4, E0, 1), *far = walk(4, E0, 3);
    pick(f, far);
    fake_lb_set(f, far, TORC_CONNECTIVITY_READY);
    pick(f, E0);
    fake_lb_set_failed(f, E0, "refused");
    fake_lb_take_connects(f);
    assert_string_equal(pick(f, E0), "QUEUE");
    char *expected = tc_asprintf("%s ", next);
    assert_connects(f, expected);
    tc_free(expected);
}

static void all_failing_reports_the_endpoint_that_was_hit(void **state)
{
    TC_CASE(RH08);
    TC_CASE(RH09);
    TC_CASE(RH16);
    TC_CASE(RH46);
    struct fake_lb *f = *state;
    fake_lb_update(f, fake_lb_endpoints(E0 " " E1), config(), NULL);
    pick(f, E0);
    fake_lb_set_failed(f, E0, "zero is down");
    fake_lb_set_failed(f, E1, "one is down"); /* connected by the policy itself */
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(pick(f, E0), "FAIL");
    assert_int_equal(f->pick.status.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(fake_lb_pick_error(f),
                        "ring hash cannot find a connected endpoint; first failure: " E0 ": zero is down");
    assert_string_equal(pick(f, E1), "FAIL");
    assert_string_equal(fake_lb_pick_error(f),
                        "ring hash cannot find a connected endpoint; first failure: " E1 ": one is down");
    /* The pick connects nothing. The endpoint's pick_first connects when its backoff is over. */
    fake_lb_take_connects(f);
    pick(f, E0);
    assert_connects(f, "");
    fake_lb_set(f, E0, TORC_CONNECTIVITY_IDLE);
    assert_connects(f, E0 " ");
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(pick(f, E0), "FAIL"); /* E0 counts as failed while it connects again */
    fake_lb_set(f, E0, TORC_CONNECTIVITY_READY);
    assert_string_equal(pick(f, E0), E0);
    assert_string_equal(pick(f, E1), E0);
}

static void the_resolution_note_is_in_the_status(void **state)
{
    struct fake_lb *f = *state;
    fake_lb_update(f, fake_lb_endpoints(E0), config(), "node n1");
    pick(f, E0);
    fake_lb_set_failed(f, E0, "down");
    pick(f, E0);
    assert_string_equal(fake_lb_pick_error(f),
                        "ring hash cannot find a connected endpoint; first failure: " E0 ": down (node n1)");
}

static void aggregation(void **state)
{
    TC_CASE(RH10);
    struct fake_lb *f = *state;
    update(f, E0);
    pick(f, E0);
    fake_lb_set_failed(f, E0, "down");
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE); /* the only endpoint */
    update(f, E0 " " E1);
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING); /* one failing, one connecting */
    update(f, E0 " " E1 " " E2);
    fake_lb_set_failed(f, E1, "down");
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE); /* two failing, one connecting */
    assert_int_equal(fake_lb_state(f, E2), TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set(f, E2, TORC_CONNECTIVITY_READY);
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    update(f, E0 " " E3);
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    update(f, E3);
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    update(f, E2);
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE);
}

static void a_lost_connection_goes_idle(void **state)
{
    TC_CASE(RH11);
    struct fake_lb *f = *state;
    update(f, E0 " " E1);
    pick(f, E0);
    fake_lb_set(f, E0, TORC_CONNECTIVITY_READY);
    fake_lb_take_connects(f);
    fake_lb_set(f, E0, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(f->reresolutions, 1);
    tc_loop_advance(f->loop, 100000);
    assert_connects(f, "");
    assert_string_equal(pick(f, E0), "QUEUE");
    assert_connects(f, E0 " ");
}

/* Asserts that exactly one endpoint of E is CONNECTING, and that no other attempt began since the last call of
 * fake_lb_take_connects. Returns the endpoint's index. */
static size_t dialled(struct fake_lb *f)
{
    size_t found = TC_ARRAY_LEN(E);
    for (size_t i = 0; i < TC_ARRAY_LEN(E); i++) {
        if (fake_lb_state(f, E[i]) != TORC_CONNECTIVITY_CONNECTING)
            continue;
        assert_int_equal(found, TC_ARRAY_LEN(E));
        found = i;
    }
    assert_in_range(found, 0, TC_ARRAY_LEN(E) - 1);
    char *wanted = tc_asprintf("%s ", E[found]);
    assert_connects(f, wanted);
    tc_free(wanted);
    return found;
}

static void connects_by_itself_when_failing(void **state)
{
    TC_CASE(RH12);
    TC_CASE(RH13);
    struct fake_lb *f = *state;
    update(f, E0 " " E1 " " E2 " " E3);
    pick(f, E0);
    fake_lb_take_connects(f);
    fake_lb_set_failed(f, E0, "down");
    size_t next = dialled(f);
    assert_int_not_equal(next, 0);
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set(f, E[next], TORC_CONNECTIVITY_READY);
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    assert_connects(f, "");
}

/* A117: without a pick, the policy connects the first IDLE endpoint from a random place on. So clients that fail
 * together do not all connect to the same endpoint. */
static void connects_a_random_endpoint(void **state)
{
    (void)state;
    unsigned counts[4] = {0};
    for (unsigned seed = 0; seed < 300; seed++) {
        struct fake_lb *f = fake_lb_new("ring_hash_experimental");
        tc_rng_init_seed(tc_loop_rng(f->loop), seed);
        update(f, E0 " " E1 " " E2 " " E3);
        pick(f, E0);
        fake_lb_take_connects(f);
        fake_lb_set_failed(f, E0, "down");
        counts[dialled(f)]++;
        fake_lb_free(f);
    }
    assert_int_equal(counts[0], 0);
    /* E1 is found from E0 and from E1. */
    assert_in_range(counts[1], 110, 190);
    assert_in_range(counts[2], 45, 110);
    assert_in_range(counts[3], 45, 110);
}

static void one_at_a_time(void **state)
{
    TC_CASE(RH14);
    TC_CASE(RH15);
    struct fake_lb *f = *state;
    update(f, E0 " " E1 " " E2 " " E3);
    pick(f, E0);
    unsigned seen = 0;
    for (unsigned i = 0; i < 3; i++) {
        size_t at = dialled(f);
        seen |= 1u << at;
        fake_lb_set_failed(f, E[at], "down");
    }
    size_t last = dialled(f);
    assert_int_equal(seen | 1u << last, 15);
    fake_lb_set(f, E[last], TORC_CONNECTIVITY_READY);
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    assert_string_equal(tc_buf_cstr(&f->history), "IDLE CONNECTING TF READY ");
    /* Each failed endpoint connects again when its own backoff is over, even while another one connects. */
    size_t other = last == 1 ? 2 : 1;
    fake_lb_set(f, E0, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, E[other], TORC_CONNECTIVITY_IDLE);
    assert_int_equal(fake_lb_state(f, E0), TORC_CONNECTIVITY_CONNECTING);
    assert_int_equal(fake_lb_state(f, E[other]), TORC_CONNECTIVITY_CONNECTING);
}

static void skips_to_a_ready_endpoint(void **state)
{
    TC_CASE(RH17);
    struct fake_lb *f = *state;
    update(f, E0 " " E1);
    pick(f, E0);
    fake_lb_set_failed(f, E0, "down");
    fake_lb_set_failed(f, E1, "down");
    assert_string_equal(pick(f, E0), "FAIL");
    fake_lb_set(f, E0, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, E0, TORC_CONNECTIVITY_READY);
    assert_string_equal(pick(f, E0), E0);
    fake_lb_set(f, E1, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, E1, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, E0, TORC_CONNECTIVITY_IDLE);
    pick(f, E0);
    fake_lb_set_failed(f, E0, "down again");
    assert_string_equal(pick(f, E0), E1);
}

static void empty_then_filled(void **state)
{
    TC_CASE(RH18);
    struct fake_lb *f = *state;
    static const char note[] = "EDS resource x contains empty localities: [{region=\"\", zone=\"\", "
                               "sub_zone=\"locality0\"}]";
    assert_false(fake_lb_update(f, fake_lb_endpoints(""), config(), note));
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(pick(f, E0), "FAIL");
    assert_int_equal(f->pick.status.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(fake_lb_pick_error(f), "empty address list: EDS resource x contains empty localities: "
                                               "[{region=\"\", zone=\"\", sub_zone=\"locality0\"}]");
    assert_true(update(f, E0));
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE);
    assert_string_equal(pick(f, E0), "QUEUE");
    fake_lb_set(f, E0, TORC_CONNECTIVITY_READY);
    assert_string_equal(pick(f, E0), E0);
    update(f, "");
    assert_int_equal(fake_lb_count(f, NULL), 0);
}

static void an_idle_endpoint_is_connected_when_the_ready_one_is_lost(void **state)
{
    TC_CASE(RH20);
    TC_CASE(RH21);
    for (unsigned removed = 0; removed < 2; removed++) {
        struct fake_lb *f = *state;
        update(f, E0 " " E1 " " E2);
        pick(f, E0);
        fake_lb_take_connects(f);
        fake_lb_set_failed(f, E0, "down");
        size_t failed = dialled(f), ready = failed == 1 ? 2 : 1;
        fake_lb_set_failed(f, E[failed], "down");
        assert_int_equal(dialled(f), ready);
        fake_lb_set(f, E[ready], TORC_CONNECTIVITY_READY);
        update(f, E0 " " E1 " " E2 " " E3);
        assert_connects(f, "");
        if (removed)
            update(f, ready == 1 ? E0 " " E2 " " E3 : E0 " " E1 " " E3);
        else
            fake_lb_set(f, E[ready], TORC_CONNECTIVITY_IDLE);
        size_t next = dialled(f);
        assert_true(next == 3 || (!removed && next == ready));
        fake_lb_set(f, E[next], TORC_CONNECTIVITY_READY);
        assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
        update(f, "");
        fake_lb_take_connects(f);
    }
}

static void keys_reach_their_endpoints(void **state)
{
    TC_CASE(RH23);
    struct fake_lb *f = *state;
    update(f, E0 " " E1 " " E2 " " E3);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(pick(f, E[i]), "QUEUE");
        fake_lb_set(f, E[i], TORC_CONNECTIVITY_READY);
    }
    for (size_t i = 0; i < 4; i++)
        for (unsigned k = 0; k < 100; k++)
            assert_string_equal(pick(f, E[i]), E[i]);
}

/* Makes the first n endpoints READY. */
static void connect_all(struct fake_lb *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        pick(f, E[i]);
        if (fake_lb_state(f, E[i]) != TORC_CONNECTIVITY_READY)
            fake_lb_set(f, E[i], TORC_CONNECTIVITY_READY);
    }
}

/* Asserts the shares (0 to 1) of the first n endpoints of E in picks with random hashes, within 0.05. */
static void assert_shares(struct fake_lb *f, const double *shares, size_t n)
{
    enum { ROUNDS = 20000 };
    unsigned counts[4] = {0};
    for (unsigned k = 0; k < ROUNDS; k++) {
        const char *at = fake_lb_pick_hash(f, tc_rng_u64(tc_loop_rng(f->loop)));
        for (size_t i = 0; i < n; i++)
            counts[i] += strcmp(at, E[i]) == 0;
        if (k % 100 == 0)
            tc_arena_reset(&f->arena);
    }
    for (size_t i = 0; i < n; i++)
        assert_in_range(counts[i] * 1000 / ROUNDS, (unsigned)(shares[i] * 1000) - 50,
                        (unsigned)(shares[i] * 1000) + 50);
}

static void random_hashes_spread_evenly(void **state)
{
    TC_CASE(RH25);
    struct fake_lb *f = *state;
    fake_lb_update(f, fake_lb_endpoints(E0 " " E1),
                   tc_ring_hash_config_new(100000, TC_RING_SIZE_MAX, tc_slice_of(NULL, 0)), NULL);
    connect_all(f, 2);
    assert_shares(f, (const double[]){0.5, 0.5}, 2);
}

static void weights_share_the_ring(void **state)
{
    TC_CASE(RH26);
    TC_CASE(RH31);
    struct fake_lb *f = *state;
    update(f, E0 "*0 " E1 "*1 " E2 "*2");
    connect_all(f, 3);
    assert_shares(f, (const double[]){0.25, 0.25, 0.5}, 3);
    update(f, E0 "*1 " E1 "*4");
    assert_shares(f, (const double[]){0.2, 0.8}, 2);
}

static void other_address_of_the_endpoint(void **state)
{
    TC_CASE(RH35);
    struct fake_lb *f = *state;
    update(f, E0 "," E3 " " E1 " " E2);
    pick(f, E0);
    assert_connects(f, E0 " ");
    fake_lb_set_failed(f, E0, "down");
    assert_connects(f, E3 " ");
    fake_lb_set(f, E3, TORC_CONNECTIVITY_READY);
    assert_string_equal(pick(f, E0), E3);
    fake_lb_set(f, E3, TORC_CONNECTIVITY_IDLE);
    pick(f, E0);
    assert_connects(f, E0 " "); /* from the first address again */
}

static void first_address_places_the_endpoint(void **state)
{
    TC_CASE(RH36);
    struct fake_lb *f = *state;
    update(f, E0 ",9.9.9.1:1,9.9.9.2:1 " E1);
    pick(f, E0);
    fake_lb_set(f, E0, TORC_CONNECTIVITY_READY);
    fake_lb_take_connects(f);
    update(f, E0 ",9.9.9.2:1,9.9.9.1:1 " E1);
    assert_string_equal(pick(f, E0), E0);
    update(f, "9.9.9.1:1," E0 ",9.9.9.2:1 " E1);
    assert_string_equal(fake_lb_pick_hash(f, hash_of("9.9.9.1:1")), E0); /* moved on the ring, connection kept */
    assert_connects(f, "");
    assert_int_equal(fake_lb_count(f, NULL), 1);
}

static void hash_keys_place_endpoints(void **state)
{
    TC_CASE(RH37);
    struct fake_lb *f = *state;
    update(f, E0 "#alpha " E1 "#beta " E2 "# " E3);
    assert_string_equal(pick(f, "alpha"), "QUEUE");
    assert_connects(f, E0 " ");
    pick(f, "beta");
    assert_connects(f, E1 " ");
    pick(f, E2);
    assert_connects(f, E2 " ");
    fake_lb_set(f, E0, TORC_CONNECTIVITY_READY);
    update(f, E0 "#gamma " E1 "#alpha " E2);
    assert_string_equal(pick(f, "gamma"), E0);
}

static void duplicates_are_merged(void **state)
{
    TC_CASE(RH44);
    struct fake_lb *f = *state;
    update(f, E0 "*1 " E1 "*2 " E0 "*1");
    connect_all(f, 2);
    assert_int_equal(fake_lb_count(f, NULL), 2);
    assert_shares(f, (const double[]){0.5, 0.5}, 2);
}

/* Updates to the n endpoints of the text, of equal weight, each with 100 entries. */
static void update_proportional(struct fake_lb *f, const char *endpoints, uint64_t n)
{
    fake_lb_update(f, fake_lb_endpoints(endpoints), tc_ring_hash_config_new(100 * n, 4096, tc_slice_of(NULL, 0)), NULL);
}

static void surviving_endpoints_keep_their_keys(void **state)
{
    TC_CASE(RH45);
    struct fake_lb *f = *state;
    update_proportional(f, E0 " " E1, 2);
    connect_all(f, 2);
    uint64_t hashes[200];
    bool first[200];
    for (unsigned i = 0; i < 200; i++) {
        hashes[i] = tc_rng_u64(tc_loop_rng(f->loop));
        first[i] = strcmp(fake_lb_pick_hash(f, hashes[i]), E0) == 0;
    }
    /* With endpoints added, a key moves to a new endpoint or stays. */
    update_proportional(f, E0 " " E1 " " E2 " " E3, 4);
    fake_lb_take_connects(f);
    connect_all(f, 4);
    assert_connects(f, E2 " " E3 " ");
    unsigned moved = 0;
    for (unsigned i = 0; i < 200; i++) {
        const char *at = fake_lb_pick_hash(f, hashes[i]);
        assert_string_not_equal(at, first[i] ? E1 : E0);
        moved += strcmp(at, first[i] ? E0 : E1) != 0;
    }
    assert_in_range(moved, 60, 140);
    /* With the new endpoints removed, all keys are where they were, on the same connections. */
    update_proportional(f, E0 " " E1, 2);
    for (unsigned i = 0; i < 200; i++)
        assert_string_equal(fake_lb_pick_hash(f, hashes[i]), first[i] ? E0 : E1);
    assert_connects(f, "");
}

static void without_a_hash_the_pick_fails(void **state)
{
    TC_CASE(RH43);
    struct fake_lb *f = *state;
    update(f, E0);
    f->args.has_hash = false;
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_int_equal(f->pick.status.code, TORC_STATUS_INTERNAL);
    assert_string_equal(fake_lb_pick_error(f), "hash attribute not present");
    assert_int_equal(fake_lb_count(f, NULL), 0);
}

static void a_random_start_connects_one_when_asked(void **state)
{
    TC_CASE(PD09);
    struct fake_lb *f = *state;
    update(f, E0 " " E1 " " E2);
    f->policy->ops->exit_idle(f->policy);
    f->policy->ops->exit_idle(f->policy);
    tc_loop_drain(f->loop);
    assert_int_equal(fake_lb_count(f, NULL), 1);
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
}

static void resolver_errors(void **state)
{
    struct fake_lb *f = *state;
    struct tc_status error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "no such host");
    fake_lb_update_error(f, &error, config());
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    pick(f, E0);
    assert_string_equal(fake_lb_pick_error(f), "no such host");
    update(f, E0);
    fake_lb_update_error(f, &error, config());
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE);
    tc_status_fini(&error);
}

static void an_equal_update_changes_nothing(void **state)
{
    struct fake_lb *f = *state;
    update(f, E0 " " E1);
    unsigned reports = f->reports;
    update(f, E0 " " E1);
    assert_int_equal(f->reports, reports);
}

static void the_cap_bounds_the_ring(void **state)
{
    struct fake_lb *f = *state;
    f->env.ring_size_cap = 2;
    update(f, E0 " " E1 " " E2 " " E3);
    unsigned reached = 0;
    for (unsigned i = 0; i < 500; i++)
        fake_lb_pick_hash(f, tc_rng_u64(tc_loop_rng(f->loop)));
    for (size_t i = 0; i < 4; i++)
        reached += fake_lb_count(f, E[i]);
    assert_int_equal(reached, 2);
}

static void trace_tells_the_walk(void **state)
{
    struct fake_lb *f = *state;
    struct tc_pick_trace trace = {.arena = &f->arena};
    update(f, E0 " " E1 " " E2);
    const char *next = walk(3, E0, 1), *last = walk(3, E0, 2);
    pick(f, E0);
    fake_lb_set_failed(f, E0, "down");
    if (fake_lb_state(f, next) == TORC_CONNECTIVITY_SHUTDOWN)
        pick(f, next);
    fake_lb_set_failed(f, next, "down");
    if (fake_lb_state(f, last) == TORC_CONNECTIVITY_SHUTDOWN)
        pick(f, last);
    fake_lb_set(f, last, TORC_CONNECTIVITY_READY);
    f->args.trace = &trace;
    assert_string_equal(pick(f, E0), last);
    assert_true(tc_slice_eq_str(trace.policy, "ring_hash"));
    assert_true(trace.has_hash && trace.hash == hash_of(E0));
    assert_true(trace.has_ring_index);
    assert_true(tc_slice_eq_str(trace.endpoint, last));
    assert_int_equal(trace.n_walked, 2);
    assert_true(tc_slice_eq_str(trace.walked[0].endpoint, E0));
    assert_true(tc_slice_eq_str(trace.walked[0].reason, "TRANSIENT_FAILURE"));
    assert_true(tc_slice_eq_str(trace.walked[1].endpoint, next));
    f->args.trace = NULL;
}

static void old_pickers_outlive_their_set(void **state)
{
    struct fake_lb *f = *state;
    update(f, E0 " " E1);
    struct tc_picker *old = tc_picker_ref(f->picker);
    update(f, E2);
    f->args.has_hash = true;
    f->args.hash = hash_of(E0);
    assert_int_equal(tc_picker_pick(old, &f->args, &f->pick), TC_PICK_QUEUE);
    tc_loop_drain(f->loop);
    assert_int_equal(fake_lb_count(f, NULL), 0);
    tc_picker_unref(old);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(lazy_start),
        TEST(several_picks_before_the_task_connect_once),
        TEST(failing_endpoints_are_passed_over),
        TEST(the_next_idle_endpoint_is_connected),
        TEST(all_failing_reports_the_endpoint_that_was_hit),
        TEST(the_resolution_note_is_in_the_status),
        TEST(aggregation),
        TEST(a_lost_connection_goes_idle),
        TEST(connects_by_itself_when_failing),
        TEST(connects_a_random_endpoint),
        TEST(one_at_a_time),
        TEST(skips_to_a_ready_endpoint),
        TEST(empty_then_filled),
        TEST(an_idle_endpoint_is_connected_when_the_ready_one_is_lost),
        TEST(keys_reach_their_endpoints),
        TEST(random_hashes_spread_evenly),
        TEST(weights_share_the_ring),
        TEST(other_address_of_the_endpoint),
        TEST(first_address_places_the_endpoint),
        TEST(hash_keys_place_endpoints),
        TEST(duplicates_are_merged),
        TEST(surviving_endpoints_keep_their_keys),
        TEST(without_a_hash_the_pick_fails),
        TEST(a_random_start_connects_one_when_asked),
        TEST(resolver_errors),
        TEST(an_equal_update_changes_nothing),
        TEST(the_cap_bounds_the_ring),
        TEST(trace_tells_the_walk),
        TEST(old_pickers_outlive_their_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
