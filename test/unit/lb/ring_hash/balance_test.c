/* Bounded loads: the numbers of Envoy's tests, those of an independent construction ("own" in test/cases.md), and a hot
 * key under churn.
 *
 * The first tests need no policy. A test makes a set of endpoints with a maglev table (set_of), writes the number of
 * RPCs of each endpoint, and asks tc_rh_balance_choose which endpoint takes one more. Endpoint i, Envoy's host i, is
 * 127.0.0.1 with port 90 + i. The arithmetic is in lb/ring_hash/balance.c. A test drops its set with tc_rh_set_unref.
 *
 * The last two tests run the policy maglev in fakes/lb. An RPC is counted from its pick until its tracker's on_done
 * (call_end). The trackers are in the arena of the fake. Each of the two tests frees its fake. One thread. */
#include "lb/ring_hash/balance.h"

#include <math.h>
#include <stdio.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/mem.h"
#include "lb/ring_hash/build.h"
#include "lb/ring_hash/policy.h"

enum { BUSY = 100000, MOST = 10 };

/* Returns a set of n endpoints, at most MOST, 127.0.0.1:90, 91, ... with the weights (NULL: 1 each) and a table, with
 * one reference. `factor` is in percent. */
static struct tc_rh_set *set_of(uint32_t n, const uint32_t *weights, uint32_t table_size, uint32_t factor)
{
    struct tc_buf text = {0};
    uint32_t was[MOST];
    for (uint32_t i = 0; i < n; i++)
        tc_buf_printf(&text, "127.0.0.1:%u*%u ", 90 + i, weights ? weights[i] : 1);
    struct tc_endpoints *list = fake_lb_endpoints(tc_buf_cstr(&text));
    struct tc_ring_hash_config *config = tc_rh_config_new(&tc_maglev_factory, tc_slice_of(NULL, 0));
    config->table_size = table_size;
    config->balance_factor = factor;
    struct tc_rh_set *set = tc_rh_set_new(list->n, config);
    tc_rh_set_merge(set, NULL, list, was);
    struct tc_rh_build *build = tc_rh_build_new(set, NULL, NULL, 0);
    tc_rh_set_take_ring(set, tc_rh_build_run(build));
    tc_rh_balance_start(set, NULL, was);
    tc_rh_build_free(build);
    tc_lb_config_unref(&config->base);
    tc_endpoints_unref(list);
    tc_buf_fini(&text);
    return set;
}

/* Sets the RPCs of each endpoint, active[i] of endpoint i, and their sum. */
static void load(struct tc_rh_set *set, const uint32_t *active)
{
    set->balance->total->n = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        set->balance->active[i]->n = active[i];
        set->balance->total->n += active[i];
    }
}

/* Returns the endpoint that takes an RPC with this hash: the owner of the slot, or the endpoint to which the owner
 * passes the RPC on. */
static uint32_t pick(const struct tc_rh_set *set, uint64_t hash)
{
    return tc_rh_balance_choose(set, tc_ring_item_at(set->ring, tc_ring_find(set->ring, hash)), hash, false);
}

/* Asserts that the walk of the hash over n endpoints is `order`: while the first k endpoints of it are busy, the next
 * endpoint takes the RPC. */
static void assert_walk(uint32_t n, uint64_t hash, const uint32_t *order)
{
    struct tc_rh_set *set = set_of(n, NULL, 101, 100);
    set->balance->active[order[n - 1]]->n = BUSY;
    assert_int_equal(tc_rh_balance_choose(set, order[n - 1], hash, false), order[0]);
    set->balance->active[order[n - 1]]->n = 0;
    for (uint32_t k = 0; k + 1 < n; k++) {
        set->balance->active[order[k]]->n = BUSY;
        assert_int_equal(tc_rh_balance_choose(set, order[0], hash, false), order[k + 1]);
    }
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(set->balance->order[i], i); /* each walk is undone */
    tc_rh_set_unref(set);
}

static void walks(void **state)
{
    TC_CASE(BL01);
    TC_CASE(BL02);
    TC_CASE(BL03);
    TC_CASE(BL04);
    (void)state;
    static const struct {
        uint64_t seed;
        uint32_t n, order[MOST];
    } rows[] = {
        {2, 5, {2, 1, 0, 4, 3}},     {6, 5, {4, 0, 2, 3, 1}},
        {7, 5, {0, 1, 4, 3, 2}},     {0, 5, {2, 3, 4, 0, 1}},
        {1, 5, {2, 4, 1, 0, 3}},     {((uint64_t)1 << 32) + 2, 5, {2, 1, 0, 4, 3}},
        {0, 6, {3, 0, 4, 5, 1, 2}},  {1, 6, {2, 5, 4, 1, 0, 3}},
        {2, 6, {2, 1, 0, 5, 3, 4}},  {3, 6, {3, 1, 4, 5, 2, 0}},
        {10, 6, {4, 2, 1, 0, 5, 3}}, {UINT64_C(17241709254077376921), 10, {4, 3, 1, 9, 5, 8, 7, 6, 2, 0}},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++)
        assert_walk(rows[i].n, rows[i].seed, rows[i].order);
}

static void nobody_is_overloaded(void **state)
{
    TC_CASE(BL05);
    (void)state;
    struct tc_rh_set *set = set_of(5, NULL, 101, 100);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(tc_rh_balance_choose(set, i, i, false), i);
    tc_rh_set_unref(set);
}

/* Envoy's tests, in which hash 2 belongs to host 2, 6 and 7 to host 3, and 0 to host 0. */
static void some_are_overloaded(void **state)
{
    TC_CASE(BL06);
    TC_CASE(BL07);
    TC_CASE(BL08);
    (void)state;
    struct tc_rh_set *set = set_of(5, NULL, 101, 100);
    set->balance->active[2]->n = BUSY;
    assert_int_equal(tc_rh_balance_choose(set, 2, 2, false), 1);
    set->balance->active[0]->n = set->balance->active[1]->n = BUSY;
    assert_int_equal(tc_rh_balance_choose(set, 2, 2, false), 4);
    load(set, (const uint32_t[]){0, 0, 0, BUSY, 0});
    assert_int_equal(tc_rh_balance_choose(set, 3, 6, false), 4);
    assert_int_equal(tc_rh_balance_choose(set, 3, 7, false), 0);
    tc_rh_set_unref(set);
    set = set_of(3, NULL, 101, 100);
    load(set, (const uint32_t[]){103, 102, 104});
    set->balance->total->n = 299; /* 100 slots each */
    assert_int_equal(tc_rh_balance_choose(set, 0, 0, false), 1);
    tc_rh_set_unref(set);
}

static void picks_by_the_table(void **state)
{
    TC_CASE(BL09);
    TC_CASE(BL10);
    TC_CASE(BL11);
    TC_CASE(BL12);
    (void)state;
    static const struct {
        uint32_t active[6], factor, hash, wanted;
        bool no_total;
    } rows[] = {
        {{0, 0, 2, 0, 0, 0}, 150, 0, 3, false},  {{0, 0, 1, 0, 0, 0}, 150, 0, 2, false},
        {{1, 4, 1, 1, 1, 1}, 120, 10, 4, false}, {{6, 5, 5, 5, 5, 4}, 100, 2, 0, false},
        {{3, 2, 4, 2, 5, 3}, 100, 0, 3, true},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct tc_rh_set *set = set_of(6, NULL, 7, rows[i].factor);
        load(set, rows[i].active);
        if (rows[i].no_total)
            set->balance->total->n = 0;
        assert_int_equal(pick(set, rows[i].hash), rows[i].wanted);
        tc_rh_set_unref(set);
    }
}

static void picks_by_weights(void **state)
{
    TC_CASE(BL13);
    (void)state;
    static const uint32_t weights[] = {1, 2};
    struct tc_rh_set *set = set_of(2, weights, 17, 150);
    load(set, (const uint32_t[]){5, 2});
    assert_int_equal(pick(set, 1), 1);
    load(set, (const uint32_t[]){4, 2});
    assert_int_equal(pick(set, 1), 0);
    tc_rh_set_unref(set);
    set = set_of(2, weights, 17, 100);
    load(set, (const uint32_t[]){1, 9});
    assert_int_equal(pick(set, 0), 0);
    tc_rh_set_unref(set);
}

/* With the largest factor, a large count gives a large bound: the product does not wrap around. */
static void the_largest_numbers(void **state)
{
    (void)state;
    struct tc_rh_set *set = set_of(5, NULL, 101, UINT32_MAX);
    load(set, (const uint32_t[]){300, 0, 0, 0, 0});
    assert_int_equal(tc_rh_balance_choose(set, 0, 0, false), 0);
    set->balance->active[0]->n = set->balance->total->n = UINT32_MAX - 1;
    assert_int_equal(tc_rh_balance_choose(set, 0, 0, false), 0);
    tc_rh_set_unref(set);
}

/* Failed endpoints take no RPC. The other endpoints divide the whole bound among themselves. */
static void failed_endpoints_are_left_out(void **state)
{
    (void)state;
    struct tc_rh_set *set = set_of(4, NULL, 101, 100);
    load(set, (const uint32_t[]){2, 0, 2, 3});
    assert_int_equal(tc_rh_balance_choose(set, 0, 0, false), 0); /* 2 slots of 8 */
    for (uint32_t i = 0; i < 3; i++)
        tc_rh_set_state(set, i, TORC_CONNECTIVITY_TRANSIENT_FAILURE, tc_picker_queue());
    assert_int_equal(tc_rh_balance_choose(set, 3, 0, false), 3); /* alone, with 8 slots of 8 */
    load(set, (const uint32_t[]){0, 0, 0, BUSY});
    assert_int_equal(tc_rh_balance_choose(set, 3, 0, false), 3); /* all others failed */
    tc_rh_set_state(set, 1, TORC_CONNECTIVITY_CONNECTING, tc_picker_queue());
    assert_int_equal(tc_rh_balance_choose(set, 3, 0, false), 1);
    assert_int_equal(tc_rh_balance_choose(set, 3, 0, true), 3); /* none is READY */
    for (uint32_t i = 0; i < 4; i++)
        tc_rh_set_state(set, i, TORC_CONNECTIVITY_IDLE, tc_picker_queue());
    assert_true(set->balance->serving[0] == 1);
    tc_rh_set_unref(set);
}

/* When only READY endpoints may take an RPC, they divide the whole bound among themselves. Otherwise none of them might
 * be within its part, and each pick would walk over the whole list. */
static void few_endpoints_are_ready(void **state)
{
    (void)state;
    struct tc_rh_set *set = set_of(4, NULL, 101, 100);
    tc_rh_set_state(set, 0, TORC_CONNECTIVITY_READY, tc_picker_queue());
    memset(set->balance->swaps, 0xff, 4 * sizeof(*set->balance->swaps));
    load(set, (const uint32_t[]){BUSY, 0, 0, 0});
    assert_int_equal(tc_rh_balance_choose(set, 0, 0, true), 0); /* alone, with all slots */
    tc_rh_set_state(set, 1, TORC_CONNECTIVITY_READY, tc_picker_queue());
    load(set, (const uint32_t[]){3, 2, 0, 0});
    assert_int_equal(tc_rh_balance_choose(set, 0, 0, true), 0); /* 3 slots of 6 */
    assert_int_equal(set->balance->swaps[0], UINT32_MAX);       /* no walk was made */
    load(set, (const uint32_t[]){4, 1, 0, 0});
    assert_int_equal(tc_rh_balance_choose(set, 0, 0, true), 1);
    tc_rh_set_state(set, 1, TORC_CONNECTIVITY_IDLE, tc_picker_queue());
    assert_int_equal(tc_rh_balance_choose(set, 0, 0, true), 0);
    for (uint32_t i = 0; i < 4; i++)
        tc_rh_set_state(set, i, TORC_CONNECTIVITY_READY, tc_picker_queue());
    assert_true(set->balance->serving[1] == 1);
    tc_rh_set_unref(set);
}

/* --- the policy --- */

enum { BACKENDS = 12, OUTSTANDING = 90, STEPS = 4000 };

/* The state of a_hot_key_under_churn. Backend i is 10.0.0.i:80. */
struct hot {
    struct fake_lb *f;
    bool present[BACKENDS], failed[BACKENDS];   /* in the list of endpoints; fails to connect */
    struct tc_call_tracker *calls[OUTSTANDING]; /* calls under way, until call_end; NULL: none */
    unsigned backend[OUTSTANDING];              /* of calls[i]; BACKENDS if the backend has left since */
};

/* Updates the policy to the backends that are present. */
static void hot_update(struct hot *h)
{
    struct tc_buf text = {0};
    for (unsigned i = 0; i < BACKENDS; i++)
        if (h->present[i])
            tc_buf_printf(&text, "10.0.0.%u:80 ", i);
    struct tc_lb_config *config = fake_lb_config(h->f, "maglev", "{'tableSize': 1021, 'hashBalanceFactor': 125}", NULL);
    assert_true(fake_lb_update(h->f, fake_lb_endpoints(tc_buf_cstr(&text)), config, NULL));
    tc_buf_fini(&text);
}

/* A CONNECTING endpoint becomes READY, or fails if it is marked as failed. A READY endpoint that is marked, and a
 * failing endpoint that is not, become IDLE. */
static void hot_connect(struct hot *h)
{
    for (unsigned i = 0; i < BACKENDS; i++) {
        char addr[32];
        snprintf(addr, sizeof(addr), "10.0.0.%u:80", i);
        enum torc_connectivity now = fake_lb_state(h->f, addr);
        if (now == TORC_CONNECTIVITY_CONNECTING && h->failed[i])
            fake_lb_set_failed(h->f, addr, "down");
        else if (now == TORC_CONNECTIVITY_CONNECTING)
            fake_lb_set(h->f, addr, TORC_CONNECTIVITY_READY);
        else if (now == TORC_CONNECTIVITY_READY && h->failed[i])
            fake_lb_set(h->f, addr, TORC_CONNECTIVITY_IDLE);
        else if (now == TORC_CONNECTIVITY_TRANSIENT_FAILURE && !h->failed[i])
            fake_lb_set(h->f, addr, TORC_CONNECTIVITY_IDLE);
    }
}

/* Ends the call of these trackers (NULL: no call). */
static void call_end(struct tc_call_tracker *trackers)
{
    struct tc_status ok = {0};
    for (struct tc_call_tracker *next; trackers; trackers = next) {
        next = trackers->next;
        trackers->on_done(trackers, &ok, NULL);
    }
}

/* Starts a call of the hot key in the free place `slot`, and asserts that the call's backend has at most
 * ceil(1.25 * mean) + 1 calls. The mean is the number of calls under way, with the new one, divided by the number of
 * backends that are up. */
static void hot_call(struct hot *h, unsigned slot)
{
    const char *found = "QUEUE";
    for (unsigned tries = 0; tries < 50 && strcmp(found, "QUEUE") == 0; tries++) {
        hot_connect(h);
        found = fake_lb_pick_hash(h->f, 4711);
    }
    unsigned number, of_backend = 0, all = 0, up = 0;
    assert_int_equal(sscanf(found, "10.0.0.%u:80", &number), 1);
    h->calls[slot] = h->f->pick.trackers;
    h->backend[slot] = number;
    for (unsigned i = 0; i < OUTSTANDING; i++) {
        all += h->calls[i] != NULL;
        of_backend += h->calls[i] && h->backend[i] == number;
    }
    for (unsigned i = 0; i < BACKENDS; i++)
        up += h->present[i] && !h->failed[i];
    assert_true(of_backend <= ceil(1.25 * all / up) + 1);
}

/* A pick that is passed on to an endpoint without a connection waits. When an RPC ends, the policy publishes a picker,
 * so that waiting picks are tried again. */
static void an_end_frees_those_that_wait(void **state)
{
    (void)state;
    struct fake_lb *f = fake_lb_new("maglev");
    struct tc_lb_config *config = fake_lb_config(f, "maglev", "{'tableSize': 101, 'hashBalanceFactor': 100}", NULL);
    assert_true(fake_lb_update(f, fake_lb_endpoints("10.0.0.1:80 10.0.0.2:80"), config, NULL));
    assert_string_equal(fake_lb_pick_hash(f, 1), "QUEUE"); /* asks for a connection */
    const char *own = fake_lb_state(f, "10.0.0.1:80") == TORC_CONNECTIVITY_CONNECTING ? "10.0.0.1:80" : "10.0.0.2:80";
    fake_lb_set(f, own, TORC_CONNECTIVITY_READY);
    struct tc_call_tracker *calls[3]; /* the bound is 2 slots, and one more RPC is taken */
    for (unsigned i = 0; i < 3; i++) {
        assert_string_equal(fake_lb_pick_hash(f, 1), own);
        calls[i] = f->pick.trackers;
    }
    assert_string_equal(fake_lb_pick_hash(f, 1), "QUEUE");
    tc_loop_drain(f->loop);
    unsigned reports = f->reports;
    tc_loop_drain(f->loop);
    assert_int_equal(f->reports, reports);
    call_end(calls[0]);
    tc_loop_drain(f->loop);
    assert_int_equal(f->reports, reports + 1); /* a new picker, for the waiting pick */
    assert_string_equal(fake_lb_pick_hash(f, 1), own);
    calls[0] = f->pick.trackers;
    /* No pick waits: nothing is published. */
    for (unsigned i = 0; i < 3; i++)
        call_end(calls[i]);
    tc_loop_drain(f->loop);
    assert_int_equal(f->reports, reports + 1);
    fake_lb_free(f);
}

/* One key has at most OUTSTANDING calls under way, while backends of the first half come, go, fail and recover.
 * hot_call asserts the bound for each call. */
static void a_hot_key_under_churn(void **state)
{
    (void)state;
    struct hot *h = TC_NEW(struct hot);
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 22);
    h->f = fake_lb_new("maglev");
    memset(h->present, true, sizeof(h->present));
    hot_update(h);
    for (unsigned i = 0; i < STEPS; i++) {
        unsigned slot = (unsigned)tc_rng_below(&rng, OUTSTANDING), who = (unsigned)tc_rng_below(&rng, BACKENDS);
        call_end(h->calls[slot]);
        h->calls[slot] = NULL;
        if (i % 50 == 49) { /* the second half of the backends is always there and up */
            bool *flag = i % 100 == 49 ? &h->present[who / 2] : &h->failed[who / 2];
            *flag = !*flag;
            for (unsigned k = 0; k < OUTSTANDING && !h->present[who / 2]; k++)
                h->backend[k] = h->backend[k] == who / 2 ? BACKENDS : h->backend[k]; /* a new count begins */
            hot_update(h);
            for (unsigned k = 0; k < 5; k++)
                hot_connect(h);
        }
        hot_call(h, slot);
    }
    /* One call ends after the policy. The arena that has the call's tracker is kept for it. */
    struct tc_call_tracker *last = h->calls[0];
    for (unsigned i = 1; i < OUTSTANDING; i++)
        call_end(h->calls[i]);
    struct tc_arena kept = h->f->arena;
    tc_arena_init(&h->f->arena, 0, 0);
    fake_lb_free(h->f);
    call_end(last);
    tc_arena_fini(&kept);
    tc_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks),
        cmocka_unit_test(nobody_is_overloaded),
        cmocka_unit_test(some_are_overloaded),
        cmocka_unit_test(picks_by_the_table),
        cmocka_unit_test(picks_by_weights),
        cmocka_unit_test(the_largest_numbers),
        cmocka_unit_test(failed_endpoints_are_left_out),
        cmocka_unit_test(few_endpoints_are_ready),
        cmocka_unit_test(an_end_frees_those_that_wait),
        cmocka_unit_test(a_hot_key_under_churn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
