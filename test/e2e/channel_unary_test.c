/* Unary calls over real sockets: what comes back, and what a failure says. */
#include <stdio.h>
#include <string.h>

#include <torc/torc.h>

#include "support/backend_kit.h"
#include "support/cmocka.h"

static struct tc_kit *kit;

static int setup(void **state)
{
    (void)state;
    kit = tc_kit_new(3, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tc_kit_free(kit);
    return 0;
}

static torc_runtime *caller_runtime(void)
{
    struct torc_runtime_options o;
    torc_runtime_options_init(&o);
    o.mode = TORC_RUNTIME_CALLER;
    return torc_runtime_new(&o);
}

static void echo_once(torc_runtime *rt)
{
    char target[64];
    snprintf(target, sizeof(target), "ipv4:%s", tc_kit_address(kit, 0));
    torc_channel *ch = torc_channel_new(rt, target, NULL, NULL);
    assert_non_null(ch);
    for (int i = 0; i < 100; i++) {
        struct torc_result r;
        assert_int_equal(torc_call_unary(ch, "test.Echo/Echo", "hello", 5, NULL, &r), 0);
        assert_string_equal(r.message, "");
        assert_int_equal(r.code, TORC_STATUS_OK);
        assert_int_equal(torc_message_size(r.response), 5);
        assert_memory_equal(torc_message_data(r.response), "hello", 5);
        assert_string_equal(r.peer, tc_kit_address(kit, 0));
        assert_int_equal(r.attempts, 1);
        assert_string_equal(torc_metadata_find(r.headers, "x-backend", NULL), "b0");
        torc_result_fini(&r);
    }
    torc_channel_free(ch);
}

static void test_echo_own_thread(void **state)
{
    (void)state;
    torc_runtime *rt = torc_runtime_new(NULL);
    echo_once(rt);
    assert_int_equal(torc_runtime_free(rt), 0);
}

static void test_echo_caller(void **state)
{
    (void)state;
    torc_runtime *rt = caller_runtime();
    echo_once(rt);
    assert_int_equal(torc_runtime_free(rt), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_echo_own_thread),
        cmocka_unit_test(test_echo_caller),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
