/* Defects that other implementations had, tried on each entry of `policies`. */
#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"

#define A "1.1.1.1:1"
#define B "2.2.2.2:2"

static const struct {
    const char *name, *config; /* the config in JSON with ' for " */
} policies[] = {
    {"pick_first", "{}"},
    {"round_robin", "{}"},
    {"weighted_round_robin", "{}"},
    {"least_request_experimental", "{}"},
    {"ring_hash_experimental", "{}"},
    {"maglev", "{'tableSize': 7}"},
    {"random_subsetting_experimental", "{'subsetSize': 1, 'childPolicy': [{'round_robin': {}}]}"},
    {"random_subsetting_experimental", "{'subsetSize': 4294967295, 'childPolicy': [{'pick_first': {}}]}"},
    {"outlier_detection_experimental", "{'childPolicy': [{'round_robin': {}}]}"},
};

/* i: the policy's place in `policies`. */
static void update(struct fake_lb *f, size_t i, const char *endpoints)
{
    struct tc_lb_config *config = fake_lb_config(f, policies[i].name, policies[i].config, NULL);
    fake_lb_update(f, fake_lb_endpoints(endpoints), config, NULL);
}

static void update_error(struct fake_lb *f, size_t i)
{
    struct tc_status error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "no such host");
    fake_lb_update_error(f, &error, fake_lb_config(f, policies[i].name, policies[i].config, NULL));
    tc_status_fini(&error);
}

/* Picks, with the hash 7; no RPC follows the pick. Returns what fake_lb_pick does. */
static const char *pick(struct fake_lb *f)
{
    const char *at = fake_lb_pick_hash(f, 7);
    for (struct tc_call_tracker *t = f->pick.trackers, *next; t; t = next) {
        next = t->next;
        t->on_done(t, NULL, NULL);
    }
    f->pick.trackers = NULL;
    return at;
}

static void assert_fails(struct fake_lb *f, const char *text)
{
    assert_string_equal(pick(f), "FAIL");
    assert_non_null(strstr(fake_lb_pick_error(f), text));
}

/* Makes the address READY, and asserts that the next pick goes to it. */
static void connect_to(struct fake_lb *f, const char *addr)
{
    pick(f); /* some policies connect only when an RPC asks for it */
    fake_lb_set(f, addr, TORC_CONNECTIVITY_READY);
    assert_string_equal(pick(f), addr);
}

static void errors_and_empty_lists_at_any_time(void **state)
{
    TC_CASE(PD01);
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(policies); i++) {
        struct fake_lb *f = fake_lb_new(policies[i].name);
        update_error(f, i);
        assert_fails(f, "no such host");
        update(f, i, "");
        assert_fails(f, "empty address list");
        update_error(f, i);
        assert_string_equal(pick(f), "FAIL");
        update(f, i, A);
        connect_to(f, A);
        update_error(f, i);
        assert_string_equal(pick(f), A);
        update(f, i, "");
        assert_fails(f, "empty address list");
        update(f, i, B);
        connect_to(f, B);
        fake_lb_free(f);
    }
}

static void a_list_that_fails_replaces_one_that_works(void **state)
{
    TC_CASE(PD02);
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(policies); i++) {
        struct fake_lb *f = fake_lb_new(policies[i].name);
        update(f, i, A);
        connect_to(f, A);
        update(f, i, B);
        pick(f);
        fake_lb_set_failed(f, B, "refused");
        assert_fails(f, "refused");
        assert_int_equal(fake_lb_count(f, A), 0);
        fake_lb_free(f);
    }
}

/* Every petiole policy watches health, whatever its config. A pick_first without a petiole policy above it does not. */
static void every_petiole_policy_watches_health(void **state)
{
    TC_CASE(PD11);
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(policies); i++) {
        struct fake_lb *f = fake_lb_new(policies[i].name);
        update(f, i, A);
        connect_to(f, A);
        fake_lb_set_health(f, A, TORC_STATUS_UNAVAILABLE, "sick");
        if (strstr(policies[i].name, "pick_first") || strstr(policies[i].config, "pick_first"))
            assert_string_equal(pick(f), A);
        else
            assert_fails(f, "sick");
        fake_lb_set_health(f, A, TORC_STATUS_OK, "");
        assert_string_equal(pick(f), A);
        fake_lb_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_and_empty_lists_at_any_time),
        cmocka_unit_test(a_list_that_fails_replaces_one_that_works),
        cmocka_unit_test(every_petiole_policy_watches_health),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
