/* HTTP filters and settings of routes, end to end: fault injection with overrides (A33, A39), retries (A44), limits of
 * the deadline (A31), runtime fractions (A28), rewritten authorities (A81).
 *
 * Each test has meshes of its own (kits/mesh.h): clusters "c0" and "c1" with one backend each, and a listener "svc"
 * with the test's filters and routes. Some tests put further listeners, and make channels to them;
 * authority_is_verified also has two backends with TLS (kits/backends.h). The test's thread makes the RPCs; only
 * `count` runs on the runtime's thread. The tests look at the status, its text, the explanation and the number of
 * attempts, and at what a backend received: how many RPCs, and with which authority. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/kits/cert.h"
#include "support/kits/mesh.h"

#include "base/clock.h"
#include "base/mem.h"
#include "tls/tls.h"

#define ECHO "/torc.test.Backend/Echo"
#define FAIL "/torc.test.Backend/Fail"
#define HANG "/torc.test.Backend/Hang"
#define HEADERS "/torc.test.Backend/Headers"

#define TYPE "\"@type\": type.googleapis.com/"
#define FAULT TYPE "envoy.extensions.filters.http.fault.v3.HTTPFault"
/* A filter for fault injection; `settings` with a comma in front, or "". */
#define FILTER(name, settings) "{name: " name ", typed_config: {" FAULT settings "}},"
#define ALWAYS "percentage: {numerator: 100}"
#define ROUTE(more) "{match: {prefix: \"\"}, route: {cluster: c0}" more "}"

/* Makes a mesh of clusters "c0", "c1" with one backend each, a listener "svc" with these filters and routes, and a
 * channel to "svc". */
static struct kit_mesh_world open_world(const char *filters, const char *routes)
{
    struct kit_mesh_world w = kit_mesh_world_open_clusters(2);
    kit_mesh_put_filtered(w.k, "svc", filters, routes);
    return w;
}

/* Makes a call with an explanation. In `headers` (or NULL) names and values alternate, and a NULL ends them; timeout_ms
 * -1: 60 s. The caller frees the result. */
static torc_result *call(torc_channel *ch, const char *method, const char *request, const char *const *headers,
                         int64_t timeout_ms)
{
    torc_result *r;
    struct torc_call_options o = {TORC_SIZE(torc_call_options)};
    torc_metadata *md = torc_metadata_new();
    for (size_t i = 0; headers && headers[i]; i += 2)
        torc_metadata_add_string(md, headers[i], headers[i + 1]);
    o.metadata = md;
    o.explain = true;
    o.timeout_ms = timeout_ms < 0 ? 60000 : timeout_ms;
    r = torc_unary(ch, method, request, strlen(request), &o);
    torc_metadata_free(md);
    return r;
}

/* Makes a call with this header (name NULL: none). Returns its status code. */
static int code_with(torc_channel *ch, const char *name, const char *value)
{
    const char *const headers[] = {name, value, NULL};
    torc_result *r = call(ch, ECHO, "x", name ? headers : NULL, -1);
    int code = torc_result_code(r);
    torc_result_free(r);
    return code;
}

static int64_t now_ms(void)
{
    return (int64_t)(tc_system_clock.monotonic_ns(tc_system_clock.arg) / TC_NS_PER_MS);
}

/* --- faults --- */

static void aborts(void **state)
{
    (void)state;
    struct kit_mesh_world w = open_world(FILTER("chaos", ", abort: {grpc_status: 7, " ALWAYS "}"), ROUTE(""));
    torc_result *r = call(w.ch, ECHO, "x", NULL, -1);
    assert_int_equal(torc_result_code(r), TORC_STATUS_PERMISSION_DENIED);
    assert_string_equal(torc_result_text(r), "fault injected by the HTTP filter \"chaos\"");
    assert_int_equal(torc_result_attempts(r), 0);
    assert_non_null(
        strstr(torc_result_explain(r), "{\"filter\":\"chaos\",\"effect\":\"aborted with PERMISSION_DENIED\"}"));
    torc_result_free(r);
    assert_int_equal(kit_mesh_take(w.k, 0), 0);
    kit_mesh_world_close(&w);
}

static void status_codes(void **state)
{
    (void)state;
    static const struct {
        const char *settings;
        int code;
    } cases[] = {
        {"http_status: 503", TORC_STATUS_UNAVAILABLE},
        {"http_status: 404", TORC_STATUS_UNIMPLEMENTED},
        {"http_status: 200", TORC_STATUS_UNKNOWN},
        {"grpc_status: 16", TORC_STATUS_UNAUTHENTICATED},
        /* A33: trailers with OK and no message, which is an error for a unary call. */
        {"grpc_status: 0", TORC_STATUS_INTERNAL},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        char *filter = tc_asprintf(FILTER("f", ", abort: {%s, " ALWAYS "}"), cases[i].settings);
        struct kit_mesh_world w = open_world(filter, ROUTE(""));
        assert_int_equal(code_with(w.ch, NULL, NULL), cases[i].code);
        if (i + 1 == TC_ARRAY_LEN(cases)) {
            torc_result *r;
            const torc_message *m = NULL;
            torc_stream *stream = torc_stream_open(w.ch, ECHO, NULL, NULL);
            assert_int_equal(torc_stream_receive(stream, -1, &m), 0);
            r = torc_stream_finish(stream);
            assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
            torc_result_free(r);
            torc_stream_free(stream);
        }
        kit_mesh_world_close(&w);
        tc_free(filter);
    }
}

static void aborts_by_header(void **state)
{
    (void)state;
    struct kit_mesh_world w = open_world(FILTER("f", ", abort: {header_abort: {}, " ALWAYS "}"), ROUTE(""));
    assert_int_equal(code_with(w.ch, NULL, NULL), TORC_STATUS_OK);
    assert_int_equal(code_with(w.ch, "x-envoy-fault-abort-grpc-request", "3"), TORC_STATUS_INVALID_ARGUMENT);
    assert_int_equal(code_with(w.ch, "x-envoy-fault-abort-request", "503"), TORC_STATUS_UNAVAILABLE);
    assert_int_equal(code_with(w.ch, "x-envoy-fault-abort-grpc-request", "many"), TORC_STATUS_OK);
    assert_int_equal(code_with(w.ch, "x-envoy-fault-abort-grpc-request", "17"), TORC_STATUS_OK);
    const char *const none[] = {"x-envoy-fault-abort-grpc-request", "3", "x-envoy-fault-abort-request-percentage", "0",
                                NULL};
    torc_result *r = call(w.ch, ECHO, "x", none, -1);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    kit_mesh_world_close(&w);
}

static void share_of_aborts(void **state)
{
    (void)state;
    struct kit_mesh_world w = open_world(
        FILTER("f", ", abort: {grpc_status: 14, percentage: {numerator: 2500, denominator: TEN_THOUSAND}}"), ROUTE(""));
    int aborted = 0;
    for (int i = 0; i < 800; i++)
        aborted += code_with(w.ch, NULL, NULL) == TORC_STATUS_UNAVAILABLE;
    /* 200 expected, within seven standard deviations of 12.2. Read as hundredths the fraction would abort all RPCs,
     * read as millionths about two. */
    assert_in_range(aborted, 114, 286);
    assert_int_equal(kit_mesh_take(w.k, 0), 800 - aborted);
    kit_mesh_world_close(&w);
}

static void delays(void **state)
{
    (void)state;
    struct kit_mesh_world w = open_world(FILTER("slow", ", delay: {fixed_delay: 0.200s, " ALWAYS "}")
                                             FILTER("end", ", abort: {header_abort: {}, " ALWAYS "}"),
                                         ROUTE(""));
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    int64_t began = now_ms();
    torc_result *r = call(w.ch, ECHO, "x", NULL, -1);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    assert_true(now_ms() - began >= 200);
    assert_non_null(strstr(torc_result_explain(r), "{\"filter\":\"slow\",\"effect\":\"delayed by 0.200 s\"}"));
    torc_result_free(r);
    /* The first filter delays the RPC, then the second filter aborts it. */
    began = now_ms();
    assert_int_equal(code_with(w.ch, "x-envoy-fault-abort-grpc-request", "5"), TORC_STATUS_NOT_FOUND);
    assert_true(now_ms() - began >= 200);
    kit_mesh_take(w.k, 0);
    /* The deadline counts from the start of the RPC. */
    r = call(w.ch, ECHO, "x", NULL, 20);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    assert_non_null(strstr(torc_result_text(r), "while waiting for the HTTP filter \"slow\", which delays the call"));
    torc_result_free(r);
    assert_int_equal(kit_mesh_take(w.k, 0), 0);
    kit_mesh_world_close(&w);
}

static void delays_by_header(void **state)
{
    (void)state;
    struct kit_mesh_world w = open_world(FILTER("slow", ", delay: {header_delay: {}, " ALWAYS "}"), ROUTE(""));
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    const char *const headers[] = {"x-envoy-fault-delay-request", "100000", NULL};
    torc_result *r = call(w.ch, ECHO, "x", headers, 20);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    torc_result_free(r);
    const char *const none[] = {"x-envoy-fault-delay-request", "100000", "x-envoy-fault-delay-request-percentage", "0",
                                NULL};
    r = call(w.ch, ECHO, "x", none, -1);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    assert_int_equal(code_with(w.ch, NULL, NULL), TORC_STATUS_OK);
    kit_mesh_world_close(&w);
}

/* Counts the calls that have ended, whatever their status. */
struct ends {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int n, code; /* code: the last RPC's status */
};

/* The result's callback, on the runtime's thread. */
static void count(const torc_result *r, void *arg)
{
    struct ends *e = arg;
    pthread_mutex_lock(&e->mutex);
    e->n++;
    e->code = torc_result_code(r);
    pthread_cond_signal(&e->cond);
    pthread_mutex_unlock(&e->mutex);
}

static void expect_ends(struct ends *e, int n)
{
    pthread_mutex_lock(&e->mutex);
    assert_int_equal(e->n, n);
    pthread_mutex_unlock(&e->mutex);
}

/* Waits until n RPCs have ended. Asserts that no more have, and that the last was cancelled. */
static void wait_for_cancelled(struct ends *e, int n)
{
    pthread_mutex_lock(&e->mutex);
    while (e->n < n)
        pthread_cond_wait(&e->cond, &e->mutex);
    assert_int_equal(e->n, n);
    assert_int_equal(e->code, TORC_STATUS_CANCELLED);
    pthread_mutex_unlock(&e->mutex);
}

/* While one RPC is delayed, the next one passes without a delay. The delayed RPC ends when it is cancelled. This
 * happens twice. */
static void active_faults_are_limited(void **state)
{
    (void)state;
    struct kit_mesh_world w =
        open_world(FILTER("slow", ", delay: {fixed_delay: 1000s, " ALWAYS "}, max_active_faults: 1"), ROUTE(""));
    struct ends done = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, -1};
    torc_stream *held = NULL;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(torc_unary_async(w.ch, ECHO, "x", 1, NULL, count, &done, &held, NULL), 0);
        assert_int_equal(code_with(w.ch, NULL, NULL), TORC_STATUS_OK);
        expect_ends(&done, round);
        torc_stream_cancel(held);
        wait_for_cancelled(&done, round + 1);
        torc_stream_free(held);
    }
    /* Delayed calls end with their channel. */
    assert_int_equal(torc_unary_async(w.ch, ECHO, "x", 1, NULL, count, &done, NULL, NULL), 0);
    assert_int_equal(code_with(w.ch, NULL, NULL), TORC_STATUS_OK);
    expect_ends(&done, 2);
    kit_mesh_world_close(&w);
    wait_for_cancelled(&done, 3);
}

/* An override of the filter "f"; `settings` with a comma in front, or "". */
#define OVERRIDE(settings) "typed_per_filter_config: {f: {" FAULT settings "}}"

static void overrides(void **state)
{
    (void)state;
    struct kit_mesh_world w =
        open_world(FILTER("f", ", abort: {grpc_status: 1, " ALWAYS "}"),
                   "{match: {prefix: /none}, route: {cluster: c0}, " OVERRIDE(
                       "") "}, "
                           "{match: {prefix: /off}, route: {cluster: c0}, typed_per_filter_config: {f: {" TYPE
                           "envoy.config.route.v3.FilterConfig, disabled: true}}}, "
                           "{match: {prefix: /two}, route: {cluster: c0}, " OVERRIDE(
                               ", abort: {grpc_status: 2, " ALWAYS
                               "}") "}, "
                                    "{match: {prefix: /three}, " OVERRIDE(
                                        ", abort: {grpc_status: 2, " ALWAYS
                                        "}") ", route: {weighted_clusters: "
                                             "{clusters: [{name: c0, weight: 1, " OVERRIDE(
                                                 ", abort: {grpc_status: 3, " ALWAYS
                                                 "}") "}]}}}, "
                                                      "{match: {prefix: \"\"}, route: {cluster: c0}}");
    static const struct {
        const char *method;
        int code;
    } cases[] = {{"/none/M", TORC_STATUS_OK},
                 {"/off/M", TORC_STATUS_OK},
                 {"/two/M", TORC_STATUS_UNKNOWN},
                 {"/three/M", TORC_STATUS_INVALID_ARGUMENT},
                 {"/else/M", TORC_STATUS_CANCELLED}};
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        torc_result *r = call(w.ch, cases[i].method, "x", NULL, -1);
        assert_int_equal(torc_result_code(r), cases[i].code);
        torc_result_free(r);
    }
    kit_mesh_world_close(&w);
}

/* --- retries --- */

/* Makes a call, with these headers (as call takes them), that the backend fails with this code. Returns the number of
 * attempts. */
static unsigned attempts_with(torc_channel *ch, const char *const *headers, int code)
{
    char text[8];
    snprintf(text, sizeof(text), "%d", code);
    torc_result *r = call(ch, FAIL, text, headers, -1);
    assert_int_equal(torc_result_code(r), code);
    unsigned attempts = torc_result_attempts(r);
    torc_result_free(r);
    return attempts;
}

static unsigned attempts_of(torc_channel *ch, int code)
{
    return attempts_with(ch, NULL, code);
}

static void retries(void **state)
{
    TC_CASE(LR18);
    (void)state;
    struct kit_mesh_world w = open_world("", "{match: {prefix: \"\"}, route: {cluster: c0, retry_policy: {retry_on: "
                                             "\"unavailable,5xx,internal\", num_retries: 2, retry_back_off: "
                                             "{base_interval: 0.002s}}}}");
    assert_int_equal(attempts_of(w.ch, TORC_STATUS_UNAVAILABLE), 3);
    assert_int_equal(attempts_of(w.ch, TORC_STATUS_INTERNAL), 3);
    assert_int_equal(attempts_of(w.ch, TORC_STATUS_RESOURCE_EXHAUSTED), 1);
    assert_int_equal(kit_mesh_take(w.k, 0), 7);
    /* There are at most four retries. */
    kit_mesh_put_routes(w.k, "more",
                        "{match: {prefix: \"\"}, route: {cluster: c0, retry_policy: {retry_on: "
                        "cancelled, num_retries: 50, retry_back_off: {base_interval: 0.1s}}}}");
    torc_channel *ch = kit_mesh_channel(w.k, "more", NULL);
    assert_int_equal(attempts_of(ch, TORC_STATUS_CANCELLED), 5);
    torc_channel_free(ch);
    /* A retry policy without a code that gRPC knows is ignored. */
    kit_mesh_put_routes(w.k, "none",
                        "{match: {prefix: \"\"}, route: {cluster: c0, retry_policy: {retry_on: "
                        "\"5xx,reset\"}}}");
    ch = kit_mesh_channel(w.k, "none", NULL);
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 1);
    torc_channel_free(ch);
    /* An injected fault is not retried. */
    kit_mesh_put_filtered(w.k, "fault", FILTER("f", ", abort: {grpc_status: 14, " ALWAYS "}"),
                          "{match: {prefix: \"\"}, route: {cluster: c0, retry_policy: {retry_on: unavailable, "
                          "retry_back_off: {base_interval: 1000s}}}}");
    ch = kit_mesh_channel(w.k, "fault", NULL);
    assert_int_equal(code_with(ch, NULL, NULL), TORC_STATUS_UNAVAILABLE);
    torc_channel_free(ch);
    kit_mesh_world_close(&w);
}

static void retries_of_virtual_host(void **state)
{
    (void)state;
    struct kit_mesh_world w = open_world("", ROUTE(""));
    kit_mesh_put(w.k,
                 "resources:\n"
                 "- \"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\n"
                 "  name: routes\n"
                 "  virtual_hosts:\n"
                 "  - name: v\n"
                 "    domains: [\"*\"]\n"
                 "    retry_policy: {retry_on: unavailable, num_retries: 3, retry_back_off: "
                 "{base_interval: 0.001s}}\n"
                 "    routes:\n"
                 "    - {match: {prefix: \"\", headers: [{name: own, present_match: true}]}, "
                 "route: {cluster: c0, retry_policy: {retry_on: internal, retry_back_off: {base_interval: 0.1s}}}}\n"
                 "    - {match: {prefix: \"\"}, route: {cluster: c0}}\n"
                 "- \"@type\": type.googleapis.com/envoy.config.listener.v3.Listener\n"
                 "  name: by-rds\n"
                 "  api_listener:\n"
                 "    api_listener:\n"
                 "      " TYPE "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager\n"
                 "      http_filters: [{name: router, typed_config: {" TYPE
                 "envoy.extensions.filters.http.router.v3.Router}}]\n"
                 "      rds: {route_config_name: routes, config_source: {ads: {}}}\n");
    torc_channel *ch = kit_mesh_channel(w.k, "by-rds", NULL);
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 4);
    assert_int_equal(attempts_of(ch, TORC_STATUS_INTERNAL), 1);
    /* A route's own policy replaces the virtual host's. */
    static const char *const own[] = {"own", "yes", NULL};
    assert_int_equal(attempts_with(ch, own, TORC_STATUS_UNAVAILABLE), 1);
    assert_int_equal(attempts_with(ch, own, TORC_STATUS_INTERNAL), 2);
    torc_channel_free(ch);
    kit_mesh_world_close(&w);
}

/* --- deadlines (A31) --- */

/* Makes a call that is never answered. Asserts that its deadline was this many seconds after its start. */
static void expect_deadline(torc_channel *ch, int64_t timeout_ms, double seconds)
{
    torc_result *r = call(ch, HANG, "x", NULL, timeout_ms);
    char text[64];
    snprintf(text, sizeof(text), "deadline exceeded after %.3f s", seconds);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    if (!strstr(torc_result_text(r), text))
        fail_msg("%s, not %s", torc_result_text(r), text);
    torc_result_free(r);
}

static void deadlines(void **state)
{
    TC_CASE(LR19);
    (void)state;
    struct kit_mesh_world w = open_world("", "{match: {prefix: \"\"}, route: {cluster: c0, max_stream_duration: "
                                             "{max_stream_duration: 0.150s}}}");
    expect_deadline(w.ch, 30000, 0.15);
    expect_deadline(w.ch, 100, 0.1);
    kit_mesh_put_routes(w.k, "header",
                        "{match: {prefix: \"\"}, route: {cluster: c0, max_stream_duration: "
                        "{max_stream_duration: 0.010s, grpc_timeout_header_max: 0.200s}}}");
    torc_channel *ch = kit_mesh_channel(w.k, "header", NULL);
    expect_deadline(ch, 30000, 0.2);
    torc_channel_free(ch);
    kit_mesh_put_routes(w.k, "none",
                        "{match: {prefix: \"\"}, route: {cluster: c0, max_stream_duration: "
                        "{max_stream_duration: 0.010s, grpc_timeout_header_max: 0s}}}");
    ch = kit_mesh_channel(w.k, "none", NULL);
    expect_deadline(ch, 120, 0.12);
    torc_channel_free(ch);
    kit_mesh_world_close(&w);
}

/* --- runtime fractions (A28) --- */

/* Each RPC draws its own random number. */
static void runtime_fraction(void **state)
{
    TC_CASE(LR15);
    (void)state;
    struct kit_mesh_world w =
        open_world("", "{match: {prefix: \"\", runtime_fraction: {default_value: {numerator: 300000, denominator: "
                       "MILLION}}}, route: {cluster: c1}}, " ROUTE(""));
    const double shares[] = {0.7, 0.3};
    kit_mesh_expect_shares(w.k, w.ch, NULL, 3500, shares, 2);
    kit_mesh_world_close(&w);
}

/* --- authorities (A81) --- */

/* Returns a bootstrap whose xDS server has these features besides "xds_v3", each with a comma in front. The caller
 * frees the text with tc_free. */
static char *bootstrap(const struct kit_mesh_world *w, const char *features)
{
    return tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": \"insecure\"}], "
                       "\"server_features\": [\"xds_v3\"%s]}], \"node\": {\"id\": \"n\"}}",
                       kit_mesh_control_plane(w->k), features);
}

/* Puts a cluster `name` with one endpoint, at the port of `address` and with this hostname ("": none), and a listener
 * `name` to it, which rewrites the authority of methods that begin with "/torc". */
static void put_named(struct kit_mesh_world *w, const char *name, const char *address, const char *hostname)
{
    kit_mesh_put(
        w->k,
        "resources:\n"
        "- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
        "  cluster_name: %s\n"
        "  endpoints:\n"
        "  - locality: {sub_zone: a}\n"
        "    load_balancing_weight: 1\n"
        "    lb_endpoints:\n"
        "    - endpoint: {hostname: \"%s\", address: {socket_address: {address: 127.0.0.1, port_value: %s}}}\n",
        name, hostname, strrchr(address, ':') + 1);
    kit_mesh_put_cluster(w->k, name, "lb_policy: ROUND_ROBIN");
    char *routes = tc_asprintf("{match: {prefix: \"/torc\"}, route: {cluster: %s, auto_host_rewrite: true}}, "
                               "{match: {prefix: \"\"}, route: {cluster: %s}}",
                               name, name);
    kit_mesh_put_routes(w->k, name, routes);
    tc_free(routes);
}

/* Makes a channel to the listener `name`. features: as for bootstrap. creds: borrowed; NULL: plaintext. authority: the
 * channel's option; NULL: none. */
static torc_channel *named_channel(struct kit_mesh_world *w, const char *name, const char *features,
                                   torc_credentials *creds, const char *authority)
{
    char *json = bootstrap(w, features);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .xds_bootstrap_json = json};
    if (creds)
        o.credentials = creds;
    o.authority = authority;
    torc_channel *ch = kit_mesh_channel(w->k, name, &o);
    tc_free(json);
    return ch;
}

/* Makes a call, and asserts that the backend received it with this authority. */
static void expect_authority(torc_channel *ch, const char *authority)
{
    torc_result *r = call(ch, HEADERS, "x", NULL, -1);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    char *line = tc_asprintf(":authority: %s\n", authority),
         *seen = tc_strndup(torc_message_data(torc_result_response(r)), torc_message_size(torc_result_response(r)));
    if (!strstr(seen, line))
        fail_msg("no %s in %s", line, seen);
    tc_free(seen);
    tc_free(line);
    torc_result_free(r);
}

#define TRUSTED ", \"trusted_xds_server\""

static void authorities(void **state)
{
    (void)state;
    struct kit_mesh_world w = open_world("", ROUTE(""));
    put_named(&w, "named", kit_mesh_address(w.k, 0), "one.example:99");
    torc_channel *ch = named_channel(&w, "named", TRUSTED, NULL, NULL);
    expect_authority(ch, "one.example:99");
    torc_result *r = call(ch, HEADERS, "x", NULL, -1);
    assert_non_null(strstr(torc_result_explain(r), "\"authority\":\"one.example:99\""));
    torc_result_free(r);
    torc_channel_free(ch);
    /* The rewritten authority takes precedence over the channel's options. */
    ch = named_channel(&w, "named", TRUSTED, NULL, "mine.example");
    expect_authority(ch, "one.example:99");
    torc_channel_free(ch);
    /* An xDS server without trusted_xds_server cannot rewrite the authority. */
    ch = named_channel(&w, "named", "", NULL, NULL);
    expect_authority(ch, "named");
    torc_channel_free(ch);
    /* Without a hostname the authority is not rewritten. */
    put_named(&w, "nameless", kit_mesh_address(w.k, 0), "");
    ch = named_channel(&w, "nameless", TRUSTED, NULL, NULL);
    expect_authority(ch, "nameless");
    torc_channel_free(ch);
    kit_mesh_world_close(&w);
}

static void authority_of_dns_cluster(void **state)
{
    (void)state;
    struct kit_mesh_world w = open_world("", ROUTE(""));
    const char *port = strrchr(kit_mesh_address(w.k, 1), ':') + 1;
    kit_mesh_put(w.k,
                 "resources:\n"
                 "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                 "  name: dns\n"
                 "  type: LOGICAL_DNS\n"
                 "  load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: "
                 "localhost, port_value: %s}}}}]}]}\n",
                 port);
    kit_mesh_put_routes(w.k, "dns", "{match: {prefix: \"\"}, route: {cluster: dns, auto_host_rewrite: true}}");
    torc_channel *ch = named_channel(&w, "dns", TRUSTED, NULL, NULL);
    char *name = tc_asprintf("localhost:%s", port);
    expect_authority(ch, name);
    tc_free(name);
    torc_channel_free(ch);
    kit_mesh_world_close(&w);
}

/* Puts a cluster "mixed" with the two backends of `secure` as endpoints, one of them with a name for which its
 * certificate is not valid, and a listener "mixed" whose route rewrites the authority and retries. */
static void put_one_bad_name(struct kit_mesh_world *w, struct kit_backends *secure)
{
    kit_mesh_put(
        w->k,
        "resources:\n"
        "- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
        "  cluster_name: mixed\n"
        "  endpoints:\n"
        "  - locality: {sub_zone: a}\n"
        "    load_balancing_weight: 1\n"
        "    lb_endpoints:\n"
        "    - endpoint: {hostname: evil.example, address: {socket_address: {address: 127.0.0.1, port_value: %s}}}\n"
        "    - endpoint: {hostname: also.example, address: {socket_address: {address: 127.0.0.1, port_value: %s}}}\n",
        strrchr(kit_backends_address(secure, 0), ':') + 1, strrchr(kit_backends_address(secure, 1), ':') + 1);
    kit_mesh_put_cluster(w->k, "mixed", "lb_policy: ROUND_ROBIN");
    kit_mesh_put_routes(w->k, "mixed",
                        "{match: {prefix: \"\"}, route: {cluster: mixed, auto_host_rewrite: true, retry_policy: "
                        "{retry_on: unavailable, num_retries: 4, retry_back_off: {base_interval: 0.1s}}}}");
}

/* A81: with TLS the server's certificate must be valid for the rewritten name. */
static void authority_is_verified(void **state)
{
    (void)state;
    struct kit_cert ca = kit_cert_make(&(struct kit_cert_opts){.common_name = "ca", .ca = true});
    struct kit_cert leaf = kit_cert_make(&(struct kit_cert_opts){
        .common_name = "b", .sans = "DNS:good,DNS:bad,DNS:mixed,DNS:also.example", .issuer = &ca});
    struct tc_tls_context *tls = tc_tls_context_new(&(struct tc_tls_opts){.server = true,
                                                                          .verify = TC_TLS_VERIFY_NONE,
                                                                          .certificate_pem = kit_cert_pem(&leaf),
                                                                          .private_key_pem = kit_cert_key(&leaf)},
                                                    NULL);
    struct tc_server_opts so;
    tc_server_opts_init(&so);
    so.tls = tls;
    struct kit_backends *secure = kit_backends_new(2, &so);
    struct torc_tls_options t = {TORC_SIZE(torc_tls_options), .roots_pem = ca.cert_pem};
    torc_credentials *creds = torc_credentials_tls(&t, NULL);
    struct kit_mesh_world w = open_world("", ROUTE(""));
    put_named(&w, "good", kit_backends_address(secure, 0), "also.example:8443");
    torc_channel *ch = named_channel(&w, "good", TRUSTED, creds, NULL);
    expect_authority(ch, "also.example:8443");
    torc_channel_free(ch);
    put_named(&w, "bad", kit_backends_address(secure, 0), "evil.example");
    ch = named_channel(&w, "bad", TRUSTED, creds, NULL);
    torc_result *r = call(ch, HEADERS, "x", NULL, -1);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(torc_result_text(r), "is not valid for the authority \"evil.example\""));
    assert_int_equal(torc_result_attempts(r), 0);
    torc_result_free(r);
    /* The route without a rewrite works. */
    r = call(ch, "/other/M", "x", NULL, -1);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    torc_channel_free(ch);
    /* The next attempt may find an endpoint whose certificate is valid for its name. */
    put_one_bad_name(&w, secure);
    ch = named_channel(&w, "mixed", TRUSTED, creds, NULL);
    for (int i = 0; i < 4; i++)
        expect_authority(ch, "also.example");
    torc_channel_free(ch);
    kit_mesh_world_close(&w);
    torc_credentials_unref(creds);
    kit_backends_free(secure);
    tc_tls_context_unref(tls);
    kit_cert_fini(&leaf);
    kit_cert_fini(&ca);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aborts),
        cmocka_unit_test(status_codes),
        cmocka_unit_test(aborts_by_header),
        cmocka_unit_test(share_of_aborts),
        cmocka_unit_test(delays),
        cmocka_unit_test(delays_by_header),
        cmocka_unit_test(active_faults_are_limited),
        cmocka_unit_test(overrides),
        cmocka_unit_test(retries),
        cmocka_unit_test(retries_of_virtual_host),
        cmocka_unit_test(deadlines),
        cmocka_unit_test(runtime_fraction),
        cmocka_unit_test(authorities),
        cmocka_unit_test(authority_of_dns_cluster),
        cmocka_unit_test(authority_is_verified),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
