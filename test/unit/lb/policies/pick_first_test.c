/* pick_first on virtual time: the order of attempts, shuffling, updates, failures, health, and traces.
 *
 * The fake channel records the addresses in the order of attempts (assert_connects), and the states that the policy
 * reports (f->history). The test plays the servers: fake_lb_set says what becomes of an attempt, and IDLE after a
 * failure is the end of the address's backoff. The delay between attempts is 250 ms unless a test sets another. Health
 * counts only in health_is_waited_for, whose config is that of a petiole policy's child. The fake owns the policy, and
 * the policy owns its subchannels. One thread. */
#include "lb/describe.h"
#include "lb/policies/pick_first.h"

#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/mem.h"

#define A "1.1.1.1:1"
#define B "2.2.2.2:2"
#define C "3.3.3.3:3"

static int setup(void **state)
{
    *state = fake_lb_new("pick_first");
    return 0;
}

static int teardown(void **state)
{
    fake_lb_free(*state);
    return 0;
}

static bool update(struct fake_lb *f, const char *endpoints)
{
    return fake_lb_update(f, fake_lb_endpoints(endpoints), tc_pick_first_config_new(false), NULL);
}

static void first_address_serves(void **state)
{
    TC_CASE(PF01);
    struct fake_lb *f = *state;
    assert_true(update(f, A " " B));
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), A);
    tc_loop_advance(f->loop, 60000);
    assert_connects(f, A " ");
    assert_string_equal(f->history.len ? tc_buf_cstr(&f->history) : "", "CONNECTING READY ");
}

static void next_at_once_after_a_failure(void **state)
{
    TC_CASE(PF02);
    struct fake_lb *f = *state;
    update(f, A " " B);
    fake_lb_set_failed(f, A, "refused");
    assert_connects(f, A " " B " ");
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), B);
    assert_int_equal(fake_lb_count(f, A), 0);
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING READY ");
}

static void second_beside_a_hanging_first(void **state)
{
    TC_CASE(PF03);
    struct fake_lb *f = *state;
    update(f, A " " B " " C);
    tc_loop_advance(f->loop, 249);
    assert_connects(f, A " ");
    tc_loop_advance(f->loop, 1);
    assert_connects(f, B " ");
    assert_int_equal(fake_lb_state(f, A), TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), A);
    assert_int_equal(fake_lb_count(f, NULL), 1);
    tc_loop_advance(f->loop, 10000);
    assert_connects(f, "");
}

static void attempt_delay_is_clamped(void **state)
{
    TC_CASE(PF04);
    struct fake_lb *f = *state;
    f->env.connection_attempt_delay_ms = 1;
    update(f, A " " B " " C);
    tc_loop_advance(f->loop, 99);
    assert_connects(f, A " ");
    f->env.connection_attempt_delay_ms = 100000;
    tc_loop_advance(f->loop, 1);
    assert_connects(f, B " ");
    tc_loop_advance(f->loop, 1999);
    assert_connects(f, "");
    tc_loop_advance(f->loop, 1);
    assert_connects(f, C " ");
}

/* Returns true if the policy's description contains the text. */
static bool describes(const struct fake_lb *f, const char *member)
{
    struct tc_describe d = {0};
    f->policy->ops->describe(f->policy, &d);
    bool found = strstr(tc_buf_cstr(&d.out), member) != NULL;
    tc_buf_fini(&d.out);
    return found;
}

static void sticks_to_failure_and_goes_on(void **state)
{
    TC_CASE(PF05);
    struct fake_lb *f = *state;
    update(f, A " " B);
    fake_lb_set_failed(f, A, "refused");
    assert_int_equal(f->reresolutions, 0);
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set_failed(f, B, "timed out");
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_int_equal(f->reresolutions, 1);
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_int_equal(f->pick.status.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(fake_lb_pick_error(f), "failed to connect to all addresses; last error: " B ": timed out");
    fake_lb_take_connects(f);
    /* Each address is tried again when its own backoff is over. After as many failures as there are addresses, the
     * policy asks for re-resolution. */
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    assert_connects(f, A " ");
    assert_int_equal(fake_lb_state(f, A), TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set_failed(f, A, "refused again");
    assert_int_equal(f->reresolutions, 1);
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set_failed(f, A, "refused again");
    assert_int_equal(f->reresolutions, 2);
    fake_lb_pick(f);
    assert_string_equal(fake_lb_pick_error(f), "failed to connect to all addresses; last error: " A ": refused again");
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING TF ");
    assert_true(describes(f, "\"all_failed\""));
    fake_lb_set(f, B, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), B);
    assert_false(describes(f, "\"all_failed\""));
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING TF READY ");
}

static void a_failure_in_flight_counts_for_the_pass(void **state)
{
    struct fake_lb *f = *state;
    update(f, A " " B);
    tc_loop_advance(f->loop, 250); /* both in flight */
    fake_lb_set_failed(f, B, "b failed");
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set(f, B, TORC_CONNECTIVITY_IDLE); /* B's backoff ends during the pass: not tried again yet */
    assert_connects(f, A " " B " ");
    fake_lb_set_failed(f, A, "a failed");
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_connects(f, B " ");
}

static void families_are_interleaved(void **state)
{
    TC_CASE(PF06);
    struct fake_lb *f = *state;
    update(f, "[::1]:1 [::2]:1 " A " " B " [::3]:1");
    tc_loop_advance(f->loop, 5 * 250);
    assert_connects(f, "[::1]:1 " A " [::2]:1 " B " [::3]:1 ");
}

static void duplicates_are_dropped(void **state)
{
    TC_CASE(PF07);
    struct fake_lb *f = *state;
    update(f, A "," B " " A " " B "," C);
    tc_loop_advance(f->loop, 5 * 250);
    assert_connects(f, A " " B " " C " ");
}

static void an_update_with_the_address_keeps_it(void **state)
{
    TC_CASE(PF08);
    struct fake_lb *f = *state;
    update(f, A " " B);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_take_connects(f);
    update(f, C " " A);
    assert_string_equal(fake_lb_pick(f), A);
    assert_connects(f, "");
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING READY ");
}

static void an_update_without_it_tries_anew(void **state)
{
    TC_CASE(PF09);
    struct fake_lb *f = *state;
    update(f, A " " B);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    update(f, B " " C);
    assert_int_equal(fake_lb_count(f, A), 0);
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), B);
}

static void empty_list_fails(void **state)
{
    TC_CASE(PF10);
    struct fake_lb *f = *state;
    assert_false(update(f, ""));
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_int_equal(f->pick.status.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(fake_lb_pick_error(f), "empty address list");
    assert_false(fake_lb_update(f, fake_lb_endpoints(""), tc_pick_first_config_new(false), "nobody there"));
    fake_lb_pick(f);
    assert_string_equal(fake_lb_pick_error(f), "empty address list: nobody there");
    assert_true(describes(f, "\"error\":\"empty address list: nobody there\""));
    /* TRANSIENT_FAILURE sticks until there is a connection. */
    assert_true(update(f, A));
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), A);
    assert_false(update(f, ""));
    assert_int_equal(fake_lb_count(f, NULL), 0);
}

static void shuffles_only_when_told(void **state)
{
    TC_CASE(PF11);
    struct fake_lb *f = *state;
    static const char list[] = "1.0.0.1:1 1.0.0.2:1 1.0.0.3:1 1.0.0.4:1 1.0.0.5:1 1.0.0.6:1";
    struct tc_rng before = *tc_loop_rng(f->loop);
    update(f, list);
    assert_memory_equal(&before, tc_loop_rng(f->loop), sizeof(before));
    tc_loop_advance(f->loop, 10 * 250);
    assert_connects(f, "1.0.0.1:1 1.0.0.2:1 1.0.0.3:1 1.0.0.4:1 1.0.0.5:1 1.0.0.6:1 ");

    /* Each endpoint comes first about equally often. */
    unsigned first[6] = {0};
    for (unsigned i = 0; i < 600; i++) {
        struct fake_lb *g = fake_lb_new("pick_first");
        tc_rng_init_seed(tc_loop_rng(g->loop), i);
        fake_lb_update(g, fake_lb_endpoints(list),
                       fake_lb_config(g, "pick_first", "{'shuffleAddressList': true}", NULL), NULL);
        const char *tried = fake_lb_take_connects(g);
        assert_int_equal(strlen(tried), 10);
        first[tried[6] - '1']++;
        fake_lb_free(g);
    }
    for (unsigned i = 0; i < 6; i++)
        assert_in_range(first[i], 60, 140);
}

/* A113: the weights decide which endpoints come first and second, unless the environment variable turns that off. */
static void shuffles_by_weights(void **state)
{
    TC_CASE(PF11);
    (void)state;
    static const char list[] = "1.0.0.1:1*1 1.0.0.2:1*2 1.0.0.3:1*5";
    enum { RUNS = 4000 };
    for (unsigned weighted = 0; weighted < 2; weighted++) {
        unsigned first[3] = {0}, second_after_3[3] = {0};
        if (!weighted)
            setenv("GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING", "false", 1);
        for (unsigned i = 0; i < RUNS; i++) {
            struct fake_lb *g = fake_lb_new("pick_first");
            tc_rng_init_seed(tc_loop_rng(g->loop), i);
            fake_lb_update(g, fake_lb_endpoints(list),
                           fake_lb_config(g, "pick_first", "{'shuffleAddressList': true}", NULL), NULL);
            tc_loop_advance(g->loop, 2 * 250);
            const char *tried = fake_lb_take_connects(g);
            unsigned one = (unsigned)(tried[6] - '1'), two = (unsigned)(tried[16] - '1');
            first[one]++;
            if (one == 2)
                second_after_3[two]++;
            fake_lb_free(g);
        }
        unsetenv("GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING");
        const double shares[2][3] = {{1 / 3., 1 / 3., 1 / 3.}, {1 / 8., 2 / 8., 5 / 8.}};
        for (unsigned i = 0; i < 3; i++) {
            double share = (double)first[i] / RUNS;
            assert_true(share > shares[weighted][i] - 0.03 && share < shares[weighted][i] + 0.03);
        }
        double second = (double)second_after_3[1] / first[2], want = weighted ? 2 / 3. : 1 / 2.;
        assert_true(second > want - 0.05 && second < want + 0.05);
    }
}

/* Only shuffleAddressList changes: the same list is shuffled, then put back into its own order. */
static void the_setting_changes(void **state)
{
    TC_CASE(PF11);
    (void)state;
    static const char list[] = "1.0.0.1:1 1.0.0.2:1 1.0.0.3:1 1.0.0.4:1";
    unsigned first[4] = {0};
    for (unsigned seed = 0; seed < 400; seed++) {
        struct fake_lb *g = fake_lb_new("pick_first");
        tc_rng_init_seed(tc_loop_rng(g->loop), seed);
        fake_lb_update(g, fake_lb_endpoints(list), tc_pick_first_config_new(false), NULL);
        assert_connects(g, "1.0.0.1:1 ");
        fake_lb_set(g, "1.0.0.1:1", TORC_CONNECTIVITY_READY);
        /* A connection that is in use stays. */
        fake_lb_update(g, fake_lb_endpoints(list), tc_pick_first_config_new(true), NULL);
        assert_string_equal(fake_lb_pick(g), "1.0.0.1:1");
        fake_lb_set(g, "1.0.0.1:1", TORC_CONNECTIVITY_IDLE);
        fake_lb_take_connects(g);
        fake_lb_pick(g);
        const char *tried = fake_lb_take_connects(g);
        assert_int_equal(strlen(tried), 10);
        first[tried[6] - '1']++;
        fake_lb_update(g, fake_lb_endpoints(list), tc_pick_first_config_new(false), NULL);
        assert_int_equal(fake_lb_state(g, "1.0.0.1:1"), TORC_CONNECTIVITY_CONNECTING);
        fake_lb_free(g);
    }
    for (unsigned i = 0; i < 4; i++)
        assert_in_range(first[i], 60, 140);
}

static void a_lost_connection_waits_for_a_pick(void **state)
{
    TC_CASE(PF12);
    struct fake_lb *f = *state;
    update(f, A " " B);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_take_connects(f);
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(f->reresolutions, 1);
    tc_loop_advance(f->loop, 60000);
    update(f, A " " C);
    assert_connects(f, "");
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    assert_connects(f, A " ");
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), A);
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING READY IDLE CONNECTING READY ");
}

/* A105: a subchannel for which RPCs wait connects again without becoming IDLE. */
static void a_subchannel_that_connects_again_is_waited_for(void **state)
{
    TC_CASE(CS10);
    struct fake_lb *f = *state;
    update(f, A " " B);
    fake_lb_set_failed(f, A, "refused");
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_connects(f, A " " B " ");
    fake_lb_set(f, B, TORC_CONNECTIVITY_CONNECTING);
    assert_int_equal(f->reresolutions, 1);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    assert_connects(f, A " "); /* a new pass begins with the first address */
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), B);
    assert_int_equal(fake_lb_count(f, A), 0);
    fake_lb_set_failed(f, B, "lost");
    assert_int_equal(f->reresolutions, 2);
    assert_connects(f, A " ");
    fake_lb_set_failed(f, A, "refused");
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING READY CONNECTING READY CONNECTING TF ");
    fake_lb_set(f, B, TORC_CONNECTIVITY_IDLE);
    assert_connects(f, B " ");
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), B);
    /* With a list of one address the policy fails at once. */
    update(f, B);
    fake_lb_set_failed(f, B, "lost again");
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_non_null(strstr(fake_lb_pick_error(f), "lost again"));
}

static void exit_idle_connects(void **state)
{
    struct fake_lb *f = *state;
    f->policy->ops->exit_idle(f->policy); /* nothing to connect to yet */
    update(f, A);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_take_connects(f);
    f->policy->ops->exit_idle(f->policy);
    f->policy->ops->exit_idle(f->policy);
    tc_loop_drain(f->loop);
    assert_connects(f, A " ");
}

static void resolver_errors(void **state)
{
    TC_CASE(PF13);
    struct fake_lb *f = *state;
    struct tc_status error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "no such host");
    assert_true(fake_lb_update_error(f, &error, tc_pick_first_config_new(false)));
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_string_equal(fake_lb_pick_error(f), "no such host");
    update(f, A);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_true(fake_lb_update_error(f, &error, tc_pick_first_config_new(false)));
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), A);
    tc_status_fini(&error);
}

static void an_address_in_backoff_counts_as_tried(void **state)
{
    struct fake_lb *f = *state;
    update(f, A " " B);
    fake_lb_set_failed(f, A, "refused");
    fake_lb_set_failed(f, B, "refused");
    fake_lb_take_connects(f);
    update(f, B " " C); /* a new pass: B is in backoff, C is new */
    assert_connects(f, C " ");
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    fake_lb_set_failed(f, C, "c is down");
    assert_int_equal(f->reresolutions, 2);
    fake_lb_pick(f);
    assert_string_equal(fake_lb_pick_error(f), "failed to connect to all addresses; last error: " C ": c is down");
}

static void the_note_is_told(void **state)
{
    struct fake_lb *f = *state;
    fake_lb_update(f, fake_lb_endpoints(A), tc_pick_first_config_new(false), "xDS node n1");
    fake_lb_set_failed(f, A, "connecting to 1.1.1.1:1: refused");
    fake_lb_pick(f);
    assert_string_equal(
        fake_lb_pick_error(f),
        "failed to connect to all addresses; last error: connecting to 1.1.1.1:1: refused (xDS node n1)");
}

static void a_moved_locality_renews_the_subchannel(void **state)
{
    struct fake_lb *f = *state;
    update(f, A "@z1");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    update(f, A "@z2");
    assert_int_equal(fake_lb_count(f, A), 2);
    assert_string_equal(fake_lb_pick(f), A);
    assert_string_equal(tc_rstr_cstr(f->pick.subchannel->endpoint->locality->zone), "z1");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_int_equal(fake_lb_count(f, A), 1);
    assert_string_equal(fake_lb_pick(f), A);
    assert_string_equal(tc_rstr_cstr(f->pick.subchannel->endpoint->locality->zone), "z2");
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING READY ");
    update(f, A "*7@z2"); /* a weight does not concern the connection */
    assert_int_equal(fake_lb_count(f, A), 1);
}

/* Picks, and asserts that A is picked. Returns the zone of the picked subchannel's endpoint, borrowed. */
static const char *zone_of_pick(struct fake_lb *f)
{
    assert_string_equal(fake_lb_pick(f), A);
    return tc_rstr_cstr(f->pick.subchannel->endpoint->locality->zone);
}

/* The old connection ends before the new one, for the endpoint in another locality, is READY; or the new one fails. In
 * both cases the next connection is for the endpoint of the last update. */
static void a_renewal_is_not_forgotten(void **state)
{
    struct fake_lb *f = *state;
    update(f, A "@z1");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    update(f, A "@z2");
    fake_lb_set_at(f, 0, TORC_CONNECTIVITY_IDLE);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(zone_of_pick(f), "z2");
    update(f, A "@z3");
    fake_lb_set_at(f, 1, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(zone_of_pick(f), "z2");
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(zone_of_pick(f), "z3");
    /* A105: the old connection ends, and its subchannel connects again without becoming IDLE. */
    update(f, A "@z4");
    fake_lb_set_at(f, 1, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(zone_of_pick(f), "z3");
    fake_lb_set(f, A, TORC_CONNECTIVITY_CONNECTING);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(zone_of_pick(f), "z4");
}

/* A subchannel depends on the hostname of its endpoint, for the :authority of RPCs (A81) and for SNI (A101). */
static void a_changed_hostname_renews_the_subchannel(void **state)
{
    static const char *const names[] = {"one.example", "two.example"};
    struct fake_lb *f = *state;
    for (size_t i = 0; i < TC_ARRAY_LEN(names); i++) {
        struct tc_endpoints *list = fake_lb_endpoints(A);
        list->at[0]->hostname = tc_rstr_str(names[i]);
        fake_lb_update(f, list, tc_pick_first_config_new(false), NULL);
        assert_int_equal(fake_lb_count(f, A), i + 1);
        fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
        assert_string_equal(fake_lb_pick(f), A);
        assert_string_equal(tc_rstr_cstr(f->pick.subchannel->endpoint->hostname), names[i]);
    }
}

/* A88: the texts of RPCs that fail contain the current resolution note. */
static void a_new_resolution_note_is_told(void **state)
{
    static const char *const notes[] = {"xDS node n1", "s1: down", "xDS node n1"};
    struct fake_lb *f = *state;
    for (size_t i = 0; i < TC_ARRAY_LEN(notes); i++) {
        fake_lb_update(f, fake_lb_endpoints(A), tc_pick_first_config_new(false), notes[i]);
        if (i == 0)
            fake_lb_set_failed(f, A, "refused");
        fake_lb_pick(f);
        assert_non_null(strstr(fake_lb_pick_error(f), notes[i]));
    }
}

static void reset_backoff_reaches_subchannels(void **state)
{
    struct fake_lb *f = *state;
    update(f, A);
    fake_lb_set_failed(f, A, "refused");
    fake_lb_take_connects(f);
    f->policy->ops->reset_backoff(f->policy);
    tc_loop_drain(f->loop);
    assert_connects(f, A " ");
}

static void trace_names_policy_and_address(void **state)
{
    struct fake_lb *f = *state;
    struct tc_pick_trace trace = {.arena = &f->arena};
    f->args.trace = &trace;
    update(f, A);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_pick(f);
    assert_true(tc_slice_eq_str(trace.policy, "pick_first"));
    assert_true(tc_slice_eq_str(trace.endpoint, A));
    f->args.trace = NULL;
}

/* A trace names the last attempt that has not failed. */
static void trace_names_the_attempt(void **state)
{
    struct fake_lb *f = *state;
    struct tc_pick_trace trace = {.arena = &f->arena};
    f->args.trace = &trace;
    update(f, A " " B);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    struct tc_subchannel *first = trace.awaited;
    assert_non_null(first);
    tc_loop_advance(f->loop, 250);
    fake_lb_pick(f);
    assert_ptr_not_equal(trace.awaited, first);
    fake_lb_set_failed(f, B, "refused");
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    assert_ptr_equal(trace.awaited, first);
    f->args.trace = NULL;
}

/* Below a petiole policy the selected address is not picked before its health is known. */
static void health_is_waited_for(void **state)
{
    TC_CASE(CH10);
    (void)state;
    struct fake_lb *f = fake_lb_new("pick_first");
    f->health = TC_HEALTH_PENDING;
    fake_lb_update(f, fake_lb_endpoints("1.1.1.1:1,2.2.2.2:2"), tc_pick_first_config_new_petiole(), NULL);
    tc_loop_advance(f->loop, 250); /* the second address is tried, too */
    fake_lb_set(f, "1.1.1.1:1", TORC_CONNECTIVITY_READY);
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    /* A trace names the connection whose health is waited for. */
    struct tc_pick_trace trace = {.arena = &f->arena};
    struct tc_pick_args args = {.dry = true, .trace = &trace};
    struct tc_pick pick = {0};
    assert_int_equal(tc_picker_pick(f->picker, &args, &pick), TC_PICK_QUEUE);
    assert_non_null(trace.awaited);
    fake_lb_set_health(f, "1.1.1.1:1", TORC_STATUS_OK, "");
    assert_string_equal(fake_lb_pick(f), "1.1.1.1:1");
    /* An endpoint with new attributes is connected again beside the old connection. */
    fake_lb_update(f, fake_lb_endpoints("1.1.1.1:1,2.2.2.2:2!DRAINING"), tc_pick_first_config_new_petiole(), NULL);
    fake_lb_set(f, "1.1.1.1:1", TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    fake_lb_set_health(f, "1.1.1.1:1", TORC_STATUS_OK, "");
    assert_string_equal(fake_lb_pick(f), "1.1.1.1:1");
    /* The health becomes unknown, as when another service is to be checked: a healthy endpoint becomes CONNECTING, an
     * unhealthy one stays in TRANSIENT_FAILURE. */
    fake_lb_set_health(f, "1.1.1.1:1", TC_HEALTH_PENDING, "");
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set_health(f, "1.1.1.1:1", TORC_STATUS_UNAVAILABLE, "sick");
    fake_lb_set_health(f, "1.1.1.1:1", TC_HEALTH_PENDING, "");
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(fake_lb_pick(f), "FAIL");
    fake_lb_set_health(f, "1.1.1.1:1", TORC_STATUS_OK, "");
    assert_string_equal(fake_lb_pick(f), "1.1.1.1:1");
    fake_lb_free(f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(health_is_waited_for),
        TEST(first_address_serves),
        TEST(next_at_once_after_a_failure),
        TEST(second_beside_a_hanging_first),
        TEST(attempt_delay_is_clamped),
        TEST(sticks_to_failure_and_goes_on),
        TEST(a_failure_in_flight_counts_for_the_pass),
        TEST(families_are_interleaved),
        TEST(duplicates_are_dropped),
        TEST(an_update_with_the_address_keeps_it),
        TEST(an_update_without_it_tries_anew),
        TEST(empty_list_fails),
        TEST(shuffles_only_when_told),
        TEST(shuffles_by_weights),
        TEST(the_setting_changes),
        TEST(a_lost_connection_waits_for_a_pick),
        TEST(a_subchannel_that_connects_again_is_waited_for),
        TEST(exit_idle_connects),
        TEST(resolver_errors),
        TEST(an_address_in_backoff_counts_as_tried),
        TEST(the_note_is_told),
        TEST(a_moved_locality_renews_the_subchannel),
        TEST(a_renewal_is_not_forgotten),
        TEST(a_changed_hostname_renews_the_subchannel),
        TEST(a_new_resolution_note_is_told),
        TEST(reset_backoff_reaches_subchannels),
        TEST(trace_names_policy_and_address),
        TEST(trace_names_the_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
