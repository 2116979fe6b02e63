/* priority over ring_hash over pick_first against a model of them (tree_model.h), for every sequence of up to eight
 * events: a call that wakes an endpoint, an attempt that succeeds or fails, a backoff that is over, a connection that
 * is lost, the next timer, and an update to each of six configs, over two priorities and three endpoints.
 *
 * The policies are the real ones. Their channel is the fake of support/fakes/lb.h, with virtual time and no network:
 * the test says how attempts end. One thread. To get to a state, play() makes a new tree and applies all events that
 * lead there.
 *
 * Why this covers every sequence: a state is the description of the real policies (lb/describe.h: everything that
 * decides what they do next) together with the model's state. The search goes breadth first from the state after the
 * first update. If several sequences lead to one state, the search keeps the first of them, a shortest one, and drops
 * the others, since all go on alike. A sample tests this: for one in 64 of the dropped sequences, each event is tried
 * after the dropped and after the kept sequence, and must lead to one state. Calls have one hash for each way to walk
 * the rings, so that no other hash matters.
 *
 * After each event: the attempts and connections are those that the model allows, endpoint by endpoint; the state and
 * the next timer are the model's; a call of each hash gets the model's answer. In each new state that an event leads
 * to, each endpoint of the config is once the only one that can be reached. Then the tree does not stay in CONNECTING
 * or TRANSIENT_FAILURE without calls, and waiting calls get to the endpoint in the end.
 *
 * TORC_MODEL_DEPTH: the number of events in a sequence, 1 to 15 (default 8). */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "lb/describe.h"
#include "lb/policies/priority.h"
#include "lb/ring_hash/policy.h"
#include "ring/ring.h"
#include "state_graph.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"

static const char *const names[CHILDREN] = {"a", "b"};
static const char *const addresses[ENDPOINTS] = {"1.1.1.1:1", "2.2.2.2:2", "3.3.3.3:3"};

/* A, B and C: the bits of the endpoints in a set. */
enum { A = 1, B = 2, C = 4, RING_MIN = 6, RING_MAX = 12, MAX_HASHES = 64, MAX_DEPTH = 16, MAX_EVENTS = 32 };

static const struct model_config configs[] = {
    {2, {0, 1}, {A | B, C}},     /* the first config */
    {2, {0, 1}, {A, B | C}},     /* an endpoint moves down */
    {2, {1, 0}, {A | B, C}},     /* the priorities swap places */
    {1, {0}, {A | B, 0}},        /* the lower priority is removed */
    {2, {0, 1}, {0, C}},         /* the higher priority is emptied */
    {2, {0, 1}, {C, A | B | C}}, /* the higher priority is replaced; one endpoint is in both */
};
enum { CONFIGS = sizeof(configs) / sizeof(configs[0]) };

/* The policies' input for each config, made once. */
static struct tc_endpoints *lists[CONFIGS];
static struct tc_lb_config *lb_configs[CONFIGS];

/* The hashes of calls: one for each way to walk the rings, to which every other hash is equivalent. */
static struct {
    uint64_t hash;
    int order[8][ENDPOINTS]; /* order[set]: the endpoints of the set, in the order in which a call meets them */
} hashes[MAX_HASHES];
static int n_hashes;

/* Stores the endpoints of the set (bit e: endpoint e) in `out`, which has room for ENDPOINTS. Returns their number. */
static int members(uint8_t set, int *out)
{
    int n = 0;
    for (int e = 0; e < ENDPOINTS; e++)
        if (set & (1 << e))
            out[n++] = e;
    return n;
}

/* --- hashes --- */

/* Returns the ring of ring_hash over the endpoints of the set, with one reference. */
static struct tc_ring *ring_of(uint8_t set)
{
    struct tc_ring_item items[ENDPOINTS];
    int in[ENDPOINTS], n = members(set, in);
    for (int i = 0; i < n; i++)
        items[i] = (struct tc_ring_item){tc_slice_str(addresses[in[i]]), 1};
    return tc_ring_new(items, (size_t)n, RING_MIN, RING_MAX, RING_MAX);
}

/* Stores in `order`, which has room for ENDPOINTS, the endpoints of the set in the order in which a call of this hash
 * meets them. */
static void walk_order(const struct tc_ring *ring, uint8_t set, uint64_t hash, int *order)
{
    int in[ENDPOINTS], n = members(set, in), found = 0;
    uint32_t entry = tc_ring_find(ring, hash);
    for (uint32_t k = 0; k < tc_ring_size(ring) && found < n; k++, entry = (entry + 1) % tc_ring_size(ring)) {
        int e = in[tc_ring_item_at(ring, entry)];
        bool seen = false;
        for (int i = 0; i < found; i++)
            seen |= order[i] == e;
        if (!seen)
            order[found++] = e;
    }
    assert_int_equal(found, n);
}

/* Adds the hash unless an equivalent one is there. rings[set]: the ring of each set but the empty one; borrowed. */
static void add_hash(struct tc_ring **rings, uint64_t hash)
{
    memset(&hashes[n_hashes], 0, sizeof(hashes[0]));
    for (uint8_t set = 1; set < 8; set++)
        walk_order(rings[set], set, hash, hashes[n_hashes].order[set]);
    for (int i = 0; i < n_hashes; i++)
        if (memcmp(hashes[i].order, hashes[n_hashes].order, sizeof(hashes[0].order)) == 0)
            return;
    hashes[n_hashes].hash = hash;
    n_hashes++;
    assert_true(n_hashes < MAX_HASHES);
}

/* Fills in `hashes`. It is enough to try the hash of each ring's entries: between two neighbours among the entries of
 * all rings, all hashes are equivalent. */
static void make_hashes(void)
{
    struct tc_ring *rings[8];
    for (uint8_t set = 1; set < 8; set++)
        rings[set] = ring_of(set);
    for (uint8_t set = 1; set < 8; set++)
        for (uint32_t i = 0; i < tc_ring_size(rings[set]); i++)
            add_hash(rings, tc_ring_hash_at(rings[set], i));
    for (uint8_t set = 1; set < 8; set++)
        tc_ring_unref(rings[set]);
}

/* --- configs --- */

/* Returns the endpoints of the children, with one reference. */
static struct tc_endpoints *list_of(const struct model_config *config)
{
    char text[CHILDREN][64] = {"", ""};
    for (int i = 0; i < CHILDREN; i++)
        for (int e = 0; e < ENDPOINTS; e++)
            if (config->members[i] & (1 << e)) {
                size_t len = strlen(text[i]);
                snprintf(text[i] + len, sizeof(text[i]) - len, "%s%s@%s", len ? " " : "", addresses[e], names[i]);
            }
    return fake_lb_endpoint_tree(names[0], text[0], names[1], text[1], NULL);
}

/* Returns the config of the priority policy, with one reference. */
static struct tc_lb_config *lb_config_of(const struct model_config *config)
{
    struct tc_child_config children[CHILDREN];
    struct tc_lb_config *ring = tc_ring_hash_config_new(RING_MIN, RING_MAX, tc_slice_of(NULL, 0));
    for (int p = 0; p < config->n; p++)
        children[p] = (struct tc_child_config){.name = tc_rstr_str(names[config->priority[p]]), .config = ring};
    struct tc_lb_config *out = tc_child_configs_new(&tc_priority_factory, children, (size_t)config->n);
    for (int p = 0; p < config->n; p++)
        tc_rstr_unref(children[p].name);
    tc_lb_config_unref(ring);
    return out;
}

/* --- a tree and its model --- */

struct world {
    struct fake_lb *lb; /* freed by the caller of world_init or play */
    struct model model;
};

static struct state_graph *graph;
/* Steps tried by expand; those of them to a known state, whose sequence is dropped; events tried by compare; endpoints
 * tried by check_settles. */
static unsigned long transitions, dropped, compared, settled;

static void print_events(const struct event *events, size_t n)
{
    static const char *const kinds[] = {"call", "connected", "failed", "backoff over", "lost", "timer", "update"};
    for (size_t i = 0; i < n; i++) {
        const struct event *e = &events[i];
        if (e->kind == UPDATE)
            print_error("  update %d\n", (int)(e->config - configs));
        else if (e->kind == TIMER)
            print_error("  timer\n");
        else
            print_error("  %s: %s in %s\n", kinds[e->kind], addresses[e->endpoint], names[e->child]);
    }
}

/* The events of the last play(), for the text of a failed CHECK. */
static const struct event *now_playing;
static size_t n_playing;

#define CHECK(held, ...)                                                                                               \
    do {                                                                                                               \
        if (!(held)) {                                                                                                 \
            print_error("after\n");                                                                                    \
            print_events(now_playing, n_playing);                                                                      \
            fail_msg(__VA_ARGS__);                                                                                     \
        }                                                                                                              \
    } while (0)

/* Stores the states of the tree's subchannels; IDLE where there is no subchannel. */
static void look(const struct world *w, enum torc_connectivity seen[CHILDREN][ENDPOINTS])
{
    for (int i = 0; i < CHILDREN; i++)
        for (int e = 0; e < ENDPOINTS; e++) {
            enum torc_connectivity s = fake_lb_state_in(w->lb, addresses[e], names[i]);
            seen[i][e] = s == TORC_CONNECTIVITY_SHUTDOWN ? TORC_CONNECTIVITY_IDLE : s;
        }
}

static void give_config(struct world *w, const struct model_config *config)
{
    size_t i = (size_t)(config - configs);
    fake_lb_update(w->lb, tc_endpoints_ref(lists[i]), tc_lb_config_ref(lb_configs[i]), NULL);
}

/* Makes a pick; a dry one changes nothing. Stores in *address what fake_lb_pick_hash returns. */
static enum tc_pick_kind pick(struct world *w, uint64_t hash, bool dry, const char **address)
{
    w->lb->args.dry = dry;
    *address = fake_lb_pick_hash(w->lb, hash);
    return w->lb->kind;
}

/* Returns a hash for which a call wakes this endpoint of the chosen child now. */
static uint64_t hash_that_wakes(const struct world *w, int child, int endpoint)
{
    for (int h = 0; h < n_hashes; h++) {
        int got, in[ENDPOINTS];
        uint8_t set = w->model.config->members[child];
        if (model_call(&w->model, hashes[h].order[set], members(set, in), &got) == QUEUED && got == endpoint)
            return hashes[h].hash;
    }
    fail_msg("no call wakes endpoint %d of %s", endpoint, names[child]);
    return 0;
}

static struct tc_describe description;

/* Returns the description of the real tree, in `description`: valid until the next call. */
static const char *describe(const struct world *w)
{
    tc_buf_clear(&description.out);
    description.follows = false;
    tc_describe_policy(&description, NULL, w->lb->policy);
    return tc_buf_cstr(&description.out);
}

static int number_at(const char *digits)
{
    int n = 0;
    for (; *digits >= '0' && *digits <= '9'; digits++)
        n = n * 10 + (*digits - '0');
    return n;
}

/* Returns the milliseconds until the tree's next timer, or NO_TIMER. Reads the members "..._ms" of the description. */
static int next_timer(const struct world *w)
{
    int next = NO_TIMER;
    for (const char *at = describe(w); (at = strstr(at, "_ms\":")); at++) {
        int ms = number_at(at + strlen("_ms\":"));
        next = next == NO_TIMER || ms < next ? ms : next;
    }
    return next;
}

static void do_event(struct world *w, const struct event *e)
{
    static const enum torc_connectivity to[] = {[CONNECTED] = TORC_CONNECTIVITY_READY,
                                                [FAILED] = TORC_CONNECTIVITY_TRANSIENT_FAILURE,
                                                [BACKOFF_OVER] = TORC_CONNECTIVITY_IDLE,
                                                [LOST] = TORC_CONNECTIVITY_IDLE};
    const char *address;
    if (e->kind == CALL)
        pick(w, hash_that_wakes(w, e->child, e->endpoint), false, &address);
    else if (e->kind == UPDATE)
        give_config(w, e->config);
    else if (e->kind == TIMER)
        tc_loop_advance(w->lb->loop, (uint64_t)model_next_timer(&w->model));
    else
        fake_lb_set_in(w->lb, addresses[e->endpoint], names[e->child], to[e->kind]);
}

/* Applies the event to the tree and to the model, and compares their endpoints. The loop's random numbers decide which
 * IDLE endpoint is connected without a call. They are not part of a state, so each event begins with the same seed. */
static void step(struct world *w, const struct event *e)
{
    enum torc_connectivity seen[CHILDREN][ENDPOINTS];
    tc_rng_init_seed(tc_loop_rng(w->lb->loop), 1);
    do_event(w, e);
    look(w, seen);
    const char *wrong = model_apply(&w->model, e, seen);
    CHECK(!wrong, "%s", wrong);
    for (int i = 0; i < CHILDREN; i++)
        for (int k = 0; k < ENDPOINTS; k++) {
            enum torc_connectivity want = model_seen(w->model.child[i].slot[k]);
            CHECK(seen[i][k] == want, "%s of child %s: %s, the model says %s", addresses[k], names[i],
                  torc_connectivity_name(seen[i][k]), torc_connectivity_name(want));
        }
}

static void check_calls(struct world *w)
{
    uint8_t set = w->model.config->members[model_chosen(&w->model)];
    int in[ENDPOINTS], n = members(set, in), endpoint;
    for (int h = 0; h < n_hashes; h++) {
        static const enum tc_pick_kind kinds[] = {
            [SENT] = TC_PICK_COMPLETE, [QUEUED] = TC_PICK_QUEUE, [FAILS] = TC_PICK_FAIL};
        const char *address;
        enum answer want = model_call(&w->model, hashes[h].order[set], n, &endpoint);
        enum tc_pick_kind kind = pick(w, hashes[h].hash, true, &address);
        CHECK(kind == kinds[want], "a call of hash %d: %s, the model says %d", h, address, want);
        CHECK(want != SENT || strcmp(address, addresses[endpoint]) == 0, "a call of hash %d goes to %s, not to %s", h,
              address, addresses[endpoint]);
    }
}

static void check(struct world *w)
{
    CHECK(w->lb->state == model_state(&w->model), "%s, the model says %s", torc_connectivity_name(w->lb->state),
          torc_connectivity_name(model_state(&w->model)));
    CHECK(next_timer(w) == model_next_timer(&w->model), "the next timer in %d ms, the model says %d", next_timer(w),
          model_next_timer(&w->model));
    check_calls(w);
}

static void world_init(struct world *w)
{
    w->lb = fake_lb_new("priority");
    give_config(w, &configs[0]);
    model_start(&w->model, &configs[0]);
}

/* Makes a world, whose `lb` the caller frees, and applies the events, each with step(). Of the callers only expand()
 * adds check(), after the last event: it has checked the shorter sequences before. */
static void play(struct world *w, const struct event *events, size_t n)
{
    now_playing = events;
    n_playing = n;
    world_init(w);
    for (size_t i = 0; i < n; i++)
        step(w, &events[i]);
}

/* Removes error texts from the description: they describe the past and do not influence later states. They have no
 * quotes, also no escaped ones. */
static void drop_errors(struct tc_buf *text)
{
    static const char member[] = ",\"error\":\"";
    char *to = text->data, *from = text->data, *end = text->data + text->len;
    while (from < end) {
        if (end - from > (ptrdiff_t)sizeof(member) && memcmp(from, member, sizeof(member) - 1) == 0)
            from = (char *)memchr(from + sizeof(member) - 1, '"', (size_t)(end - from) - sizeof(member) + 1) + 1;
        else
            *to++ = *from++;
    }
    text->len = (size_t)(to - text->data);
}

/* Returns the sign of the state of the tree and of the model. */
static struct state_sign sign(const struct world *w)
{
    struct tc_buf *text = &description.out;
    describe(w);
    drop_errors(text);
    tc_buf_append(text, &w->model.config, sizeof(w->model.config));
    for (int i = 0; i < CHILDREN; i++) {
        const struct model_child *c = &w->model.child[i];
        tc_buf_printf(text, "|%d %d %d %d %d %d %d %d", c->exists, c->failed_last, c->state, c->failover_ms,
                      c->retention_ms, c->slot[0], c->slot[1], c->slot[2]);
    }
    struct state_sign out;
    out.half[0] = tc_xxh64_slice(tc_buf_slice(text));
    tc_buf_append_str(text, "again");
    out.half[1] = tc_xxh64_slice(tc_buf_slice(text));
    return out;
}

/* Stores the events possible now in `out`, which has room for MAX_EVENTS. Returns their number. */
static size_t possible(const struct world *w, struct event *out)
{
    size_t n = 0;
    const struct model *m = &w->model;
    int chosen = model_chosen(m), in[ENDPOINTS], endpoint;
    bool woken[ENDPOINTS] = {false};
    uint8_t set = m->config->members[chosen];
    for (int h = 0; h < n_hashes; h++) {
        bool wakes = model_call(m, hashes[h].order[set], members(set, in), &endpoint) == QUEUED && endpoint >= 0;
        if (wakes && !woken[endpoint])
            out[n++] = (struct event){CALL, chosen, endpoint, NULL};
        if (wakes)
            woken[endpoint] = true;
    }
    for (int i = 0; i < CHILDREN; i++)
        for (int e = 0; e < ENDPOINTS; e++) {
            enum torc_connectivity s = model_seen(m->child[i].slot[e]);
            if (s == TORC_CONNECTIVITY_CONNECTING) {
                out[n++] = (struct event){CONNECTED, i, e, NULL};
                out[n++] = (struct event){FAILED, i, e, NULL};
            } else if (s == TORC_CONNECTIVITY_READY) {
                out[n++] = (struct event){LOST, i, e, NULL};
            } else if (s == TORC_CONNECTIVITY_TRANSIENT_FAILURE) {
                out[n++] = (struct event){BACKOFF_OVER, i, e, NULL};
            }
        }
    if (model_next_timer(m) != NO_TIMER)
        out[n++] = (struct event){TIMER, 0, 0, NULL};
    for (size_t k = 0; k < CONFIGS; k++)
        out[n++] = (struct event){UPDATE, 0, 0, &configs[k]};
    assert_true(n <= MAX_EVENTS);
    return n;
}

/* --- nothing is stuck --- */

/* Returns whether a priority of the config has the endpoint. */
static bool reachable(const struct model_config *config, int endpoint)
{
    for (int p = 0; p < config->n; p++)
        if (config->members[config->priority[p]] & (1 << endpoint))
            return true;
    return false;
}

/* Ends all attempts, all backoffs, and all connections to other endpoints than `good`. Attempts to `good` succeed, all
 * others fail. Returns false if there was nothing to end. */
static bool network(struct world *w, int good)
{
    enum torc_connectivity seen[CHILDREN][ENDPOINTS];
    bool any = false;
    look(w, seen);
    for (int i = 0; i < CHILDREN; i++)
        for (int e = 0; e < ENDPOINTS; e++) {
            enum torc_connectivity to = seen[i][e] == TORC_CONNECTIVITY_CONNECTING
                                            ? e == good ? TORC_CONNECTIVITY_READY : TORC_CONNECTIVITY_TRANSIENT_FAILURE
                                            : TORC_CONNECTIVITY_IDLE;
            bool lost = seen[i][e] == TORC_CONNECTIVITY_READY && e != good;
            if (seen[i][e] != TORC_CONNECTIVITY_CONNECTING && seen[i][e] != TORC_CONNECTIVITY_TRANSIENT_FAILURE &&
                !lost)
                continue;
            /* Setting another slot before may have changed this one. */
            if (fake_lb_state_in(w->lb, addresses[e], names[i]) == seen[i][e])
                fake_lb_set_in(w->lb, addresses[e], names[i], to);
            any = true;
        }
    return any;
}

/* Checks that a waiting call of each hash reaches `good`, the one reachable endpoint, within 60 rounds of network().
 * Time goes on to the next timer in rounds in which network() has nothing to end, and in each eighth round. */
static void check_served(struct world *w, int good)
{
    for (int h = 0; h < n_hashes; h++) {
        const char *address = "";
        int round = 0;
        for (; round < 60; round++) {
            if (pick(w, hashes[h].hash, false, &address) == TC_PICK_COMPLETE && strcmp(address, addresses[good]) == 0)
                break;
            int ms = next_timer(w);
            if (!network(w, good) && ms > 0)
                tc_loop_advance(w->lb->loop, (uint64_t)ms);
            else if (round % 8 == 7 && ms > 0)
                tc_loop_advance(w->lb->loop, (uint64_t)ms); /* backoffs end again and again, and time passes */
        }
        CHECK(round < 60, "with %s reachable a call of hash %d is stuck: %s", addresses[good], h, address);
    }
}

/* Checks that without calls the tree leaves CONNECTING and TRANSIENT_FAILURE within 60 rounds of network(). Time goes
 * on to the next timer in rounds in which network() has nothing to end, and in each eighth round. */
static void check_not_left(struct world *w, int good)
{
    for (int round = 0; round < 60; round++) {
        if (w->lb->state == TORC_CONNECTIVITY_READY || w->lb->state == TORC_CONNECTIVITY_IDLE)
            return;
        int ms = next_timer(w);
        bool any = network(w, good);
        if (ms > 0 && (!any || round % 8 == 7))
            tc_loop_advance(w->lb->loop, (uint64_t)ms);
    }
    CHECK(false, "with %s reachable and without calls it stays in %s", addresses[good],
          torc_connectivity_name(w->lb->state));
}

/* Checks, with each endpoint of the config as the one that can be reached, that the state after the events does not get
 * stuck. */
static void check_settles(const struct event *events, size_t n, const struct model_config *config)
{
    struct world w;
    for (int good = 0; good < ENDPOINTS; good++) {
        if (!reachable(config, good))
            continue;
        play(&w, events, n);
        check_not_left(&w, good);
        check_served(&w, good);
        fake_lb_free(w.lb);
        settled++;
    }
}

/* --- the search --- */

/* Checks that two sequences that lead to one state go on alike: each event that is possible after the first one leads
 * both to one state again. */
static void compare(const struct event *one, size_t n_one, const struct event *two, size_t n_two)
{
    struct event next[MAX_EVENTS], a[MAX_DEPTH + 1], b[MAX_DEPTH + 1];
    struct world w;
    play(&w, one, n_one);
    size_t n = possible(&w, next);
    fake_lb_free(w.lb);
    memcpy(a, one, n_one * sizeof(*one));
    memcpy(b, two, n_two * sizeof(*two));
    for (size_t i = 0; i < n; i++) {
        a[n_one] = b[n_two] = next[i];
        play(&w, a, n_one + 1);
        struct state_sign s = sign(&w);
        fake_lb_free(w.lb);
        play(&w, b, n_two + 1);
        struct state_sign t = sign(&w);
        CHECK(s.half[0] == t.half[0] && s.half[1] == t.half[1],
              "the state is not that of another sequence that was in one state with it");
        fake_lb_free(w.lb);
        compared++;
    }
}

/* Tries each event that is possible in a state. */
static void expand(uint32_t from)
{
    struct event path[MAX_DEPTH + 1], next[MAX_EVENTS], other[MAX_DEPTH + 1];
    size_t depth = state_graph_path(graph, from, path);
    struct world w;
    play(&w, path, depth);
    size_t n = possible(&w, next);
    fake_lb_free(w.lb);
    for (size_t i = 0; i < n; i++) {
        path[depth] = next[i];
        play(&w, path, depth + 1);
        check(&w);
        struct state_sign to = sign(&w);
        const struct model_config *config = w.model.config;
        fake_lb_free(w.lb);
        transitions++;
        size_t before = state_graph_count(graph);
        uint32_t at = state_graph_step(graph, from, &next[i], &to);
        if (at == before)
            check_settles(path, depth + 1, config);
        else if (++dropped % 64 == 0)
            compare(other, state_graph_path(graph, at, other), path, depth + 1);
    }
}

static void every_sequence(void **state)
{
    (void)state;
    const char *text = getenv("TORC_MODEL_DEPTH");
    int depth = text ? number_at(text) : 8;
    assert_true(depth > 0 && depth < MAX_DEPTH);
    struct world w;
    world_init(&w);
    check(&w);
    struct state_sign s = sign(&w);
    fake_lb_free(w.lb);
    graph = state_graph_new(&s);
    uint32_t first = 0;
    for (int level = 1; level <= depth; level++) {
        uint32_t end = (uint32_t)state_graph_count(graph);
        for (; first < end; first++)
            expand(first);
        print_message("%d events: %.0f sequences, %zu states, %lu steps, %lu pairs compared, %lu ends reached\n", level,
                      state_graph_sequences(graph, level), state_graph_count(graph), transitions, compared, settled);
    }
    state_graph_free(graph);
}

int main(void)
{
    make_hashes();
    for (size_t i = 0; i < CONFIGS; i++) {
        lists[i] = list_of(&configs[i]);
        lb_configs[i] = lb_config_of(&configs[i]);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_sequence)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    for (size_t i = 0; i < CONFIGS; i++) {
        tc_endpoints_unref(lists[i]);
        tc_lb_config_unref(lb_configs[i]);
    }
    tc_buf_fini(&description.out);
    return rc;
}
