/* Unused clusters in the store of loads are bounded. */
#include "support/cmocka.h"

#include "xds/load/load_store_internal.h"

/* Clusters out of use keep counts that were not reported yet, at most 4,096 clusters. */
static void idle_clusters_are_bounded(void **state)
{
    (void)state;
    struct tc_load_store *s = tc_load_store_new(NULL, NULL);
    struct tc_rstr *category = tc_rstr_str("throttle");
    for (unsigned i = 0; i < 5000; i++) {
        struct tc_rstr *name = tc_rstr_printf("cluster-%u", i);
        struct tc_load_cluster *c = tc_load_cluster_get(s, name, NULL, 0);
        tc_load_cluster_drop(c, category, 1);
        tc_load_cluster_unuse(c);
        tc_load_cluster_unref(c);
        tc_rstr_unref(name);
        assert_int_equal(s->n_idle, TC_MIN(i + 1, 4096u));
    }
    tc_rstr_unref(category);
    tc_load_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(idle_clusters_are_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
