/* torc_options_new, torc_options_set and torc_options_set_pointer: options structs by the name of their type, fields by
 * name. Also what the functions torc_X_init of torc/inline.h write.
 *
 * A torc_options owns its struct and copies of the texts in it, and borrows what a pointer field refers to. The
 * tests of torc_options read the fields through torc_options_data. A value that is refused must leave its field as it
 * was. */
#include <string.h>

#include <torc/torc.h>

#include "support/cmocka.h"

#include "base/options.h"

static torc_options *options_new(const char *kind)
{
    torc_options *o = torc_options_new(kind, NULL);
    assert_non_null(o);
    return o;
}

static void every_struct_has_its_kind(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        size_t size;
    } rows[] = {
        {"torc_runtime_options", sizeof(struct torc_runtime_options)},
        {"torc_channel_options", sizeof(struct torc_channel_options)},
        {"torc_call_options", sizeof(struct torc_call_options)},
        {"torc_tls_options", sizeof(struct torc_tls_options)},
        {"torc_tls_files", sizeof(struct torc_tls_files)},
        {"torc_google_options", sizeof(struct torc_google_options)},
        {"torc_server_options", sizeof(struct torc_server_options)},
        {"torc_server_tls_options", sizeof(struct torc_server_tls_options)},
        {"torc_server_tls_files", sizeof(struct torc_server_tls_files)},
        {"torc_method_options", sizeof(struct torc_method_options)},
        {"torc_interceptor", sizeof(struct torc_interceptor)},
        {"torc_log_sink", sizeof(struct torc_log_sink)},
        {"torc_dialer", sizeof(struct torc_dialer)},
    };
    assert_int_equal(sizeof(rows) / sizeof(rows[0]), TC_OPTIONS_KINDS);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        torc_options *o = options_new(rows[i].kind);
        uint64_t size;
        memcpy(&size, torc_options_data(o), sizeof(size));
        assert_int_equal(size, rows[i].size);
        torc_options_free(o);
    }
    torc_error *error = NULL;
    assert_null(torc_options_new("torc_other", &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    assert_string_equal(torc_error_text(error), "kind: \"torc_other\" is not an options struct");
    assert_null(torc_options_new("torc_call_options", &error)); /* `error` is set */
    torc_error_clear(&error);
    assert_null(torc_options_new(NULL, NULL));
    assert_null(torc_options_data(NULL));
    torc_options_free(NULL);
}

static void a_channel_of_options(void **state)
{
    (void)state;
    torc_error *error = NULL;
    torc_options *o = options_new("torc_channel_options");
    const struct torc_channel_options *data = torc_options_data(o);
    char agent[] = "mine/1";
    assert_int_equal(torc_options_set(o, "keepalive_time_ms", "20000", &error), 0);
    assert_int_equal(torc_options_set(o, "idle_timeout_ms", "-1", &error), 0);
    assert_int_equal(torc_options_set(o, "retries", "off", &error), 0);
    assert_int_equal(torc_options_set(o, "gzip", "on", &error), 0);
    assert_int_equal(torc_options_set(o, "backoff_multiplier", "2.5", &error), 0);
    assert_int_equal(torc_options_set(o, "user_agent", "first", &error), 0);
    assert_int_equal(torc_options_set(o, "user_agent", agent, &error), 0);
    assert_int_equal(torc_options_set(o, "user_agent", data->user_agent, &error), 0); /* its own copy, written back */
    agent[0] = 'x';
    assert_int_equal(torc_options_set_pointer(o, "credentials", torc_credentials_insecure(), &error), 0);
    assert_int_equal(data->keepalive_time_ms, 20000);
    assert_int_equal(data->idle_timeout_ms, -1);
    assert_int_equal(data->retries, TORC_OFF);
    assert_int_equal(data->gzip, TORC_ON);
    assert_true(data->backoff_multiplier == 2.5);
    assert_string_equal(data->user_agent, "mine/1");
    assert_ptr_equal(data->credentials, torc_credentials_insecure());
    torc_channel *ch = torc_channel_new(NULL, "127.0.0.1:1", data, &error);
    assert_non_null(ch);
    torc_channel_free(ch);
    assert_int_equal(torc_options_set(o, "keepalive_time_ms", NULL, &error), 0);
    assert_int_equal(torc_options_set(o, "retries", "default", &error), 0);
    assert_int_equal(torc_options_set(o, "user_agent", NULL, &error), 0);
    assert_int_equal(data->keepalive_time_ms, 0);
    assert_int_equal(data->retries, 0);
    assert_null(data->user_agent);
    torc_options_free(o);
}

static void what_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
        int code;
        const char *text;
    } rows[] = {
        {"nosuch", "1", TORC_ENOTFOUND, "options: \"nosuch\" is not a field of struct torc_channel_options"},
        {"size", "1", TORC_ENOTFOUND, "options: \"size\" is not a field of struct torc_channel_options"},
        {"connect_timeout_ms", "-1", TORC_EINVAL, "options: connect_timeout_ms: is -1, must be 0 or at least 1"},
        {"connect_timeout_ms", "", TORC_EINVAL, "options: connect_timeout_ms: is \"\", must be a decimal number"},
        {"connect_timeout_ms", "1s", TORC_EINVAL, "options: connect_timeout_ms: is \"1s\", must be a decimal number"},
        {"connect_timeout_ms", "9223372036854775808", TORC_EINVAL,
         "options: connect_timeout_ms: is \"9223372036854775808\", must be a decimal number"},
        {"retries", "1", TORC_EINVAL, "options: retries: is \"1\", must be on, off or default"},
        {"backoff_jitter", "x", TORC_EINVAL, "options: backoff_jitter: is \"x\", must be a number"},
        {"backoff_jitter", "2", TORC_EINVAL, "options: backoff_jitter: is 2, must be 0, -1 or in 0..1"},
        {"health_checks", "2", TORC_EINVAL, "options: health_checks: is 2, must be 0, -1 or 1"},
        {"credentials", "x", TORC_EINVAL, "options: credentials: is a pointer: call torc_options_set_pointer"},
    };
    torc_options *o = options_new("torc_channel_options");
    const struct torc_channel_options *data = torc_options_data(o);
    assert_int_equal(torc_options_set(o, "connect_timeout_ms", "7", NULL), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        torc_error *error = NULL;
        assert_int_equal(torc_options_set(o, rows[i].name, rows[i].value, &error), rows[i].code);
        assert_int_equal(torc_error_code(error), rows[i].code);
        assert_string_equal(torc_error_text(error), rows[i].text);
        torc_error_clear(&error);
        assert_int_equal(torc_options_set(o, rows[i].name, rows[i].value, NULL), rows[i].code);
    }
    assert_int_equal(data->connect_timeout_ms, 7);
    assert_int_equal(torc_options_set_pointer(o, "authority", "x", NULL), TORC_EINVAL);
    assert_int_equal(torc_options_set_pointer(o, "nosuch", "x", NULL), TORC_ENOTFOUND);
    assert_int_equal(torc_options_set(NULL, "gzip", "on", NULL), TORC_EINVAL);
    assert_int_equal(torc_options_set(o, NULL, "on", NULL), TORC_EINVAL);
    torc_options_free(o);
}

/* Expects that T_init sets the whole struct and no byte behind it. T_init is inline, so that the program's headers say
 * how long the struct is: it may be shorter than the library's. */
#define EXPECT_INIT(T)                                                                                                 \
    do {                                                                                                               \
        struct {                                                                                                       \
            struct T of;                                                                                               \
            unsigned char behind[64];                                                                                  \
        } x;                                                                                                           \
        const struct T fresh = {TORC_SIZE(T)};                                                                         \
        memset(&x, 0xa5, sizeof(x));                                                                                   \
        T##_init(&x.of);                                                                                               \
        assert_memory_equal(&x.of, &fresh, sizeof(fresh));                                                             \
        for (size_t i = 0; i < sizeof(x.behind); i++)                                                                  \
            assert_int_equal(x.behind[i], 0xa5);                                                                       \
    } while (0)

static void inits_stay_within_the_struct(void **state)
{
    (void)state;
    EXPECT_INIT(torc_runtime_options);
    EXPECT_INIT(torc_channel_options);
    EXPECT_INIT(torc_call_options);
    EXPECT_INIT(torc_tls_options);
    EXPECT_INIT(torc_tls_files);
    EXPECT_INIT(torc_google_options);
    EXPECT_INIT(torc_dialer);
    EXPECT_INIT(torc_log_sink);
    EXPECT_INIT(torc_resolver_factory);
    EXPECT_INIT(torc_lb_factory);
    EXPECT_INIT(torc_endpoint);
    EXPECT_INIT(torc_allocator);
    EXPECT_INIT(torc_interceptor);
    EXPECT_INIT(torc_stream_events);
    EXPECT_INIT(torc_server_options);
    EXPECT_INIT(torc_server_tls_options);
    EXPECT_INIT(torc_server_tls_files);
    EXPECT_INIT(torc_method_options);
    EXPECT_INIT(torc_handler);
    EXPECT_INIT(torc_server_call_events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_struct_has_its_kind),
        cmocka_unit_test(a_channel_of_options),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(inits_stay_within_the_struct),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
