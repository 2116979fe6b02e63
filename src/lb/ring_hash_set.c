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

static bool same_key(const struct tc_endpoint *a, const struct tc_endpoint *b)
{
    return a == b || (tc_rstr_eq(a->hash_key, b->hash_key) && tc_addr_eq(&a->addrs[0], &b->addrs[0]));
}

/* The ring's items of a set, but for those that `skip` (may be NULL) marks. Addresses as text are all in one buffer. */
static struct tc_ring_item *items_of(const struct tc_rh_set *set, const bool *skip, struct tc_buf *text)
{
    /* The buffer moves as it grows: first where they end, then the slices. */
    struct tc_ring_item *items = tc_calloc(set->n, sizeof(*items));
    for (uint32_t i = 0; i < set->n; i++) {
        const struct tc_endpoint *e = set->at[i].endpoint;
        size_t start = text->len;
        if (skip && skip[i])
            continue;
        items[i].weight = set->at[i].weight;
        items[i].key = tc_rstr_slice(e->hash_key);
        if (items[i].key.len)
            continue;
        tc_addr_format(&e->addrs[0], text); /* A76 */
        items[i].key = tc_slice_of(NULL, text->len - start);
    }
    size_t at = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        if (items[i].key.data || items[i].key.len == 0)
            continue;
        items[i].key.data = text->data + at;
        at += items[i].key.len;
    }
    return items;
}

/* Only what the new set lacks needs its key as text again: the others have the same there. A key that changed is none
 * that is known. */
static struct tc_ring_item *old_items_of(const struct tc_rh_set *old, const struct tc_rh_set *set,
                                         const struct tc_ring_item *items, uint32_t *from, struct tc_buf *text)
{
    bool *kept = tc_calloc(old->n, sizeof(*kept));
    for (uint32_t i = 0; i < set->n; i++) {
        if (from[i] != TC_RING_ADDED && !same_key(set->at[i].endpoint, old->at[from[i]].endpoint))
            from[i] = TC_RING_ADDED;
        if (from[i] != TC_RING_ADDED)
            kept[from[i]] = true;
    }
    struct tc_ring_item *known = items_of(old, kept, text);
    for (uint32_t i = 0; i < set->n; i++)
        if (from[i] != TC_RING_ADDED)
            known[from[i]] = items[i];
    tc_free(kept);
    return known;
}

struct tc_ring *tc_rh_set_build_ring(const struct tc_rh_set *set, const struct tc_rh_set *old, uint32_t *from,
                                     const struct tc_ring_hash_config *config, uint32_t cap)
{
    struct tc_buf text = {0}, old_text = {0};
    struct tc_ring_item *items = items_of(set, NULL, &text), *known = NULL;
    struct tc_ring *ring;
    if (old) {
        known = old_items_of(old, set, items, from, &old_text);
        ring = tc_ring_update(old->ring, known, from, items, set->n, config->min_ring_size, config->max_ring_size, cap);
    } else {
        ring = tc_ring_new(items, set->n, config->min_ring_size, config->max_ring_size, cap);
    }
    tc_free(items);
    tc_free(known);
    tc_buf_fini(&text);
    tc_buf_fini(&old_text);
    return ring;
}

bool tc_rh_set_same_keys(const struct tc_rh_set *a, const struct tc_rh_set *b)
{
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->at[i].weight != b->at[i].weight || !same_key(a->at[i].endpoint, b->at[i].endpoint))
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
