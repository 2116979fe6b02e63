/* least_request over fakes/lb: draws, counts of RPCs, Envoy's full scan and weights, updates, hostile settings, what
 * outlives the policy. round_robin_test.c tests the connectivity states, which are the same for both policies.
 *
 * pick_open starts an RPC and keeps it in `calls`; close_one ends the latest of an endpoint's RPCs. pick_end starts an
 * RPC and ends it. A pick's chance comes from f->args.random: `draw` sets a number with known draws. A test closes its
 * RPCs before it ends: teardown empties `calls` without ending them. The tests of 10,000 endpoints keep their RPCs in a
 * struct many instead. The weighted mode has deadlines in a virtual time of its own, moved on by picks: "virtual time"
 * below is never the loop's. One thread. */
#include "lb/policies/least_request.h"

#include <math.h>

#include "base/mem.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"

#define LR "least_request_experimental"
#define FULL_SCAN "{'selectionMethod': 'FULL_SCAN'}"
#define WEIGHTED "{'activeRequestBias': 1}"

enum { PLACES = 5 };
static const char *const all[PLACES] = {"1.1.1.1:1", "2.2.2.2:2", "3.3.3.3:3", "4.4.4.4:4", "5.5.5.5:5"};

/* RPCs under way, by index in `all`: the trackers of each, for end_call. */
struct calls {
    TC_VEC(struct tc_call_tracker *) open[PLACES];
};

static struct calls calls;

static int setup(void **state)
{
    *state = fake_lb_new(LR);
    return 0;
}

static int teardown(void **state)
{
    for (size_t i = 0; i < PLACES; i++)
        tc_vec_fini(&calls.open[i]);
    fake_lb_free(*state);
    return 0;
}

static void update(struct fake_lb *f, const char *endpoints, const char *config)
{
    assert_true(fake_lb_update(f, fake_lb_endpoints(endpoints), fake_lb_config(f, LR, config, NULL), NULL));
}

/* Updates to the first n endpoints, with a suffix for each ("*3"; NULL: none), and makes them READY. */
static void open_policy(struct fake_lb *f, size_t n, const char *const *suffixes, const char *config)
{
    struct tc_buf list = {0};
    for (size_t i = 0; i < n; i++)
        tc_buf_printf(&list, "%s%s%s", i ? " " : "", all[i], suffixes ? suffixes[i] : "");
    update(f, tc_buf_cstr(&list), config);
    for (size_t i = 0; i < n; i++)
        fake_lb_set(f, all[i], TORC_CONNECTIVITY_READY);
    tc_buf_fini(&list);
}

/* Ends an RPC with OK. Uses up its trackers; NULL: it has none. */
static void end_call(struct tc_call_tracker *tracker)
{
    struct tc_status ok = {0};
    for (struct tc_call_tracker *next; tracker; tracker = next) {
        next = tracker->next;
        tracker->on_done(tracker, &ok, NULL);
    }
}

/* Picks once, and returns the index in `all` of the endpoint picked. Fails the test if the pick gives none of them. */
static unsigned pick(struct fake_lb *f)
{
    const char *at = fake_lb_pick(f);
    for (unsigned i = 0; i < PLACES; i++)
        if (strcmp(at, all[i]) == 0)
            return i;
    fail_msg("a pick gave %s", at);
    return PLACES;
}

/* Starts an RPC, and returns the index in `all` of its endpoint. */
static unsigned pick_open(struct fake_lb *f)
{
    unsigned i = pick(f);
    *tc_vec_push(&calls.open[i]) = f->pick.trackers;
    f->pick.trackers = NULL;
    return i;
}

/* Starts an RPC, ends it, and returns the index in `all` of its endpoint. */
static unsigned pick_end(struct fake_lb *f)
{
    unsigned i = pick(f);
    end_call(f->pick.trackers);
    f->pick.trackers = NULL;
    return i;
}

/* Ends the RPC of endpoint i that was started last. There must be one. */
static void close_one(unsigned i)
{
    end_call(calls.open[i].data[--calls.open[i].len]);
}

/* Sets f->args.random such that an RPC draws these of the n READY endpoints: "02". The digits count the endpoints in
 * the order in which they became READY; none may have been lost since. */
static void draw(struct fake_lb *f, size_t n, const char *places)
{
    for (f->args.random = 0;; f->args.random++) {
        struct tc_rng rng;
        const char *at = places;
        tc_rng_init_seed(&rng, f->args.random);
        while (*at && tc_rng_below(&rng, n) == (uint64_t)(*at - '0'))
            at++;
        if (!*at)
            return;
    }
}

/* Opens RPCs until each of the n endpoints has as many as the text says, a digit for each: "43". The config must be
 * "{}", and the endpoints must have become READY in the order of `all`. */
static void open_calls(struct fake_lb *f, size_t n, const char *counts)
{
    for (unsigned i = 0; i < n; i++) {
        draw(f, n, (char[]){(char)('0' + i), (char)('0' + i), 0});
        while (calls.open[i].len < (size_t)(counts[i] - '0'))
            assert_int_equal(pick_open(f), i);
    }
}

/* Asserts that the config is invalid, with an error that contains `expected`. */
static void refuse(struct fake_lb *f, const char *config, const char *expected)
{
    char *why = NULL;
    assert_null(fake_lb_config(f, LR, config, &why));
    if (!strstr(why, expected))
        fail_msg("%s: %s", config, why);
    tc_free(why);
}

/* Asserts the number of choices by its effect: of two endpoints the busy one is picked only if every draw hits it, with
 * probability 2^-choices. */
static void assert_choices(struct fake_lb *f, const char *config, unsigned choices)
{
    open_policy(f, 2, NULL, config);
    draw(f, 2, "11");
    while (calls.open[1].len < 1)
        pick_open(f);
    unsigned found = 0;
    enum { TRIES = 20000 };
    for (unsigned i = 0; i < TRIES; i++) {
        f->args.random = i;
        found += pick_end(f) == 1;
    }
    assert_in_range(found, TRIES / (1 << choices) * 0.7, TRIES / (1 << choices) * 1.3 + 1);
}

static void configs(void **state)
{
    TC_CASE(LQ01);
    struct fake_lb *f = *state;
    assert_choices(f, "{}", 2);
    assert_choices(f, "{'choiceCount': 3}", 3);
    assert_choices(f, "{'choiceCount': 11}", 10);
    assert_choices(f, "{'choiceCount': 4294967295}", 10);
    close_one(1);
    refuse(f, "{'choiceCount': 0}", "choiceCount: must be a whole number from 2 to 4294967295");
    refuse(f, "{'choiceCount': 1}", "choiceCount: must be a whole number from 2 to 4294967295");
    refuse(f, "{'choiceCount': -1}", "choiceCount: must be a whole number from 2 to 4294967295");
    refuse(f, "{'choiceCount': 4294967296}", "choiceCount");
    refuse(f, "{'choiceCount': []}", "choiceCount");
    refuse(f, "{'selectionMethod': 'SCAN'}", "selectionMethod: must be N_CHOICES or FULL_SCAN");
    refuse(f, "{'selectionMethod': 1}", "selectionMethod");
    refuse(f, "{'activeRequestBias': -0.5}", "activeRequestBias: must be a number that is not negative");
    refuse(f, "{'activeRequestBias': 'x'}", "activeRequestBias");
}

static void equal_counts_follow_the_draws(void **state)
{
    TC_CASE(LQ02);
    struct fake_lb *f = *state;
    open_policy(f, 3, NULL, "{}");
    static const char *const draws[] = {"00", "01", "02", "10", "11", "12", "20", "21", "22"};
    for (size_t i = 0; i < TC_ARRAY_LEN(draws); i++) {
        draw(f, 3, draws[i]);
        assert_int_equal(pick_end(f), draws[i][0] - '0');
    }
}

static void fewest_of_two(void **state)
{
    TC_CASE(LQ03);
    TC_CASE(PD10);
    struct fake_lb *f = *state;
    open_policy(f, 3, NULL, "{}");
    draw(f, 3, "02");
    f->args.dry = true; /* a dry pick chooses the same endpoint and counts no RPC */
    assert_int_equal(pick(f), 0);
    assert_null(f->pick.trackers);
    assert_int_equal(pick(f), 0);
    f->args.dry = false;
    assert_int_equal(pick_open(f), 0);
    assert_int_equal(pick_open(f), 2);
    draw(f, 3, "11");
    assert_int_equal(pick_open(f), 1);
    for (unsigned i = 0; i < 3; i++)
        close_one(i);
}

static void counts_survive_updates(void **state)
{
    TC_CASE(LQ04);
    struct fake_lb *f = *state;
    open_policy(f, 2, NULL, "{}");
    open_calls(f, 2, "30");
    update(f, "3.3.3.3:3 1.1.1.1:1#other!DRAINING 2.2.2.2:2", "{'choiceCount': 2}");
    fake_lb_set(f, all[2], TORC_CONNECTIVITY_READY); /* the third to become READY: place 2 for draws */
    for (unsigned n = 0; n < 3; n++) {
        draw(f, 3, "01");
        assert_int_equal(pick_open(f), 1);
    }
    assert_int_equal(pick_open(f), 0); /* 3 and 3: the first draw */
    while (calls.open[0].len)
        close_one(0);
    assert_int_equal(pick_end(f), 0);
    while (calls.open[1].len)
        close_one(1);
}

/* After an endpoint lost its connection, its RPCs still count until they end. */
static void counts_survive_a_lost_connection(void **state)
{
    struct fake_lb *f = *state;
    open_policy(f, 2, NULL, FULL_SCAN);
    pick_open(f);
    pick_open(f);
    fake_lb_set(f, all[0], TORC_CONNECTIVITY_IDLE);
    assert_int_equal(pick_end(f), 1);
    fake_lb_set(f, all[0], TORC_CONNECTIVITY_READY);
    close_one(1);
    for (f->args.random = 0; f->args.random < 20; f->args.random++)
        assert_int_equal(pick_end(f), 1);
    close_one(0);
    assert_int_equal(pick_open(f) + pick_open(f), 1);
    close_one(0);
    close_one(1);
}

/* The end of an RPC of a lost endpoint does not change the count of the endpoint that took its place in the tree. */
static void ends_of_lost_endpoints_change_no_other(void **state)
{
    struct fake_lb *f = *state;
    unsigned seen = 0;
    open_policy(f, 3, NULL, FULL_SCAN);
    for (f->args.random = 0; f->args.random < 6; f->args.random++)
        pick_open(f);
    fake_lb_set(f, all[0], TORC_CONNECTIVITY_IDLE);
    close_one(0);
    f->args.dry = true; /* counts stay as they are */
    for (; f->args.random < 40; f->args.random++)
        seen |= 1u << pick(f);
    assert_int_equal(seen, 6);
    for (unsigned i = 0; i < 3; i++)
        while (calls.open[i].len)
            close_one(i);
}

static void fewer_replaces_the_candidate(void **state)
{
    TC_CASE(LQ05);
    struct fake_lb *f = *state;
    open_policy(f, 2, NULL, "{}");
    open_calls(f, 2, "12");
    draw(f, 2, "01");
    assert_int_equal(pick_end(f), 0);
    open_calls(f, 2, "22");
    close_one(1);
    draw(f, 2, "01");
    assert_int_equal(pick_end(f), 1);
    close_one(0), close_one(0), close_one(1);
}

static void five_choices(void **state)
{
    TC_CASE(LQ06);
    struct fake_lb *f = *state;
    open_policy(f, 4, NULL, "{'choiceCount': 5}");
    draw(f, 4, "30321");
    assert_int_equal(pick_end(f), 3); /* all have none: the first draw */
    draw(f, 4, "00000");
    while (calls.open[0].len < 4)
        pick_open(f);
    draw(f, 4, "11111");
    while (calls.open[1].len < 3)
        pick_open(f);
    draw(f, 4, "22222");
    while (calls.open[2].len < 2)
        pick_open(f);
    draw(f, 4, "33333");
    pick_open(f);
    draw(f, 4, "30321");
    assert_int_equal(pick_end(f), 3);
    draw(f, 4, "00000");
    assert_int_equal(pick_end(f), 0);
    for (unsigned i = 0; i < 4; i++)
        while (calls.open[i].len)
            close_one(i);
}

static void full_scan(void **state)
{
    TC_CASE(LQ07);
    struct fake_lb *f = *state;
    enum { PICKS = 200000 };
    unsigned counts[PLACES] = {0};
    open_policy(f, 5, NULL, "{}");
    open_calls(f, 5, "43215");
    update(f, "1.1.1.1:1 2.2.2.2:2 3.3.3.3:3 4.4.4.4:4 5.5.5.5:5", FULL_SCAN);
    for (f->args.random = 0; f->args.random < 100; f->args.random++)
        assert_int_equal(pick_end(f), 3);
    close_one(0);
    close_one(2);
    for (unsigned i = 0; i < 4; i++)
        close_one(4);
    /* The endpoints now have 3, 3, 1, 1 and 1 RPCs. */
    for (f->args.random = 0; f->args.random < PICKS; f->args.random++)
        counts[pick_end(f)]++;
    assert_int_equal(counts[0] + counts[1], 0);
    for (unsigned i = 2; i < 5; i++)
        assert_in_range(counts[i], PICKS * (1.0 / 3 - 0.005), PICKS * (1.0 / 3 + 0.005));
    for (unsigned i = 0; i < PLACES; i++)
        while (calls.open[i].len)
            close_one(i);
}

/* Asserts that nine picks repeat this period of three picks, from any place of the period on. */
static void assert_turns(struct fake_lb *f, const char *period)
{
    char seen[16] = "";
    for (unsigned i = 0; i < 9; i++)
        seen[i] = (char)('0' + pick_end(f));
    assert_memory_equal(seen + 3, seen, 6);
    char doubled[16];
    snprintf(doubled, sizeof(doubled), "%s%s", period, period);
    seen[3] = 0;
    if (!strstr(doubled, seen))
        fail_msg("%s is not a turn of %s", seen, period);
}

/* Makes RPCs one after another. Sets counts[PLACES] to how many went to each endpoint. */
static void count(struct fake_lb *f, unsigned picks, unsigned *counts)
{
    memset(counts, 0, PLACES * sizeof(*counts));
    for (unsigned i = 0; i < picks; i++, f->args.random++)
        counts[pick_end(f)]++;
}

static void weights_shrink_with_calls(void **state)
{
    TC_CASE(LQ08);
    struct fake_lb *f = *state;
    unsigned counts[PLACES];
    open_policy(f, 2, (const char *const[]){"*1", "*2"}, WEIGHTED);
    f->args.random = 1;
    assert_turns(f, "101");
    while (pick_open(f) != 1)
        close_one(0);
    count(f, 10, counts); /* uses up the deadlines that were set before the RPC began */
    count(f, 100, counts);
    assert_in_range(counts[1], 49, 51);
    close_one(1);
    while (pick_open(f) != 0)
        close_one(1);
    count(f, 10, counts);
    count(f, 100, counts);
    assert_in_range(counts[1], 79, 81);
    close_one(0);
    /* The next picks use the weights of an update. */
    update(f, "1.1.1.1:1*9 2.2.2.2:2*1", WEIGHTED);
    count(f, 100, counts);
    assert_in_range(counts[0], 89, 91);
    /* N_CHOICES and FULL_SCAN ignore weights. */
    update(f, "1.1.1.1:1*9 2.2.2.2:2*1", "{}");
    count(f, 2000, counts);
    assert_in_range(counts[0], 900, 1100);
    update(f, "1.1.1.1:1*9 2.2.2.2:2*1", FULL_SCAN);
    count(f, 2000, counts);
    assert_in_range(counts[0], 900, 1100);
    /* With a bias of 0 RPCs do not count. */
    update(f, "1.1.1.1:1*2 2.2.2.2:2*1", "{'activeRequestBias': 0}");
    while (pick_open(f) != 0)
        close_one(1);
    count(f, 300, counts);
    assert_in_range(counts[0], 199, 201);
    close_one(0);
}

/* Deadlines neither overflow nor stand still, whatever bias and weights are. */
static void hostile_weights(void **state)
{
    static const char *const configs_of[] = {"{'activeRequestBias': 0}", "{'activeRequestBias': 1e308}",
                                             "{'activeRequestBias': 1e-308}", "{'activeRequestBias': 1000}"};
    struct fake_lb *f = *state;
    unsigned counts[PLACES];
    for (size_t i = 0; i < TC_ARRAY_LEN(configs_of); i++) {
        open_policy(f, 3, (const char *const[]){"*4294967295", "*1", "*0"}, configs_of[i]);
        pick_open(f);
        count(f, 3000, counts);
        assert_int_equal(counts[0] + counts[1] + counts[2], 3000);
        for (unsigned k = 0; k < 3; k++)
            while (calls.open[k].len)
                close_one(k);
        /* Endpoints of equal weights then share evenly: in steps of 2^32, and when virtual time, beyond 2^40, begins
         * again at 0. */
        open_policy(f, 3, (const char *const[]){"*1", "*1", "*1"}, "{'activeRequestBias': 1e308}");
        unsigned at[3] = {0};
        for (unsigned n = 0; n < 6; n++)
            at[pick_open(f)]++;
        assert_true(at[0] == 2 && at[1] == 2 && at[2] == 2);
        for (unsigned n = 0; n < 3000; n++)
            at[pick_end(f)]++;
        for (unsigned k = 0; k < 3; k++)
            assert_in_range(at[k], 1001, 1003);
        for (unsigned k = 0; k < 3; k++)
            while (calls.open[k].len)
                close_one(k);
    }
}

/* Steps of 2^32 add up to 2^53, where a double would lose steps of 1. Virtual time begins again at 0 before that, so
 * the endpoints still take turns. */
static void virtual_time_begins_again(void **state)
{
    struct fake_lb *f = *state;
    open_policy(f, 2, NULL, "{'activeRequestBias': 1e308}");
    while (!calls.open[0].len || !calls.open[1].len)
        pick_open(f);
    struct tc_arena arena, *before = f->args.arena;
    tc_arena_init(&arena, 0, 0);
    f->args.arena = &arena;
    for (unsigned i = 0; i < 1u << 22; i++) {
        assert_int_equal(tc_picker_pick(f->picker, &f->args, &f->pick), TC_PICK_COMPLETE);
        end_call(f->pick.trackers);
        f->pick.trackers = NULL;
        tc_arena_reset(&arena);
    }
    f->args.arena = before;
    tc_arena_fini(&arena);
    for (unsigned i = 0; i < 2; i++)
        while (calls.open[i].len)
            close_one(i);
    unsigned counts[PLACES];
    count(f, 2, counts); /* uses up the deadlines that were set before the RPCs ended */
    count(f, 100, counts);
    assert_in_range(counts[0], 49, 51);
}

static void repeated_addresses_are_one(void **state)
{
    struct fake_lb *f = *state;
    unsigned counts[PLACES];
    update(f, "1.1.1.1:1 2.2.2.2:2 1.1.1.1:1 1.1.1.1:1", "{}");
    assert_int_equal(fake_lb_count(f, all[0]), 1);
    fake_lb_set(f, all[0], TORC_CONNECTIVITY_READY);
    fake_lb_set(f, all[1], TORC_CONNECTIVITY_READY);
    count(f, 2000, counts);
    assert_in_range(counts[0], 900, 1100);
}

/* Endpoints leave and the policy ends while RPCs are under way, in each mode; an old picker answers QUEUE. */
static void what_outlives_the_policy(void **state)
{
    static const char *const configs_of[] = {"{}", FULL_SCAN, WEIGHTED};
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(configs_of); i++) {
        struct fake_lb *f = fake_lb_new(LR);
        open_policy(f, 3, NULL, configs_of[i]);
        while (!calls.open[0].len || !calls.open[1].len) {
            f->args.random++;
            pick_open(f);
        }
        struct tc_picker *picker = tc_picker_ref(f->picker);
        update(f, "2.2.2.2:2 3.3.3.3:3", configs_of[i]);
        assert_int_equal(tc_picker_pick(picker, &f->args, &f->pick), TC_PICK_QUEUE);
        close_one(0);
        assert_int_not_equal(pick_end(f), 0);
        update(f, "1.1.1.1:1 2.2.2.2:2 3.3.3.3:3", configs_of[i]);
        fake_lb_set(f, all[0], TORC_CONNECTIVITY_READY);
        while (calls.open[0].len) /* RPCs of the endpoint that left; its successor has none */
            close_one(0);
        pick_end(f);
        assert_false(fake_lb_update(f, fake_lb_endpoints(""), fake_lb_config(f, LR, configs_of[i], NULL), NULL));
        close_one(1);
        open_policy(f, 2, NULL, configs_of[i]);
        pick_open(f);
        f->policy->ops->shutdown(f->policy);
        tc_loop_drain(f->loop);
        f->policy = NULL;
        assert_int_equal(tc_picker_pick(picker, &f->args, &f->pick), TC_PICK_QUEUE);
        tc_picker_unref(picker);
        for (unsigned k = 0; k < PLACES; k++)
            while (calls.open[k].len)
                close_one(k);
        fake_lb_free(f);
    }
    for (size_t i = 0; i < PLACES; i++)
        tc_vec_fini(&calls.open[i]);
}

/* A picker passes over endpoints that were lost since it was published. Once all are lost, RPCs wait. */
static void lost_endpoints_are_passed_over(void **state)
{
    static const char *const configs_of[] = {"{}", FULL_SCAN, WEIGHTED};
    struct fake_lb *f = *state;
    struct tc_subchannel *gone[3];
    struct tc_status ok = {0};
    for (size_t i = 0; i < TC_ARRAY_LEN(configs_of); i++) {
        open_policy(f, 3, NULL, configs_of[i]);
        for (unsigned lost = 0; lost < 3; lost++) {
            assert_int_equal(tc_picker_pick(f->picker, &f->args, &f->pick), TC_PICK_COMPLETE);
            end_call(f->pick.trackers);
            f->pick.trackers = NULL;
            gone[lost] = f->pick.subchannel;
            gone[lost]->on_state(gone[lost]->arg, TORC_CONNECTIVITY_IDLE, &ok);
            for (f->args.random = 0; f->args.random < 50; f->args.random++) {
                enum tc_pick_kind kind = tc_picker_pick(f->picker, &f->args, &f->pick);
                assert_int_equal(kind, lost == 2 ? TC_PICK_QUEUE : TC_PICK_COMPLETE);
                for (unsigned k = 0; kind == TC_PICK_COMPLETE && k <= lost; k++)
                    assert_ptr_not_equal(f->pick.subchannel, gone[k]);
                end_call(f->pick.trackers);
                f->pick.trackers = NULL;
            }
        }
        tc_loop_drain(f->loop);
    }
}

/* --- 10,000 endpoints --- */

enum { MANY = 10000 };

struct many {
    struct fake_lb *f;                     /* owned */
    unsigned counts[MANY];                 /* picks of each endpoint */
    TC_VEC(struct tc_call_tracker *) open; /* the trackers of RPCs under way */
};

/* Returns a policy with MANY endpoints, all READY, for many_free. suffix: "*" for the weights 1 to 4 in turn; "": all
 * endpoints have the same weight. */
static struct many *many_new(const char *suffix, const char *config)
{
    struct many *m = TC_NEW(struct many);
    struct tc_buf list = {0};
    m->f = fake_lb_new(LR);
    for (unsigned i = 0; i < MANY; i++) {
        tc_buf_printf(&list, "10.0.%u.%u:1", i / 250, i % 250);
        if (*suffix)
            tc_buf_printf(&list, "*%u", i % 4 + 1);
        tc_buf_append_char(&list, ' ');
    }
    update(m->f, tc_buf_cstr(&list), config);
    while (m->f->subchannels.len < MANY) {
        tc_loop_advance(m->f->loop, 1);
        tc_loop_drain(m->f->loop);
    }
    for (size_t i = 0; i < MANY; i++)
        fake_lb_set_at(m->f, i, TORC_CONNECTIVITY_READY);
    tc_buf_fini(&list);
    return m;
}

static void many_free(struct many *m)
{
    for (size_t i = 0; i < m->open.len; i++)
        end_call(m->open.data[i]);
    tc_vec_fini(&m->open);
    fake_lb_free(m->f);
    tc_free(m);
}

/* Starts an RPC with the next random number, and counts it. Ends it at once, unless `stays`. */
static void many_pick(struct many *m, bool stays)
{
    unsigned a, b;
    m->f->args.random = m->f->args.random * UINT64_C(6364136223846793005) + 1;
    assert_int_equal(sscanf(fake_lb_pick(m->f), "10.0.%u.%u", &a, &b), 2);
    m->counts[a * 250 + b]++;
    if (stays)
        *tc_vec_push(&m->open) = m->f->pick.trackers;
    else
        end_call(m->f->pick.trackers);
    m->f->pick.trackers = NULL;
}

/* There are ten RPCs for each endpoint on average. The busiest endpoint has at most 14 with two choices (one choice
 * would give it 20 or more), at most 11 with ten choices, and ten with a full scan or weights. The least busy endpoint
 * has at least 1 with two choices, 5 with ten choices, and ten otherwise. */
static void loads_of_many(void **state)
{
    static const struct {
        const char *config;
        unsigned least, most;
    } rows[] = {{"{}", 1, 14}, {"{'choiceCount': 10}", 5, 11}, {FULL_SCAN, 10, 10}, {WEIGHTED, 10, 10}};
    (void)state;
    for (size_t r = 0; r < TC_ARRAY_LEN(rows); r++) {
        struct many *m = many_new("", rows[r].config);
        for (unsigned i = 0; i < 10 * MANY; i++)
            many_pick(m, true);
        for (unsigned i = 0; i < MANY; i++)
            assert_in_range(m->counts[i], rows[r].least, rows[r].most);
        many_free(m);
    }
}

/* Idle endpoints are picked equally often: chi squared is within four standard deviations of its mean. */
static void draws_of_many(void **state)
{
    static const char *const configs_of[] = {"{}", FULL_SCAN};
    (void)state;
    for (size_t r = 0; r < TC_ARRAY_LEN(configs_of); r++) {
        struct many *m = many_new("", configs_of[r]);
        double chi2 = 0;
        for (unsigned i = 0; i < 10 * MANY; i++)
            many_pick(m, false);
        for (unsigned i = 0; i < MANY; i++)
            chi2 += ((double)m->counts[i] - 10) * ((double)m->counts[i] - 10) / 10;
        assert_true(fabs(chi2 - MANY) < 4 * sqrt(2 * MANY));
        many_free(m);
    }
}

/* Weights 1 to 4: after 10 rounds each endpoint has 10 picks for each unit of its weight, one more or less. */
static void weights_of_many(void **state)
{
    struct many *m = many_new("*", WEIGHTED);
    (void)state;
    for (unsigned i = 0; i < 10 * MANY / 4 * 10; i++)
        many_pick(m, false);
    for (unsigned i = 0; i < MANY; i++)
        assert_in_range(m->counts[i], 10 * (i % 4 + 1) - 1, 10 * (i % 4 + 1) + 1);
    many_free(m);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(configs),
        TEST(equal_counts_follow_the_draws),
        TEST(fewest_of_two),
        TEST(counts_survive_updates),
        TEST(counts_survive_a_lost_connection),
        TEST(ends_of_lost_endpoints_change_no_other),
        TEST(fewer_replaces_the_candidate),
        TEST(five_choices),
        TEST(full_scan),
        TEST(weights_shrink_with_calls),
        TEST(hostile_weights),
        TEST(virtual_time_begins_again),
        TEST(repeated_addresses_are_one),
        cmocka_unit_test(what_outlives_the_policy),
        TEST(lost_endpoints_are_passed_over),
        cmocka_unit_test(loads_of_many),
        cmocka_unit_test(draws_of_many),
        cmocka_unit_test(weights_of_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
