#include "lb/ring_hash_set.h"

#include "base/mem.h"

struct tc_rh_set *tc_rh_set_new(size_t capacity)
{
    struct tc_rh_set *set =
        tc_calloc(1, sizeof(*set) + capacity * (sizeof(struct tc_rh_endpoint) + sizeof(struct tc_picker *)));
    set->ready = (struct tc_picker **)(void *)&set->at[capacity];
    tc_lref_init(&set->ref);
    set->idle_first = set->idle_last = TC_RH_NONE;
    return set;
}

void tc_rh_set_unref(struct tc_rh_set *set)
{
    if (!set || !tc_lref_dec(&set->ref))
        return;
    for (uint32_t i = 0; i < set->n; i++) {
        tc_picker_unref(set->at[i].picker);
        tc_endpoint_unref(set->at[i].endpoint);
    }
    tc_ring_unref(set->ring);
    tc_rstr_unref(set->header);
    tc_rstr_unref(set->note);
    tc_free(set);
}

static void idle_append(struct tc_rh_set *set, uint32_t i)
{
    struct tc_rh_endpoint *e = &set->at[i];
    e->idle_prev = set->idle_last;
    e->idle_next = TC_RH_NONE;
    if (set->idle_last == TC_RH_NONE)
        set->idle_first = i;
    else
        set->at[set->idle_last].idle_next = i;
    set->idle_last = i;
}

static void idle_remove(struct tc_rh_set *set, uint32_t i)
{
    struct tc_rh_endpoint *e = &set->at[i];
    if (e->idle_prev == TC_RH_NONE)
        set->idle_first = e->idle_next;
    else
        set->at[e->idle_prev].idle_next = e->idle_next;
    if (e->idle_next == TC_RH_NONE)
        set->idle_last = e->idle_prev;
    else
        set->at[e->idle_next].idle_prev = e->idle_prev;
}

void tc_rh_set_add(struct tc_rh_set *set, struct tc_endpoint *endpoint, uint64_t weight)
{
    struct tc_rh_endpoint *e = &set->at[set->n];
    e->endpoint = tc_endpoint_ref(endpoint);
    e->weight = weight;
    e->state = TORC_IDLE;
    set->counts[TORC_IDLE]++;
    idle_append(set, set->n);
    set->n++;
}

void tc_rh_set_move(struct tc_rh_set *set, uint32_t i, struct tc_rh_endpoint *from)
{
    struct tc_rh_endpoint *e = &set->at[i];
    e->picker = from->picker ? tc_picker_ref(from->picker) : NULL;
    if (from->state != TORC_IDLE) {
        idle_remove(set, i);
        set->counts[TORC_IDLE]--;
        set->counts[from->state]++;
        e->state = from->state;
    }
    set->ready[i] = e->state == TORC_READY ? e->picker : NULL;
    e->leaf = from->leaf;
    from->leaf = NULL;
    if (e->leaf) {
        e->leaf->index = i;
        e->changed = !tc_endpoint_eq(e->endpoint, from->endpoint);
    }
}

void tc_rh_set_take_ring(struct tc_rh_set *set, struct tc_ring *ring)
{
    set->ring = ring;
    set->on_ring = set->n - tc_ring_absent(ring);
    set->on_ring_failing = 0;
    for (uint32_t i = 0; i < set->n; i++)
        if (set->at[i].state == TORC_TRANSIENT_FAILURE && tc_ring_count_of(ring, i) > 0)
            set->on_ring_failing++;
}

bool tc_rh_same_key(const struct tc_endpoint *a, const struct tc_endpoint *b)
{
    return a == b || (tc_rstr_eq(a->hash_key, b->hash_key) && tc_addr_eq(&a->addrs[0], &b->addrs[0]));
}

bool tc_rh_set_same_keys(const struct tc_rh_set *a, const struct tc_rh_set *b)
{
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->at[i].weight != b->at[i].weight || !tc_rh_same_key(a->at[i].endpoint, b->at[i].endpoint))
            return false;
    }
    return true;
}

void tc_rh_set_state(struct tc_rh_set *set, uint32_t i, enum torc_connectivity state, struct tc_picker *picker)
{
    struct tc_rh_endpoint *e = &set->at[i];
    tc_picker_unref(e->picker);
    e->picker = picker;
    set->ready[i] = state == TORC_READY ? picker : NULL;
    if (e->state == state)
        return;
    if (e->state == TORC_IDLE)
        idle_remove(set, i);
    if (state == TORC_IDLE)
        idle_append(set, i);
    if (tc_ring_count_of(set->ring, i) > 0) {
        set->on_ring_failing -= e->state == TORC_TRANSIENT_FAILURE;
        set->on_ring_failing += state == TORC_TRANSIENT_FAILURE;
    }
    set->counts[e->state]--;
    set->counts[state]++;
    e->state = (uint8_t)state;
}

enum torc_connectivity tc_rh_set_aggregate(const struct tc_rh_set *set)
{
    if (set->counts[TORC_READY])
        return TORC_READY;
    if (set->counts[TORC_TRANSIENT_FAILURE] >= 2)
        return TORC_TRANSIENT_FAILURE;
    if (set->counts[TORC_CONNECTING])
        return TORC_CONNECTING;
    if (set->counts[TORC_TRANSIENT_FAILURE] == 1 && set->n > 1)
        return TORC_CONNECTING;
    if (set->counts[TORC_IDLE])
        return TORC_IDLE;
    return TORC_TRANSIENT_FAILURE;
}
