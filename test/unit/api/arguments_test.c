/* Wrong arguments are refused at once, each with its reason. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "support/cmocka.h"

static void test_channel_arguments(void **state)
{
    (void)state;
    struct torc_channel_options zero = {.max_receive_message_bytes = 10};
    torc_error *error = NULL;
    assert_null(torc_channel_new(NULL, NULL, NULL, &error));
    assert_string_equal(torc_error_text(error), "target: it is NULL");
    torc_error_clear(&error);
    assert_null(torc_channel_new(NULL, NULL, NULL, NULL));
    assert_null(torc_channel_new(NULL, "127.0.0.1:1", &zero, &error));
    assert_string_equal(torc_error_text(error), "options: size is 0: call torc_channel_options_init first");
    torc_error_clear(&error);
    torc_channel_free(NULL);
}

/* Options of a program with later headers: they have fields that this library does not know. */
#define LATER(type)                                                                                                    \
    struct {                                                                                                           \
        struct type known;                                                                                             \
        uint64_t later;                                                                                                \
    }
#define LATER_INIT(x, init) (init(&(x).known), (x).known.size = sizeof(x), (x).later = 0)

static void test_options_of_later_headers(void **state)
{
    (void)state;
    LATER(torc_channel_options) channel;
    LATER(torc_call_options) call;
    LATER(torc_runtime_options) runtime;
    LATER(torc_tls_options) tls;
    struct torc_result r;
    torc_error *error = NULL;
    LATER_INIT(channel, torc_channel_options_init);
    LATER_INIT(call, torc_call_options_init);
    LATER_INIT(runtime, torc_runtime_options_init);
    LATER_INIT(tls, torc_tls_options_init);
    /* Unknown fields that are zero do not matter. */
    torc_channel *ch = torc_channel_new(NULL, "127.0.0.1:1", &channel.known, &error);
    assert_non_null(ch);
    runtime.known.mode = TORC_RUNTIME_CALLER;
    torc_runtime *rt = torc_runtime_new(&runtime.known, NULL);
    assert_non_null(rt);
    torc_runtime_free(rt);
    torc_credentials *c = torc_credentials_tls(&tls.known, &error);
    assert_non_null(c);
    torc_credentials_unref(c);
    channel.later = call.later = runtime.later = tls.later = 1;
    assert_null(torc_channel_new(NULL, "127.0.0.1:1", &channel.known, &error));
    assert_non_null(strstr(torc_error_text(error),
                           "options: fields are set that this library, Torc " TORC_VERSION ", does not know"));
    assert_non_null(strstr(torc_error_text(error), "torc_channel_options_init"));
    torc_error_clear(&error);
    assert_int_equal(torc_call_unary(ch, "a/b", NULL, 0, &call.known, &r), TORC_EUNSUPPORTED);
    assert_null(torc_runtime_new(&runtime.known, &error));
    assert_int_equal(torc_error_code(error), TORC_EUNSUPPORTED);
    torc_error_clear(&error);
    assert_null(torc_credentials_tls(&tls.known, &error));
    assert_non_null(strstr(torc_error_text(error), "does not know"));
    torc_error_clear(&error);
    /* A size of no version means that the options were not initialised. */
    channel.known.size = SIZE_MAX;
    assert_null(torc_channel_new(NULL, "127.0.0.1:1", &channel.known, &error));
    assert_non_null(strstr(torc_error_text(error), "call torc_channel_options_init first"));
    torc_error_clear(&error);
    torc_channel_free(ch);
}

/* Credentials that could not be made do not lead to a plaintext connection. */
static void test_credentials_that_are_none(void **state)
{
    (void)state;
    struct torc_channel_options o;
    torc_channel_options_init(&o);
    torc_credentials *found = o.credentials, *insecure = torc_credentials_insecure();
    torc_error *error = NULL;
    assert_non_null(found);
    assert_null(torc_credentials_xds(NULL, &error));
    assert_non_null(strstr(torc_error_text(error), "fallback: it is NULL"));
    torc_error_clear(&error);
    o.credentials = torc_credentials_xds(NULL, NULL);
    assert_null(torc_channel_new(NULL, "127.0.0.1:1", &o, &error));
    assert_non_null(strstr(torc_error_text(error), "options: credentials: they are NULL"));
    torc_error_clear(&error);
    assert_null(torc_channel_new(NULL, "127.0.0.1:1", &o, NULL));
    struct torc_tls_options bad;
    torc_tls_options_init(&bad);
    bad.roots_pem = "none";
    o.credentials = torc_credentials_tls(&bad, NULL);
    assert_null(torc_channel_new(NULL, "127.0.0.1:1", &o, NULL));
    o.credentials = insecure;
    torc_channel *ch = torc_channel_new(NULL, "127.0.0.1:1", &o, NULL);
    assert_non_null(ch);
    torc_channel_free(ch);
    torc_credentials_unref(insecure);
    /* Static credentials stay when they are unreferenced. */
    for (int i = 0; i < 3; i++)
        torc_credentials_unref(found);
    torc_channel_options_init(&o);
    assert_ptr_equal(o.credentials, found);
    ch = torc_channel_new(NULL, "127.0.0.1:1", &o, NULL);
    assert_non_null(ch);
    torc_channel_free(ch);
}

static void never(const struct torc_result *result, void *arg)
{
    (void)arg;
    fail_msg("the call has an end: %s", result->message);
}

/* Methods without a service, and methods that would break the header, are refused. */
static void test_method_names(void **state)
{
    (void)state;
    static const char *const methods[] = {
        "",      "/",      "noslash",     "/noslash", "a/",     "/a/",     "//",         "/ /b",  "a b/c",
        "a/b c", "a/b\nc", "a/b\r\nx: y", "a/\tb",    "a/\x01", "a/b\x7f", "a/\xc3\xa9", "/a/b ", " /a/b",
    };
    struct torc_result r;
    torc_channel *ch = torc_channel_new(NULL, "127.0.0.1:1", NULL, NULL);
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        torc_error *error = NULL;
        assert_int_equal(torc_call_unary(ch, methods[i], NULL, 0, NULL, &r), TORC_EINVAL);
        assert_int_equal(torc_call_unary_async(ch, methods[i], NULL, 0, NULL, never, NULL, NULL, NULL), TORC_EINVAL);
        assert_int_equal(torc_call_explain(ch, methods[i], NULL, &r), TORC_EINVAL);
        assert_null(torc_call_open(ch, methods[i], NULL, &error));
        assert_int_equal(torc_error_code(error), TORC_EINVAL);
        assert_int_equal(torc_error_layer(error), TORC_LAYER_API);
        assert_string_equal(torc_error_text(error), "method: must be \"/package.Service/Method\"");
        torc_error_clear(&error);
    }
    char *long_one = malloc(65540);
    assert_non_null(long_one);
    memset(long_one, 'a', 65539);
    long_one[65539] = '\0';
    long_one[5] = '/';
    assert_int_equal(torc_call_unary(ch, long_one, NULL, 0, NULL, &r), TORC_EINVAL);
    free(long_one);
    torc_channel_free(ch);
}

static void test_call_arguments(void **state)
{
    (void)state;
    struct torc_call_options zero = {.timeout_ms = 300};
    struct torc_result r;
    torc_error *error = NULL;
    torc_channel *ch = torc_channel_new(NULL, "127.0.0.1:1", NULL, NULL);
    assert_non_null(ch);
    assert_int_equal(torc_call_unary(NULL, "a/b", NULL, 0, NULL, &r), TORC_EINVAL);
    assert_int_equal(torc_call_unary(ch, NULL, NULL, 0, NULL, &r), TORC_EINVAL);
    assert_int_equal(torc_call_unary(ch, "a/b", NULL, 0, &zero, &r), TORC_EINVAL);
    assert_int_equal(torc_call_unary(ch, "noslash", NULL, 0, NULL, &r), TORC_EINVAL);
    assert_null(torc_call_open(NULL, "a/b", NULL, &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    torc_error_clear(&error);
    assert_null(torc_call_open(ch, "a/b", &zero, &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    torc_error_clear(&error);
    torc_channel_free(ch);
}

static void test_other_options(void **state)
{
    (void)state;
    struct torc_runtime_options runtime = {.idle_connection_ms = 1};
    struct torc_tls_options tls = {.roots_pem = "x"};
    torc_error *error = NULL;
    assert_null(torc_runtime_new(&runtime, &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    torc_error_clear(&error);
    assert_null(torc_credentials_tls(&tls, &error));
    assert_non_null(strstr(torc_error_text(error), "torc_tls_options_init"));
    torc_error_clear(&error);
}

/* After an error a chain of calls does nothing, and keeps the first error. */
static void test_chain_of_calls(void **state)
{
    (void)state;
    torc_error *error = NULL;
    torc_runtime *rt = torc_runtime_new(NULL, NULL);
    torc_channel *ch = torc_channel_new(rt, "127.0.0.1:1", NULL, NULL);
    assert_null(torc_credentials_xds(NULL, &error));
    torc_error *first = error;
    assert_null(torc_runtime_new(NULL, &error));
    assert_null(torc_xds_domain_new(&error));
    assert_null(torc_channel_new(rt, "127.0.0.1:1", NULL, &error));
    assert_null(torc_credentials_tls(NULL, &error));
    assert_null(torc_credentials_composite(NULL, NULL, &error));
    assert_null(torc_call_credentials_composite(NULL, NULL, &error));
    assert_null(torc_call_credentials_jwt_token_file("/token", &error));
    assert_null(torc_call_credentials_plugin("t", NULL, NULL, NULL, &error));
    assert_null(torc_csds_serve(rt, "127.0.0.1:0", &error));
    assert_null(torc_call_open(ch, "a/b", NULL, &error));
    assert_null(torc_call_start(ch, "a/b", NULL, NULL, NULL, &error));
    assert_int_equal(torc_call_unary_async(ch, "a/b", NULL, 0, NULL, never, NULL, NULL, &error), TORC_EINVAL);
    assert_ptr_equal(error, first);
    assert_non_null(strstr(torc_error_text(error), "fallback: it is NULL"));
    torc_error_clear(&error);
    torc_channel_free(ch);
    torc_runtime_free(rt);
}

struct short_lived {
    int started, stopped;
};

static void *start(const char *rest, torc_resolver_listener *listener, void *arg)
{
    const char *const address = "127.0.0.1:1";
    struct torc_endpoint e = {.addresses = &address, .n_addresses = 1};
    (void)rest;
    ((struct short_lived *)arg)->started++;
    torc_resolver_report(listener, &e, 1, NULL);
    return arg;
}

static void stop(void *resolver)
{
    ((struct short_lived *)resolver)->stopped++;
}

static void *make_policy(torc_lb_helper *helper, void *arg)
{
    (void)arg;
    return helper;
}

static void update_policy(void *policy, const torc_lb_endpoint *const *endpoints, size_t n, const char *config_json)
{
    (void)policy;
    (void)endpoints;
    (void)n;
    (void)config_json;
}

static torc_lb_child *pick(void *policy, torc_lb_pick *p)
{
    (void)policy;
    (void)p;
    return NULL;
}

static void destroy_policy(void *policy)
{
    (void)policy;
}

/* A channel ends after torc_channel_free has returned, off the loop's thread: it must not look at the classes that the
 * application gave it, which may be gone by then. */
static torc_channel *channel_with_short_lived_classes(torc_runtime *rt, struct short_lived *s)
{
    struct torc_resolver_factory *resolver = calloc(1, sizeof(*resolver));
    struct torc_lb_factory *policy = calloc(1, sizeof(*policy));
    assert_true(resolver && policy);
    *resolver = (struct torc_resolver_factory){
        .size = sizeof(*resolver), .scheme = "brief", .start = start, .stop = stop, .arg = s};
    *policy = (struct torc_lb_factory){.size = sizeof(*policy),
                                       .name = "brief",
                                       .create = make_policy,
                                       .update = update_policy,
                                       .pick = pick,
                                       .destroy = destroy_policy};
    const struct torc_resolver_factory *const resolvers[] = {resolver, NULL};
    const struct torc_lb_factory *const policies[] = {policy, NULL};
    struct torc_channel_options o;
    torc_channel_options_init(&o);
    o.resolvers = resolvers;
    o.lb_policies = policies;
    o.service_config_json = "{\"loadBalancingConfig\":[{\"brief\":{}}]}";
    torc_channel *ch = torc_channel_new(rt, "brief:x", &o, NULL);
    memset(resolver, 0xff, sizeof(*resolver));
    memset(policy, 0xff, sizeof(*policy));
    free(resolver);
    free(policy);
    return ch;
}

static void test_classes_are_copied(void **state)
{
    (void)state;
    struct short_lived s = {0};
    torc_runtime *rt = torc_runtime_new(NULL, NULL);
    torc_channel *ch = channel_with_short_lived_classes(rt, &s);
    struct torc_call_options o;
    struct torc_result r;
    assert_non_null(ch);
    torc_call_options_init(&o);
    o.timeout_ms = 50;
    assert_int_equal(torc_call_unary(ch, "a/b", NULL, 0, &o, &r), 0);
    assert_int_equal(r.code, TORC_STATUS_DEADLINE_EXCEEDED);
    torc_result_fini(&r);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
    assert_int_equal(s.started, 1);
    assert_int_equal(s.stopped, 1);
}

/* NULL is allowed where torc/torc.h says so. */
static void test_null(void **state)
{
    (void)state;
    torc_channel *ch = torc_channel_new(NULL, "ipv4:127.0.0.1:1", NULL, NULL);
    torc_metadata *m = torc_metadata_new();
    torc_credentials *insecure = torc_credentials_insecure();
    struct torc_result r;
    torc_message *message;
    assert_int_equal(torc_call_unary(ch, "a/b", NULL, 0, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_call_unary(ch, "a/b", NULL, 5, NULL, &r), TORC_EINVAL);
    assert_int_equal(torc_call_unary(ch, NULL, NULL, 0, NULL, &r), TORC_EINVAL);
    assert_int_equal(torc_call_explain(ch, "a/b", NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_call_explain(NULL, "a/b", NULL, &r), TORC_EINVAL);
    assert_int_equal(torc_channel_state(NULL, true), TORC_CONNECTIVITY_SHUTDOWN);
    assert_null(torc_channel_target(NULL));
    torc_channel_reset_backoff(NULL);
    assert_int_equal(torc_channel_watch_state(NULL, TORC_CONNECTIVITY_IDLE, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_channel_watch_state(ch, TORC_CONNECTIVITY_IDLE, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_channel_wait_state(NULL, TORC_CONNECTIVITY_IDLE, 1, NULL), TORC_EINVAL);
    assert_int_equal(torc_channel_connect(NULL, 1), TORC_EINVAL);
    assert_int_equal(torc_channel_observe(NULL, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_channel_describe(ch, NULL), TORC_EINVAL);
    torc_result_fini(NULL);
    torc_call_cancel(NULL);
    assert_int_equal(torc_call_write(NULL, "", 0, true), TORC_EINVAL);
    assert_int_equal(torc_call_write_done(NULL), TORC_EINVAL);
    assert_int_equal(torc_call_read(NULL), TORC_EINVAL);
    assert_int_equal(torc_call_receive(NULL, &message), TORC_EINVAL);
    assert_int_equal(torc_call_finish(NULL, &r), TORC_EINVAL);
    assert_null(torc_credentials_ref(NULL));
    assert_null(torc_call_credentials_ref(NULL));
    assert_null(torc_credentials_composite(NULL, NULL, NULL));
    assert_null(torc_credentials_composite(insecure, NULL, NULL));
    assert_int_equal(torc_metadata_add_string(m, "a", NULL), TORC_EINVAL);
    assert_null(torc_metadata_find(m, NULL, NULL));
    assert_int_equal(torc_runtime_poll(NULL, 0), TORC_EINVAL);
    assert_int_equal(torc_runtime_fd(NULL), TORC_EINVAL);
    assert_int_equal(torc_runtime_timeout_ms(NULL), -1);
    assert_int_equal(torc_runtime_post(NULL, NULL, NULL), TORC_EINVAL);
    torc_credentials_unref(insecure);
    torc_metadata_free(m);
    torc_channel_free(ch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_of_later_headers),
        cmocka_unit_test(test_channel_arguments),
        cmocka_unit_test(test_call_arguments),
        cmocka_unit_test(test_credentials_that_are_none),
        cmocka_unit_test(test_method_names),
        cmocka_unit_test(test_chain_of_calls),
        cmocka_unit_test(test_other_options),
        cmocka_unit_test(test_classes_are_copied),
        cmocka_unit_test(test_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
