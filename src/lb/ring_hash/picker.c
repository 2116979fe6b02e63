/* The pick of ring_hash and maglev, which differ in the look-up alone: set->ring is a ring or a table.
 *
 * - The hash comes with the pick, or by A76 from a header of the request. A request without the header gets a random
 *   hash.
 * - Fast path, with a given hash: the endpoint of the entry that the hash hits is READY, and its picker completes the
 *   pick. That reads one place of the ring and one pointer of `ready`.
 * - Otherwise the pick walks the entries from that entry on. With a given hash (A61) the first endpoint that is not in
 *   TRANSIENT_FAILURE decides: if it is IDLE, it is connected and the pick queues. With a random hash (A76) the first
 *   READY endpoint takes the RPC. The first IDLE endpoint on the way is connected, unless any endpoint of the set is
 *   connecting already. A pick that finds only failed endpoints fails.
 * - With bounded loads (balance.h) there is no fast path: the endpoint at which the walk ends may be loaded beyond its
 *   bound, and passes the RPC on.
 *
 * Beside its answers a pick writes nothing but a request to connect an endpoint (tc_rh_set_want) and, with bounded
 * loads, into struct tc_rh_balance and its counts. A picker holds a reference to its set, and reads the set even after
 * the policy has replaced it. */
#include "lb/ring_hash/balance.h"

#include "base/hash.h"
#include "base/mem.h"
#include "lb/connectivity.h"
#include "lb/resolution_note.h"

enum { WALKED_MAX = 64 }; /* endpoints passed over that an explanation holds */

struct rh_picker {
    struct tc_picker base;
    struct tc_rh_set *set;
};

/* --- explanation --- */

static void trace_start(struct tc_pick_trace *t, const struct tc_rh_set *set, uint64_t hash, uint32_t first)
{
    t->policy = tc_slice_str(set->config->base.factory->name);
    t->has_hash = true;
    t->hash = hash;
    t->has_ring_index = true;
    t->ring_index = first;
    t->endpoint = tc_slice_of(NULL, 0);
    t->walked = NULL;
    t->n_walked = 0;
}

/* Returns why the endpoint failed, as its picker says; in the arena. */
static struct tc_slice trace_failure(struct tc_arena *arena, struct tc_picker *picker)
{
    struct tc_pick_args args = {.arena = arena, .dry = true};
    struct tc_pick pick = {0};
    tc_picker_pick(picker, &args, &pick);
    struct tc_slice text = tc_arena_copy(arena, tc_slice_str(tc_status_text(&pick.status)));
    tc_status_fini(&pick.status);
    return text;
}

/* Adds an endpoint that was passed over, each once, at most WALKED_MAX of them. NULL is allowed for `t`: the pick is
 * not explained. */
static void trace_walked(struct tc_pick_trace *t, const struct tc_rh_endpoint *e, const char *reason)
{
    struct tc_slice text;
    if (!t || t->n_walked == WALKED_MAX || (text = tc_pick_trace_addr(t->arena, &e->endpoint->addrs[0])).len == 0)
        return;
    for (size_t i = 0; i < t->n_walked; i++)
        if (tc_slice_eq(t->walked[i].endpoint, text))
            return;
    if (!t->walked && !(t->walked = tc_arena_calloc(t->arena, WALKED_MAX, sizeof(*t->walked))))
        return;
    t->walked[t->n_walked].endpoint = text;
    t->walked[t->n_walked].reason = tc_slice_str(reason);
    if (e->state == TORC_CONNECTIVITY_TRANSIENT_FAILURE && e->picker)
        t->walked[t->n_walked].error = trace_failure(t->arena, e->picker);
    t->n_walked++;
}

/* Notes the endpoint that the pick waits for, if the pick is to be explained. The picker of a CONNECTING endpoint notes
 * the subchannel. */
static void trace_awaited(const struct tc_pick_args *args, const struct tc_rh_endpoint *e)
{
    if (TC_LIKELY(args->trace == NULL))
        return;
    args->trace->endpoint = tc_pick_trace_addr(args->trace->arena, &e->endpoint->addrs[0]);
    if (e->state == TORC_CONNECTIVITY_CONNECTING && e->picker) {
        struct tc_pick_args dry = *args;
        struct tc_pick nothing = {0};
        dry.dry = true;
        tc_picker_pick(e->picker, &dry, &nothing);
    }
}

/* --- walks --- */

/* All endpoints with an entry have failed: fails as the endpoint of the entry `first` does. */
static enum tc_pick_kind rh_pick_fail(const struct tc_rh_set *set, uint32_t first, const struct tc_pick_args *args,
                                      struct tc_pick *out)
{
    struct tc_picker *picker = set->at[tc_ring_item_at(set->ring, first)].picker;
    enum tc_pick_kind kind = picker ? tc_picker_pick(picker, args, out) : TC_PICK_QUEUE;
    if (kind != TC_PICK_FAIL)
        return kind;
    const char *text = set->config->table_size ? "maglev cannot find a connected endpoint; first failure:"
                                               : "ring hash cannot find a connected endpoint; first failure:";
    tc_status_set(&out->status, tc_lb_status_with_resolution_note(text, &out->status, set->resolution_note));
    return kind;
}

/* Picks by endpoint i, which has not failed. */
static enum tc_pick_kind rh_pick_at(struct tc_rh_set *set, uint32_t i, const struct tc_pick_args *args,
                                    struct tc_pick *out)
{
    const struct tc_rh_endpoint *e = &set->at[i];
    if (e->state == TORC_CONNECTIVITY_READY) {
        enum tc_pick_kind kind = tc_picker_pick(e->picker, args, out);
        if (set->balance && kind == TC_PICK_COMPLETE)
            tc_active_requests_track(set->balance->active[i], args, out);
        return kind;
    }
    if (e->state == TORC_CONNECTIVITY_IDLE && !args->dry)
        tc_rh_set_want(set, i);
    trace_awaited(args, e);
    return TC_PICK_QUEUE;
}

/* Picks by endpoint i, at which a walk ended, or by the endpoint to which endpoint i passes the RPC on. */
static enum tc_pick_kind rh_pick_balanced(struct tc_rh_set *set, uint32_t i, uint64_t hash, bool ready,
                                          const struct tc_pick_args *args, struct tc_pick *out)
{
    uint32_t chosen = set->balance ? tc_rh_balance_choose(set, i, hash, ready) : i;
    if (chosen != i)
        trace_walked(args->trace, &set->at[i], "above its bound of loads");
    enum tc_pick_kind kind = rh_pick_at(set, chosen, args, out);
    if (chosen != i && kind == TC_PICK_QUEUE && !args->dry)
        set->balance->waiting = true;
    return kind;
}

/* A61: from the entry `first` on, the first endpoint that is not in TRANSIENT_FAILURE decides. */
static enum tc_pick_kind rh_pick_walk(struct tc_rh_set *set, uint64_t hash, uint32_t first,
                                      const struct tc_pick_args *args, struct tc_pick *out)
{
    struct tc_picker *ready = set->ready[tc_ring_item_at(set->ring, first)];
    if (TC_LIKELY(ready != NULL))
        return tc_picker_pick(ready, args, out);
    bool any = set->counts[TORC_CONNECTIVITY_TRANSIENT_FAILURE] < set->on_ring;
    uint32_t steps = any ? tc_ring_walk_steps(set->ring) : 0;
    for (uint32_t k = 0; k < steps; k++) {
        uint32_t i = tc_ring_walk(set->ring, first, k);
        if (set->at[i].state != TORC_CONNECTIVITY_TRANSIENT_FAILURE)
            return rh_pick_balanced(set, i, hash, false, args, out);
        if (TC_UNLIKELY(args->trace != NULL))
            trace_walked(args->trace, &set->at[i], tc_connectivity_name(TORC_CONNECTIVITY_TRANSIENT_FAILURE));
    }
    return rh_pick_fail(set, first, args, out);
}

/* A76: the first READY endpoint from the entry `first` on, a random place, takes the RPC. The first IDLE endpoint on
 * the way is connected, unless an endpoint of the set is connecting already. */
static enum tc_pick_kind rh_pick_walk_random(struct tc_rh_set *set, uint64_t hash, uint32_t first,
                                             const struct tc_pick_args *args, struct tc_pick *out)
{
    bool requested = set->counts[TORC_CONNECTIVITY_CONNECTING] > 0;
    bool any = set->counts[TORC_CONNECTIVITY_TRANSIENT_FAILURE] < set->on_ring;
    uint32_t steps = any ? tc_ring_walk_steps(set->ring) : 0;
    for (uint32_t k = 0; k < steps; k++) {
        if (requested && !set->counts[TORC_CONNECTIVITY_READY])
            break;
        uint32_t i = tc_ring_walk(set->ring, first, k);
        const struct tc_rh_endpoint *e = &set->at[i];
        if (e->state == TORC_CONNECTIVITY_READY)
            return rh_pick_balanced(set, i, hash, true, args, out);
        if (TC_UNLIKELY(args->trace != NULL))
            trace_walked(args->trace, e, tc_connectivity_name(e->state));
        if (!requested && e->state == TORC_CONNECTIVITY_IDLE) {
            if (!args->dry)
                tc_rh_set_want(set, i);
            requested = true;
        }
    }
    return requested ? TC_PICK_QUEUE : rh_pick_fail(set, first, args, out);
}

/* Hashes the request's header (A76). Returns false if the request has no such header, or an empty one. */
static bool rh_header_hash(const struct tc_rh_set *set, const struct tc_pick_args *args, uint64_t *hash)
{
    struct tc_buf scratch = {0};
    struct tc_slice value;
    /* A76: "has a non-empty value"; an empty one would send all such requests to one endpoint. */
    bool found = args->headers &&
                 tc_headers_joined(args->headers, tc_rstr_slice(set->config->request_hash_header), &scratch, &value) &&
                 value.len > 0;
    if (found)
        *hash = tc_xxh64_slice(value);
    tc_buf_fini(&scratch);
    return found;
}

static enum tc_pick_kind rh_pick(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct tc_rh_set *set = ((struct rh_picker *)picker)->set;
    uint64_t hash = args->hash;
    bool random = false;
    if (set->config->request_hash_header) {
        random = !rh_header_hash(set, args, &hash);
        if (random)
            hash = args->random;
    } else if (!args->has_hash) {
        tc_status_set(&out->status, tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_LB, "hash attribute not present"));
        return TC_PICK_FAIL;
    }
    uint32_t first = tc_ring_find(set->ring, hash);
    if (TC_UNLIKELY(args->trace != NULL))
        trace_start(args->trace, set, hash, first);
    return random ? rh_pick_walk_random(set, hash, first, args, out) : rh_pick_walk(set, hash, first, args, out);
}

static void rh_picker_free(struct tc_picker *picker)
{
    tc_rh_set_unref(((struct rh_picker *)picker)->set);
    tc_free(picker);
}

static const struct tc_picker_ops rh_picker_ops = {rh_pick, rh_picker_free};

struct tc_picker *tc_rh_picker_new(struct tc_rh_set *set)
{
    struct rh_picker *p = TC_NEW(struct rh_picker);
    tc_picker_init(&p->base, &rh_picker_ops);
    p->set = set;
    tc_lref_inc(&set->ref);
    return &p->base;
}
