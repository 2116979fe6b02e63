#include "lb/ring_hash_set.h"

#include "base/mem.h"

struct tc_rh_set *tc_rh_set_new(size_t capacity)
{
    struct tc_rh_set *set = tc_calloc(1, sizeof(*set) + capacity * sizeof(struct tc_rh_endpoint));
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

void tc_rh_set_add(struct tc_rh_set *set, struct tc_endpoint *endpoint, uint64_t weight, enum torc_connectivity state,
                   struct tc_picker *picker)
{
    struct tc_rh_endpoint *e = &set->at[set->n];
    e->endpoint = tc_endpoint_ref(endpoint);
    e->weight = weight;
    e->state = (uint8_t)state;
    e->picker = picker ? tc_picker_ref(picker) : NULL;
    set->counts[state]++;
    if (state == TORC_IDLE)
        idle_append(set, set->n);
    set->n++;
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

struct tc_ring *tc_rh_set_build_ring(const struct tc_rh_set *set, const struct tc_ring_hash_config *config,
                                     uint32_t cap)
{
    /* Addresses as text, all in one buffer, which moves as it grows: first where they end, then the slices. */
    struct tc_buf text = {0};
    struct tc_ring_item *items = tc_reallocarray(NULL, set->n + 1, sizeof(*items));
    for (uint32_t i = 0; i < set->n; i++) {
        const struct tc_endpoint *e = set->at[i].endpoint;
        size_t start = text.len;
        items[i].weight = set->at[i].weight;
        items[i].key = tc_rstr_slice(e->hash_key);
        if (items[i].key.len)
            continue;
        tc_addr_format(&e->addrs[0], &text); /* A76 */
        items[i].key = tc_slice_of(NULL, text.len - start);
    }
    size_t at = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        if (items[i].key.data)
            continue;
        items[i].key.data = text.data + at;
        at += items[i].key.len;
    }
    struct tc_ring *ring = tc_ring_new(items, set->n, config->min_ring_size, config->max_ring_size, cap);
    tc_free(items);
    tc_buf_fini(&text);
    return ring;
}

bool tc_rh_set_same_keys(const struct tc_rh_set *a, const struct tc_rh_set *b)
{
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        const struct tc_endpoint *x = a->at[i].endpoint, *y = b->at[i].endpoint;
        if (a->at[i].weight != b->at[i].weight)
            return false;
        if (x != y && (!tc_rstr_eq(x->hash_key, y->hash_key) || !tc_addr_eq(&x->addrs[0], &y->addrs[0])))
            return false;
    }
    return true;
}

void tc_rh_set_state(struct tc_rh_set *set, uint32_t i, enum torc_connectivity state, struct tc_picker *picker)
{
    struct tc_rh_endpoint *e = &set->at[i];
    tc_picker_unref(e->picker);
    e->picker = picker;
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
