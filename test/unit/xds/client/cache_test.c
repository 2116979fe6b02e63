/* The log of resource states (module "resource"): each change is logged at INFO. A value or an error that equals the
 * last one is logged at DEBUG.
 *
 * kits/xds gives the client over a scripted transport; the test is the server. Each test but the first sets the levels
 * of the process's log; tear_down turns the log off. Everything runs on the test's thread, on virtual time. */
#include <torc/log.h>

#include "support/cmocka.h"
#include "support/kits/xds.h"

static struct kit_xds k;
static struct kit_xds_watcher w;
static struct tc_buf lines; /* the messages of the log since the last assert_lines, one a line */

static void on_line(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    (void)level;
    (void)module;
    (void)arg;
    tc_buf_printf(&lines, "%s\n", message);
}

static int set_up(void **state)
{
    (void)state;
    torc_log_set_sink(on_line, NULL);
    kit_xds_init(&k, NULL);
    kit_xds_watcher_init(&w);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    torc_log_set_levels("none");
    kit_xds_fini(&k);
    kit_xds_watcher_fini(&w);
    torc_log_set_sink(NULL, NULL);
    tc_buf_fini(&lines);
    return 0;
}

static void assert_lines(const char *wanted)
{
    assert_string_equal(tc_buf_cstr(&lines), wanted);
    lines.len = 0;
}

static void watch(const struct tc_xds_resource_type *type, const char *name)
{
    kit_xds_watch(&k, type, name, &w);
    tc_loop_drain(k.loop);
}

static void a_change_of_state_is_a_line(void **state)
{
    (void)state;
    assert_int_equal(torc_log_set_levels("none,resource=info"), 0);
    watch(&kit_xds_cds, "a");
    assert_lines("Cluster a: requested\n");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|x", NULL);
    assert_lines("Cluster a: acked version 1\n");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "2", "n2", "a|x", NULL); /* the same value */
    assert_lines("");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "3", "n3", "a|bad", NULL);
    assert_lines("Cluster a: NACKed: invalid xDS Cluster resource: field value: is bad; field other: is bad too (node "
                 "ID:node1); stays in use with version 2\n");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "4", "n4", "a|bad", NULL); /* the same error */
    assert_lines("");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "5", "n5", NULL);
    assert_lines("Cluster a: does not exist: xDS Cluster resource was deleted by server s1 (node ID:node1); stays in "
                 "use with version 2\n");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "6", "n6", "a|y", NULL);
    assert_lines("Cluster a: acked version 6\n");
}

static void what_is_unchanged_is_logged_at_debug(void **state)
{
    (void)state;
    assert_int_equal(torc_log_set_levels("none,resource=debug"), 0);
    watch(&kit_xds_cds, "a");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|x", NULL);
    kit_xds_respond(&k, k.server, &kit_xds_cds, "2", "n2", "a|x", NULL);
    assert_lines("Cluster a: requested\nCluster a: acked version 1\nCluster a: acked version 2\n");
}

static void a_resource_that_does_not_come(void **state)
{
    (void)state;
    assert_int_equal(torc_log_set_levels("none,resource=info"), 0);
    watch(&kit_xds_eds, "a");
    tc_loop_advance(k.loop, 15000);
    assert_lines("ClusterLoadAssignment a: requested\n"
                 "ClusterLoadAssignment a: does not exist: xDS ClusterLoadAssignment resource does not exist "
                 "(node ID:node1)\n");
}

/* Must be the first test: no other test has set the levels yet. */
static void nothing_is_logged_by_default(void **state)
{
    (void)state;
    watch(&kit_xds_cds, "a");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|x", NULL);
    assert_lines("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_logged_by_default, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_change_of_state_is_a_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_unchanged_is_logged_at_debug, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_resource_that_does_not_come, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
