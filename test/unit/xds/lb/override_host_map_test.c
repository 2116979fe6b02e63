/* The text of an endpoint's addresses, as a session's cookie has it. */
#include "xds/lb/override_host_map.h"

#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/buf.h"

/* Asserts the text of an endpoint with these addresses while its address `first` is in use. */
static void assert_text(const char *addrs, size_t first, const char *expected)
{
    struct tc_endpoints *list = fake_lb_endpoints(addrs);
    struct tc_arena arena;
    tc_arena_init(&arena, 0, 0);
    struct tc_slice text = tc_override_endpoint_text(list->at[0], &list->at[0]->addrs[first], &arena);
    assert_true(tc_slice_eq_str(text, expected));
    tc_arena_fini(&arena);
    tc_endpoints_unref(list);
}

static void the_address_in_use_comes_first(void **state)
{
    (void)state;
    assert_text("1.1.1.1:1", 0, "1.1.1.1:1");
    assert_text("1.1.1.1:1,2.2.2.2:2,3.3.3.3:3", 0, "1.1.1.1:1,2.2.2.2:2,3.3.3.3:3");
    assert_text("1.1.1.1:1,2.2.2.2:2,3.3.3.3:3", 1, "2.2.2.2:2,1.1.1.1:1,3.3.3.3:3");
}

/* A cookie that names a Unix socket could not be followed. */
static void unix_sockets_are_left_out(void **state)
{
    (void)state;
    assert_text("unix:/a", 0, "");
    assert_text("unix:/a,1.1.1.1:1,2.2.2.2:2", 0, "1.1.1.1:1,2.2.2.2:2");
    assert_text("unix:/a,1.1.1.1:1,2.2.2.2:2", 2, "2.2.2.2:2,1.1.1.1:1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_address_in_use_comes_first),
        cmocka_unit_test(unix_sockets_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
