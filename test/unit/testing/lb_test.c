/* LB policies of the application's own (torc/lb.h) in a world: children by config, configs that are refused, ends of
 * RPCs, timers, states that a policy must not have.
 *
 * The tests have three policies: "tally" counts what it is told; "nested" makes a child of its own kind; "shows"
 * publishes a state that the test chooses. The state of "tally" is a struct tally of the test, that of "nested" and
 * "shows" is the helper, so no policy has anything to free. Torc owns the helpers, and destroys the children that are
 * left.
 *
 * A test makes a world, or several one after another; it frees the channels and servers of a world, and then ends the
 * world. Policies and handlers run on the test's thread, inside a function that turns or ends the world; check_config
 * also runs inside torc_channel_new. Read first: struct tally, begin. */
#include "unit/testing/kit.h"

enum { SERVERS = 2 };
static const char *const addresses[SERVERS] = {"10.0.0.1:443", "10.0.0.2:443"};

/* A policy with one child for all endpoints; its config names the child's policy. It lets `limit` RPCs go at a time (0:
 * all). */
struct tally {
    torc_lb_helper *helper; /* borrowed until `destroy` */
    torc_lb_child *child;   /* borrowed until `destroy`; NULL: not made yet */
    int active, limit;      /* active: picks whose on_call_end has not come */
    /* placed: ends of RPCs; unplaced: ends of picks that led to no RPC; explained: picks of torc_explain */
    int placed, unplaced, explained;
    int codes[17];    /* ends by status code */
    char trailer[32]; /* "mood" of the last RPC; empty: none */
    double rows;      /* request cost "rows" of the last load report with such a cost */
    int timers;       /* how often on_timer was called */
    int64_t timer_at; /* when on_timer must be called, by torc_lb_now_ms */
    int config_code;  /* what the last torc_lb_child_set_config returned */
    char config_error[256];
    const char *own_config; /* of the child, borrowed; NULL: childPolicy in the policy's config */
    int destroyed;          /* how often `destroy` was called */
};

static void *tally_create(torc_lb_helper *helper, void *arg)
{
    struct tally *t = arg;
    t->helper = helper;
    return t;
}

static void tally_update(void *state, const torc_lb_endpoint *const *endpoints, size_t n, const char *config_json)
{
    struct tally *t = state;
    torc_error *error = NULL;
    if (!t->child)
        t->child = torc_lb_child_create(t->helper, NULL, NULL);
    torc_lb_child_set_endpoints(t->child, endpoints, n); /* the child has no policy at first */
    t->config_code = torc_lb_child_set_config(t->child, t->own_config ? t->own_config : config_json,
                                              t->own_config ? NULL : "childPolicy", &error);
    snprintf(t->config_error, sizeof(t->config_error), "%s", torc_error_text(error));
    torc_error_clear(&error);
    torc_lb_child_set_endpoints(t->child, endpoints, n);
    if (t->config_code)
        torc_lb_update_state(t->helper, TORC_CONNECTIVITY_TRANSIENT_FAILURE, t->config_error);
}

static void tally_on_child_state(void *state, torc_lb_child *child, void *child_arg, enum torc_connectivity now)
{
    struct tally *t = state;
    (void)child_arg;
    torc_lb_update_state(t->helper, now, torc_lb_child_text(child));
}

static torc_lb_child *tally_pick(void *state, torc_lb_pick *pick)
{
    struct tally *t = state;
    torc_lb_pick_watch(pick, NULL);
    torc_lb_pick_watch(pick, t); /* the last one counts */
    if (torc_lb_pick_explains(pick))
        t->explained++;
    else
        t->active++;
    return t->config_code || (t->limit && t->active > t->limit) ? NULL : t->child;
}

static void tally_on_call_end(void *state, void *call_arg, torc_lb_call_end *end)
{
    struct tally *t = state;
    int code = torc_lb_call_end_code(end);
    const char *trailer = torc_lb_call_end_trailer(end, "mood");
    assert_ptr_equal(call_arg, t);
    assert_false(t->destroyed);
    t->active--;
    if (code < 0) {
        t->unplaced++;
        assert_null(trailer);
        return;
    }
    t->placed++;
    t->codes[code]++;
    snprintf(t->trailer, sizeof(t->trailer), "%s", trailer ? trailer : "");
    torc_lb_call_end_load(end, TORC_ORCA_REQUEST_COST, "rows", &t->rows);
    torc_lb_update_state(t->helper, TORC_CONNECTIVITY_READY, NULL); /* for the RPCs that wait */
    torc_lb_set_timer(t->helper, 500);
    torc_lb_set_timer(t->helper, 700);
    t->timer_at = torc_lb_now_ms(t->helper) + 700;
}

static void tally_on_timer(void *state)
{
    struct tally *t = state;
    t->timers++;
    assert_int_equal(torc_lb_now_ms(t->helper), t->timer_at);
}

static void tally_destroy(void *state)
{
    struct tally *t = state;
    t->destroyed++;
    torc_lb_set_timer(t->helper, 1);
    assert_int_equal(torc_lb_child_set_config(t->child, "[]", NULL, NULL), TORC_ESTATE);
    t->child = NULL;
}

static void tally_check(torc_lb_check *check, const char *config_json, void *arg)
{
    (void)arg;
    if (strstr(config_json, "\"colour\":\"red\""))
        torc_lb_check_refuse(check, "colour", "red is taken");
    if (strstr(config_json, "\"whole\""))
        torc_lb_check_refuse(check, NULL, "not this one");
    if (!strstr(config_json, "\"unchecked\""))
        torc_lb_check_child(check, "childPolicy");
}

struct world {
    torc_testing *world;
    struct says servers[SERVERS];
    struct tally tally;
    torc_channel *channel;
};

/* Returns a new channel with the policy tally, whose config is `config`; NULL with an error if the config is refused.
 * The caller frees the channel and clears the error. `error` may be NULL. */
static torc_channel *channel_with(struct world *w, const char *config, torc_error **error)
{
    const struct torc_lb_factory tally = {.size = sizeof(tally),
                                          .name = "tally",
                                          .create = tally_create,
                                          .update = tally_update,
                                          .on_child_state = tally_on_child_state,
                                          .pick = tally_pick,
                                          .destroy = tally_destroy,
                                          .on_call_end = tally_on_call_end,
                                          .on_timer = tally_on_timer,
                                          .check_config = tally_check,
                                          .arg = &w->tally};
    const struct torc_lb_factory *const policies[] = {&tally, NULL};
    char json[512];
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .lb_policies = policies, .service_config_json = json};
    snprintf(json, sizeof(json), "{\"loadBalancingConfig\":[{\"tally\":%s}]}", config);
    return torc_channel_new(NULL, "ipv4:10.0.0.1:443,10.0.0.2:443", &o, error);
}

/* Makes the world, its servers, and a channel with the policy tally. `end` frees them. */
static void begin(struct world *w, const char *config)
{
    torc_error *error = NULL;
    *w = (struct world){.world = torc_testing_new(1, NULL)};
    assert_non_null(w->world);
    for (int i = 0; i < SERVERS; i++)
        says_begin(&w->servers[i], i ? "two" : "one", addresses[i]);
    w->channel = channel_with(w, config, &error);
    assert_string_equal(torc_error_text(error), "");
    assert_non_null(w->channel);
}

static void end(struct world *w)
{
    torc_channel_free(w->channel);
    for (int i = 0; i < SERVERS; i++)
        torc_server_free(w->servers[i].server);
    assert_int_equal(torc_testing_free(w->world), 0);
    assert_true(w->tally.destroyed > 0);
}

#define ROUND_ROBIN "{\"childPolicy\":[{\"unknown\":{}},{\"round_robin\":{}}]}"

static void test_child_by_config(void **state)
{
    (void)state;
    struct world w;
    char said[128];
    begin(&w, ROUND_ROBIN);
    for (int i = 0; i < 10; i++)
        assert_int_equal(say(w.channel, NULL, said), TORC_STATUS_OK);
    assert_int_equal(w.servers[0].calls, 5);
    assert_int_equal(w.servers[1].calls, 5);
    end(&w);
}

static void test_child_config_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json, *text;
    } rows[] = {
        {"{", "config of a child: line 1"},
        {"{}", "must be an array"},
        {"[]", "no supported LB policy in the list"},
        {"[{\"nobody\":{}}]", "nobody"},
        {"[{\"ring_hash\":{\"minRingSize\":0}}]", "minRingSize"},
        {"[{\"priority_experimental\":{}}]", ".children: must be given"},
        {"[{\"tally\":{\"colour\":\"red\",\"unchecked\":1}}]", ".colour"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct world w;
        char said[128];
        begin(&w, ROUND_ROBIN);
        w.tally.own_config = rows[i].json;
        assert_int_equal(say(w.channel, NULL, said), TORC_STATUS_UNAVAILABLE);
        assert_int_equal(w.tally.config_code, TORC_EINVAL);
        if (!strstr(w.tally.config_error, rows[i].text) || !strstr(said, w.tally.config_error))
            fail_msg("%s: \"%s\", \"%s\"", rows[i].json, w.tally.config_error, said);
        end(&w);
    }
}

/* Records of the policies "nested". Each makes a child of its own kind; more than 16 nested policies are refused. */
static struct {
    int made; /* policies that were made */
    int code; /* what the last torc_lb_child_set_config returned, with its error's text */
    char text[256];
} nested;

static void *nested_create(torc_lb_helper *helper, void *arg)
{
    (void)arg;
    assert_in_range(nested.made, 0, 31);
    nested.made++;
    return helper;
}

static void nested_update(void *state, const torc_lb_endpoint *const *endpoints, size_t n, const char *config_json)
{
    torc_error *error = NULL;
    torc_lb_child *child = torc_lb_child_create(state, NULL, NULL);
    (void)config_json;
    nested.code = torc_lb_child_set_config(child, "[{\"nested\":{}}]", NULL, &error);
    snprintf(nested.text, sizeof(nested.text), "%s", torc_error_text(error));
    torc_error_clear(&error);
    if (nested.code == 0)
        torc_lb_child_set_endpoints(child, endpoints, n);
    else
        torc_lb_update_state(state, TORC_CONNECTIVITY_TRANSIENT_FAILURE, nested.text);
}

static void nested_on_child_state(void *state, torc_lb_child *child, void *child_arg, enum torc_connectivity now)
{
    (void)child_arg;
    torc_lb_update_state(state, now, torc_lb_child_text(child));
}

static torc_lb_child *nested_pick(void *state, torc_lb_pick *pick)
{
    (void)state, (void)pick;
    return NULL;
}

static void nested_destroy(void *state)
{
    (void)state;
}

/* Makes the child in `create`, before any update. */
static void *nested_create_child(torc_lb_helper *helper, void *arg)
{
    nested_create(helper, arg);
    nested_update(helper, NULL, 0, "{}");
    return helper;
}

static void nested_update_nothing(void *state, const torc_lb_endpoint *const *endpoints, size_t n,
                                  const char *config_json)
{
    (void)state, (void)endpoints, (void)n, (void)config_json;
}

static void nest(bool in_create)
{
    const struct torc_lb_factory factory = {.size = sizeof(factory),
                                            .name = "nested",
                                            .create = in_create ? nested_create_child : nested_create,
                                            .update = in_create ? nested_update_nothing : nested_update,
                                            .on_child_state = nested_on_child_state,
                                            .pick = nested_pick,
                                            .destroy = nested_destroy};
    const struct torc_lb_factory *const policies[] = {&factory, NULL};
    nested.made = 0;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .lb_policies = policies,
                                     .service_config_json = "{\"loadBalancingConfig\":[{\"nested\":{}}]}"};
    char said[128];
    torc_testing *world = torc_testing_new(1, NULL);
    torc_channel *channel = torc_channel_new(NULL, addresses[0], &o, NULL);
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_UNAVAILABLE);
    assert_int_equal(nested.code, TORC_EINVAL);
    assert_non_null(strstr(nested.text, "more than 16 nested LB policies"));
    assert_non_null(strstr(said, "14 LB policy nested: "));
    assert_in_range(nested.made, 16, 18);
    torc_channel_free(channel);
    assert_int_equal(torc_testing_free(world), 0);
}

static void test_policies_of_the_application_as_children(void **state)
{
    (void)state;
    nest(false);
    nest(true);
}

static void test_config_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *config, *text;
    } rows[] = {
        {"{\"colour\":\"red\",\"unchecked\":1}", "tally.colour: red is taken"},
        {"{\"whole\":1,\"unchecked\":1}", "tally: not this one"},
        {"{}", "childPolicy: field not present"},
        {"{\"childPolicy\":[{\"tally\":{}}]}", "childPolicy[0].tally.childPolicy: field not present"},
        {"{\"childPolicy\":[{\"tally\":{\"childPolicy\":[{\"x\":{}}]}}]}", "no supported LB policy in the list: x"},
    };
    struct world w;
    begin(&w, ROUND_ROBIN);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        torc_error *error = NULL;
        assert_null(channel_with(&w, rows[i].config, &error));
        if (!strstr(torc_error_text(error), rows[i].text))
            fail_msg("%s: \"%s\"", rows[i].config, torc_error_text(error));
        torc_error_clear(&error);
    }
    char said[128];
    assert_int_equal(say(w.channel, NULL, said), TORC_STATUS_OK);
    end(&w);
}

static void test_ends_of_calls(void **state)
{
    (void)state;
    struct world w;
    char said[128];
    begin(&w, ROUND_ROBIN);
    for (int i = 0; i < 6; i++) {
        w.servers[0].fails = i == 3;
        w.servers[1].fails = i == 3;
        say(w.channel, NULL, said);
    }
    assert_int_equal(w.tally.active, 0);
    assert_int_equal(w.tally.placed, 6);
    assert_true(w.tally.codes[TORC_STATUS_OK] >= 4);
    assert_true(w.tally.codes[TORC_STATUS_UNAVAILABLE] >= 1);
    /* An explanation sends no RPC. */
    int unplaced = w.tally.unplaced;
    torc_result_free(torc_explain(w.channel, "t.Test/Say", NULL));
    assert_true(w.tally.explained > 0);
    assert_int_equal(w.tally.active, 0);
    assert_int_equal(w.tally.unplaced, unplaced);
    assert_int_equal(w.tally.placed, 6);
    end(&w);
}

/* Answers the call `arg` with a message, a load report and a trailer. */
static void reply_later(void *arg)
{
    torc_metadata *trailers = torc_metadata_new();
    torc_metadata_add_string(trailers, "mood", "sleepy");
    torc_server_call_send(arg, "late", 4, 0, 0);
    torc_orca_record(arg, TORC_ORCA_REQUEST_COST, "rows", 1200);
    torc_server_call_finish(arg, TORC_STATUS_OK, NULL, trailers);
    torc_metadata_free(trailers);
}

static torc_testing *late_world; /* of on_late; the test's */

static void on_late(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    torc_testing_after(late_world, 1000, reply_later, call);
}

static int ended; /* RPCs whose on_result came */

/* Stores when the RPC ended, by torc_time_ms, in the int64_t at `arg`; -1 if it failed. */
static void on_result(const torc_result *result, void *arg)
{
    int64_t *at = arg;
    *at = torc_result_code(result) == TORC_STATUS_OK ? torc_time_ms() : -1;
    ended++;
}

static int all_ended(void *arg)
{
    return ended == *(int *)arg;
}

/* One RPC at a time: at the end of an RPC the policy publishes a state, and the channel picks for the next RPC. */
static void test_an_end_lets_the_next_go(void **state)
{
    (void)state;
    struct world w;
    int64_t at[3];
    int n = 3;
    struct torc_handler late = {TORC_SIZE(torc_handler), .unary = on_late};
    w = (struct world){.world = torc_testing_new(1, NULL)};
    late_world = w.world;
    torc_server *server = torc_server_new(NULL, NULL);
    assert_int_equal(torc_server_add_method(server, "/t.Test/Late", &late, NULL), 0);
    assert_int_equal(torc_server_listen(server, addresses[0], torc_credentials_insecure(), NULL, NULL), 0);
    assert_int_equal(torc_server_start(server, NULL), 0);
    w.tally.limit = 1;
    w.channel = channel_with(&w, "{\"childPolicy\":[{\"pick_first\":{}}]}", NULL);
    ended = 0;
    for (int i = 0; i < n; i++)
        assert_int_equal(torc_unary_async(w.channel, "t.Test/Late", "", 0, NULL, on_result, &at[i], NULL, NULL), 0);
    assert_int_equal(torc_testing_run_until(w.world, all_ended, &n, 60000), 0);
    for (int i = 0; i < n; i++)
        assert_int_equal(at[i], 2000 + 1000 * i);
    assert_int_equal(w.tally.placed, 3);
    assert_true(w.tally.unplaced >= 3); /* two RPCs waited, one of them through two picks */
    assert_int_equal(w.tally.active, 0);
    assert_string_equal(w.tally.trailer, "sleepy");
    assert_true(w.tally.rows == 1200);
    assert_int_equal(w.tally.timers, 2); /* 700 ms after the ends of the first two */
    assert_int_equal(torc_testing_advance(w.world, 2000), 0);
    assert_int_equal(w.tally.timers, 3);

    /* An RPC is under way when its channel ends: on_call_end is not called after `destroy`. */
    ended = 0;
    assert_int_equal(torc_unary_async(w.channel, "t.Test/Late", "", 0, NULL, on_result, &at[0], NULL, NULL), 0);
    assert_int_equal(torc_testing_advance(w.world, 100), 0);
    torc_channel_free(w.channel);
    n = 1;
    assert_int_equal(torc_testing_run_until(w.world, all_ended, &n, 60000), 0);
    assert_int_equal(at[0], -1); /* it ended with its channel */
    torc_server_free(server);
    assert_int_equal(torc_testing_free(w.world), 0);
    assert_int_equal(w.tally.destroyed, 1);
}

static int shown; /* the state that the policy "shows" publishes */

static void shows_update(void *state, const torc_lb_endpoint *const *endpoints, size_t n, const char *config_json)
{
    (void)endpoints, (void)n, (void)config_json;
    torc_lb_update_state(state, (enum torc_connectivity)shown, "as it says");
}

/* A state that a policy must not have counts as TRANSIENT_FAILURE, here below weighted_target. */
static void test_states_that_are_none(void **state)
{
    (void)state;
    static const struct torc_lb_factory factory = {.size = sizeof(factory),
                                                   .name = "shows",
                                                   .create = nested_create,
                                                   .update = shows_update,
                                                   .pick = nested_pick,
                                                   .destroy = nested_destroy};
    static const struct torc_lb_factory *const policies[] = {&factory, NULL};
    static const int numbers[] = {TORC_CONNECTIVITY_SHUTDOWN, 5, 1000000, -1};
    struct torc_channel_options o = {
        TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(), .lb_policies = policies,
        .service_config_json = "{\"loadBalancingConfig\":[{\"weighted_target_experimental\":{\"targets\":{\"t\":"
                               "{\"weight\":1,\"childPolicy\":[{\"shows\":{}}]}}}}]}"};
    char said[128];
    torc_testing *world = torc_testing_new(1, NULL);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        nested.made = 0;
        shown = numbers[i];
        torc_channel *channel = torc_channel_new(NULL, addresses[0], &o, NULL);
        assert_int_equal(say(channel, NULL, said), TORC_STATUS_UNAVAILABLE);
        assert_non_null(strstr(said, "as it says"));
        torc_channel_free(channel);
    }
    assert_int_equal(torc_testing_free(world), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_child_by_config),
        cmocka_unit_test(test_child_config_is_refused),
        cmocka_unit_test(test_policies_of_the_application_as_children),
        cmocka_unit_test(test_config_is_checked),
        cmocka_unit_test(test_states_that_are_none),
        cmocka_unit_test(test_ends_of_calls),
        cmocka_unit_test(test_an_end_lets_the_next_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
