/* The health of an adopted subchannel, which the child has released and xds_override_host keeps: xds_override_host
 * watches the health only if the child did. Over fakes/lb. */
#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/mem.h"
#include "lb/session_affinity.h"

#define A "1.1.1.1:1"
#define B "2.2.2.2:2"

/* Endpoint A, which a session uses, moves to priority q, which is not in use: the child releases A's subchannel, and
 * xds_override_host adopts it. Asserts whether the health of that subchannel was watched by then. child: the policy of
 * each priority. */
static void adopt(const char *child, bool watched)
{
    struct fake_lb *f = fake_lb_new("xds_override_host");
    struct tc_session session = {.n = 0};
    static const char *const lists[][2] = {{A, ""}, {B, A}};
    for (unsigned i = 0; i < TC_ARRAY_LEN(lists); i++) {
        char *json = tc_asprintf("{'childPolicy': [{'priority': {'priorities': ['p', 'q'], 'children': "
                                 "{'p': {'config': [{'%s': {}}]}, 'q': {'config': [{'%s': {}}]}}}}]}",
                                 child, child);
        struct tc_endpoints *tree = fake_lb_endpoint_tree("p", lists[i][0], "q", lists[i][1], NULL);
        assert_true(fake_lb_update(f, tree, fake_lb_config(f, "xds_override_host", json, NULL), NULL));
        tc_free(json);
        if (i > 0)
            break;
        f->args.session = &session;
        fake_lb_pick(f);
        if (fake_lb_state(f, A) == TORC_CONNECTIVITY_IDLE)
            fake_lb_set(f, A, TORC_CONNECTIVITY_CONNECTING);
        fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
        assert_string_equal(fake_lb_pick(f), A);
        f->args.session = NULL;
    }
    assert_int_equal(fake_lb_count(f, A), 1);
    assert_int_equal(fake_lb_health_watched(f, A), watched);
    /* If the watch were still the child's, this would call into the child, which is gone. */
    fake_lb_set_health(f, A, TORC_STATUS_UNAVAILABLE, "sick");
    struct tc_addr a;
    assert_int_equal(tc_addr_parse(&a, tc_slice_str(A)), 0);
    session = (struct tc_session){.addrs = &a, .n = 1};
    f->args.session = &session;
    assert_string_equal(fake_lb_pick(f), A);
    tc_addr_fini(&a);
    fake_lb_free(f);
}

static void a_child_that_watches_no_health(void **state)
{
    (void)state;
    adopt("pick_first", false);
}

/* xds_override_host takes over the child's watch and ignores the changes, so that no change reaches a child that is
 * gone. */
static void a_child_that_watches_health(void **state)
{
    (void)state;
    adopt("round_robin", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_that_watches_no_health),
        cmocka_unit_test(a_child_that_watches_health),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
