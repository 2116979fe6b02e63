/* The example policy of docs/internals/adding-a-policy.md: the page shows what stands between the two marks, and
 * test/lint/example_policy.py compares page and test.
 *
 * The policy has a pick_first for each endpoint (lb/policies/endpoint_child.h), in the order of the list. An update
 * gives the pick_first at place i the new endpoint i. A pick_first that reports IDLE is told to connect. After every
 * other report random_reconcile publishes the policy's state; for the reports from inside an update it does so once, at
 * the update's end. An update without a list changes nothing while there are endpoints. Loop thread only, except
 * random_parse: any thread. The tests below the marks run the policy over fakes/lb. */
#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "lb/registry.h"

/* example: begin */
#include "base/mem.h"
#include "base/vec.h"
#include "lb/delegate.h"
#include "lb/policies/endpoint_child.h"
#include "lb/policies/pick_first.h"

/* random: each RPC goes to any READY endpoint. Stays connected to all of them. */

struct random_endpoint {
    struct tc_endpoint_child *child; /* owned */
    enum torc_connectivity state;    /* of `child`; CONNECTING before its first report */
    struct tc_picker *picker;        /* of `child`, a reference; NULL before its first report */
};

struct random_policy {
    struct tc_lb_policy base;                   /* first: the callbacks get this */
    TC_VEC(struct random_endpoint *) endpoints; /* owned, in the order of the list */
    struct tc_lb_config *pick_first_config;     /* a reference */
    struct tc_status last_error;                /* of the last child that failed, or of an empty list */
    bool updating;                              /* in an update, or after the shutdown: nothing is reported */
};

/* --- picker: immutable, and may outlive the policy --- */

struct random_picker {
    struct tc_picker base;
    size_t n;               /* not 0 */
    struct tc_picker *at[]; /* references of the READY children's pickers */
};

static enum tc_pick_kind random_pick(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct random_picker *p = TC_CONTAINER_OF(picker, struct random_picker, base);
    return tc_picker_pick(p->at[args->random % p->n], args, out);
}

static void random_picker_free(struct tc_picker *picker)
{
    struct random_picker *p = TC_CONTAINER_OF(picker, struct random_picker, base);
    for (size_t i = 0; i < p->n; i++)
        tc_picker_unref(p->at[i]);
    tc_free(p);
}

static const struct tc_picker_ops random_picker_ops = {random_pick, random_picker_free};

/* `n` is the number of READY endpoints, which must not be 0. Returns one reference. */
static struct tc_picker *random_picker_new(const struct random_policy *r, size_t n)
{
    struct random_picker *p = tc_calloc(1, sizeof(*p) + n * sizeof(struct tc_picker *));
    p->base.ops = &random_picker_ops;
    tc_lref_init(&p->base.ref);
    for (size_t i = 0; i < r->endpoints.len; i++)
        if (r->endpoints.data[i]->state == TORC_CONNECTIVITY_READY)
            p->at[p->n++] = tc_picker_ref(r->endpoints.data[i]->picker);
    return &p->base;
}

/* --- states: children report facts, random_reconcile() publishes what follows from all of them --- */

static void random_reconcile(struct random_policy *r)
{
    static const struct tc_status ok;
    size_t counts[TORC_CONNECTIVITY_SHUTDOWN + 1] = {0};
    if (r->updating || !r->base.helper)
        return;
    for (size_t i = 0; i < r->endpoints.len; i++)
        counts[r->endpoints.data[i]->state]++;
    if (counts[TORC_CONNECTIVITY_READY])
        tc_lb_update_state(r->base.helper, TORC_CONNECTIVITY_READY, &ok,
                           random_picker_new(r, counts[TORC_CONNECTIVITY_READY]));
    else if (counts[TORC_CONNECTIVITY_CONNECTING] || counts[TORC_CONNECTIVITY_IDLE])
        tc_lb_update_state(r->base.helper, TORC_CONNECTIVITY_CONNECTING, &ok, tc_picker_queue());
    else
        tc_lb_update_state(r->base.helper, TORC_CONNECTIVITY_TRANSIENT_FAILURE, &r->last_error,
                           tc_picker_fail(&r->last_error));
}

static void on_random_endpoint_state(void *arg, struct tc_endpoint_child *child, enum torc_connectivity state,
                                     const struct tc_status *status, struct tc_picker *picker)
{
    struct random_policy *r = arg;
    struct random_endpoint *e = r->endpoints.data[child->index];
    tc_picker_unref(e->picker);
    e->picker = picker; /* takes over the reference */
    e->state = state;
    if (state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        tc_status_set(&r->last_error, tc_status_ref(status));
    if (state == TORC_CONNECTIVITY_IDLE)
        tc_endpoint_child_exit_idle(child); /* comes back here with CONNECTING */
    else
        random_reconcile(r);
}

/* --- the operations --- */

static void random_endpoint_free(struct random_endpoint *e)
{
    tc_endpoint_child_free(e->child);
    tc_picker_unref(e->picker);
    tc_free(e);
}

/* Returns the endpoint at place i, which is made if i is the number of endpoints. */
static struct random_endpoint *random_endpoint_at(struct random_policy *r, size_t i)
{
    if (i < r->endpoints.len)
        return r->endpoints.data[i];
    struct random_endpoint *e = *tc_vec_push(&r->endpoints) = TC_NEW(struct random_endpoint);
    e->state = TORC_CONNECTIVITY_CONNECTING;
    e->child = tc_endpoint_child_new(r->base.helper, on_random_endpoint_state, r);
    e->child->index = (uint32_t)i;
    return e;
}

static struct tc_status random_update(struct tc_lb_policy *policy, const struct tc_lb_update *update)
{
    struct random_policy *r = TC_CONTAINER_OF(policy, struct random_policy, base);
    if (!update->endpoints && r->endpoints.len) /* a failed resolution: endpoints that are known stay in use */
        return (struct tc_status){0};
    size_t n = update->endpoints ? update->endpoints->n : 0;
    r->updating = true; /* children report from inside their updates: one report for all of them */
    for (size_t i = 0; i < n; i++)
        tc_endpoint_child_update(random_endpoint_at(r, i)->child, update->endpoints->at[i], r->pick_first_config);
    while (r->endpoints.len > n)
        random_endpoint_free(r->endpoints.data[--r->endpoints.len]);
    if (!n)
        tc_status_set(&r->last_error, update->endpoints_error ? tc_status_ref(update->endpoints_error)
                                                              : tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB,
                                                                               "empty address list"));
    r->updating = false;
    random_reconcile(r);
    return n ? (struct tc_status){0} : tc_status_ref(&r->last_error);
}

static void random_exit_idle(struct tc_lb_policy *policy)
{
    (void)policy; /* the policy is never IDLE */
}

static void random_reset_backoff(struct tc_lb_policy *policy)
{
    struct random_policy *r = TC_CONTAINER_OF(policy, struct random_policy, base);
    for (size_t i = 0; i < r->endpoints.len; i++)
        tc_endpoint_child_reset_backoff(r->endpoints.data[i]->child);
}

/* May be called from inside a report, so tc_lb_policy_end frees the memory by a task. May be called again before that
 * task runs. */
static void random_shutdown(struct tc_lb_policy *policy)
{
    struct random_policy *r = TC_CONTAINER_OF(policy, struct random_policy, base);
    if (!r->base.helper)
        return;
    r->updating = true; /* nothing is reported from here on */
    while (r->endpoints.len)
        random_endpoint_free(r->endpoints.data[--r->endpoints.len]);
    tc_vec_fini(&r->endpoints);
    tc_lb_config_unref(r->pick_first_config);
    tc_status_fini(&r->last_error);
    tc_lb_policy_end(&r->base);
}

static const struct tc_lb_policy_ops random_ops = {
    .update = random_update,
    .exit_idle = random_exit_idle,
    .reset_backoff = random_reset_backoff,
    .shutdown = random_shutdown,
};

static struct tc_lb_policy *random_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    struct random_policy *r = TC_NEW(struct random_policy);
    r->base = (struct tc_lb_policy){.ops = &random_ops, .factory = factory, .helper = helper};
    r->pick_first_config = tc_pick_first_config_new_petiole();
    return &r->base;
}

/* --- config: {"random": {}} has no settings --- */

static struct tc_lb_config *random_parse(const struct tc_lb_factory *factory, const json_t *json,
                                         const struct tc_lb_registry *registry, unsigned depth,
                                         struct tc_validation_errors *errors)
{
    (void)json, (void)registry, (void)depth, (void)errors;
    struct tc_lb_config *config = TC_NEW(struct tc_lb_config);
    config->factory = factory;
    tc_ref_init(&config->ref);
    return config;
}

const struct tc_lb_factory tc_random_factory = {
    .name = "random",
    .create = random_create,
    .parse_config = random_parse,
};
/* example: end */

#define A "1.1.1.1:1"
#define B "2.2.2.2:2"

static int setup(void **state)
{
    struct fake_lb *f = fake_lb_new(NULL);
    assert_int_equal(tc_lb_registry_add(f->registry, &tc_random_factory), 0);
    f->policy = tc_lb_create(tc_lb_registry_find(f->registry, tc_slice_str("random")), &f->helper);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fake_lb_free(*state);
    return 0;
}

static void picks_are_random_among_ready_endpoints(void **state)
{
    struct fake_lb *f = *state;
    fake_lb_update(f, fake_lb_endpoints(A " " B), fake_lb_config(f, "random", "{}", NULL), NULL);
    assert_connects(f, A " " B " ");
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    for (f->args.random = 0; f->args.random < 4; f->args.random++)
        assert_string_equal(fake_lb_pick(f), A);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    f->args.random = 6;
    assert_string_equal(fake_lb_pick(f), A);
    f->args.random = 7;
    assert_string_equal(fake_lb_pick(f), B);
    fake_lb_update(f, fake_lb_endpoints(A), fake_lb_config(f, "random", "{}", NULL), NULL);
    assert_string_equal(fake_lb_pick(f), A);
    assert_int_equal(fake_lb_count(f, NULL), 1);
}

static void failures_and_no_endpoints(void **state)
{
    struct fake_lb *f = *state;
    struct tc_status error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_RESOLVER, "no such name");
    assert_false(fake_lb_update_error(f, &error, fake_lb_config(f, "random", "{}", NULL)));
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_string_equal(fake_lb_pick_error(f), "no such name");
    fake_lb_update(f, fake_lb_endpoints(A), fake_lb_config(f, "random", "{}", NULL), NULL);
    fake_lb_set_failed(f, A, "it is down");
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_non_null(strstr(fake_lb_pick_error(f), "it is down"));
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), A);
    /* A failed resolution changes nothing: the known endpoint stays in use. */
    assert_true(fake_lb_update_error(f, &error, fake_lb_config(f, "random", "{}", NULL)));
    tc_status_fini(&error);
    assert_string_equal(fake_lb_pick(f), A);
    assert_false(fake_lb_update(f, fake_lb_endpoints(""), fake_lb_config(f, "random", "{}", NULL), NULL));
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_string_equal(fake_lb_pick_error(f), "empty address list");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(picks_are_random_among_ready_endpoints, setup, teardown),
        cmocka_unit_test_setup_teardown(failures_and_no_endpoints, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
