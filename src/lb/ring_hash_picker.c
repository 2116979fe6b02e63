/* The pick of ring_hash: A61's walk for a given hash, A76's for a random one. */
#include "base/hash.h"
#include "base/mem.h"
#include "lb/note.h"
#include "lb/ring_hash_set.h"

enum { MAX_WALKED = 64 };

struct rh_picker {
    struct tc_picker base;
    struct tc_rh_set *set;
};

/* What explains a pick. */

static struct tc_slice endpoint_text(struct tc_arena *arena, const struct tc_endpoint *e)
{
    struct tc_buf text = {0};
    tc_addr_format(&e->addrs[0], &text);
    char *copy = tc_arena_dup(arena, tc_buf_slice(&text));
    struct tc_slice s = tc_slice_of(copy, copy ? text.len : 0);
    tc_buf_fini(&text);
    return s;
}

static void trace_start(struct tc_pick_trace *t, uint64_t hash, uint32_t first)
{
    t->policy = tc_slice_str("ring_hash");
    t->has_hash = true;
    t->hash = hash;
    t->has_ring_index = true;
    t->ring_index = first;
    t->endpoint = tc_slice_of(NULL, 0);
    t->walked = NULL;
    t->n_walked = 0;
}

static struct tc_slice state_name(unsigned state)
{
    static const char *const names[] = {"IDLE", "CONNECTING", "READY", "TRANSIENT_FAILURE"};
    return tc_slice_str(names[state]);
}

static struct tc_slice failure_text(struct tc_arena *arena, struct tc_picker *picker)
{
    struct tc_pick_args args = {.arena = arena, .dry = true};
    struct tc_pick pick = {0};
    tc_picker_pick(picker, &args, &pick);
    struct tc_slice text = tc_slice_str(tc_status_text(&pick.status));
    char *copy = tc_arena_dup(arena, text);
    tc_status_fini(&pick.status);
    return tc_slice_of(copy, copy ? text.len : 0);
}

/* An endpoint that was passed over; each once. */
static void trace_walked(struct tc_pick_trace *t, const struct tc_rh_endpoint *e)
{
    struct tc_slice text;
    if (t->n_walked == MAX_WALKED || (text = endpoint_text(t->arena, e->endpoint)).len == 0)
        return;
    for (size_t i = 0; i < t->n_walked; i++)
        if (tc_slice_eq(t->walked[i].endpoint, text))
            return;
    if (!t->walked && !(t->walked = tc_arena_calloc(t->arena, MAX_WALKED, sizeof(*t->walked))))
        return;
    t->walked[t->n_walked].endpoint = text;
    t->walked[t->n_walked].reason = state_name(e->state);
    if (e->state == TORC_TRANSIENT_FAILURE && e->picker)
        t->walked[t->n_walked].error = failure_text(t->arena, e->picker);
    t->n_walked++;
}

/* The endpoint that the pick waits for. */
static void trace_awaited(const struct tc_pick_args *args, const struct tc_rh_endpoint *e)
{
    if (TC_UNLIKELY(args->trace != NULL))
        args->trace->endpoint = endpoint_text(args->trace->arena, e->endpoint);
}

/* Walks. */

static enum tc_pick_kind fail(const struct tc_rh_set *set, uint32_t first, const struct tc_pick_args *args,
                              struct tc_pick *out)
{
    struct tc_picker *picker = set->at[tc_ring_item_at(set->ring, first)].picker;
    enum tc_pick_kind kind = picker ? tc_picker_pick(picker, args, out) : TC_PICK_QUEUE;
    if (kind != TC_PICK_FAIL)
        return kind;
    tc_status_set(&out->status, tc_lb_status_with_note("ring hash cannot find a connected endpoint; first failure:",
                                                       tc_status_text(&out->status), set->note));
    return kind;
}

static inline uint32_t next_entry(const struct tc_ring *ring, uint32_t entry)
{
    return entry + 1 == tc_ring_size(ring) ? 0 : entry + 1;
}

/* A61: the first endpoint from there that is not failing decides. */
static enum tc_pick_kind walk(struct tc_rh_set *set, uint32_t first, const struct tc_pick_args *args,
                              struct tc_pick *out)
{
    struct tc_picker *ready = set->ready[tc_ring_item_at(set->ring, first)];
    if (TC_LIKELY(ready != NULL))
        return tc_picker_pick(ready, args, out);
    bool any = set->on_ring_failing < set->on_ring;
    uint32_t size = tc_ring_size(set->ring);
    for (uint32_t k = 0, entry = first; any && k < size; k++, entry = next_entry(set->ring, entry)) {
        uint32_t i = tc_ring_item_at(set->ring, entry);
        const struct tc_rh_endpoint *e = &set->at[i];
        switch (e->state) {
        case TORC_READY:
            return tc_picker_pick(e->picker, args, out);
        case TORC_IDLE:
            if (!args->dry)
                tc_ring_hash_want(set, i);
            trace_awaited(args, e);
            return TC_PICK_QUEUE;
        case TORC_CONNECTING:
            trace_awaited(args, e);
            return TC_PICK_QUEUE;
        default:
            if (TC_UNLIKELY(args->trace != NULL))
                trace_walked(args->trace, e);
        }
    }
    return fail(set, first, args, out);
}

/* A76: the first connected endpoint from a random place; on the way one idle one is woken, none while one connects. */
static enum tc_pick_kind walk_random(struct tc_rh_set *set, uint32_t first, const struct tc_pick_args *args,
                                     struct tc_pick *out)
{
    bool requested = set->counts[TORC_CONNECTING] > 0;
    bool any = set->on_ring_failing < set->on_ring;
    uint32_t size = tc_ring_size(set->ring);
    for (uint32_t k = 0, entry = first; any && k < size; k++, entry = next_entry(set->ring, entry)) {
        if (requested && !set->counts[TORC_READY])
            break;
        uint32_t i = tc_ring_item_at(set->ring, entry);
        const struct tc_rh_endpoint *e = &set->at[i];
        if (e->state == TORC_READY)
            return tc_picker_pick(e->picker, args, out);
        if (TC_UNLIKELY(args->trace != NULL))
            trace_walked(args->trace, e);
        if (!requested && e->state == TORC_IDLE) {
            if (!args->dry)
                tc_ring_hash_want(set, i);
            requested = true;
        }
    }
    return requested ? TC_PICK_QUEUE : fail(set, first, args, out);
}

/* False: the request has none (A76), so chance decides. */
static bool header_hash(const struct tc_rh_set *set, const struct tc_pick_args *args, uint64_t *hash)
{
    struct tc_buf scratch = {0};
    struct tc_slice value;
    /* A76: "has a non-empty value"; an empty one would send all such requests to one endpoint. */
    bool found = args->headers && tc_headers_joined(args->headers, tc_rstr_slice(set->header), &scratch, &value) &&
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
    if (set->header) {
        random = !header_hash(set, args, &hash);
        if (random)
            hash = args->random;
    } else if (!args->has_hash) {
        tc_status_set(&out->status, tc_status_make(TORC_STATUS_INTERNAL, "hash attribute not present"));
        return TC_PICK_FAIL;
    }
    uint32_t first = tc_ring_find(set->ring, hash);
    if (TC_UNLIKELY(args->trace != NULL))
        trace_start(args->trace, hash, first);
    return random ? walk_random(set, first, args, out) : walk(set, first, args, out);
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
    p->base.ops = &rh_picker_ops;
    tc_lref_init(&p->base.ref);
    p->set = set;
    tc_lref_inc(&set->ref);
    return &p->base;
}
