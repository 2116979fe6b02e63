/* Trees of policies, and picks through each of their levels.
 *
 * A world has one tree of each kind but TREE_ROUND_ROBIN. All endpoints of its trees are READY. The world also has
 * rings and a Maglev table, which are searched without a tree, and config selectors, which choose the hash before a
 * tree picks. A pick's hash depends on the subchannel or endpoint that the pick before it found, so picks do not
 * overlap. The world owns all of these until pick_world_free, and one thread uses it. Read pick_run first: it is the
 * measured code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "measure.h"
#include "peers/vector_ring.h"
#include "pick.h"
#include "resolver/call_filter.h"
#include "ring/maglev.h"
#include "support/kits/config.h"
#include "tree.h"
#include "xds/resolver/config_selector.h"

/* The tree that a level picks from. Levels that are not listed need none. */
static const enum tree_kind trees[PICK_LEVELS] = {
    [PICK_WEIGHTED] = TREE_WEIGHTED, [PICK_LEAST] = TREE_LEAST,       [PICK_SCAN] = TREE_SCAN,
    [PICK_RING_HASH] = TREE_RING,    [PICK_PRIORITY] = TREE_PRIORITY, [PICK_CLUSTER] = TREE_CLUSTER,
    [PICK_LOADS] = TREE_LOADS,       [PICK_MANAGER] = TREE_MANAGER,   [PICK_SELECTED] = TREE_MANAGER,
    [PICK_FILTERED] = TREE_MANAGER,  [PICK_OUTLIERS] = TREE_OUTLIERS,
};

struct pick_world {
    size_t n;
    struct tree *trees[TREE_ROUND_ROBIN]; /* by kind */
    struct tc_ring *ring, *table;
    struct vector_ring *peer;
    struct tc_cluster_refs refs;
    struct tc_config_selector *plain, *filtered;
    struct tc_arena memory;    /* of the ring's keys and the request's list of fields */
    struct tc_headers request; /* the value of its second field is `user` */
    char user[16];             /* rewritten before each pick */
    struct tc_rng rng;         /* for the config selectors */
    uint64_t hash;             /* of the next pick */
};

static void fail(const char *what)
{
    fprintf(stderr, "bench/pick: %s\n", what);
    exit(1);
}

/* --- making --- */

static void make_rings(struct pick_world *w)
{
    struct tc_ring_item *ours = tc_calloc(w->n, sizeof(*ours));
    struct vector_ring_item *theirs = tc_calloc(w->n, sizeof(*theirs));
    double *weights = tc_calloc(w->n, sizeof(*weights));
    struct tree_ring_size size = tree_ring_size(w->n);
    for (size_t i = 0; i < w->n; i++) {
        char text[TREE_ADDRESS_MAX];
        size_t len = tree_address(text, i);
        const char *key = tc_arena_dup(&w->memory, tc_slice_of(text, len));
        ours[i] = (struct tc_ring_item){tc_slice_of(key, len), 1};
        theirs[i] = (struct vector_ring_item){key, len, 1};
        weights[i] = 1.0 / (double)w->n;
    }
    w->table = tc_maglev_new(ours, weights, w->n, TC_MAGLEV_SIZE_DEFAULT);
    w->ring = tc_ring_new(ours, w->n, size.least, size.most, TC_RING_SIZE_MAX);
    w->peer = vector_ring_new(theirs, w->n, size.least, size.most);
    tc_free(ours);
    tc_free(weights);
    tc_free(theirs);
}

static void ignore(struct tc_cluster_refs *refs, struct tc_rstr *name)
{
    (void)refs;
    (void)name;
}

/* Makes a selector with three routes that do not match before the one that does. filters: HTTP filters as JSON texts,
 * each followed by a comma. The selector borrows w->refs. */
static struct tc_config_selector *make_selector(struct pick_world *w, const char *filters)
{
    struct tc_xds_config *config = kit_config_routing(
        filters, "",
        "{'match': {'path': '/shop.Cart/Empty'}, 'route': {'cluster': 'c'}}, "
        "{'match': {'prefix': '/shop.Admin/'}, 'route': {'cluster': 'c'}}, "
        "{'match': {'prefix': '/shop.', 'headers': [{'name': 'x-canary', 'stringMatch': {'exact': 'yes'}}]}, "
        "'route': {'cluster': 'c'}}, "
        "{'match': {'prefix': ''}, 'route': {'cluster': 'c', 'maxStreamDuration': {'maxStreamDuration': '10s'}, "
        "'hashPolicy': [{'header': {'headerName': 'x-user'}}]}}",
        "");
    struct tc_config_selector *s = tc_xds_selector_new(config, &w->refs, measure_random());
    tc_xds_config_unref(config);
    return s;
}

static void make_request(struct pick_world *w)
{
    tc_headers_init(&w->request, &w->memory);
    tc_headers_add(&w->request, tc_slice_str("x-request-source"), tc_slice_str("web"));
    tc_headers_add(&w->request, tc_slice_str("x-user"), tc_slice_of(w->user, sizeof(w->user)));
}

struct pick_world *pick_world_new(size_t endpoints)
{
    struct pick_world *w = TC_NEW(struct pick_world);
    w->n = endpoints;
    w->hash = measure_random();
    tc_arena_init(&w->memory, 0, 0);
    tc_rng_init_seed(&w->rng, measure_random());
    w->refs = (struct tc_cluster_refs){.on_used = ignore, .on_unused = ignore};
    make_rings(w);
    make_request(w);
    w->plain = make_selector(w, "");
    w->filtered = make_selector(w, "{'name': 'fault', 'typedConfig': {'@type': "
                                   "'type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault', 'abort': "
                                   "{'headerAbort': {}, 'percentage': {'numerator': 100}}}},");
    for (enum tree_kind k = 0; k < TREE_ROUND_ROBIN; k++) {
        w->trees[k] = tree_new(k, endpoints);
        if (!tree_connect_all(w->trees[k]))
            fail("an endpoint was not connected when it was wanted");
    }
    return w;
}

void pick_world_free(struct pick_world *w)
{
    for (enum tree_kind k = 0; k < TREE_ROUND_ROBIN; k++)
        tree_free(w->trees[k]);
    tc_config_selector_unref(w->plain);
    tc_config_selector_unref(w->filtered);
    tc_cluster_refs_fini(&w->refs);
    tc_ring_unref(w->ring);
    tc_ring_unref(w->table);
    vector_ring_free(w->peer);
    tc_arena_fini(&w->memory);
    tc_free(w);
}

/* --- picks --- */

/* Returns the pointer to the picked subchannel, as a number. */
static inline uint64_t pick(struct tree *t, uint64_t hash)
{
    struct tc_subchannel *found = tree_pick(t, hash);
    if (!found)
        fail("a pick found no endpoint");
    return (uint64_t)(uintptr_t)found;
}

/* Starts and ends the RPC in each filter that the selector gave. */
static void pass_filters(struct fake_lb *f, struct tc_headers *metadata, struct tc_call_config *config)
{
    struct tc_filter_call call = {
        .loop = f->loop, .arena = &f->arena, .path = f->args.path, .metadata = metadata, .config = config};
    const struct tc_filter_chain *chain = config->filters;
    for (size_t i = 0; i < chain->n; i++) {
        const struct tc_call_filter *filter = &chain->filters[i];
        void *state = NULL;
        if (filter->ops->start(filter, &call, &state) != TC_FILTER_NEXT)
            fail("a filter held an RPC up");
        if (filter->ops->done)
            filter->ops->done(filter, &call, &state);
    }
}

/* Asks the selector for the RPC's hash, cluster and filters, runs the filters, and picks. */
static inline uint64_t select_and_pick(struct pick_world *w, struct tc_config_selector *cs, struct tree *t)
{
    struct fake_lb *f = tree_lb(t);
    const struct tc_select_args args = {
        .path = f->args.path, .headers = &w->request, .arena = &f->arena, .rng = &w->rng};
    struct tc_call_config config;
    struct tc_status status = cs->ops->select(cs, &args, &config);
    if (!tc_status_ok(&status))
        fail(tc_status_text(&status));
    if (config.filters)
        pass_filters(f, &w->request, &config);
    f->args.cluster = config.cluster;
    uint64_t found = pick(t, config.hash);
    f->args.cluster = tc_slice_str("c");
    tc_filter_chain_unref(config.filters);
    config.release(config.hold);
    return found;
}

/* Writes the header value that the next request is hashed by: a letter for each four bits of h. */
static inline void set_user(struct pick_world *w, uint64_t h)
{
    const uint64_t half = UINT64_C(0x0f0f0f0f0f0f0f0f), letters = UINT64_C(0x6161616161616161);
    uint64_t text[2] = {(h & half) + letters, (h >> 4 & half) + letters};
    memcpy(w->user, text, sizeof(text));
}

/* Makes one pick at a level. Returns what the pick found, as a number. t: the level's tree; ignored if the level has
 * none. */
static inline uint64_t once(struct pick_world *w, struct tree *t, enum pick_level level, uint64_t h)
{
    switch (level) {
    case PICK_LOOP:
        return 0;
    case PICK_SEARCH:
        return tc_ring_item_at(w->ring, tc_ring_find(w->ring, h));
    case PICK_SLOT:
        return tc_ring_item_at(w->table, tc_ring_find(w->table, h));
    case PICK_PEER:
        return vector_ring_pick(w->peer, h);
    case PICK_SELECTED:
        return select_and_pick(w, w->plain, t);
    case PICK_FILTERED:
        return select_and_pick(w, w->filtered, t);
    default:
        return pick(t, h);
    }
}

void pick_run(struct pick_world *w, enum pick_level level, unsigned picks)
{
    struct tree *t = w->trees[trees[level]];
    uint64_t h = w->hash;
    for (unsigned i = 0; i < picks; i++) {
        set_user(w, h);
        h = (h ^ i ^ once(w, t, level, h)) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    w->hash = h;
}
