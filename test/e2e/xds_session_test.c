/* Stateful sessions on the wire (A55, A60, A61, A75): cookies set and followed, and what ends a session. Read
 * kits/session.h first.
 *
 * The cookie "s" has the plain text "ADDRESS,...;cluster:NAME". kit_session_cookie makes one without an RPC, so that a
 * test chooses the endpoint. kit_session_reaches asserts that the cookie was followed: no new one was set.
 *
 * The clusters are round_robin. Once all endpoints are READY, RPCs that follow no session take turns, so that tests can
 * assert exact counts (`share`). An update takes its time to reach the channel: a test repeats RPCs until one shows the
 * update. Such a loop of this file has no limit.
 *
 * The tests run on one thread. Control plane and backends have their own thread, and so has the channel's runtime. */
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/session.h"

#include "base/mem.h"

#define TO_C "{match: {prefix: \"\"}, route: {cluster: c}}"
#define RR "lb_policy: ROUND_ROBIN"

/* Makes the world of kit_mesh_world_open, with these filters of its listener. kit_mesh_world_close frees it. */
static struct kit_mesh_world open_world(size_t n, const char *endpoints, const char *cluster, const char *filters)
{
    struct kit_mesh_world w = kit_mesh_world_open(n, endpoints, cluster, NULL);
    kit_mesh_put_filtered(w.k, "svc", filters, TO_C);
    return w;
}

/* Makes n RPCs without a cookie. Returns how many reached backend i. */
static unsigned share(struct kit_mesh_world *w, unsigned n, size_t i)
{
    unsigned count = 0;
    for (unsigned k = 0; k < n; k++) {
        struct kit_session_answer a = kit_session_call(w, NULL);
        count += a.backend == i;
        kit_session_answer_fini(&a);
    }
    return count;
}

static void set_and_followed(void **state)
{
    TC_CASE(SS01);
    TC_CASE(SS02);
    TC_CASE(SS03);
    TC_CASE(SS12);
    (void)state;
    struct kit_mesh_world w = open_world(2, "0/a: 0, 1", RR, SESSION("name: s, path: /test.Service, ttl: 59.5s"));
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 1);
    char *cookie;
    struct kit_session_answer a = kit_session_call(&w, NULL);
    char *plain = kit_session_read_cookie(a.set_cookie, &cookie);
    char *expected = tc_asprintf("%s;cluster:c", kit_mesh_address(w.k, a.backend));
    assert_string_equal(plain, expected);
    assert_string_equal(strchr(a.set_cookie, ';'), "; HttpOnly; Path=/test.Service; Max-Age=60");
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(kit_session_reaches(&w, cookie), a.backend);
    assert_int_equal(share(&w, 4, 0), 2);
    /* Another method under the path. */
    for (unsigned i = 0; i < 3; i++) {
        struct kit_session_answer b =
            kit_session_call_with(&w, "/test.Service/Other", "", (const char *const[]){cookie, NULL});
        assert_int_equal(b.backend, a.backend);
        assert_null(b.set_cookie);
    }
    /* The filter does not apply outside the path. */
    unsigned same = 0;
    for (unsigned i = 0; i < 4; i++) {
        struct kit_session_answer b =
            kit_session_call_with(&w, "/test.Services/Method", "", (const char *const[]){cookie, NULL});
        same += b.backend == a.backend;
        assert_null(b.set_cookie);
    }
    assert_int_equal(same, 2);
    tc_free(expected);
    tc_free(plain);
    tc_free(cookie);
    kit_session_answer_fini(&a);
    kit_mesh_world_close(&w);
}

/* A draining backend keeps its sessions only if override_host_status of the cluster contains DRAINING. */
static void health(void **state)
{
    TC_CASE(ED09);
    TC_CASE(SS04);
    TC_CASE(SS05);
    TC_CASE(SS06);
    (void)state;
    struct kit_mesh_world w =
        open_world(3, "0/a: 0, 1, 2",
                   RR "\n  common_lb_config: {override_host_status: {statuses: [UNKNOWN, HEALTHY, "
                      "DRAINING]}}",
                   SESSION("name: s"));
    for (size_t i = 0; i < 3; i++)
        kit_mesh_wait_backend(w.k, w.ch, NULL, i);
    char *cookie = kit_session_cookie("%s;cluster:c", kit_mesh_address(w.k, 0)), *other;
    assert_int_equal(kit_session_reaches(&w, cookie), 0);
    kit_mesh_put_endpoints(w.k, "c", "0/a: 0!DRAINING, 1, 2", NULL);
    while (share(&w, 3, 0) > 0)
        ;
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(kit_session_reaches(&w, cookie), 0);
    assert_int_equal(share(&w, 4, 1), 2);
    assert_int_equal(kit_mesh_connections(w.k, 0), 1);
    /* Sessions no longer go to draining hosts. */
    kit_mesh_put_cluster(w.k, "c", RR);
    kit_session_wait_leaves(&w, cookie, 0);
    size_t at = kit_session_begin(&w, cookie, "c", &other);
    assert_int_not_equal(at, 0);
    assert_int_equal(kit_session_reaches(&w, other), at);
    tc_free(other);
    /* UNHEALTHY counts as gone. */
    tc_free(cookie);
    cookie = kit_session_cookie("%s;cluster:c", kit_mesh_address(w.k, 1));
    assert_int_equal(kit_session_reaches(&w, cookie), 1);
    kit_mesh_put_endpoints(w.k, "c", "0/a: 0, 1!UNHEALTHY, 2", NULL);
    kit_session_wait(&w, cookie, 0);
    kit_session_wait(&w, cookie, 2);
    assert_int_equal(share(&w, 4, 1), 0);
    tc_free(cookie);
    kit_mesh_world_close(&w);
}

/* The cookie chooses the cluster among the route's (A60), as long as the route has it. */
static void clusters(void **state)
{
    TC_CASE(SS07);
    TC_CASE(SS08);
    (void)state;
    struct kit_mesh_world w = {.k = kit_mesh_new(3)};
    static const char *const both = "{match: {prefix: \"\"}, route: {weighted_clusters: {clusters: "
                                    "[{name: c1, weight: 50}, {name: c2, weight: 50}]}}}";
    kit_mesh_put_endpoints(w.k, "c1", "0/a: 0", NULL);
    kit_mesh_put_endpoints(w.k, "c2", "0/a: 1, 2", NULL);
    kit_mesh_put_cluster(w.k, "c1", RR);
    kit_mesh_put_cluster(w.k, "c2", RR);
    kit_mesh_put_filtered(w.k, "svc", SESSION("name: s"), both);
    w.ch = kit_mesh_channel(w.k, "svc", NULL);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 2);
    char *in_c1 = kit_session_cookie("%s;cluster:c1", kit_mesh_address(w.k, 0));
    char *in_c2 = kit_session_cookie("%s;cluster:c2", kit_mesh_address(w.k, 2));
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(kit_session_reaches(&w, in_c1), 0);
        assert_int_equal(kit_session_reaches(&w, in_c2), 2);
    }
    /* A cookie with a host of c2 and the name of c1: the RPC goes to c1, where a new session begins. */
    char *wrong = kit_session_cookie("%s;cluster:c1", kit_mesh_address(w.k, 2)), *fresh;
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(kit_session_begin(&w, wrong, "c1", &fresh), 0);
        tc_free(fresh);
    }
    /* The route leads to c2 alone: a cookie of c1 is ignored. */
    kit_mesh_put_filtered(w.k, "svc", SESSION("name: s"), "{match: {prefix: \"\"}, route: {cluster: c2}}");
    kit_session_wait(&w, in_c1, 1);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_not_equal(kit_session_begin(&w, in_c1, "c2", &fresh), 0);
        tc_free(fresh);
        assert_int_equal(kit_session_reaches(&w, in_c2), 2);
    }
    tc_free(in_c1);
    tc_free(in_c2);
    tc_free(wrong);
    kit_mesh_world_close(&w);
}

/* No cookie that a client sends fails an RPC. */
static void bad_cookies(void **state)
{
    TC_CASE(SS11);
    (void)state;
    struct kit_mesh_world w = open_world(2, "0/a: 0, 1", RR, SESSION("name: s"));
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 1);
    char *good = kit_session_cookie("%s;cluster:c", kit_mesh_address(w.k, 1)), *fresh;
    char *first = kit_session_cookie("%s;cluster:c", kit_mesh_address(w.k, 0));
    char *huge = tc_calloc(1, 6001);
    memset(huge, 'A', 6000);
    memcpy(huge, "s=", 2);
    struct tc_buf many = {0};
    for (unsigned i = 0; i < 100; i++)
        tc_buf_printf(&many, "%s1.1.1.1:%u", i ? "," : "", i);
    char *const bad[] = {
        tc_strdup("s=%%%"),
        tc_strdup("s="),
        tc_strdup("s"),
        tc_strdup("t=abc; ss=def"),
        huge,
        kit_session_cookie("not an address;cluster:c"),
        kit_session_cookie("unix:/tmp/socket;cluster:c"),
        kit_session_cookie("%s,,;cluster:c", kit_mesh_address(w.k, 1)),
        kit_session_cookie("%s;c", kit_mesh_address(w.k, 1)),
        kit_session_cookie("%s;cluster:%s", kit_mesh_address(w.k, 1), "\xff\xfe"),
        kit_session_cookie("%s;cluster:c", tc_buf_cstr(&many)),
        kit_session_cookie("9.9.9.9:9;cluster:c"),
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        kit_session_begin(&w, bad[i], "c", &fresh);
        tc_free(fresh);
        tc_free(bad[i]);
    }
    /* The first of two cookies with the name counts, in one field or two. Cookies of other names do not matter. */
    char *two = tc_asprintf("a=1; %s;  %s", good, first);
    assert_int_equal(kit_session_reaches(&w, two), 1);
    struct kit_session_answer a =
        kit_session_call_with(&w, KIT_SESSION_METHOD, "", (const char *const[]){"x=y", first, good, NULL});
    assert_int_equal(a.backend, 0);
    assert_null(a.set_cookie);
    /* The first cookie counts even if it is malformed: the second one is not followed. */
    a = kit_session_call_with(&w, KIT_SESSION_METHOD, "", (const char *const[]){"s=?", good, NULL});
    assert_non_null(a.set_cookie);
    kit_session_answer_fini(&a);
    /* A55's form without a cluster is followed, and rewritten. */
    char *old = kit_session_cookie("%s", kit_mesh_address(w.k, 1));
    assert_int_equal(kit_session_begin(&w, old, "c", &fresh), 1);
    tc_free(fresh);
    tc_free(old);
    tc_free(two);
    tc_free(good);
    tc_free(first);
    tc_buf_fini(&many);
    kit_mesh_world_close(&w);
}

/* A75: the endpoint of a session moves to a priority that is not in use; the session stays, on its connection. */
static void moves_between_priorities(void **state)
{
    TC_CASE(AG23);
    TC_CASE(SS09);
    TC_CASE(SS13);
    TC_CASE(SS16);
    (void)state;
    struct kit_mesh_world w = open_world(3, "0/a: 0, 1; 1/b: 2", RR, SESSION("name: s"));
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 1);
    char *cookie = kit_session_cookie("%s;cluster:c", kit_mesh_address(w.k, 0));
    assert_int_equal(kit_session_reaches(&w, cookie), 0);
    kit_mesh_put_endpoints(w.k, "c", "0/a: 1; 1/b: 2, 0", NULL);
    while (share(&w, 3, 0) > 0)
        ;
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(kit_session_reaches(&w, cookie), 0);
    assert_int_equal(share(&w, 4, 1), 4);
    /* An endpoint whose priority was never in use is connected for the session alone. */
    char *lower = kit_session_cookie("%s;cluster:c", kit_mesh_address(w.k, 2));
    assert_int_equal(kit_mesh_connections(w.k, 2), 0);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(kit_session_reaches(&w, lower), 2);
    assert_int_equal(share(&w, 4, 1), 4);
    /* The connection of the session's endpoint is lost and made again. */
    kit_mesh_stop(w.k, 2);
    kit_mesh_start(w.k, 2);
    kit_session_wait(&w, lower, 2);
    /* The endpoint fails for good: the session goes elsewhere. */
    kit_mesh_stop(w.k, 2);
    kit_session_wait(&w, lower, 1);
    /* Backend 0 moves back to priority 0. */
    kit_mesh_put_endpoints(w.k, "c", "0/a: 0, 1; 1/b: 2", NULL);
    while (share(&w, 2, 0) == 0)
        ;
    assert_int_equal(kit_session_reaches(&w, cookie), 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(kit_mesh_connections(w.k, i), 1);
    tc_free(cookie);
    tc_free(lower);
    kit_mesh_world_close(&w);
}

/* A61: an endpoint with two addresses; the cookie has both, the one in use first. */
static void several_addresses(void **state)
{
    TC_CASE(SS18);
    (void)state;
    struct kit_mesh_world w = open_world(3, "0/a: 0+1, 2", RR, SESSION("name: s"));
    /* The second address must not win while the first one is slow and both are tried. */
    kit_mesh_stop(w.k, 1);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    kit_mesh_start(w.k, 1);
    char *cookie = kit_session_cookie("%s,%s;cluster:c", kit_mesh_address(w.k, 0), kit_mesh_address(w.k, 1)), *moved;
    assert_int_equal(kit_session_reaches(&w, cookie), 0);
    char *one = kit_session_cookie("%s;cluster:c", kit_mesh_address(w.k, 0));
    struct kit_session_answer a = kit_session_call(&w, one);
    assert_int_equal(a.backend, 0);
    assert_non_null(a.set_cookie);
    assert_int_equal(strncmp(a.set_cookie, cookie, strlen(cookie)), 0);
    kit_session_answer_fini(&a);
    kit_mesh_stop(w.k, 0);
    kit_session_wait(&w, cookie, 1);
    a = kit_session_call(&w, cookie);
    char *plain = kit_session_read_cookie(a.set_cookie, &moved);
    char *expected = tc_asprintf("%s,%s;cluster:c", kit_mesh_address(w.k, 1), kit_mesh_address(w.k, 0));
    assert_string_equal(plain, expected);
    assert_int_equal(kit_session_reaches(&w, moved), 1);
    kit_session_answer_fini(&a);
    tc_free(expected);
    tc_free(plain);
    tc_free(moved);
    tc_free(one);
    tc_free(cookie);
    kit_mesh_world_close(&w);
}

/* Routes may have their own sessions, or none. Retries stay with the session (A55). */
static void routes(void **state)
{
    (void)state;
    struct kit_mesh_world w = {.k = kit_mesh_new(2)};
    kit_mesh_put_endpoints(w.k, "c", "0/a: 0, 1", NULL);
    kit_mesh_put_cluster(w.k, "c", RR);
    kit_mesh_put_filtered(w.k, "svc", NO_SESSION,
                          "{match: {prefix: /off}, route: {cluster: c}, " SESSION_OFF "}, {match: {prefix: /t}, route: "
                          "{cluster: c, retry_policy: {retry_on: unavailable, num_retries: 3, retry_back_off: "
                          "{base_interval: 0.001s}}}, " SESSION_ON "}, {match: {prefix: \"\"}, route: {cluster: c}}");
    w.ch = kit_mesh_channel(w.k, "svc", NULL);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 1);
    char *cookie = kit_session_cookie("%s;cluster:c", kit_mesh_address(w.k, 1));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(kit_session_reaches(&w, cookie), 1);
    static const char *const without[] = {"/off/Method", "/elsewhere/Method"};
    for (size_t m = 0; m < 2; m++) {
        unsigned at_0 = 0;
        for (unsigned i = 0; i < 4; i++) {
            struct kit_session_answer a =
                kit_session_call_with(&w, without[m], "", (const char *const[]){cookie, NULL});
            at_0 += a.backend == 0;
            assert_null(a.set_cookie);
        }
        assert_int_equal(at_0, 2);
    }
    kit_mesh_take(w.k, 0);
    kit_mesh_take(w.k, 1);
    struct kit_session_answer failed =
        kit_session_call_with(&w, "/torc.test.Backend/Fail", "14", (const char *const[]){cookie, NULL});
    assert_int_equal(failed.code, TORC_STATUS_UNAVAILABLE);
    assert_null(failed.set_cookie);
    assert_int_equal(kit_mesh_take(w.k, 0), 0);
    assert_int_equal(kit_mesh_take(w.k, 1), 4);
    /* RPCs that fail set cookies too. */
    struct kit_session_answer a =
        kit_session_call_with(&w, "/torc.test.Backend/Fail", "5", (const char *const[]){NULL});
    assert_int_equal(a.code, TORC_STATUS_NOT_FOUND);
    assert_non_null(a.set_cookie);
    kit_session_answer_fini(&a);
    tc_free(cookie);
    kit_mesh_world_close(&w);
}

/* Updates of the listener add the filter (`on` is 0 or 2) and remove it (1); connections stay. */
static void turned_on_and_off(void **state)
{
    (void)state;
    struct kit_mesh_world w = open_world(2, "0/a: 0, 1", RR, "");
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 1);
    char *cookie = kit_session_cookie("%s;cluster:c", kit_mesh_address(w.k, 1));
    for (unsigned on = 0; on < 3; on++) {
        kit_mesh_put_filtered(w.k, "svc", on % 2 ? "" : SESSION("name: s"), TO_C);
        for (bool set = on % 2; set != (on % 2 == 0);) {
            struct kit_session_answer a = kit_session_call(&w, NULL);
            set = a.set_cookie != NULL;
            kit_session_answer_fini(&a);
        }
        unsigned at_1 = 0;
        for (unsigned i = 0; i < 4; i++)
            at_1 += kit_session_reaches(&w, cookie) == 1;
        assert_int_equal(at_1, on % 2 ? 2 : 4);
    }
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(kit_mesh_connections(w.k, i), 1);
    tc_free(cookie);
    kit_mesh_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_and_followed),
        cmocka_unit_test(health),
        cmocka_unit_test(clusters),
        cmocka_unit_test(bad_cookies),
        cmocka_unit_test(moves_between_priorities),
        cmocka_unit_test(several_addresses),
        cmocka_unit_test(routes),
        cmocka_unit_test(turned_on_and_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
