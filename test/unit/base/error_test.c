/* Errors that applications get: what each getter returns, references, errors that the caller does not want (NULL), and
 * what replaces a missing text, or a layer or code that is unknown. */
#include "support/cmocka.h"

#include "base/buf.h"
#include "base/status.h"

static void no_error(void **state)
{
    (void)state;
    assert_int_equal(torc_error_code(NULL), TORC_OK);
    assert_int_equal(torc_error_status(NULL), TORC_STATUS_OK);
    assert_int_equal(torc_error_layer(NULL), TORC_LAYER_NONE);
    assert_string_equal(torc_error_text(NULL), "");
    assert_null(torc_error_ref(NULL));
    torc_error_free(NULL);
    torc_error_clear(NULL);
    torc_error *none = NULL;
    torc_error_clear(&none);
}

static void of_the_library(void **state)
{
    (void)state;
    torc_error *error = NULL;
    assert_false(tc_error_pending(NULL));
    assert_false(tc_error_pending(&error));
    assert_false(tc_error_set(&error, TORC_ETIMEDOUT, TORC_LAYER_DEADLINE, "no %s after %d s", "answer", 3));
    assert_true(tc_error_pending(&error));
    assert_int_equal(torc_error_code(error), TORC_ETIMEDOUT);
    assert_int_equal(torc_error_status(error), TORC_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(torc_error_layer(error), TORC_LAYER_DEADLINE);
    assert_string_equal(torc_error_text(error), "no answer after 3 s");
    torc_error *second = torc_error_ref(error);
    torc_error_clear(&error);
    assert_null(error);
    assert_string_equal(torc_error_text(second), "no answer after 3 s");
    torc_error_free(second);
}

static void nobody_wants_it(void **state)
{
    (void)state;
    assert_false(tc_error_set(NULL, TORC_EINVAL, TORC_LAYER_API, "x"));
    assert_false(tc_error_take(NULL, TORC_EINVAL, TORC_LAYER_API, tc_asprintf("x")));
    assert_false(tc_error_set_code(NULL, TORC_EINVAL, "x"));
}

static void without_a_text(void **state)
{
    (void)state;
    torc_error *error = NULL;
    tc_error_take(&error, TORC_EFORK, TORC_LAYER_API, NULL);
    assert_string_equal(torc_error_text(error), torc_strerror(TORC_EFORK));
    torc_error_clear(&error);
    tc_error_set_code(&error, TORC_ECLOSED, "channel");
    assert_int_equal(torc_error_code(error), TORC_ECLOSED);
    assert_string_equal(torc_error_text(error), "channel: it has ended, or its runtime was freed");
    torc_error_clear(&error);
}

/* TORC_LAYER_NONE and unknown layers become TORC_LAYER_API. */
static void of_an_unknown_layer(void **state)
{
    (void)state;
    static const int layers[] = {TORC_LAYER_NONE, -1, TORC_LAYER_PEER + 1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < TC_ARRAY_LEN(layers); i++) {
        torc_error *error = torc_error_new(TORC_EIO, layers[i], NULL);
        assert_int_equal(torc_error_layer(error), TORC_LAYER_API);
        torc_error_clear(&error);
    }
}

/* Numbers that are not error codes, 0 and positive ones among them, become TORC_EINVAL. */
static void of_the_application(void **state)
{
    (void)state;
    static const int codes[] = {0, 1, -17, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < TC_ARRAY_LEN(codes); i++) {
        torc_error *error = torc_error_new(codes[i], TORC_LAYER_CONNECT, NULL);
        assert_int_equal(torc_error_code(error), TORC_EINVAL);
        assert_string_equal(torc_error_text(error), "invalid argument");
        torc_error_clear(&error);
    }
    torc_error *error = torc_error_new(TORC_EIO, TORC_LAYER_CONNECT, "no route");
    assert_int_equal(torc_error_code(error), TORC_EIO);
    assert_int_equal(torc_error_status(error), TORC_STATUS_UNAVAILABLE);
    assert_int_equal(torc_error_layer(error), TORC_LAYER_CONNECT);
    assert_string_equal(torc_error_text(error), "no route");
    torc_error_free(error);
}

/* Every error code has a text of its own and a status that is not OK. */
static void all_codes(void **state)
{
    (void)state;
    assert_string_equal(torc_strerror(TORC_OK), "success");
    for (int code = -1; code >= TORC_ESTATUS; code--) {
        torc_error *error = torc_error_new(code, TORC_LAYER_API, NULL);
        assert_int_equal(torc_error_code(error), code);
        assert_int_not_equal(torc_error_status(error), TORC_STATUS_OK);
        assert_string_equal(torc_error_text(error), torc_strerror(code));
        for (int other = 0; other > code; other--)
            assert_string_not_equal(torc_strerror(code), torc_strerror(other));
        torc_error_free(error);
    }
    assert_string_equal(torc_strerror(TORC_ESTATUS - 1), "unknown error");
    assert_string_equal(torc_strerror(1), "unknown error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_error),       cmocka_unit_test(of_the_library),     cmocka_unit_test(nobody_wants_it),
        cmocka_unit_test(without_a_text), cmocka_unit_test(of_the_application), cmocka_unit_test(of_an_unknown_layer),
        cmocka_unit_test(all_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
