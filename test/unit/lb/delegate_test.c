/* lb/delegate: an operation that a helper's table leaves NULL is performed by the nearest helper above that has it.
 * Without a log_name, log lines begin with the target. */
#include "support/cmocka.h"

#include "lb/delegate.h"

static const struct tc_lb_helper *asked; /* the helper whose operation ran last */

static void on_reresolution(struct tc_lb_helper *h)
{
    asked = h;
}

static void on_update_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                            struct tc_picker *picker)
{
    (void)state, (void)status;
    tc_picker_unref(picker);
    asked = h;
}

static struct tc_slice cluster_name(const struct tc_lb_helper *h)
{
    (void)h;
    return tc_slice_str("orders");
}

static void an_operation_goes_up_to_who_has_it(void **state)
{
    (void)state;
    static const struct tc_lb_helper_ops channel_ops = {.update_state = on_update_state,
                                                        .request_reresolution = on_reresolution};
    static const struct tc_lb_helper_ops cluster_ops = {.update_state = on_update_state, .log_name = cluster_name};
    static const struct tc_lb_helper_ops none;
    const struct tc_lb_env env = {.target = tc_slice_str("xds:///shop")};
    struct tc_lb_helper channel = {.ops = &channel_ops, .env = &env}, above, cluster, child;
    tc_lb_helper_init(&above, &none, &channel);
    tc_lb_helper_init(&cluster, &cluster_ops, &above);
    tc_lb_helper_init(&child, &none, &cluster);
    assert_ptr_equal(child.env, &env);
    tc_lb_request_reresolution(&child);
    assert_ptr_equal(asked, &channel);
    tc_lb_update_state(&child, TORC_CONNECTIVITY_READY, NULL, tc_picker_queue());
    assert_ptr_equal(asked, &cluster);
    tc_lb_update_state(&above, TORC_CONNECTIVITY_READY, NULL, tc_picker_queue());
    assert_ptr_equal(asked, &channel);
    assert_true(tc_slice_eq_str(tc_lb_log_name(&child), "orders"));
    assert_true(tc_slice_eq_str(tc_lb_log_name(&above), "xds:///shop"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_operation_goes_up_to_who_has_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
