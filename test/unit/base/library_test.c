/* Loading a shared library: the functions come in the order of their names; errors. */
#include "base/library.h"

#include <string.h>
#include <torc/torc.h>

#include "support/cmocka.h"

#define NO_FILE "libtorc-no-such-library.so.7"

static void functions_come_in_their_order(void **state)
{
    (void)state;
    static const char *const files[] = {NO_FILE, "libm.so.6", NULL}, *const names[] = {"floor", "ceil", NULL};
    struct {
        double (*floor)(double);
        double (*ceil)(double);
    } math = {0};
    char why[64] = "";
    assert_int_equal(tc_library_load("mathematics", files, names, (void **)&math, why, sizeof(why)), 0);
    assert_string_equal(why, "");
    assert_true(math.floor(1.5) == 1.0);
    assert_true(math.ceil(1.5) == 2.0);
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    static const char *const none[] = {NO_FILE, "libtorc-nor-this.so.7", NULL}, *const math[] = {"libm.so.6", NULL},
                             *const names[] = {"floor", "torc_no_such_function", NULL};
    void *functions[2] = {0};
    char why[256] = "";
    assert_int_equal(tc_library_load("mathematics", none, names, functions, why, sizeof(why)), TORC_EIO);
    assert_non_null(strstr(why, "mathematics cannot be loaded: " NO_FILE ": "));
    assert_int_equal(tc_library_load("mathematics", math, names, functions, why, sizeof(why)), TORC_EIO);
    assert_string_equal(why, "mathematics is too old: it has no torc_no_such_function");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_come_in_their_order),
        cmocka_unit_test(what_is_missing_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
