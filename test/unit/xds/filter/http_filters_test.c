/* Chains of HTTP filters as routes get them, and fault injection, without a channel around them.
 *
 * A world has a config of one virtual host, and what an RPC needs; open_world makes it, and close_world frees it.
 * `pass` starts an RPC and ends it. Faults are drawn from the random numbers of the world's loop, which has a fixed
 * seed, so each run is the same. The loop does not turn: a delay is seen as the verdict TC_FILTER_WAIT. Everything runs
 * on the test's thread. a_child_counts_its_own_faults keeps a second RPC under way, and forks a child, which passes two
 * RPCs and exits. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/config.h"

#include "base/mem.h"
#include "xds/filter/http_filters.h"
#include "xds/resource/cluster_ref.h"
#include "xds/resource/fault_filter.h"

#define TYPE "'@type':'type.googleapis.com/"
#define FAULT TYPE "envoy.extensions.filters.http.fault.v3.HTTPFault'"
#define ABORT(code) "{" FAULT ",'abort':{'grpcStatus':" code ",'percentage':{'numerator':100}}}"
#define WRAPPED(inner) "{" TYPE "envoy.config.route.v3.FilterConfig'," inner "}"
#define PER(list) "'typedPerFilterConfig':{" list "}"

struct world {
    struct tc_loop *loop;
    struct tc_xds_config *config;
    struct tc_arena arena;
    struct tc_headers headers;
    struct tc_call_config chosen;
    struct tc_filter_call call;
};

/* filters: chain entries in front of the router; vhost: further members of the virtual host; routes: its routes. */
static void open_world(struct world *w, const char *filters, const char *vhost, const char *routes)
{
    const struct tc_loop_opts opts = {.manual = true, .seeded = true, .seed = 7};
    *w = (struct world){.loop = tc_loop_new(&opts)};
    w->config = kit_config_routing(filters, vhost, routes, "");
    tc_arena_init(&w->arena, 0, 0);
    tc_headers_init(&w->headers, &w->arena);
}

static void close_world(struct world *w)
{
    tc_status_fini(&w->call.status);
    tc_xds_config_unref(w->config);
    tc_arena_fini(&w->arena);
    tc_loop_free(w->loop);
}

static const struct tc_route *route(const struct world *w, size_t i)
{
    return &w->config->vhost->routes[i];
}

/* Returns the codes that the filters of a route's chain abort with, in order: "a=7 b=5"; "" if there is no chain. The
 * text is in the world's arena. `cluster` may be NULL. */
static const char *aborts(struct world *w, size_t at, const struct tc_weighted_cluster *cluster)
{
    struct tc_buf text = {0};
    struct tc_filter_chain *chain = tc_http_filters_chain(w->config, route(w, at), cluster);
    for (size_t i = 0; chain && i < chain->n; i++) {
        const struct tc_fault_config *f = chain->filters[i].config;
        tc_buf_printf(&text, "%s%s=%u", i ? " " : "", chain->filters[i].name.data, f->abort_status);
    }
    const char *copy = tc_arena_dup(&w->arena, tc_buf_slice(&text));
    tc_buf_fini(&text);
    tc_filter_chain_unref(chain);
    return copy;
}

static void most_specific_override_counts(void **state)
{
    (void)state;
    struct world w;
    open_world(&w,
               "{'name': 'a', 'typedConfig': " ABORT("1") "}, {'name': 'b', 'typedConfig': " ABORT(
                   "2") "}, "
                        "{'name': 'idle', 'typedConfig': {" FAULT "}},",
               PER("'a': " ABORT("3") ", 'unknown': " ABORT("9")) ",",
               "{'match': {'prefix': '/1'}, 'route': {'cluster': 'c'}}, "
               "{'match': {'prefix': '/2'}, 'route': {'cluster': 'c'}, " PER(
                   "'b': " ABORT("4")) "}, "
                                       "{'match': {'prefix': '/3'}, " PER("'a': " ABORT(
                                           "5")) ", 'route': {'weightedClusters': {'clusters': ["
                                                 "{'name': 'x', 'weight': 1}, {'name': 'y', 'weight': 1, " PER(
                                                     "'a': " ABORT("6")) "}]}}}");
    assert_string_equal(aborts(&w, 0, NULL), "a=3 b=2");
    assert_string_equal(aborts(&w, 1, NULL), "a=3 b=4");
    assert_string_equal(aborts(&w, 2, &route(&w, 2)->weighted[0]), "a=5 b=2");
    assert_string_equal(aborts(&w, 2, &route(&w, 2)->weighted[1]), "a=6 b=2");
    close_world(&w);
}

static void wrappers_and_structs(void **state)
{
    (void)state;
    struct world w;
    open_world(
        &w,
        "{'name': 'a', 'typedConfig': " ABORT("1") "}, "
                                                   "{'name': 'off', 'disabled': true, 'typedConfig': " ABORT("2") "},",
        "",
        "{'match': {'prefix': '/1'}, 'route': {'cluster': 'c'}, " PER("'a': " WRAPPED(
            "'disabled': true")) "}, "
                                 "{'match': {'prefix': '/2'}, 'route': {'cluster': 'c'}, " PER(
                                     "'off': " WRAPPED("'config': " ABORT(
                                         "3"))) "}, "
                                                "{'match': {'prefix': '/3'}, 'route': {'cluster': 'c'}, " PER(
                                                    "'a': " WRAPPED(
                                                        "'isOptional': true, 'config': {" TYPE
                                                        "udpa.type.v1.TypedStruct', 'typeUrl': "
                                                        "'x/no.such.Filter', 'value': {}}")) "}, "
                                                                                             "{'match': {'prefix': "
                                                                                             "'/4'}, 'route': "
                                                                                             "{'cluster': 'c'}, " PER(
                                                                                                 "'a': {" TYPE
                                                                                                 "xds.type.v3."
                                                                                                 "TypedStruct', "
                                                                                                 "'typeUrl': "
                                                                                                 "'type.googleapis.com/"
                                                                                                 "envoy.extensions."
                                                                                                 "filters.http.fault."
                                                                                                 "v3.HTTPFault', "
                                                                                                 "'value': {'abort': "
                                                                                                 "{'grpc_status': 8, "
                                                                                                 "'percentage': "
                                                                                                 "{'numerator': 100}, "
                                                                                                 "'newer': 1}}}") "}");
    assert_string_equal(aborts(&w, 0, NULL), "");
    assert_string_equal(aborts(&w, 1, NULL), "a=1 off=3");
    assert_string_equal(aborts(&w, 2, NULL), "a=1");
    assert_string_equal(aborts(&w, 3, NULL), "a=8");
    close_world(&w);
}

static void many_overrides(void **state)
{
    (void)state;
    struct world w;
    open_world(&w,
               "{'name': 'ab', 'typedConfig': " ABORT("1") "}, {'name': 'b', 'typedConfig': " ABORT(
                   "2") "}, {'name': 'a', 'typedConfig': " ABORT("3") "},",
               PER("'c': " ABORT("4") ", 'b': " ABORT("5") ", 'a': " ABORT("6") ", 'aa': " ABORT("7") ", 'ab': " ABORT(
                   "8")) ",",
               "{'match': {'prefix': ''}, 'route': {'cluster': 'c'}}");
    assert_string_equal(aborts(&w, 0, NULL), "ab=8 b=5 a=6");
    close_world(&w);
}

static void nothing_to_do_is_no_chain(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, "", "", "{'match': {'prefix': ''}, 'route': {'cluster': 'c'}}");
    assert_null(tc_http_filters_chain(w.config, route(&w, 0), NULL));
    close_world(&w);
}

/* Starts and ends an RPC in the first filter of the only route's chain. Returns the filter's verdict. The RPC's results
 * are in w->call. */
static enum tc_filter_verdict pass(struct world *w)
{
    struct tc_filter_chain *chain = tc_http_filters_chain(w->config, route(w, 0), NULL);
    const struct tc_call_filter *f = &chain->filters[0];
    void *own = NULL;
    tc_status_fini(&w->call.status);
    w->call = (struct tc_filter_call){
        .loop = w->loop, .arena = &w->arena, .metadata = &w->headers, .config = &w->chosen, .explain = true};
    enum tc_filter_verdict verdict = f->ops->start(f, &w->call, &own);
    f->ops->done(f, &w->call, &own);
    tc_filter_chain_unref(chain);
    return verdict;
}

/* Adds a header to the RPCs of the next passes. The texts are borrowed until close_world. */
static void header(struct world *w, const char *name, const char *value)
{
    tc_headers_add(&w->headers, tc_slice_str(name), tc_slice_str(value));
}

/* Returns how many of 10,000 RPCs get the verdict. */
static unsigned share(struct world *w, enum tc_filter_verdict verdict)
{
    unsigned n = 0;
    for (int i = 0; i < 10000; i++)
        n += pass(w) == verdict;
    return n;
}

#define ROUTE "{'match': {'prefix': ''}, 'route': {'cluster': 'c'}}"

/* A33: a delay of 20 % and an abort of 5 % are drawn independently and affect 24 % in all. */
static void faults_are_independent(void **state)
{
    (void)state;
    struct world w;
    open_world(&w,
               "{'name': 'a', 'typedConfig': {" FAULT
               ", 'delay': {'fixedDelay': '1s', 'percentage': {'numerator': 20}},"
               "'abort': {'grpcStatus': 9, 'percentage': {'numerator': 50000, 'denominator': 'MILLION'}}}},",
               "", ROUTE);
    unsigned delayed = 0, aborted = 0;
    for (int i = 0; i < 10000; i++) {
        enum tc_filter_verdict verdict = pass(&w);
        delayed += verdict == TC_FILTER_WAIT;
        aborted += verdict == TC_FILTER_FAIL;
    }
    /* RPCs with both faults wait first: 20 % wait, and 4 % are aborted without a delay. */
    assert_in_range(delayed, 1800, 2200);
    assert_in_range(aborted, 320, 480);
    close_world(&w);
}

static void headers_lower_the_share(void **state)
{
    (void)state;
    struct world w;
    open_world(&w,
               "{'name': 'a', 'typedConfig': {" FAULT
               ", 'delay': {'headerDelay': {}, 'percentage': {'numerator': 5000, "
               "'denominator': 'TEN_THOUSAND'}}}},",
               "", ROUTE);
    assert_int_equal(share(&w, TC_FILTER_WAIT), 0);
    header(&w, "x-envoy-fault-delay-request", "53");
    assert_in_range(share(&w, TC_FILTER_WAIT), 4750, 5250);
    while (pass(&w) != TC_FILTER_WAIT) {
    }
    assert_int_equal(w.call.wait_ns, 53000000);
    /* The percentage header is in units of the filter's denominator, and counts up to the filter's own share. */
    header(&w, "x-envoy-fault-delay-request-percentage", "1000");
    assert_in_range(share(&w, TC_FILTER_WAIT), 850, 1150);
    w.headers.data[1].value = tc_slice_str("9999");
    assert_in_range(share(&w, TC_FILTER_WAIT), 4750, 5250);
    w.headers.data[1].value = tc_slice_str("0");
    assert_int_equal(share(&w, TC_FILTER_WAIT), 0);
    w.headers.data[1].value = tc_slice_str("all");
    assert_in_range(share(&w, TC_FILTER_WAIT), 4750, 5250);
    w.headers.data[0].value = tc_slice_str("0.5");
    assert_int_equal(share(&w, TC_FILTER_WAIT), 0);
    close_world(&w);
}

/* A fault that is active in the parent at a fork would never end in the child, so it does not count there. */
static void a_child_counts_its_own_faults(void **state)
{
    (void)state;
    struct world w;
    int status;
    open_world(&w,
               "{'name': 'a', 'typedConfig': {" FAULT
               ", 'delay': {'fixedDelay': '1s', 'percentage': {'numerator': 100}}, 'maxActiveFaults': 1}},",
               "", ROUTE);
    struct tc_filter_chain *chain = tc_http_filters_chain(w.config, route(&w, 0), NULL);
    const struct tc_call_filter *f = &chain->filters[0];
    void *own = NULL;
    struct tc_filter_call call = {.loop = w.loop, .arena = &w.arena, .metadata = &w.headers, .config = &w.chosen};
    assert_int_equal(f->ops->start(f, &call, &own), TC_FILTER_WAIT);
    assert_int_equal(pass(&w), TC_FILTER_NEXT);
    pid_t child = fork();
    if (child == 0)
        _exit(pass(&w) == TC_FILTER_WAIT && pass(&w) == TC_FILTER_WAIT ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(pass(&w), TC_FILTER_NEXT);
    f->ops->done(f, &call, &own);
    assert_int_equal(pass(&w), TC_FILTER_WAIT);
    tc_filter_chain_unref(chain);
    close_world(&w);
}

static void notes_say_what_was_done(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, "{'name': 'a', 'typedConfig': " ABORT("8") "},", "", ROUTE);
    assert_int_equal(pass(&w), TC_FILTER_FAIL);
    assert_int_equal(w.call.status.code, TORC_STATUS_RESOURCE_EXHAUSTED);
    assert_string_equal(tc_status_text(&w.call.status), "fault injected by the HTTP filter \"a\"");
    assert_true(tc_slice_eq_str(w.call.notes->filter, "a"));
    assert_true(tc_slice_eq_str(w.call.notes->text, "aborted with RESOURCE_EXHAUSTED"));
    assert_null(w.call.notes->next);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(most_specific_override_counts), cmocka_unit_test(wrappers_and_structs),
        cmocka_unit_test(a_child_counts_its_own_faults), cmocka_unit_test(nothing_to_do_is_no_chain),
        cmocka_unit_test(faults_are_independent),        cmocka_unit_test(headers_lower_the_share),
        cmocka_unit_test(notes_say_what_was_done),       cmocka_unit_test(many_overrides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
