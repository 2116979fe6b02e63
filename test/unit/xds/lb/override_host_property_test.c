/* xds_override_host under random events: connections that succeed, fail and are lost, updates, sessions, sweeps. After
 * each event:
 *
 * - A session gets its endpoint if the status allows it and the only subchannel to the endpoint is READY. A session
 *   does not get an endpoint whose status does not allow it.
 * - No RPC waits for a picker that never comes.
 * - There is no subchannel to an endpoint that the resource lacks, nor to a draining one that sessions may not use or
 *   have not used for long.
 *
 * Each of SEEDS runs draws STEPS events from a fixed seed, and has a fake channel of its own (fakes/lb), on virtual
 * time. An address has one endpoint, and one session, whose cookie names the address. struct world holds what the test
 * knows: the place of each endpoint, when a session last used the endpoint, and which sessions wait. */
#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/mem.h"
#include "base/random.h"
#include "lb/session_affinity.h"

enum { ADDRS = 5, SEEDS = 400, STEPS = 200, IDLE_MS = 20000 };

static const char *const addrs[ADDRS] = {"1.1.1.1:1", "2.2.2.2:2", "3.3.3.3:3", "4.4.4.4:4", "5.5.5.5:5"};

enum place { ABSENT, FIRST, SECOND, DRAINING };

struct world {
    struct fake_lb *f;
    struct tc_rng rng;
    struct tc_addr parsed[ADDRS];
    enum place at[ADDRS];
    bool draining_too;               /* DRAINING is among the cluster's statuses */
    uint64_t now_ms, used_ms[ADDRS]; /* used_ms: when a session last could hold the subchannel; 0: never */
    bool waits[ADDRS];               /* a pick of the address's session is queued */
    unsigned reports[ADDRS];         /* the number of the report whose picker queued the pick */
};

static unsigned below(struct world *w, unsigned n)
{
    return (unsigned)(tc_rng_u64(&w->rng) % n);
}

static bool usable(const struct world *w, unsigned i)
{
    return w->at[i] == FIRST || w->at[i] == SECOND || (w->at[i] == DRAINING && w->draining_too);
}

static struct tc_endpoints *list_of(const struct world *w, enum place place)
{
    struct tc_buf text = {0};
    for (unsigned i = 0; i < ADDRS; i++)
        if (w->at[i] == place)
            tc_buf_printf(&text, "%s%s ", addrs[i], place == DRAINING ? "!DRAINING" : "");
    struct tc_endpoints *list = fake_lb_endpoints(tc_buf_cstr(&text));
    tc_buf_fini(&text);
    return list;
}

static void update(struct world *w)
{
    struct tc_endpoints_child *children = tc_calloc(2, sizeof(*children));
    children[0] = (struct tc_endpoints_child){tc_rstr_str("p"), list_of(w, FIRST)};
    children[1] = (struct tc_endpoints_child){tc_rstr_str("q"), list_of(w, SECOND)};
    struct tc_endpoints *tree = tc_endpoints_take_children(children, 2), *own = list_of(w, DRAINING);
    tree->n = own->n;
    tree->at = own->n ? tc_calloc(own->n, sizeof(*tree->at)) : NULL;
    for (size_t i = 0; i < own->n; i++)
        tree->at[i] = tc_endpoint_ref(own->at[i]);
    tc_endpoints_unref(own);
    char *json = tc_asprintf(
        "{'overrideHostStatus': ['UNKNOWN'%s], 'idleTimeout': '20s', 'childPolicy': [{'priority': {'priorities': ['p', "
        "'q'], 'children': {'p': {'config': [{'round_robin': {}}]}, 'q': {'config': [{'round_robin': {}}]}}}}]}",
        w->draining_too ? ", 'DRAINING'" : "");
    fake_lb_update(w->f, tree, fake_lb_config(w->f, "xds_override_host", json, NULL), NULL);
    tc_free(json);
}

static const char *pick(struct world *w, unsigned i, bool dry)
{
    struct tc_session session = {.n = 1, .addrs = &w->parsed[i]};
    w->f->args.session = &session;
    w->f->args.dry = dry;
    const char *got = fake_lb_pick(w->f);
    w->f->args.session = NULL;
    w->f->args.dry = false;
    return got;
}

/* Picks for a session of address i. */
static void call(struct world *w, unsigned i)
{
    unsigned reports = w->f->reports;
    const char *got = pick(w, i, false);
    w->waits[i] = strcmp(got, "QUEUE") == 0;
    /* The number is from before the pick, which may have caused a new picker: check() then tries the RPC again. */
    w->reports[i] = reports;
    if (usable(w, i))
        w->used_ms[i] = w->now_ms;
    for (unsigned k = 0; k < ADDRS; k++)
        if (strcmp(got, addrs[k]) == 0)
            w->used_ms[k] = w->now_ms;
}

/* Moves all subchannels of a random address to a state that can follow the state of the oldest one. Does nothing if the
 * oldest one is IDLE, or if there is none. */
static void connection(struct world *w)
{
    unsigned i = below(w, ADDRS);
    switch (fake_lb_state(w->f, addrs[i])) {
    case TORC_CONNECTIVITY_CONNECTING:
        if (below(w, 3))
            fake_lb_set(w->f, addrs[i], TORC_CONNECTIVITY_READY);
        else
            fake_lb_set_failed(w->f, addrs[i], "refused");
        break;
    case TORC_CONNECTIVITY_READY:
    case TORC_CONNECTIVITY_TRANSIENT_FAILURE:
        fake_lb_set(w->f, addrs[i], TORC_CONNECTIVITY_IDLE);
        break;
    default:
        break;
    }
}

static void step(struct world *w)
{
    switch (below(w, 8)) {
    case 0:
        w->at[below(w, ADDRS)] = (enum place)below(w, 4);
        w->draining_too = below(w, 4) != 0;
        update(w);
        break;
    case 1:
        w->now_ms += 7000;
        tc_loop_advance(w->f->loop, 7000);
        break;
    case 2:
        fake_lb_pick(w->f);
        break;
    case 3:
    case 4:
        call(w, below(w, ADDRS));
        break;
    default:
        connection(w);
        break;
    }
}

static void check(struct world *w)
{
    for (unsigned i = 0; i < ADDRS; i++) {
        const char *now = pick(w, i, true);
        bool is_there = usable(w, i) && fake_lb_state(w->f, addrs[i]) == TORC_CONNECTIVITY_READY;
        if (is_there && fake_lb_count(w->f, addrs[i]) == 1)
            assert_string_equal(now, addrs[i]);
        if (!usable(w, i))
            assert_string_not_equal(now, addrs[i]);
        /* A pick would not be queued now: the waiting RPC waits in vain unless a new picker came. */
        if (w->waits[i] && strcmp(now, "QUEUE") != 0)
            assert_int_not_equal(w->f->reports, w->reports[i]);
        if (w->f->reports != w->reports[i] && w->waits[i])
            call(w, i); /* as the channel does with each new picker */
        if (w->at[i] == ABSENT || (w->at[i] == DRAINING && !w->draining_too))
            assert_int_equal(fake_lb_count(w->f, addrs[i]), 0);
        /* A sweep may be TC_OVERRIDE_SWEEP_MIN_MS late, and one step takes up to 7 s. */
        if (w->at[i] == DRAINING && (!w->used_ms[i] || w->now_ms - w->used_ms[i] > IDLE_MS + 5000 + 7000))
            assert_int_equal(fake_lb_count(w->f, addrs[i]), 0);
    }
}

static void random_events(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct world w = {.f = fake_lb_new("xds_override_host"), .now_ms = 1};
        tc_rng_init_seed(&w.rng, seed);
        for (unsigned i = 0; i < ADDRS; i++) {
            assert_int_equal(tc_addr_parse(&w.parsed[i], tc_slice_str(addrs[i])), 0);
            w.at[i] = (enum place)below(&w, 4);
        }
        update(&w);
        for (unsigned i = 0; i < STEPS; i++) {
            step(&w);
            check(&w);
        }
        fake_lb_free(w.f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_events)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
