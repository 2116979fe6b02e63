/* Wrong arguments are refused at once, and the error says why. Also: options, factories and endpoints of programs with
 * later headers, time limits, chains of calls after an error, and factories that the application frees early.
 *
 * No server is needed: nobody listens at 127.0.0.1:1, and most calls fail before they connect. A NULL runtime is the
 * default one. The resolvers, LB policies and log sink of this file are called on the thread of a runtime, not on the
 * test's. */
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
    assert_string_equal(torc_error_text(error),
                        "options: size is 0: initialise the struct with TORC_SIZE(torc_channel_options)");
    torc_error_clear(&error);
    torc_channel_free(NULL);
}

/* A struct of a program with later headers: behind the known fields is one that this library does not know. */
#define LATER(type)                                                                                                    \
    struct {                                                                                                           \
        struct type known;                                                                                             \
        uint64_t later;                                                                                                \
    }
#define LATER_INIT(x, tag) (tag##_init(&(x).known), (x).known.size = sizeof(x), (x).later = 0)

static void test_options_of_later_headers(void **state)
{
    (void)state;
    LATER(torc_channel_options) channel;
    LATER(torc_call_options) call;
    LATER(torc_runtime_options) runtime;
    LATER(torc_tls_options) tls;
    torc_result *r;
    torc_error *error = NULL;
    LATER_INIT(channel, torc_channel_options);
    LATER_INIT(call, torc_call_options);
    LATER_INIT(runtime, torc_runtime_options);
    LATER_INIT(tls, torc_tls_options);
    channel.known.credentials = torc_credentials_insecure();
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
    assert_non_null(strstr(torc_error_text(error), "torc_channel_options"));
    torc_error_clear(&error);
    r = torc_unary(ch, "a/b", NULL, 0, &call.known);
    assert_int_equal(torc_error_code(torc_result_error(r)), TORC_EUNSUPPORTED);
    torc_result_free(r);
    assert_null(torc_runtime_new(&runtime.known, &error));
    assert_int_equal(torc_error_code(error), TORC_EUNSUPPORTED);
    torc_error_clear(&error);
    assert_null(torc_credentials_tls(&tls.known, &error));
    assert_non_null(strstr(torc_error_text(error), "does not know"));
    torc_error_clear(&error);
    /* A size that no version has means that the options were not initialised. */
    channel.known.size = UINT64_MAX;
    assert_null(torc_channel_new(NULL, "127.0.0.1:1", &channel.known, &error));
    assert_non_null(strstr(torc_error_text(error), "initialise the struct with TORC_SIZE(torc_channel_options)"));
    torc_error_clear(&error);
    torc_channel_free(ch);
}

/* Credentials that could not be made do not lead to a plaintext connection. */
static void test_credentials_that_failed(void **state)
{
    (void)state;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options)};
    torc_credentials *insecure = torc_credentials_insecure();
    torc_error *error = NULL;
    assert_non_null(insecure);
    assert_null(torc_channel_new(NULL, "127.0.0.1:1", &o, &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    assert_non_null(strstr(torc_error_text(error), "options: credentials: is NULL"));
    assert_non_null(strstr(torc_error_text(error), "torc_credentials_insecure()"));
    torc_error_clear(&error);
    assert_null(torc_credentials_xds(NULL, &error));
    assert_non_null(strstr(torc_error_text(error), "fallback: it is NULL"));
    torc_error_clear(&error);
    o.credentials = torc_credentials_xds(NULL, NULL);
    assert_null(torc_channel_new(NULL, "127.0.0.1:1", &o, NULL));
    const struct torc_tls_options bad = {TORC_SIZE(torc_tls_options), .roots_pem = "none"};
    o.credentials = torc_credentials_tls(&bad, &error);
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    assert_int_equal(torc_error_layer(error), TORC_LAYER_TLS);
    torc_error_clear(&error);
    assert_null(torc_channel_new(NULL, "127.0.0.1:1", &o, NULL));
    /* Insecure credentials are static: torc_credentials_unref does not free them. */
    for (int i = 0; i < 3; i++)
        torc_credentials_unref(insecure);
    assert_ptr_equal(torc_credentials_ref(insecure), insecure);
    assert_ptr_equal(torc_credentials_insecure(), insecure);
    o.credentials = insecure;
    torc_channel *ch = torc_channel_new(NULL, "127.0.0.1:1", &o, NULL);
    assert_non_null(ch);
    torc_channel_free(ch);
}

static void never(const torc_result *result, void *arg)
{
    (void)arg;
    fail_msg("the call has an end: %s", torc_result_text(result));
}

/* Methods without a service or a name, methods with characters that would break the header, and a method that is too
 * long are refused. */
static void test_method_names(void **state)
{
    (void)state;
    static const char *const methods[] = {
        "",      "/",      "noslash",     "/noslash", "a/",     "/a/",     "//",         "/ /b",  "a b/c",
        "a/b c", "a/b\nc", "a/b\r\nx: y", "a/\tb",    "a/\x01", "a/b\x7f", "a/\xc3\xa9", "/a/b ", " /a/b",
    };
    torc_result *r;
    torc_channel *ch = torc_channel_new(NULL, "127.0.0.1:1", NULL, NULL);
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        torc_error *error = NULL;
        r = torc_unary(ch, methods[i], NULL, 0, NULL);
        assert_int_equal(torc_error_code(torc_result_error(r)), TORC_EINVAL);
        torc_result_free(r);
        assert_int_equal(torc_unary_async(ch, methods[i], NULL, 0, NULL, never, NULL, NULL, NULL), TORC_EINVAL);
        r = torc_explain(ch, methods[i], NULL);
        assert_int_equal(torc_error_code(torc_result_error(r)), TORC_EINVAL);
        torc_result_free(r);
        assert_null(torc_stream_open(ch, methods[i], NULL, &error));
        assert_int_equal(torc_error_code(error), TORC_EINVAL);
        assert_int_equal(torc_error_layer(error), TORC_LAYER_API);
        assert_non_null(strstr(torc_error_text(error), "\" must be \"/package.Service/Method\""));
        assert_non_null(strstr(torc_error_text(error), methods[i]));
        torc_error_clear(&error);
    }
    char *long_one = malloc(65540);
    assert_non_null(long_one);
    memset(long_one, 'a', 65539);
    long_one[65539] = '\0';
    long_one[5] = '/';
    r = torc_unary(ch, long_one, NULL, 0, NULL);
    assert_int_equal(torc_error_code(torc_result_error(r)), TORC_EINVAL);
    torc_result_free(r);
    free(long_one);
    torc_channel_free(ch);
}

static void test_call_arguments(void **state)
{
    (void)state;
    struct torc_call_options zero = {.timeout_ms = 300};
    torc_result *r;
    torc_error *error = NULL;
    torc_channel *ch = torc_channel_new(NULL, "127.0.0.1:1", NULL, NULL);
    assert_non_null(ch);
    r = torc_unary(NULL, "a/b", NULL, 0, NULL);
    assert_int_equal(torc_error_code(torc_result_error(r)), TORC_EINVAL);
    torc_result_free(r);
    r = torc_unary(ch, NULL, NULL, 0, NULL);
    assert_int_equal(torc_error_code(torc_result_error(r)), TORC_EINVAL);
    torc_result_free(r);
    r = torc_unary(ch, "a/b", NULL, 0, &zero);
    assert_int_equal(torc_error_code(torc_result_error(r)), TORC_EINVAL);
    torc_result_free(r);
    r = torc_unary(ch, "noslash", NULL, 0, NULL);
    assert_int_equal(torc_error_code(torc_result_error(r)), TORC_EINVAL);
    torc_result_free(r);
    assert_null(torc_stream_open(NULL, "a/b", NULL, &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    torc_error_clear(&error);
    assert_null(torc_stream_open(ch, "a/b", &zero, &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    torc_error_clear(&error);
    static const struct {
        struct torc_call_options options;
        const char *text;
    } rows[] = {
        {{TORC_SIZE(torc_call_options), .gzip = 2}, "options: gzip: is 2, must be 0, TORC_ON (1) or TORC_OFF (-1)"},
        {{TORC_SIZE(torc_call_options), .wait_for_ready = -2}, "options: wait_for_ready: is -2"},
        {{TORC_SIZE(torc_call_options), .explain = 3}, "options: explain: is 3"},
        {{TORC_SIZE(torc_call_options), .lend_request = INT32_MIN}, "options: lend_request: is -2147483648"},
        {{TORC_SIZE(torc_call_options), .max_receive_message_bytes = -2},
         "options: max_receive_message_bytes: is -2, must be 0, -1 or at least 1"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_null(torc_stream_open(ch, "a/b", &rows[i].options, &error));
        assert_int_equal(torc_error_code(error), TORC_EINVAL);
        assert_non_null(strstr(torc_error_text(error), rows[i].text));
        torc_error_clear(&error);
    }
    torc_channel_free(ch);
}

/* A call with a negative timeout_ms fails with DEADLINE_EXCEEDED; 0 means no time limit. */
static void test_time_limits(void **state)
{
    (void)state;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = INT64_MIN};
    torc_result *r;
    torc_channel *ch = torc_channel_new(NULL, "ipv4:127.0.0.1:1", NULL, NULL);
    r = torc_unary(ch, "a/b", NULL, 0, &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    torc_result_free(r);
    o.timeout_ms = 0;
    r = torc_unary(ch, "a/b", NULL, 0, &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE); /* nobody listens there */
    torc_result_free(r);
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
    assert_non_null(strstr(torc_error_text(error), "TORC_SIZE(torc_tls_options)"));
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
    assert_null(torc_stream_open(ch, "a/b", NULL, &error));
    assert_null(torc_stream_start(ch, "a/b", NULL, NULL, NULL, &error));
    assert_int_equal(torc_unary_async(ch, "a/b", NULL, 0, NULL, never, NULL, NULL, &error), TORC_EINVAL);
    assert_ptr_equal(error, first);
    assert_non_null(strstr(torc_error_text(error), "fallback: it is NULL"));
    torc_error_clear(&error);
    torc_channel_free(ch);
    torc_runtime_free(rt);
}

/* How often the functions `start` and `stop` below were called, as a resolver's. The resolver borrows the struct until
 * the runtime is freed. */
struct short_lived {
    int started, stopped;
};

static void *start(const char *rest, torc_resolver_listener *listener, void *arg)
{
    const char *const address = "127.0.0.1:1";
    struct torc_endpoint e = {TORC_SIZE(torc_endpoint), .addresses = &address, .n_addresses = 1};
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

static void expect_refused(const struct torc_channel_options *o, int code, const char *text)
{
    torc_error *error = NULL;
    assert_null(torc_channel_new(NULL, "127.0.0.1:1", o, &error));
    assert_int_equal(torc_error_code(error), code);
    assert_non_null(strstr(torc_error_text(error), text));
    torc_error_clear(&error);
}

static void expect_schemes_refused(const struct torc_channel_options *o, struct torc_resolver_factory *factory)
{
    static const char *const schemes[] = {"", "Own", "1own", "own:", "o n", "o/n", "\xc3\xa9"};
    factory->size = sizeof(*factory);
    factory->start = start;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        factory->scheme = schemes[i];
        expect_refused(o, TORC_EINVAL, "\" must be a lower-case letter, then letters, digits, +, - and .");
    }
}

/* The size of a factory is checked, and fields that the library does not know must be zero. Functions that a factory
 * must have, the scheme of a resolver and the name of a policy are checked, too. */
static void test_factories(void **state)
{
    (void)state;
    LATER(torc_resolver_factory) resolver = {.known = {.scheme = "own", .start = start, .stop = stop}};
    LATER(torc_lb_factory)
    policy = {
        .known = {
            .name = "own", .create = make_policy, .update = update_policy, .pick = pick, .destroy = destroy_policy}};
    const struct torc_resolver_factory *const resolvers[] = {&resolver.known, NULL};
    const struct torc_lb_factory *const policies[] = {&policy.known, NULL};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .resolvers = resolvers};
    expect_refused(&o, TORC_EINVAL,
                   "resolvers[0]: size is 0: initialise the struct with TORC_SIZE(torc_resolver_factory)");
    resolver.known.size = 4097;
    expect_refused(&o, TORC_EINVAL, "resolvers[0]: size is 4097");
    resolver.known.size = sizeof(resolver);
    resolver.later = 1;
    expect_refused(&o, TORC_EUNSUPPORTED, "resolvers[0]: fields are set");
    resolver.later = 0;
    resolver.known.start = NULL;
    expect_refused(&o, TORC_EINVAL, "resolvers[0]: start: it is NULL");
    resolver.known.size = sizeof(uint64_t);
    expect_refused(&o, TORC_EINVAL, "resolvers[0]: scheme: it is NULL");
    expect_schemes_refused(&o, &resolver.known);
    o.resolvers = NULL;
    o.lb_policies = policies;
    expect_refused(&o, TORC_EINVAL, "lb_policies[0]: size is 0: initialise the struct with TORC_SIZE(torc_lb_factory)");
    policy.known.size = UINT64_MAX;
    expect_refused(&o, TORC_EINVAL, "lb_policies[0]: size is 18446744073709551615");
    policy.known.size = sizeof(policy);
    policy.later = 1;
    expect_refused(&o, TORC_EUNSUPPORTED, "lb_policies[0]: fields are set");
    policy.later = 0;
    policy.known.pick = NULL;
    expect_refused(&o, TORC_EINVAL, "lb_policies[0]: pick: it is NULL");
    policy.known.pick = pick;
    policy.known.name = "";
    expect_refused(&o, TORC_EINVAL, "lb_policies[0]: name: it is empty");
    policy.known.name = "pick_first";
    expect_refused(&o, TORC_EINVAL, "lb_policies[0]: name: \"pick_first\" is taken");
    policy.known.name = "own";
    torc_channel *ch = torc_channel_new(NULL, "127.0.0.1:1", &o, NULL);
    assert_non_null(ch);
    torc_channel_free(ch);
}

static int reported[9];  /* what the calls of torc_resolver_report returned */
static int sizes_logged; /* lines about an endpoint whose size is 0 */

static void count_sizes(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    (void)level, (void)module, (void)arg;
    sizes_logged += strstr(message, "]: size: \"0\" is refused") != NULL;
}

/* Reports arrays of endpoints: with elements that are longer or shorter than the library's, with bad values, a NULL
 * array with a count, and at last an empty array, which the channel uses. */
static void *report_endpoints(const char *rest, torc_resolver_listener *listener, void *arg)
{
    static const char *const address = "127.0.0.1:1";
    struct torc_endpoint one = {TORC_SIZE(torc_endpoint), .addresses = &address, .n_addresses = 1};
    struct {
        struct torc_endpoint known;
        uint64_t later;
    } longer[2] = {{one, 0}, {one, 0}};
    struct torc_endpoint two[2] = {one, one};
    (void)rest;
    longer[0].known.size = longer[1].known.size = sizeof(longer[0]);
    reported[0] = torc_resolver_report(listener, &longer[0].known, 2, NULL);
    longer[1].later = 1;
    reported[1] = torc_resolver_report(listener, &longer[0].known, 2, NULL);
    two[1].size = 0;
    reported[2] = torc_resolver_report(listener, two, 2, NULL);
    two[0].size = 0;
    reported[3] = torc_resolver_report(listener, two, 2, NULL);
    one.weight = (uint64_t)UINT32_MAX + 1;
    reported[4] = torc_resolver_report(listener, &one, 1, NULL);
    one.weight = UINT32_MAX;
    one.n_addresses = UINT64_MAX;
    reported[5] = torc_resolver_report(listener, &one, 1, NULL);
    one.n_addresses = 1;
    one.size = offsetof(struct torc_endpoint, weight); /* an older program's */
    reported[6] = torc_resolver_report(listener, &one, 1, NULL);
    reported[8] = torc_resolver_report(listener, NULL, 2, NULL);
    reported[7] = torc_resolver_report(listener, NULL, 0, NULL);
    torc_resolver_listener_ref(NULL);
    torc_resolver_listener_unref(NULL);
    return arg;
}

static void test_endpoints(void **state)
{
    (void)state;
    static const int wanted[] = {0, TORC_EUNSUPPORTED, TORC_EINVAL, TORC_EINVAL, TORC_EINVAL, TORC_EINVAL, 0,
                                 0, TORC_EINVAL};
    const struct torc_resolver_factory factory = {TORC_SIZE(torc_resolver_factory), .scheme = "own",
                                                  .start = report_endpoints};
    const struct torc_resolver_factory *const resolvers[] = {&factory, NULL};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .resolvers = resolvers};
    struct torc_call_options call = {TORC_SIZE(torc_call_options), .timeout_ms = 60000};
    torc_result *r;
    torc_log_set_sink(count_sizes, NULL);
    assert_int_equal(torc_log_set_levels("resolver=warn"), 0);
    torc_channel *ch = torc_channel_new(NULL, "own:x", &o, NULL);
    r = torc_unary(ch, "a/b", NULL, 0, &call);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    torc_result_free(r);
    torc_channel_free(ch);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        assert_int_equal(reported[i], wanted[i]);
    assert_int_equal(torc_log_set_levels("resolver=none"), 0);
    torc_log_set_sink(NULL, NULL);
    assert_int_equal(sizes_logged, 2);
}

/* Makes a channel, then overwrites and frees both factories, as an application may: the channel must not read them
 * after that, nor when it stops its resolver. The caller frees the channel, which is NULL if it cannot be made. `s`
 * must outlive the runtime. */
static torc_channel *channel_with_short_lived_factories(torc_runtime *rt, struct short_lived *s)
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
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .resolvers = resolvers, .lb_policies = policies,
                                     .service_config_json = "{\"loadBalancingConfig\":[{\"brief\":{}}]}"};
    torc_channel *ch = torc_channel_new(rt, "brief:x", &o, NULL);
    memset(resolver, 0xff, sizeof(*resolver));
    memset(policy, 0xff, sizeof(*policy));
    free(resolver);
    free(policy);
    return ch;
}

static void test_factories_are_copied(void **state)
{
    (void)state;
    struct short_lived s = {0};
    torc_runtime *rt = torc_runtime_new(NULL, NULL);
    torc_channel *ch = channel_with_short_lived_factories(rt, &s);
    torc_result *r;
    assert_non_null(ch);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 50};
    r = torc_unary(ch, "a/b", NULL, 0, &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    torc_result_free(r);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
    assert_int_equal(s.started, 1);
    assert_int_equal(s.stopped, 1);
}

/* Functions take NULL handles and arguments as the headers say. */
static void test_null(void **state)
{
    (void)state;
    torc_channel *ch = torc_channel_new(NULL, "ipv4:127.0.0.1:1", NULL, NULL);
    torc_metadata *m = torc_metadata_new();
    torc_credentials *insecure = torc_credentials_insecure();
    torc_result *r;
    const torc_message *message;
    r = torc_unary(ch, "a/b", NULL, 5, NULL);
    assert_int_equal(torc_error_code(torc_result_error(r)), TORC_EINVAL);
    torc_result_free(r);
    r = torc_unary(ch, NULL, NULL, 0, NULL);
    assert_int_equal(torc_error_code(torc_result_error(r)), TORC_EINVAL);
    torc_result_free(r);
    r = torc_explain(NULL, "a/b", NULL);
    assert_int_equal(torc_error_code(torc_result_error(r)), TORC_EINVAL);
    torc_result_free(r);
    assert_int_equal(torc_channel_state(NULL, true), TORC_CONNECTIVITY_SHUTDOWN);
    assert_null(torc_channel_target(NULL));
    torc_channel_reset_backoff(NULL);
    assert_int_equal(torc_channel_watch_state(NULL, TORC_CONNECTIVITY_IDLE, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_channel_watch_state(ch, TORC_CONNECTIVITY_IDLE, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_channel_wait_state(NULL, TORC_CONNECTIVITY_IDLE, 1, NULL), TORC_EINVAL);
    assert_int_equal(torc_channel_connect(NULL, 1), TORC_EINVAL);
    assert_int_equal(torc_channel_observe(NULL, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_channel_describe(ch, NULL), TORC_EINVAL);
    torc_result_free(NULL);
    torc_stream_cancel(NULL);
    assert_int_equal(torc_stream_send(NULL, "", 0, TORC_SEND_LAST, 0), TORC_EINVAL);
    assert_int_equal(torc_stream_half_close(NULL), TORC_EINVAL);
    assert_int_equal(torc_stream_want(NULL, 1), TORC_EINVAL);
    assert_int_equal(torc_stream_receive(NULL, -1, &message), TORC_EINVAL);
    r = torc_stream_finish(NULL);
    assert_int_equal(torc_error_code(torc_result_error(r)), TORC_EINVAL);
    torc_result_free(r);
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
        cmocka_unit_test(test_time_limits),
        cmocka_unit_test(test_factories),
        cmocka_unit_test(test_endpoints),
        cmocka_unit_test(test_credentials_that_failed),
        cmocka_unit_test(test_method_names),
        cmocka_unit_test(test_chain_of_calls),
        cmocka_unit_test(test_other_options),
        cmocka_unit_test(test_factories_are_copied),
        cmocka_unit_test(test_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
