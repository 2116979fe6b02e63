/* The text of grpc-timeout, written and read. */
#include "http2/timeout.h"

#include <string.h>

#include "base/clock.h"
#include "base/common.h"
#include "support/cmocka.h"

static void check_timeout(uint64_t ns, const char *want)
{
    char text[16];
    size_t len = tc_h2_timeout_encode(text, ns);
    assert_int_equal(len, strlen(want));
    assert_string_equal(text, want);
}

static void timeouts(void **state)
{
    (void)state;
    check_timeout(1, "1n");
    check_timeout(99999999, "99999999n");
    check_timeout(100000000, "100000u");
    check_timeout(100000001, "100001u");
    check_timeout(10 * TC_NS_PER_S, "10000000u");
    check_timeout(100 * TC_NS_PER_S, "100000m");
    check_timeout(99999999 * TC_NS_PER_MS + 1, "100000S");
    check_timeout(UINT64_MAX, "5124096H");
    uint64_t ns = 5;
    assert_int_equal(tc_h2_timeout_decode(tc_slice_str("100m"), &ns), 0);
    assert_int_equal(ns, 100 * TC_NS_PER_MS);
    assert_int_equal(tc_h2_timeout_decode(tc_slice_str("99999999H"), &ns), 0);
    assert_true(ns == UINT64_MAX);
    const char *const bad[] = {"", "1", "S", "1s", "123456789S", "-1S", "+1S", "1 S", "1.5S", "0x1S"};
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++)
        assert_int_equal(tc_h2_timeout_decode(tc_slice_str(bad[i]), &ns), TORC_EPARSE);
    assert_int_equal(tc_h2_timeout_decode(tc_slice_str("0n"), &ns), 0);
    assert_true(ns == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timeouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
