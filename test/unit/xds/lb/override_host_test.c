/* xds_override_host over fake subchannels: which endpoint a session gets, which subchannels the policy holds for it,
 * and how long.
 *
 * In most tests the policy's child is priority with the children p and q (BELOW). `setup` stores a fake channel, whose
 * policy has had no update, in *state, and `teardown` frees it; adopts_from_an_outlier makes and frees its own. Time is
 * virtual, and everything runs on the test's thread. `pick` fills `session`, the session of the last pick, and
 * `cookie`, the session's addresses; the policy stores its answer in `session`. Read follows_the_cookie and
 * creates_on_demand first. */
#include <stdarg.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/log.h"
#include "base/mem.h"
#include "lb/session_affinity.h"
#include "xds/lb/override_host.h"

#define A "1.1.1.1:1"
#define B "2.2.2.2:2"
#define C "3.3.3.3:3"
#define D "4.4.4.4:4"
#define RR "[{'round_robin': {}}]"
#define RING "[{'ring_hash': {}}]"
#define BELOW(policy)                                                                                                  \
    "'childPolicy': [{'priority': {'priorities': ['p', 'q'], 'children': {'p': {'config': " policy                     \
    "}, 'q': {'config': " policy "}}}}]"
#define HOUR_MS 3600000

static struct tc_addr cookie[4];
static struct tc_session session;

static int setup(void **state)
{
    *state = fake_lb_new("xds_override_host");
    memset(&session, 0, sizeof(session));
    return 0;
}

static int teardown(void **state)
{
    struct fake_lb *f = *state;
    f->args.session = NULL;
    fake_lb_free(f);
    return 0;
}

/* Updates the policy with the endpoints of priorities p and q, with endpoints of the root ("A!DRAINING"), and with a
 * config of these fields. */
static void update(struct fake_lb *f, const char *p, const char *q, const char *draining, const char *fields)
{
    struct tc_endpoints *tree = fake_lb_endpoint_tree("p", p, "q", q, NULL);
    struct tc_endpoints *own = fake_lb_endpoints(draining);
    tree->n = own->n;
    tree->at = own->n ? tc_calloc(own->n, sizeof(*tree->at)) : NULL;
    for (size_t i = 0; i < own->n; i++)
        tree->at[i] = tc_endpoint_ref(own->at[i]);
    tc_endpoints_unref(own);
    char *json = tc_asprintf("{%s}", fields);
    assert_true(fake_lb_update(f, tree, fake_lb_config(f, "xds_override_host", json, NULL), NULL));
    tc_free(json);
}

static void ready(struct fake_lb *f, const char *addr)
{
    if (fake_lb_state(f, addr) == TORC_CONNECTIVITY_IDLE)
        fake_lb_set(f, addr, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set(f, addr, TORC_CONNECTIVITY_READY);
}

/* Picks for a session whose cookie names these addresses (empty: a new session). */
static const char *pick(struct fake_lb *f, const char *addrs)
{
    struct tc_slice rest = tc_slice_str(addrs), part;
    bool more = true;
    session = (struct tc_session){.addrs = cookie};
    while (tc_slice_split(&rest, &more, ',', &part))
        if (part.len)
            assert_int_equal(tc_addr_parse(&cookie[session.n++], part), 0);
    f->args.session = &session;
    const char *got = fake_lb_pick(f);
    f->args.session = NULL;
    return got;
}

static void assert_picked(const char *addrs)
{
    assert_int_equal(session.picked.len, strlen(addrs));
    assert_memory_equal(session.picked.data, addrs, session.picked.len);
}

/* A session stays with its endpoint, other RPCs go round. */
static void follows_the_cookie(void **state)
{
    TC_CASE(SS01);
    struct fake_lb *f = *state;
    update(f, A " " B, "", "", BELOW(RR));
    ready(f, A);
    ready(f, B);
    for (unsigned i = 0; i < 5; i++) {
        assert_string_equal(pick(f, A), A);
        assert_picked(A);
        assert_null(session.passed_over);
    }
    unsigned at_a = 0;
    for (unsigned i = 0; i < 4; i++)
        at_a += strcmp(fake_lb_pick(f), A) == 0;
    assert_int_equal(at_a, 2);
}

static void count_fallbacks(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    (void)module;
    if (level == TORC_LOG_DEBUG && strstr(message, "sessions of " A " go to other endpoints: the endpoint cannot be"))
        ++*(unsigned *)arg;
}

/* A fallback is logged once, and again after the endpoint has served a session in between. */
static void logs_fallbacks_once(void **state)
{
    struct fake_lb *f = *state;
    unsigned logged = 0;
    assert_int_equal(torc_log_set_levels("lb=debug"), 0);
    torc_log_set_sink(count_fallbacks, &logged);
    update(f, A " " B, "", "", BELOW(RR));
    ready(f, B);
    for (unsigned round = 1; round < 3; round++) {
        fake_lb_set(f, A, TORC_CONNECTIVITY_CONNECTING);
        fake_lb_set_failed(f, A, "refused");
        for (unsigned i = 0; i < 5; i++)
            assert_string_equal(pick(f, A), B);
        assert_int_equal(logged, round);
        fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
        ready(f, A);
        assert_string_equal(pick(f, A), A);
        fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    }
    torc_log_set_sink(NULL, NULL);
    assert_int_equal(torc_log_set_levels("warn"), 0);
}

/* A new session learns all addresses of its endpoint, the one in use first. */
static void tells_what_was_picked(void **state)
{
    TC_CASE(SS18);
    struct fake_lb *f = *state;
    update(f, A "," B, "", "", BELOW(RR));
    ready(f, A);
    assert_string_equal(pick(f, ""), A);
    assert_picked(A "," B);
    /* The other address of the endpoint takes over. */
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set_failed(f, A, "refused");
    ready(f, B);
    assert_string_equal(pick(f, C), B);
    assert_picked(B "," A);
    assert_string_equal(session.passed_over, "the cluster has no such endpoint");
}

/* The policy gives at most TC_SESSION_ADDRS_MAX addresses of an endpoint, as many as a cookie may name. */
static void endpoint_of_many_addresses(void **state)
{
    struct fake_lb *f = *state;
    struct tc_buf text = {0};
    size_t n = 1;
    for (unsigned i = 1; i <= 100; i++)
        tc_buf_printf(&text, "%s10.0.0.%u:1", i > 1 ? "," : "", i);
    update(f, tc_buf_cstr(&text), "", "", BELOW(RR));
    ready(f, "10.0.0.1:1");
    assert_string_equal(pick(f, ""), "10.0.0.1:1");
    for (size_t i = 0; i < session.picked.len; i++)
        n += session.picked.data[i] == ',';
    assert_int_equal(n, TC_SESSION_ADDRS_MAX);
    assert_true(tc_slice_starts(session.picked, tc_slice_str("10.0.0.1:1,10.0.0.2:1,")));
    tc_buf_fini(&text);
}

/* While its endpoint drains a session stays there, and other RPCs do not go there. */
static void draining(void **state)
{
    TC_CASE(ED09);
    TC_CASE(SS04);
    struct fake_lb *f = *state;
    const char *fields = "'overrideHostStatus': ['UNKNOWN', 'HEALTHY', 'DRAINING', 'DEGRADED'], " BELOW(RR);
    update(f, A " " B " " C, "", "", fields);
    ready(f, A);
    ready(f, B);
    ready(f, C);
    assert_string_equal(pick(f, A), A);
    fake_lb_take_connects(f);
    update(f, B " " C, "", A "!DRAINING", fields);
    for (unsigned i = 0; i < 4; i++)
        assert_string_equal(pick(f, A), A);
    for (unsigned i = 0; i < 4; i++)
        assert_string_not_equal(fake_lb_pick(f), A);
    assert_int_equal(fake_lb_count(f, A), 1);
    assert_connects(f, "");
    /* An endpoint that the resource no longer has is gone. */
    update(f, B " " C, "", "", fields);
    assert_int_equal(fake_lb_count(f, A), 0);
    assert_string_not_equal(pick(f, A), A);
    assert_string_equal(session.passed_over, "the cluster has no such endpoint");
}

static void draining_not_wanted(void **state)
{
    TC_CASE(SS05);
    struct fake_lb *f = *state;
    update(f, A " " B " " C, "", "", BELOW(RR));
    ready(f, A);
    ready(f, B);
    ready(f, C);
    assert_string_equal(pick(f, A), A);
    update(f, B " " C, "", A "!DRAINING", BELOW(RR));
    assert_int_equal(fake_lb_count(f, A), 0);
    unsigned at_b = 0;
    for (unsigned i = 0; i < 4; i++)
        at_b += strcmp(pick(f, A), B) == 0;
    assert_int_equal(at_b, 2);
    assert_string_equal(session.passed_over, "the endpoint is DRAINING");
    /* A status that is not in the list excludes an endpoint even if the endpoint has a subchannel: B by this update,
     * and A by the next one, which ends A's subchannel. */
    update(f, B " " C, "", A "!DRAINING", "'overrideHostStatus': ['DRAINING'], " BELOW(RR));
    assert_string_equal(pick(f, A), "QUEUE");
    ready(f, A);
    assert_string_equal(pick(f, A), A);
    assert_string_not_equal(pick(f, B), "QUEUE");
    assert_string_equal(session.passed_over, "the endpoint's health is UNKNOWN");
    update(f, B " " C, "", A "!DRAINING", BELOW(RR));
    assert_int_equal(fake_lb_count(f, A), 0);
}

/* The policy itself connects an endpoint of a priority that is not in use, for the session alone. */
static void creates_on_demand(void **state)
{
    TC_CASE(SS09);
    struct fake_lb *f = *state;
    update(f, A, B, "", BELOW(RR));
    ready(f, A);
    fake_lb_take_connects(f);
    assert_int_equal(fake_lb_count(f, B), 0);
    unsigned reports = f->reports;
    assert_string_equal(pick(f, B), "QUEUE");
    assert_connects(f, B " ");
    /* A second pick does not create a second subchannel. */
    assert_string_equal(pick(f, B), "QUEUE");
    assert_connects(f, "");
    assert_int_equal(fake_lb_count(f, B), 1);
    /* RPCs that wait are tried again. */
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_true(f->reports > reports);
    assert_string_equal(pick(f, B), B);
    assert_picked(B);
    assert_string_equal(fake_lb_pick(f), A);
    /* The connection is lost, maybe before a picked RPC was sent, so RPCs are tried again. The policy's own subchannel
     * is IDLE, and connects for the next RPC. */
    reports = f->reports;
    fake_lb_set(f, B, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(f->reports, reports + 1);
    assert_connects(f, "");
    assert_string_equal(pick(f, B), "QUEUE");
    assert_connects(f, B " ");
    /* The endpoint fails, so waiting RPCs are tried again and go elsewhere. */
    assert_string_equal(pick(f, B), "QUEUE");
    reports = f->reports;
    fake_lb_set_failed(f, B, "refused");
    assert_int_equal(f->reports, reports + 1);
    assert_string_equal(pick(f, B), A);
    assert_picked(A);
    assert_string_equal(session.passed_over, "the endpoint cannot be connected to");
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
}

/* A75's order of states comes before the cookie's order of addresses. */
static void order_of_states(void **state)
{
    TC_CASE(SS17);
    struct fake_lb *f = *state;
    update(f, "9.9.9.9:9", A " " B " " C " " D, "", BELOW(RR));
    ready(f, "9.9.9.9:9");
    fake_lb_take_connects(f);
    const char *all = D "," C "," B "," A;
    /* A fails, B is CONNECTING, C becomes IDLE, D becomes READY. */
    assert_string_equal(pick(f, A), "QUEUE");
    fake_lb_set_failed(f, A, "refused");
    assert_string_equal(pick(f, B), "QUEUE");
    assert_string_equal(pick(f, C), "QUEUE");
    ready(f, C);
    fake_lb_set(f, C, TORC_CONNECTIVITY_IDLE);
    assert_string_equal(pick(f, D), "QUEUE");
    ready(f, D);
    fake_lb_take_connects(f);
    assert_string_equal(pick(f, A "," B "," C "," D), D);
    fake_lb_set(f, D, TORC_CONNECTIVITY_CONNECTING);
    /* IDLE before CONNECTING, though the cookie names the CONNECTING address first. */
    assert_string_equal(pick(f, all), "QUEUE");
    assert_connects(f, C " ");
    fake_lb_set_failed(f, C, "refused");
    /* CONNECTING before an address without a subchannel. */
    update(f, "9.9.9.9:9", A " " B " " C " " D " 5.5.5.5:5", "", BELOW(RR));
    assert_string_equal(pick(f, "5.5.5.5:5," B), "QUEUE");
    assert_connects(f, "");
    assert_int_equal(fake_lb_count(f, "5.5.5.5:5"), 0);
    fake_lb_set_failed(f, B, "refused");
    fake_lb_set_failed(f, D, "refused");
    assert_string_equal(pick(f, A "," B ",5.5.5.5:5"), "QUEUE");
    assert_connects(f, "5.5.5.5:5 ");
    /* None of the addresses can be used. */
    fake_lb_set_failed(f, "5.5.5.5:5", "refused");
    assert_string_equal(pick(f, A "," B ",5.5.5.5:5"), "9.9.9.9:9");
}

/* The policy releases its own subchannels when no session has used them for idle_timeout. */
static void sweeps(void **state)
{
    TC_CASE(SS10);
    struct fake_lb *f = *state;
    update(f, A, B, "", "'idleTimeout': '20s', " BELOW(RR));
    ready(f, A);
    assert_string_equal(pick(f, B), "QUEUE");
    ready(f, B);
    tc_loop_advance(f->loop, 19000);
    assert_string_equal(pick(f, B), B);
    /* The sweep at 20 s keeps the subchannel that was used at 19 s; the next sweep is 20 s after that use. */
    tc_loop_advance(f->loop, 19000);
    assert_int_equal(fake_lb_count(f, B), 1);
    tc_loop_advance(f->loop, 1000);
    assert_int_equal(fake_lb_count(f, B), 0);
    assert_string_equal(pick(f, B), "QUEUE");
    assert_int_equal(fake_lb_count(f, A), 1);
}

/* Sweeps are 5 s apart at least. */
static void sweeps_are_apart(void **state)
{
    TC_CASE(SS15);
    struct fake_lb *f = *state;
    update(f, A, B " " C, "", "'idleTimeout': '10s', " BELOW(RR));
    ready(f, A);
    pick(f, B);
    ready(f, B);
    tc_loop_advance(f->loop, 2000);
    pick(f, C);
    ready(f, C);
    pick(f, C);
    tc_loop_advance(f->loop, 8000);
    assert_int_equal(fake_lb_count(f, B), 0); /* at 10 s */
    tc_loop_advance(f->loop, 4999);
    assert_int_equal(fake_lb_count(f, C), 1); /* was due at 12 s */
    tc_loop_advance(f->loop, 1);
    assert_int_equal(fake_lb_count(f, C), 0);
}

/* The default idle_timeout is one hour. */
static void idle_timeout_by_default(void **state)
{
    struct fake_lb *f = *state;
    update(f, A, B, "", BELOW(RR));
    ready(f, A);
    pick(f, B);
    ready(f, B);
    pick(f, B);
    tc_loop_advance(f->loop, HOUR_MS - 1);
    assert_int_equal(fake_lb_count(f, B), 1);
    tc_loop_advance(f->loop, 1);
    assert_int_equal(fake_lb_count(f, B), 0);
}

/* Only RPCs of sessions count as a use. */
static void other_rpcs_do_not_count_as_use(void **state)
{
    TC_CASE(SS14);
    struct fake_lb *f = *state;
    update(f, A, B, "", "'idleTimeout': '20s', " BELOW(RR));
    ready(f, A);
    for (unsigned i = 0; i < 3; i++)
        assert_string_equal(fake_lb_pick(f), A);
    update(f, B, A, "", "'idleTimeout': '20s', " BELOW(RR));
    ready(f, B);
    /* No session used A, so the policy does not keep it. */
    assert_int_equal(fake_lb_count(f, A), 0);
}

/* Updates priority p to endpoints behind an HTTP proxy (A86). */
static void update_proxied(struct fake_lb *f, const char *endpoints, const char *proxy)
{
    struct tc_endpoints *tree = fake_lb_endpoint_tree("p", endpoints, "q", "", NULL);
    struct tc_addr hop;
    assert_int_equal(tc_addr_parse(&hop, tc_slice_str(proxy)), 0);
    for (size_t i = 0; i < tree->children[0].list->n; i++)
        tree->children[0].list->at[i]->addrs[0].proxy_hop = tc_proxy_hop_new(&hop, NULL, NULL);
    assert_true(fake_lb_update(f, tree, fake_lb_config(f, "xds_override_host", "{" BELOW(RR) "}", NULL), NULL));
}

/* A cookie names addresses alone: the session stays with its endpoint whatever proxy leads there. When the proxy
 * changes, the endpoint's new connection serves the session. */
static void behind_a_proxy(void **state)
{
    struct fake_lb *f = *state;
    update_proxied(f, A " " B, C);
    ready(f, A);
    ready(f, B);
    for (unsigned i = 0; i < 3; i++) {
        assert_string_equal(pick(f, A), A);
        assert_picked(A);
        assert_null(session.passed_over);
    }
    update_proxied(f, A " " B, D);
    assert_int_equal(fake_lb_count(f, A), 1);
    assert_string_equal(pick(f, A), "QUEUE");
    ready(f, A);
    for (unsigned i = 0; i < 3; i++)
        assert_string_equal(pick(f, A), A);
}

/* Updates the policy with one endpoint in each priority. One of the two is A, which has this hostname. */
static void update_named(struct fake_lb *f, const char *p, const char *q, const char *hostname)
{
    struct tc_endpoints *tree = fake_lb_endpoint_tree("p", p, "q", q, NULL);
    tree->children[strcmp(q, A) == 0].list->at[0]->hostname = tc_rstr_str(hostname);
    assert_true(fake_lb_update(f, tree, fake_lb_config(f, "xds_override_host", "{" BELOW(RR) "}", NULL), NULL));
}

/* The hostname can be the SNI of a connection (A101) and the :authority of its RPCs (A81), so the policy ends its own
 * subchannel when the hostname changes. */
static void hostname_changes(void **state)
{
    struct fake_lb *f = *state;
    update_named(f, B, A, "one.example");
    ready(f, B);
    assert_string_equal(pick(f, A), "QUEUE");
    ready(f, A);
    update_named(f, B, A, "one.example");
    assert_string_equal(pick(f, A), A);
    update_named(f, B, A, "two.example");
    assert_int_equal(fake_lb_count(f, A), 0);
    assert_string_equal(pick(f, A), "QUEUE");
    ready(f, A);
    assert_string_equal(pick(f, A), A);
    assert_string_equal(f->pick.subchannel->endpoint->hostname->data, "two.example");
}

/* The child makes a second connection to the endpoint, and releases the first one when the second is READY. The policy
 * does not keep the first one. */
static void child_renews(void **state)
{
    struct fake_lb *f = *state;
    update_named(f, A, B, "one.example");
    ready(f, A);
    assert_string_equal(pick(f, A), A);
    update_named(f, A, B, "two.example");
    assert_int_equal(fake_lb_count(f, A), 2);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_int_equal(fake_lb_count(f, A), 1);
    assert_string_equal(pick(f, A), A);
    assert_string_equal(f->pick.subchannel->endpoint->hostname->data, "two.example");
}

/* The endpoint moves to a lower priority: the session's connection is kept and used (A75). */
static void survives_a_move(void **state)
{
    TC_CASE(AG23);
    TC_CASE(SS13);
    TC_CASE(SS16);
    struct fake_lb *f = *state;
    update(f, A " " B, C, "", "'idleTimeout': '20s', " BELOW(RR));
    ready(f, A);
    ready(f, B);
    assert_string_equal(pick(f, A), A);
    fake_lb_take_connects(f);
    update(f, B, C " " A, "", "'idleTimeout': '20s', " BELOW(RR));
    assert_int_equal(fake_lb_count(f, A), 1);
    assert_string_equal(pick(f, A), A);
    assert_string_equal(fake_lb_pick(f), B);
    assert_connects(f, "");
    /* A subchannel that was unused for long enough is released. */
    tc_loop_advance(f->loop, 20000);
    assert_int_equal(fake_lb_count(f, A), 0);
}

/* The child releases the subchannel of a lost connection. The policy keeps the subchannel in IDLE, and connects it for
 * the session. */
static void adopts_a_lost_connection(void **state)
{
    struct fake_lb *f = *state;
    f->args.has_hash = true;
    update(f, A, "", "", BELOW(RING));
    assert_string_equal(pick(f, ""), "QUEUE");
    ready(f, A);
    assert_string_equal(pick(f, ""), A);
    fake_lb_take_connects(f);
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(fake_lb_count(f, A), 1);
    assert_string_equal(pick(f, A), "QUEUE");
    assert_connects(f, A " ");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(pick(f, A), A);
    /* When the child connects to the address, too, its connection serves both. */
    assert_string_equal(fake_lb_pick_hash(f, 1), "QUEUE");
    assert_int_equal(fake_lb_count(f, A), 2);
    assert_string_equal(pick(f, A), A);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_int_equal(fake_lb_count(f, A), 1);
    assert_string_equal(pick(f, A), A);
    assert_string_equal(fake_lb_pick_hash(f, 1), A);
}

/* Ends the RPC of the last pick. */
static void finish(struct fake_lb *f, int code)
{
    struct tc_status status = tc_status_make(code, TORC_LAYER_PEER, "%s", "");
    for (struct tc_call_tracker *t = f->pick.trackers, *next; t; t = next) {
        next = t->next;
        t->on_done(t, &status, NULL);
    }
    tc_status_fini(&status);
}

/* Updates outlier_detection, whose child is xds_override_host, with the endpoints of priorities p and q. */
static void update_outliers(struct fake_lb *f, const char *p, const char *q)
{
    struct tc_lb_config *config =
        fake_lb_config(f, "outlier_detection",
                       "{'failurePercentageEjection': {'threshold': 50, 'minimumHosts': 1, 'requestVolume': 1}, "
                       "'maxEjectionPercent': 100, 'childPolicy': [{'xds_override_host': {" BELOW(RR) "}}]}",
                       NULL);
    assert_true(fake_lb_update(f, fake_lb_endpoint_tree("p", p, "q", q, NULL), config, NULL));
}

/* The child releases an endpoint that sessions use. If the endpoint's RPCs then fail, sessions stay there:
 * outlier_detection does not keep them away. */
static void adopts_from_an_outlier(void **state)
{
    (void)state;
    struct fake_lb *f = fake_lb_new("outlier_detection");
    update_outliers(f, A " " B, C);
    ready(f, A);
    ready(f, B);
    assert_string_equal(pick(f, A), A);
    finish(f, TORC_STATUS_OK);
    update_outliers(f, B, C " " A);
    for (unsigned i = 0; i < 4; i++) {
        assert_string_equal(pick(f, A), A);
        finish(f, TORC_STATUS_UNAVAILABLE);
    }
    tc_loop_advance(f->loop, 2 * 10000);
    assert_int_equal(fake_lb_count(f, A), 1);
    assert_string_equal(pick(f, A), A);
    finish(f, TORC_STATUS_OK);
    assert_string_equal(fake_lb_pick(f), B);
    finish(f, TORC_STATUS_OK);
    fake_lb_free(f);
}

/* Sessions work while all endpoints of the child fail. */
static void child_in_failure(void **state)
{
    struct fake_lb *f = *state;
    update(f, A, "", B "!DRAINING", "'overrideHostStatus': ['DRAINING'], " BELOW(RR));
    fake_lb_set_failed(f, A, "refused");
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(pick(f, B), "QUEUE");
    ready(f, B);
    assert_string_equal(pick(f, B), B);
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_string_equal(pick(f, A), "FAIL");
    f->policy->ops->reset_backoff(f->policy);
    tc_loop_drain(f->loop);
    assert_string_equal(fake_lb_take_connects(f), A " " B " " A " ");
}

/* A waiting RPC goes elsewhere when its endpoint is removed. */
static void removed_while_awaited(void **state)
{
    struct fake_lb *f = *state;
    update(f, A, B, "", BELOW(RR));
    ready(f, A);
    assert_string_equal(pick(f, B), "QUEUE");
    unsigned reports = f->reports;
    update(f, A, C, "", BELOW(RR));
    assert_true(f->reports > reports);
    assert_string_equal(pick(f, B), A);
    assert_int_equal(fake_lb_count(f, B), 0);
    /* An update removes the endpoint after the pick and before the deferred connect, so nothing is connected. */
    session = (struct tc_session){.n = 1, .addrs = cookie};
    assert_int_equal(tc_addr_parse(&cookie[0], tc_slice_str(C)), 0);
    f->args.session = &session;
    assert_int_equal(tc_picker_pick(f->picker, &f->args, &f->pick), TC_PICK_QUEUE);
    f->args.session = NULL;
    update(f, A, "", "", BELOW(RR));
    assert_int_equal(fake_lb_count(f, NULL), 1);
}

/* Without sessions the child's picker serves all RPCs, no RPC learns what was picked, and no timer runs. */
static void off(void **state)
{
    struct fake_lb *f = *state;
    struct tc_override_host_settings s = tc_override_host_defaults;
    struct tc_lb_config *child = fake_lb_config(f, "round_robin", "{}", NULL);
    update(f, A " " B, "", "", BELOW(RR));
    ready(f, A);
    ready(f, B);
    assert_string_equal(pick(f, A), A);
    assert_true(fake_lb_update(f, fake_lb_endpoints(A " " B),
                               tc_override_config_new(&tc_override_host_factory, &s, child), NULL));
    ready(f, A);
    ready(f, B);
    assert_string_not_equal(pick(f, A), pick(f, A));
    assert_int_equal(session.picked.len, 0);
    assert_int_equal(tc_loop_timeout_ms(f->loop), -1);
    /* When sessions are on again, the child's connections serve them. */
    s.sessions = true;
    assert_true(fake_lb_update(f, fake_lb_endpoints(A " " B),
                               tc_override_config_new(&tc_override_host_factory, &s, child), NULL));
    assert_string_equal(pick(f, A), A);
    assert_string_equal(pick(f, A), A);
    tc_lb_config_unref(child);
}

static void trace(void **state)
{
    struct fake_lb *f = *state;
    struct tc_pick_trace t = {.arena = &f->arena};
    update(f, A " " B, "", "", BELOW(RR));
    ready(f, A);
    ready(f, B);
    f->args.trace = &t;
    pick(f, B);
    f->args.trace = NULL;
    assert_true(tc_slice_eq_str(t.endpoint, B));
    assert_true(tc_slice_eq_str(t.policy, "xds_override_host"));
}

static void config(void **state)
{
    struct fake_lb *f = *state;
    static const struct {
        const char *json, *why;
    } bad[] = {
        {"{}", ".childPolicy: field not present"},
        {"{'childPolicy': [{'no_such_policy': {}}]}", ".childPolicy"},
        {"{'idleTimeout': 'soon', 'childPolicy': " RR "}", ".idleTimeout: \"soon\" is not a duration"},
        {"{'overrideHostStatus': 'UNKNOWN', 'childPolicy': " RR "}", ".overrideHostStatus"},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        char *why = NULL;
        assert_null(fake_lb_config(f, "xds_override_host_experimental", bad[i].json, &why));
        assert_non_null(strstr(why, bad[i].why));
        tc_free(why);
    }
    struct tc_lb_config *a = fake_lb_config(f, "xds_override_host", "{'childPolicy': " RR "}", NULL);
    struct tc_lb_config *b = fake_lb_config(
        f, "xds_override_host",
        "{'overrideHostStatus': [0, 'HEALTHY', 'TIMEOUT'], 'idleTimeout': '3600s', 'childPolicy': " RR "}", NULL);
    struct tc_lb_config *c =
        fake_lb_config(f, "xds_override_host", "{'overrideHostStatus': [], 'childPolicy': " RR "}", NULL);
    assert_true(tc_lb_config_eq(a, b));
    assert_false(tc_lb_config_eq(a, c));
    assert_int_equal(tc_override_host_config(c)->settings.statuses, 0);
    tc_lb_config_unref(a);
    tc_lb_config_unref(b);
    tc_lb_config_unref(c);
}

#define OVERRIDE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVERRIDE_TEST(follows_the_cookie),
        OVERRIDE_TEST(tells_what_was_picked),
        OVERRIDE_TEST(endpoint_of_many_addresses),
        OVERRIDE_TEST(draining),
        OVERRIDE_TEST(draining_not_wanted),
        OVERRIDE_TEST(creates_on_demand),
        OVERRIDE_TEST(order_of_states),
        OVERRIDE_TEST(sweeps),
        OVERRIDE_TEST(logs_fallbacks_once),
        OVERRIDE_TEST(sweeps_are_apart),
        OVERRIDE_TEST(idle_timeout_by_default),
        OVERRIDE_TEST(other_rpcs_do_not_count_as_use),
        OVERRIDE_TEST(behind_a_proxy),
        OVERRIDE_TEST(hostname_changes),
        OVERRIDE_TEST(child_renews),
        OVERRIDE_TEST(survives_a_move),
        OVERRIDE_TEST(adopts_a_lost_connection),
        cmocka_unit_test(adopts_from_an_outlier),
        OVERRIDE_TEST(child_in_failure),
        OVERRIDE_TEST(removed_while_awaited),
        OVERRIDE_TEST(off),
        OVERRIDE_TEST(trace),
        OVERRIDE_TEST(config),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
