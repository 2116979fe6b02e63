/* The stateful session filter without a channel around it: which cookies it follows and which it sets. Also cds, which
 * hands the cluster's session settings to xds_override_host.
 *
 * The listener's only route has the clusters "c" and "d", and the session filter's cookie is "s". The steps of an
 * `rpc`, in this order: open_rpc, bring (adds a cookie), start, set_by (gives the response's cookie), close_rpc. A test
 * may leave out or repeat bring and set_by. What the filter makes is in the rpc's arena. In the part about cds the
 * policy runs over fakes/lb, on virtual time. Everything runs on the test's thread. */
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/config.h"
#include "support/kits/resource.h"

#include "base/mem.h"
#include "base/parse.h"
#include "lb/session_affinity.h"
#include "xds/filter/http_filters.h"
#include "xds/filter/session_filter.h"
#include "xds/lb/policies.h"
#include "xds/resource/cluster_ref.h"

#define TYPE "type.googleapis.com/envoy.extensions."
#define A "1.1.1.1:1"
#define B "[::1]:2"

static const char listener_json[] =
    "{'name': 'l', 'apiListener': {'apiListener': {'@type': '" TYPE
    "filters.network.http_connection_manager.v3.HttpConnectionManager', 'httpFilters': [%s {'name': 'router', "
    "'typedConfig': {'@type': '" TYPE "filters.http.router.v3.Router'}}], 'routeConfig': {'virtualHosts': [{'name': "
    "'v', 'domains': ['*'], 'routes': [{'match': {'prefix': ''}, 'route': {'weightedClusters': {'clusters': "
    "[{'name': 'c', 'weight': 1}, {'name': 'd', 'weight': 1}]}}}]}]}}}}";
static const char filter_json[] =
    "{'name': 'session', 'typedConfig': {'@type': '" TYPE
    "filters.http.stateful_session.v3.StatefulSession', 'sessionState': {'name': 'x', 'typedConfig': {'@type': '" TYPE
    "http.stateful_session.cookie.v3.CookieBasedSessionState', 'cookie': {'name': 's', 'path': '%s'}}}}},";

/* Returns a listener, a reference to its resource. path: the cookie's path; NULL: without the session filter. */
static const struct tc_listener *listener(const char *path)
{
    char *filter = path ? tc_asprintf(filter_json, path) : tc_strdup("");
    char *json = tc_asprintf(listener_json, filter);
    struct tc_xds_resource *r = kit_resource_valid(&tc_listener_type, NULL, json);
    tc_free(json);
    tc_free(filter);
    return tc_listener_of(r);
}

/* --- the filter --- */

static void on_cluster(struct tc_cluster_refs *refs, struct tc_rstr *name)
{
    (void)refs;
    (void)name;
}

/* An RPC that the config selector has sent to cluster "c". */
struct rpc {
    struct tc_loop *loop;
    struct tc_xds_config *config;
    struct tc_filter_chain *chain;
    struct tc_cluster_refs refs;
    struct tc_cluster_ref *other; /* keeps d in use */
    struct tc_arena arena;
    struct tc_headers headers;
    struct tc_call_config chosen;
    struct tc_filter_call call;
    void *state;
};

/* cookie_path: of the filter's cookie. path: the request's :path, borrowed until close_rpc. */
static void open_rpc(struct rpc *r, const char *cookie_path, const char *path)
{
    const struct tc_loop_opts opts = {.manual = true, .seeded = true, .seed = 7};
    *r = (struct rpc){.loop = tc_loop_new(&opts), .refs = {.on_used = on_cluster, .on_unused = on_cluster}};
    r->config = TC_NEW(struct tc_xds_config);
    tc_ref_init(&r->config->ref);
    r->config->listener = listener(cookie_path);
    r->config->vhost = &r->config->listener->routes->vhosts[0];
    const struct tc_route *route = &r->config->vhost->routes[0];
    r->chain = tc_http_filters_chain(r->config, route, &route->weighted[0]);
    assert_non_null(r->chain);
    tc_arena_init(&r->arena, 0, 0);
    tc_headers_init(&r->headers, &r->arena);
    struct tc_cluster_ref *c = tc_cluster_ref_get(&r->refs, route->weighted[0].name);
    r->other = tc_cluster_ref_get(&r->refs, route->weighted[1].name);
    r->chosen = (struct tc_call_config){.cluster = tc_rstr_slice(c->name), .hold = c, .filters = r->chain};
    r->call = (struct tc_filter_call){
        .loop = r->loop, .arena = &r->arena, .path = tc_slice_str(path), .metadata = &r->headers, .config = &r->chosen};
}

static void close_rpc(struct rpc *r)
{
    tc_cluster_ref_release(r->chosen.hold);
    tc_cluster_ref_release(r->other);
    tc_filter_chain_unref(r->chain);
    tc_xds_config_unref(r->config);
    tc_arena_fini(&r->arena);
    tc_loop_free(r->loop);
}

static void start(struct rpc *r)
{
    const struct tc_call_filter *f = &r->chain->filters[0];
    assert_int_equal(f->ops->start(f, &r->call, &r->state), TC_FILTER_NEXT);
}

/* Returns the cookie "s=..." with the plain text in base64, in the arena. */
static const char *cookie(struct rpc *r, const char *plain)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b, "s=");
    tc_base64_encode(&b, plain, strlen(plain), true);
    const char *copy = tc_arena_dup(&r->arena, tc_buf_slice(&b));
    tc_buf_fini(&b);
    return copy;
}

/* Adds a cookie field to the request. The field is borrowed until the response. */
static void bring(struct rpc *r, const char *field)
{
    tc_headers_add(&r->headers, tc_slice_str("cookie"), tc_slice_str(field));
}

/* Returns the set-cookie of the response, "" if it has none, when xds_override_host has picked `picked`. Asserts that
 * the response's own header, x-backend, comes through. */
static const char *set_by(struct rpc *r, const char *picked)
{
    const struct tc_call_filter *f = &r->chain->filters[0];
    struct tc_headers headers;
    tc_headers_init(&headers, &r->arena);
    tc_headers_add(&headers, tc_slice_str("x-backend"), tc_slice_str("b1"));
    if (r->chosen.session)
        r->chosen.session->picked = tc_slice_str(picked);
    const struct tc_headers *seen = f->ops->response(f, &r->call, &r->state, &headers);
    assert_non_null(tc_headers_find(seen, tc_slice_str("x-backend")));
    const struct tc_header *set = tc_headers_find(seen, tc_slice_str("set-cookie"));
    assert_int_equal(seen->len, set ? 2 : 1);
    return set ? tc_arena_dup(&r->arena, set->value) : "";
}

/* RFC 6265 5.1.4. */
static void paths(void **state)
{
    TC_CASE(SS12);
    (void)state;
    static const struct {
        const char *cookie, *request;
        bool matches;
    } rows[] = {
        {"", "/a.B/C", true},         {"/", "/a.B/C", true},      {"/a.B", "/a.B/C", true},
        {"/a.B/", "/a.B/C", true},    {"/a.B/C", "/a.B/C", true}, {"/a.B/C", "/a.B/C?x", true},
        {"/a.B", "/a.B?/C", true},    {"/a.B", "/a.BC/D", false}, {"/a.B/C", "/a.B/", false},
        {"/a.B/", "/a.B", false},     {"/a.b", "/a.B/C", false},  {"/B", "/a.B/C", false},
        {"/a.B/C/", "/a.B/C", false}, {"a.B", "/a.B/C", false},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct rpc r;
        open_rpc(&r, rows[i].cookie, rows[i].request);
        bring(&r, cookie(&r, A ";cluster:c"));
        start(&r);
        assert_int_equal(r.chosen.session != NULL, rows[i].matches);
        assert_int_equal(*set_by(&r, B) != '\0', rows[i].matches);
        close_rpc(&r);
    }
}

static void a_cookie_is_followed(void **state)
{
    TC_CASE(SS11);
    (void)state;
    struct rpc r;
    open_rpc(&r, "/", "/a.B/C");
    tc_headers_add(&r.headers, tc_slice_str("x"), tc_slice_str("s=1"));
    bring(&r, "t=1;ss=2; S=3");
    bring(&r, tc_asprintf("u=4;%s ;v=5", cookie(&r, A "," B ";cluster:c")));
    bring(&r, cookie(&r, "3.3.3.3:3;cluster:c"));
    start(&r);
    const struct tc_session *s = r.chosen.session;
    struct tc_addr b;
    assert_int_equal(tc_addr_parse(&b, tc_slice_str(B)), 0);
    assert_int_equal(s->n, 2);
    assert_true(tc_addr_eq(&s->addrs[1], &b));
    assert_true(tc_slice_eq_str(r.chosen.cluster, "c"));
    assert_null(s->passed_over);
    assert_string_equal(set_by(&r, A "," B), "");
    /* The endpoint is in use by its other address, so the cookie has another value, and the response sets it. */
    assert_string_not_equal(set_by(&r, B "," A), "");
    assert_string_equal(set_by(&r, ""), "");
    tc_free((char *)(uintptr_t)r.headers.data[2].value.data);
    close_rpc(&r);
}

static void the_cluster_of_the_cookie(void **state)
{
    TC_CASE(SS08);
    (void)state;
    struct rpc r;
    open_rpc(&r, "/", "/a.B/C");
    bring(&r, cookie(&r, A ";cluster:d"));
    start(&r);
    assert_true(tc_slice_eq_str(r.chosen.cluster, "d"));
    assert_true(r.chosen.hold == r.other);
    assert_string_equal(set_by(&r, A), "");
    close_rpc(&r);
    /* A cluster of the route that is not in use. */
    open_rpc(&r, "/", "/a.B/C");
    tc_cluster_ref_release(r.other);
    r.other = NULL;
    bring(&r, cookie(&r, A ";cluster:d"));
    start(&r);
    assert_true(tc_slice_eq_str(r.chosen.cluster, "c"));
    assert_int_equal(r.chosen.session->n, 0);
    assert_string_equal(r.chosen.session->passed_over, "the route has no such cluster");
    assert_string_not_equal(set_by(&r, A), "");
    close_rpc(&r);
}

static void nothing_to_follow(void **state)
{
    TC_CASE(SS11);
    (void)state;
    static const struct {
        const char *plain, *why;
    } rows[] = {
        {"", "the cookie names no IP addresses with ports"},
        {";", "the cookie names no IP addresses with ports"},
        {"1.1.1.1", "the cookie names no IP addresses with ports"},
        {"host:80", "the cookie names no IP addresses with ports"},
        {A "," A ",;cluster:c", "the cookie names no IP addresses with ports"},
        {"unix:/x;cluster:c", "the cookie names no IP addresses with ports"},
        {"unix-abstract:x;cluster:c", "the cookie names no IP addresses with ports"},
        {A ";c", "the cookie names no cluster"},
        {A ";", "the cookie names no cluster"},
        {A ";cluster:", "the route has no such cluster"},
        {A ";cluster:e", "the route has no such cluster"},
        {A ";cluster:c;", "the route has no such cluster"},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct rpc r;
        open_rpc(&r, "/", "/a.B/C");
        bring(&r, cookie(&r, rows[i].plain));
        start(&r);
        assert_string_equal(r.chosen.session->passed_over, rows[i].why);
        assert_int_equal(r.chosen.session->n, 0);
        assert_true(tc_slice_eq_str(r.chosen.cluster, "c"));
        assert_string_not_equal(set_by(&r, A), "");
        close_rpc(&r);
    }
    /* A cookie of A55 names no cluster: it is followed, and the response sets a cookie that names the cluster. */
    struct rpc r;
    open_rpc(&r, "/", "/a.B/C");
    bring(&r, cookie(&r, A));
    start(&r);
    assert_int_equal(r.chosen.session->n, 1);
    assert_string_not_equal(set_by(&r, A), "");
    close_rpc(&r);
}

static void limits_of_a_cookie(void **state)
{
    TC_CASE(SS11);
    (void)state;
    for (size_t n = 63; n <= 65; n++) {
        struct tc_buf plain = {0};
        struct rpc r;
        for (size_t i = 0; i < n; i++)
            tc_buf_printf(&plain, "%s10.0.0.%zu:80", i ? "," : "", i);
        tc_buf_append_str(&plain, ";cluster:c");
        open_rpc(&r, "/", "/a.B/C");
        bring(&r, cookie(&r, tc_buf_cstr(&plain)));
        start(&r);
        assert_int_equal(r.chosen.session->n, n <= 64 ? n : 0);
        if (n > 64)
            assert_string_equal(r.chosen.session->passed_over, "the cookie names no IP addresses with ports");
        close_rpc(&r);
        tc_buf_fini(&plain);
    }
    /* 16,384 bytes of base64 have 12,288 bytes of text, most of them the name of a cluster. */
    for (size_t len = 12288; len <= 12289; len++) {
        struct tc_buf plain = {0};
        struct rpc r;
        tc_buf_append_str(&plain, A ";cluster:");
        while (plain.len < len)
            tc_buf_append_char(&plain, 'c');
        open_rpc(&r, "/", "/a.B/C");
        bring(&r, cookie(&r, tc_buf_cstr(&plain)));
        start(&r);
        assert_string_equal(r.chosen.session->passed_over,
                            len == 12288 ? "the route has no such cluster" : "the cookie is too long");
        close_rpc(&r);
        tc_buf_fini(&plain);
    }
}

static void a_new_session(void **state)
{
    TC_CASE(SS02);
    (void)state;
    struct rpc r;
    open_rpc(&r, "/a.B", "/a.B/C");
    start(&r);
    assert_int_equal(r.chosen.session->n, 0);
    assert_false(r.chosen.session->has_cookie);
    const char *expected = tc_asprintf("%s; HttpOnly; Path=/a.B", cookie(&r, A ";cluster:c"));
    assert_string_equal(set_by(&r, A), expected);
    tc_free((char *)(uintptr_t)expected);
    close_rpc(&r);
}

/* --- cds --- */

/* Returns a config of cluster "c", a reference. cookie_path: the path of `listener`. more, localities: see
 * kits/config.h. */
static struct tc_xds_config *config_with(const char *cookie_path, const char *more, const char *localities)
{
    struct tc_xds_config *config =
        kit_config_config(kit_config_cluster("c", more, kit_config_eds(localities, NULL)), NULL);
    config->listener = listener(cookie_path);
    return config;
}

static void update(struct fake_lb *f, const char *cookie_path, const char *more, const char *localities)
{
    struct tc_rstr *name = tc_rstr_str("c");
    kit_config_update(f, tc_child_config_single(&tc_cds_factory, name, NULL),
                      config_with(cookie_path, more, localities));
    tc_rstr_unref(name);
}

/* Picks for an RPC whose cookie names this address, and ends the RPC. Returns as fake_lb_pick does. */
static const char *pick(struct fake_lb *f, const char *addr)
{
    static struct tc_addr addrs[1];
    static struct tc_session session;
    assert_int_equal(tc_addr_parse(&addrs[0], tc_slice_str(addr)), 0);
    session = (struct tc_session){.n = 1, .addrs = addrs};
    f->args.session = &session;
    const char *got = fake_lb_pick(f);
    f->args.session = NULL;
    struct tc_status ok = {0};
    for (struct tc_call_tracker *t = f->pick.trackers, *next; t; t = next) {
        next = t->next;
        t->on_done(t, &ok, NULL);
    }
    f->pick.trackers = NULL;
    return got;
}

#define STATUSES ", 'commonLbConfig': {'overrideHostStatus': {'statuses': ['DRAINING']}}"
#define TEN_SECONDS                                                                                                    \
    ", 'upstreamConfig': {'name': 'x', 'typedConfig': {'@type': '" TYPE                                                \
    "upstreams.http.v3.HttpProtocolOptions', 'commonHttpProtocolOptions': {'idleTimeout': '10s'}}}"

/* The cluster's settings count, but only with the filter in the listener. */
static void settings_of_the_cluster(void **state)
{
    TC_CASE(SS10);
    (void)state;
    struct fake_lb *f = kit_config_lb("cds_experimental");
    const char *localities = "0/a: 1.1.1.1:1; 1/b: 2.2.2.2:2; 1/c: 3.3.3.3:3!DRAINING";
    update(f, "/", "", localities);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(pick(f, "2.2.2.2:2"), "QUEUE");
    fake_lb_set(f, "2.2.2.2:2", TORC_CONNECTIVITY_READY);
    assert_string_equal(pick(f, "2.2.2.2:2"), "2.2.2.2:2");
    assert_string_equal(pick(f, "3.3.3.3:3"), A);
    /* The cluster's statuses change: the connection that sessions hold to an endpoint of another status ends. */
    update(f, "/", STATUSES, localities);
    assert_int_equal(fake_lb_count(f, "2.2.2.2:2"), 0);
    assert_string_equal(pick(f, "2.2.2.2:2"), A);
    assert_string_equal(pick(f, "3.3.3.3:3"), "QUEUE");
    fake_lb_set(f, "3.3.3.3:3", TORC_CONNECTIVITY_READY);
    assert_string_equal(pick(f, "3.3.3.3:3"), "3.3.3.3:3");
    /* An idle timeout of 10 s. */
    update(f, "/", STATUSES TEN_SECONDS, localities);
    assert_int_equal(fake_lb_count(f, "3.3.3.3:3"), 1);
    tc_loop_advance(f->loop, 9999);
    assert_int_equal(fake_lb_count(f, "3.3.3.3:3"), 1);
    tc_loop_advance(f->loop, 1);
    assert_int_equal(fake_lb_count(f, "3.3.3.3:3"), 0);
    assert_int_equal(fake_lb_count(f, A), 1);
    /* The filter leaves the listener, while the cluster stays as it is. */
    assert_string_equal(pick(f, "3.3.3.3:3"), "QUEUE");
    update(f, NULL, STATUSES TEN_SECONDS, localities);
    assert_int_equal(fake_lb_count(f, "3.3.3.3:3"), 0);
    assert_string_equal(pick(f, "3.3.3.3:3"), A);
    update(f, "/", STATUSES TEN_SECONDS, localities);
    assert_string_equal(pick(f, "3.3.3.3:3"), "QUEUE");
    kit_config_lb_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths),
        cmocka_unit_test(a_cookie_is_followed),
        cmocka_unit_test(the_cluster_of_the_cookie),
        cmocka_unit_test(nothing_to_follow),
        cmocka_unit_test(limits_of_a_cookie),
        cmocka_unit_test(a_new_session),
        cmocka_unit_test(settings_of_the_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
