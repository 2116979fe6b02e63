/* The registry of policies, config lists, and the graceful switch.
 *
 * fakes/lb, without a policy of its own, has a registry of the built-in policies (f->registry) and is the parent of
 * each graceful switch: reports go to f->helper. A test that makes a graceful switch shuts the switch down and runs the
 * loop, which frees the switch; the teardown frees the fake. One thread, on the fake's virtual time. */
#include "lb/graceful_switch.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "lb/delegate.h"
#include "lb/policies/pick_first.h"
#include "lb/policies/round_robin.h"
#include "lb/registry.h"

#define A "1.1.1.1:1"
#define B "2.2.2.2:2"

static int setup(void **state)
{
    *state = fake_lb_new(NULL);
    return 0;
}

static int teardown(void **state)
{
    fake_lb_free(*state);
    return 0;
}

static void names_and_aliases(void **state)
{
    struct fake_lb *f = *state;
    static const char *const names[] = {"pick_first", "round_robin", "weighted_target",
                                        "priority",   "ring_hash",   "outlier_detection"};
    for (size_t i = 0; i < TC_ARRAY_LEN(names); i++) {
        char *alias = tc_asprintf("%s_experimental", names[i]);
        const struct tc_lb_factory *factory = tc_lb_registry_find(f->registry, tc_slice_str(names[i]));
        assert_non_null(factory);
        assert_ptr_equal(factory, tc_lb_registry_find(f->registry, tc_slice_str(alias)));
        assert_int_equal(tc_lb_registry_add(f->registry, factory), TORC_EEXIST);
        tc_free(alias);
    }
    static struct tc_lb_factory taken = {.name = "mine", .alias = "ring_hash"}; /* the registry borrows it */
    assert_int_equal(tc_lb_registry_add(f->registry, &taken), TORC_EEXIST);
    taken.alias = NULL;
    assert_int_equal(tc_lb_registry_add(f->registry, &taken), 0);
    assert_ptr_equal(tc_lb_registry_find(f->registry, tc_slice_str("mine")), &taken);
    assert_null(tc_lb_registry_find(f->registry, tc_slice_str("unknown")));
    assert_null(tc_lb_default_config(f->registry, "unknown"));
    assert_null(tc_lb_default_config(f->registry, "priority"));
}

/* Parses a config list at this depth. Returns the text of the errors, or "" if there are none; the caller frees the
 * text with tc_free. */
static char *faults_of(struct fake_lb *f, const char *json, unsigned depth)
{
    struct tc_validation_errors errors = {0};
    json_t *list = json_loads(json, JSON_DECODE_ANY, NULL);
    assert_non_null(list);
    struct tc_lb_config *config = tc_lb_parse_list(f->registry, list, depth, &errors);
    char *text = tc_strdup(config ? "" : tc_validation_text(&errors));
    tc_lb_config_unref(config);
    tc_validation_fini(&errors);
    json_decref(list);
    return text;
}

static void lists(void **state)
{
    struct fake_lb *f = *state;
    static const struct {
        const char *json, *why;
    } cases[] = {
        {"[{\"x\": {}}, {\"round_robin\": {}}, {\"ring_hash\": {\"minRingSize\": 0}}]", ""},
        {"[{\"round_robin\": null}]", ""},
        {"[]", "no supported LB policy in the list"},
        {"[{\"x\": {}}, {\"y\": {}}]", "no supported LB policy in the list: x, y"},
        {"[{\"rls_experimental\": {\"routeLookupConfig\": {}}}]", "in the list: rls_experimental"},
        {"{}", "must be an array"},
        {"[7]", "field [0]: must be an object"},
        {"[{}]", "field [0]: must have exactly one member, the policy's name"},
        {"[{\"x\": {}}, {\"a\": {}, \"b\": {}}]", "field [1]: must have exactly one member, the policy's name"},
        {"[{\"pick_first\": 3}]", "field [0].pick_first: must be an object"},
        {"[{\"pick_first\": {\"shuffleAddressList\": 1}}]", "shuffleAddressList"},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        char *text = faults_of(f, cases[i].json, 1);
        if (*cases[i].why)
            assert_non_null(strstr(text, cases[i].why));
        else
            assert_string_equal(text, "");
        tc_free(text);
    }
    char *text = faults_of(f, "[{\"round_robin\": {}}]", 16);
    assert_string_equal(text, "");
    tc_free(text);
    /* Names longer than 256 bytes are cut between characters. */
    struct tc_buf json = {0};
    tc_buf_append_str(&json, "[{\"x");
    for (unsigned i = 0; i < 200; i++)
        tc_buf_append_str(&json, "\xc3\xa9");
    tc_buf_append_str(&json, "\": {}}]");
    text = faults_of(f, tc_buf_cstr(&json), 1);
    tc_buf_fini(&json);
    assert_non_null(strstr(text, "\xc3\xa9..."));
    assert_true(tc_utf8_valid(tc_slice_str(text)));
    tc_free(text);
    text = faults_of(f, "[{\"round_robin\": {}}]", 17);
    assert_non_null(strstr(text, "more than 16 nested LB policies"));
    tc_free(text);
}

static void nesting_is_bounded(void **state)
{
    struct fake_lb *f = *state;
    struct tc_buf json = {0};
    enum { LEVELS = 40 };
    for (unsigned i = 0; i < LEVELS; i++)
        tc_buf_append_str(&json, "[{\"weighted_target\": {\"targets\": {\"a\": {\"weight\": 1, \"childPolicy\": ");
    tc_buf_append_str(&json, "[{\"round_robin\": {}}]");
    for (unsigned i = 0; i < LEVELS; i++)
        tc_buf_append_str(&json, "}}}}]");
    char *text = faults_of(f, tc_buf_cstr(&json), 1);
    assert_non_null(strstr(text, "more than 16 nested LB policies"));
    tc_free(text);
    tc_buf_fini(&json);
}

/* Updates the graceful switch and runs the loop. Takes over a reference of the config. `endpoints` is a text for
 * fake_lb_endpoints. */
static void child_update(struct fake_lb *f, struct tc_graceful_switch *child, struct tc_lb_config *config,
                         const char *endpoints)
{
    struct tc_endpoints *list = fake_lb_endpoints(endpoints);
    struct tc_status status =
        tc_graceful_switch_update(child, &(struct tc_lb_update){.endpoints = list, .config = config});
    tc_status_fini(&status);
    tc_endpoints_unref(list);
    tc_lb_config_unref(config);
    tc_loop_drain(f->loop);
}

static void the_child_changes_policy_when_the_new_one_is_ready(void **state)
{
    struct fake_lb *f = *state;
    struct tc_graceful_switch *child = tc_graceful_switch_new(&f->helper);
    tc_graceful_switch_exit_idle(child);
    tc_graceful_switch_reset_backoff(child);
    child_update(f, child, tc_pick_first_config_new(false), A);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), A);
    child_update(f, child, tc_pick_first_config_new(true), A); /* the same policy */
    assert_int_equal(fake_lb_count(f, NULL), 1);
    child_update(f, child, tc_round_robin_config_new(), B);
    assert_int_equal(fake_lb_count(f, NULL), 2);
    assert_string_equal(fake_lb_pick(f), A); /* the old policy still serves */
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), B);
    assert_int_equal(fake_lb_count(f, A), 0);
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING READY ");
    /* A pending policy that another update replaces ends at once. */
    child_update(f, child, tc_pick_first_config_new(false), A);
    child_update(f, child, tc_round_robin_config_new(), A);
    assert_int_equal(fake_lb_count(f, A), 1);
    tc_graceful_switch_reset_backoff(child);
    tc_graceful_switch_shutdown(child);
    assert_int_equal(fake_lb_count(f, NULL), 0);
    tc_loop_drain(f->loop);
}

static void a_failing_new_policy_takes_over(void **state)
{
    struct fake_lb *f = *state;
    struct tc_graceful_switch *child = tc_graceful_switch_new(&f->helper);
    child_update(f, child, tc_pick_first_config_new(false), A);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    child_update(f, child, tc_round_robin_config_new(), B);
    fake_lb_set_failed(f, B, "down");
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_int_equal(fake_lb_count(f, A), 0);
    tc_graceful_switch_shutdown(child);
    tc_loop_drain(f->loop);
}

/* --- "early", a policy that reports and asks for re-resolution from inside create() --- */

static enum torc_connectivity early_state; /* the last state that create() reports */
static unsigned early_live;                /* policies made and not shut down */

static struct tc_status early_update(struct tc_lb_policy *p, const struct tc_lb_update *update)
{
    (void)p;
    (void)update;
    return (struct tc_status){0};
}

static void early_nothing(struct tc_lb_policy *p)
{
    (void)p;
}

static void early_shutdown(struct tc_lb_policy *p)
{
    p->helper = NULL;
    early_live--;
    tc_free(p);
}

static struct tc_lb_policy *early_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    static const struct tc_lb_policy_ops ops = {
        .update = early_update, .exit_idle = early_nothing, .reset_backoff = early_nothing, .shutdown = early_shutdown};
    struct tc_lb_policy *p = TC_NEW(struct tc_lb_policy);
    *p = (struct tc_lb_policy){.ops = &ops, .factory = factory, .helper = helper};
    early_live++;
    /* The last of two reports from inside create() counts. */
    tc_lb_update_state(helper, TORC_CONNECTIVITY_CONNECTING, NULL, tc_picker_queue());
    tc_lb_request_reresolution(helper);
    tc_lb_update_state(helper, early_state, NULL, tc_picker_queue());
    return p;
}

static void what_a_policy_reports_while_it_is_made_counts(void **state)
{
    struct fake_lb *f = *state;
    const struct tc_lb_factory factory = {.name = "early", .create = early_create};
    struct tc_lb_config config = {.factory = &factory};
    tc_ref_init(&config.ref); /* the config is on the stack: two updates take over a reference each, and one stays */
    tc_ref_inc(&config.ref);
    tc_ref_inc(&config.ref);
    struct tc_graceful_switch *child = tc_graceful_switch_new(&f->helper);
    early_state = TORC_CONNECTIVITY_IDLE;
    child_update(f, child, &config, A);
    assert_int_equal(f->reports, 1);
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(f->reresolutions, 1);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    /* A pending policy that reports READY from inside create() serves at once. */
    tc_graceful_switch_renew(child);
    early_state = TORC_CONNECTIVITY_READY;
    child_update(f, child, &config, A);
    assert_int_equal(f->reports, 2);
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    assert_int_equal(f->reresolutions, 2);
    assert_int_equal(early_live, 1); /* the policy that was replaced was shut down */
    tc_graceful_switch_shutdown(child);
    assert_int_equal(early_live, 0);
    tc_loop_drain(f->loop);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(names_and_aliases),
        TEST(lists),
        TEST(nesting_is_bounded),
        TEST(what_a_policy_reports_while_it_is_made_counts),
        TEST(the_child_changes_policy_when_the_new_one_is_ready),
        TEST(a_failing_new_policy_takes_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
