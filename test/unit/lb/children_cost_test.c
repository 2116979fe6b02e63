/* The cost of one child's event in a policy with many children.
 *
 * The cost is counted, not timed: the bytes that tc_malloc and tc_calloc allocate, and the calls of functions that a
 * walk over the children would call for each child (timers, lb/index_set.h, lb/weight_tree.h, these two allocations).
 * The program is linked with these functions wrapped: each wrapper adds to `spent`. tc_realloc is not counted.
 *
 * A case_fn is measured with FEW and with MANY children: an event may cost twice as much with MANY, which leaves room
 * for a logarithm. Two tests measure nothing: they assert which children end, and how many reports follow when many
 * children report together. The policies run over fakes/lb, on the test's thread and in virtual time. Child i is named
 * names[i] and has the one address addresses[i] (in endpoint_flaps it is an endpoint without a name); main owns both
 * lists. */
#include <stdio.h>

#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/mem.h"
#include "lb/index_set.h"
#include "lb/policies/pick_first.h"
#include "lb/policies/priority.h"
#include "lb/policies/weighted_target.h"
#include "lb/weight_tree.h"
#include "xds/lb/policies.h"

enum { FEW = 100, MANY = 1600, EVENTS = 50 };

static struct cost {
    size_t calls, bytes;
} spent;

void __real_tc_timer_start(struct tc_timer *timer, uint64_t delay_ms);
void __wrap_tc_timer_start(struct tc_timer *timer, uint64_t delay_ms);
void __wrap_tc_timer_start(struct tc_timer *timer, uint64_t delay_ms)
{
    spent.calls++;
    __real_tc_timer_start(timer, delay_ms);
}

void __real_tc_timer_stop(struct tc_timer *timer);
void __wrap_tc_timer_stop(struct tc_timer *timer);
void __wrap_tc_timer_stop(struct tc_timer *timer)
{
    spent.calls++;
    __real_tc_timer_stop(timer);
}

uint32_t __real_tc_index_set_next(const struct tc_index_set *s, uint32_t i);
uint32_t __wrap_tc_index_set_next(const struct tc_index_set *s, uint32_t i);
uint32_t __wrap_tc_index_set_next(const struct tc_index_set *s, uint32_t i)
{
    spent.calls++;
    return __real_tc_index_set_next(s, i);
}

void __real_tc_weight_tree_add(struct tc_weight_tree *t, size_t i, int64_t weight);
void __wrap_tc_weight_tree_add(struct tc_weight_tree *t, size_t i, int64_t weight);
void __wrap_tc_weight_tree_add(struct tc_weight_tree *t, size_t i, int64_t weight)
{
    spent.calls++;
    __real_tc_weight_tree_add(t, i, weight);
}

void *__real_tc_malloc(size_t size);
void *__wrap_tc_malloc(size_t size);
void *__wrap_tc_malloc(size_t size)
{
    spent.calls++;
    spent.bytes += size;
    return __real_tc_malloc(size);
}

void *__real_tc_calloc(size_t n, size_t size);
void *__wrap_tc_calloc(size_t n, size_t size);
void *__wrap_tc_calloc(size_t n, size_t size)
{
    spent.calls++;
    spent.bytes += n * size;
    return __real_tc_calloc(n, size);
}

static struct tc_rstr *names[MANY];
static char *addresses[MANY];

/* Returns the tree of the first n children's endpoints, one reference. */
static struct tc_endpoints *make_tree(size_t n)
{
    struct tc_endpoints_child *children = tc_calloc(n, sizeof(*children));
    for (size_t i = 0; i < n; i++)
        children[i] = (struct tc_endpoints_child){tc_rstr_ref(names[i]), fake_lb_endpoints(addresses[i])};
    return tc_endpoints_take_children(children, n);
}

/* Each of the *_config functions is a make_config_fn (below). */
static struct tc_lb_config *priority_config(struct tc_lb_config *child, size_t n)
{
    struct tc_child_config list[MANY];
    for (size_t i = 0; i < n; i++)
        list[i] = (struct tc_child_config){.name = names[i], .config = child};
    return tc_child_configs_new(&tc_priority_factory, list, n);
}

static struct tc_lb_config *weighted_config(struct tc_lb_config *child, size_t n)
{
    struct tc_child_config list[MANY];
    for (size_t i = 0; i < n; i++)
        list[i] = (struct tc_child_config){.name = names[i], .weight = 1, .config = child};
    return tc_child_configs_new(&tc_weighted_target_factory, list, n);
}

/* xds_cluster_manager hands each child the whole list. Therefore each child is a weighted_target that takes one name of
 * the list. */
static struct tc_lb_config *manager_config(struct tc_lb_config *child, size_t n)
{
    struct tc_child_config list[MANY] = {0};
    for (size_t i = 0; i < n; i++) {
        struct tc_child_config target = {.name = names[i], .weight = 1, .config = child};
        list[i] = (struct tc_child_config){.name = names[i],
                                           .config = tc_child_configs_new(&tc_weighted_target_factory, &target, 1)};
    }
    struct tc_lb_config *config = tc_child_configs_new(&tc_cluster_manager_factory, list, n);
    for (size_t i = 0; i < n; i++)
        tc_lb_config_unref(list[i].config);
    return config;
}

/* Returns a config with the first n children, one reference. `child` (borrowed) is the config of each of them, in
 * manager_config the config of each one's only target. */
typedef struct tc_lb_config *make_config_fn(struct tc_lb_config *child, size_t n);

/* Returns the policy after an update to n children; the `child` of make_config is pick_first. The caller frees it with
 * fake_lb_free. */
static struct fake_lb *open_policy(const char *policy, make_config_fn *make_config, size_t n)
{
    struct fake_lb *f = fake_lb_new(policy);
    struct tc_lb_config *child = tc_pick_first_config_new(false);
    fake_lb_update(f, make_tree(n), make_config(child, n), NULL);
    tc_lb_config_unref(child);
    return f;
}

/* A case opens a policy with n children, brings the policy to where the events begin, zeroes `spent`, makes EVENTS
 * events (each one change of state, or a round of several), and returns what they spent together. */
typedef struct cost case_fn(size_t n);

static void assert_same_cost(const char *name, case_fn *run)
{
    struct cost few = run(FEW), many = run(MANY);
    printf("%s: with %d children %zu calls and %zu bytes an event, with %d children %zu and %zu\n", name, FEW,
           few.calls / EVENTS, few.bytes / EVENTS, MANY, many.calls / EVENTS, many.bytes / EVENTS);
    assert_in_range(many.calls, 1, few.calls * 2);
    assert_in_range(many.bytes, 0, few.bytes * 2);
}

/* Lets all n children fail, in order, since priority makes a child only when the one before has failed. */
static void fail_all(struct fake_lb *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fake_lb_set_at(f, i, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_int_equal(f->subchannels.len, n);
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
}

/* The clusters of an aggregate that fail one after another: each failure creates the next child. */
static struct cost fail_one_after_another(size_t n)
{
    struct fake_lb *f = open_policy("priority", priority_config, n);
    for (size_t i = 0; i < n - EVENTS; i++)
        fake_lb_set_at(f, i, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    spent = (struct cost){0};
    for (size_t i = n - EVENTS; i < n; i++)
        fake_lb_set_at(f, i, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    struct cost cost = spent;
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    fake_lb_free(f);
    return cost;
}

static void priorities_that_fail_one_after_another(void **state)
{
    (void)state;
    assert_same_cost("priorities fail one after another", fail_one_after_another);
}

/* The first child connects, which deactivates all others. Then the first child's connection is lost, and the next
 * attempt fails, which reactivates the others. */
static struct cost first_comes_and_goes(size_t n)
{
    struct fake_lb *f = open_policy("priority", priority_config, n);
    fail_all(f, n);
    spent = (struct cost){0};
    for (size_t i = 0; i < EVENTS; i++) {
        fake_lb_set(f, addresses[0], TORC_CONNECTIVITY_IDLE);
        fake_lb_set(f, addresses[0], TORC_CONNECTIVITY_READY);
        assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
        fake_lb_set(f, addresses[0], TORC_CONNECTIVITY_IDLE);
        assert_string_equal(fake_lb_pick(f), "QUEUE");
        fake_lb_set(f, addresses[0], TORC_CONNECTIVITY_TRANSIENT_FAILURE);
        assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    }
    struct cost cost = spent;
    assert_int_equal(f->subchannels.len, n);
    fake_lb_free(f);
    return cost;
}

static void the_first_priority_comes_and_goes(void **state)
{
    (void)state;
    assert_same_cost("the first priority comes and goes", first_comes_and_goes);
}

/* Only deactivated children are ended, after their retention time. */
static void deactivated_priorities_end(void **state)
{
    (void)state;
    struct fake_lb *f = open_policy("priority", priority_config, FEW);
    fail_all(f, FEW);
    fake_lb_set(f, addresses[FEW / 2], TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, addresses[FEW / 2], TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), addresses[FEW / 2]);
    tc_loop_advance(f->loop, 500000);
    fake_lb_set(f, addresses[0], TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, addresses[0], TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), addresses[0]);
    tc_loop_advance(f->loop, 400000);
    assert_int_equal(f->subchannels.len, FEW / 2 + 1);
    tc_loop_advance(f->loop, 499999);
    assert_int_equal(f->subchannels.len, FEW / 2 + 1);
    tc_loop_advance(f->loop, 1);
    assert_int_equal(f->subchannels.len, 1);
    fake_lb_free(f);
}

static struct cost become_ready(size_t n)
{
    struct fake_lb *f = open_policy("weighted_target", weighted_config, n);
    for (size_t i = 0; i < n - EVENTS; i++)
        fake_lb_set_at(f, i, TORC_CONNECTIVITY_READY);
    spent = (struct cost){0};
    for (size_t i = n - EVENTS; i < n; i++)
        fake_lb_set_at(f, i, TORC_CONNECTIVITY_READY);
    struct cost cost = spent;
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    fake_lb_free(f);
    return cost;
}

static void localities_that_become_ready_one_a_turn(void **state)
{
    (void)state;
    assert_same_cost("localities become READY one a turn", become_ready);
}

/* All localities fail. One of them connects and is lost again and again, which changes the policy's state. Others only
 * fail again. */
static struct cost fail_again(size_t n)
{
    struct fake_lb *f = open_policy("weighted_target", weighted_config, n);
    fail_all(f, n);
    spent = (struct cost){0};
    for (size_t i = 0; i < EVENTS; i++) {
        fake_lb_set(f, addresses[i], TORC_CONNECTIVITY_IDLE);
        fake_lb_set(f, addresses[i], TORC_CONNECTIVITY_TRANSIENT_FAILURE);
        fake_lb_set(f, addresses[n - 1], TORC_CONNECTIVITY_IDLE);
        fake_lb_set(f, addresses[n - 1], TORC_CONNECTIVITY_READY);
        assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
        assert_string_equal(fake_lb_pick(f), addresses[n - 1]);
        fake_lb_set(f, addresses[n - 1], TORC_CONNECTIVITY_IDLE);
        assert_string_equal(fake_lb_pick(f), "QUEUE");
        fake_lb_set(f, addresses[n - 1], TORC_CONNECTIVITY_TRANSIENT_FAILURE);
        assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    }
    struct cost cost = spent;
    fake_lb_free(f);
    return cost;
}

static void localities_that_fail_again(void **state)
{
    (void)state;
    assert_same_cost("localities fail again", fail_again);
}

/* Reports of many localities together are published in a few reports of the policy, not one for each. */
static void localities_that_change_in_one_turn(void **state)
{
    (void)state;
    struct fake_lb *f = open_policy("weighted_target", weighted_config, MANY);
    for (size_t i = 0; i < MANY; i++)
        fake_lb_set_at(f, i, TORC_CONNECTIVITY_READY);
    for (size_t i = 0; i < MANY - 1; i++)
        fake_lb_queue_at(f, i, TORC_CONNECTIVITY_IDLE);
    unsigned before = f->reports;
    tc_loop_drain(f->loop);
    assert_in_range(f->reports - before, 1, 16); /* not MANY - 1 */
    assert_string_equal(fake_lb_pick(f), addresses[MANY - 1]);
    fake_lb_free(f);
}

static struct cost clusters_change(size_t n)
{
    struct fake_lb *f = open_policy("xds_cluster_manager_experimental", manager_config, n);
    for (size_t i = 0; i < n - EVENTS; i++)
        fake_lb_set_at(f, i, TORC_CONNECTIVITY_READY);
    spent = (struct cost){0};
    for (size_t i = n - EVENTS; i < n; i++)
        fake_lb_set_at(f, i, TORC_CONNECTIVITY_READY);
    struct cost cost = spent;
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    fake_lb_free(f);
    return cost;
}

static void clusters_that_change(void **state)
{
    (void)state;
    assert_same_cost("clusters become READY", clusters_change);
}

/* One endpoint of weighted_round_robin is lost and comes back, again and again. With FEW endpoints each change makes a
 * new scheduler at once; with MANY (more than SCHEDULE_AT_ONCE) the next scheduler waits. */
static struct cost endpoint_flaps(size_t n)
{
    struct fake_lb *f = fake_lb_new("weighted_round_robin");
    struct tc_buf list = {0};
    for (size_t i = 0; i < n; i++)
        tc_buf_printf(&list, "%s ", addresses[i]);
    assert_true(fake_lb_update(f, fake_lb_endpoints(tc_buf_cstr(&list)),
                               fake_lb_config(f, "weighted_round_robin", "{}", NULL), NULL));
    tc_buf_fini(&list);
    while (f->subchannels.len < n) {
        tc_loop_advance(f->loop, 1);
        tc_loop_drain(f->loop);
    }
    for (size_t i = 0; i < n; i++)
        fake_lb_set_at(f, i, TORC_CONNECTIVITY_READY);
    spent = (struct cost){0};
    for (size_t i = 0; i < EVENTS; i++) {
        fake_lb_set(f, addresses[0], TORC_CONNECTIVITY_IDLE);
        fake_lb_set(f, addresses[0], TORC_CONNECTIVITY_READY);
    }
    struct cost cost = spent;
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    fake_lb_free(f);
    return cost;
}

static void endpoints_that_flap(void **state)
{
    (void)state;
    assert_same_cost("an endpoint of weighted_round_robin flaps", endpoint_flaps);
}

int main(void)
{
    for (size_t i = 0; i < MANY; i++) {
        names[i] = tc_rstr_printf("child%zu", i);
        addresses[i] = tc_asprintf("10.0.%zu.%zu:80", i / 250, i % 250 + 1);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(priorities_that_fail_one_after_another),
        cmocka_unit_test(the_first_priority_comes_and_goes),
        cmocka_unit_test(deactivated_priorities_end),
        cmocka_unit_test(localities_that_become_ready_one_a_turn),
        cmocka_unit_test(localities_that_fail_again),
        cmocka_unit_test(localities_that_change_in_one_turn),
        cmocka_unit_test(clusters_that_change),
        cmocka_unit_test(endpoints_that_flap),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (size_t i = 0; i < MANY; i++) {
        tc_rstr_unref(names[i]);
        tc_free(addresses[i]);
    }
    return failed;
}
