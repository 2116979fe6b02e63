/* Copies the keys and weights of the endpoints, so that another thread can build while the sets change or end. The
 * items of an old ring come along, so that only the difference is built (ring/update.h). */
#include "lb/ring_hash/build.h"

#include "base/mem.h"
#include "ring/maglev.h"
#include "ring/update.h"

struct tc_rh_build {
    struct tc_ring_id id;
    struct tc_ring_item *items, *known; /* known: those of `old`, in its order; NULL without `old` */
    uint32_t *from;      /* [i]: the index in `known` of items[i], or TC_RING_ADDED; NULL without `old` */
    struct tc_ring *old; /* a reference; NULL: no ring to update */
    size_t n;            /* items */
    uint64_t min, max, cap;
    uint32_t table_size;          /* 0: a ring */
    double *weights;              /* of a table, one for each item; NULL: a ring */
    struct tc_buf text, old_text; /* the keys of `items` and of `known` */
};

/* Returns a new array of the items of a set; those that `skip` (may be NULL) marks are left zero. Copies the keys of
 * the other items to `text`, since the endpoints may be freed while another thread builds. The items point into `text`,
 * which must be empty before and stay unchanged afterwards. */
static struct tc_ring_item *build_items_of(const struct tc_rh_set *set, const bool *skip, struct tc_buf *text)
{
    /* The buffer moves as it grows, so the lengths come first and the pointers afterwards. */
    struct tc_ring_item *items = tc_calloc(set->n, sizeof(*items));
    for (uint32_t i = 0; i < set->n; i++) {
        const struct tc_endpoint *e = set->at[i].endpoint;
        size_t start = text->len;
        if (skip && skip[i])
            continue;
        items[i].weight = set->at[i].weight;
        tc_buf_append_slice(text, tc_rstr_slice(e->hash_key));
        if (text->len == start && set->config->use_hostname)
            tc_buf_append_slice(text, tc_rstr_slice(e->hostname));
        if (text->len == start)
            tc_addr_format(&e->addrs[0], text); /* A76 */
        items[i].key.len = text->len - start;
    }
    size_t at = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        if (items[i].key.len == 0)
            continue; /* skipped */
        items[i].key.data = text->data + at;
        at += items[i].key.len;
    }
    return items;
}

/* Returns a new array of the items of the old ring. First sets from[i] to TC_RING_ADDED where the key of endpoint i may
 * have changed. The old item of an endpoint that `from` then still finds is a copy of its item in `items`: an update
 * does not read old weights. The keys of all other old items are copied to `text`. */
static struct tc_ring_item *build_old_items_of(const struct tc_rh_set *old, const struct tc_rh_set *set,
                                               const struct tc_ring_item *items, uint32_t *from, struct tc_buf *text)
{
    bool *kept = tc_calloc(old->n, sizeof(*kept));
    for (uint32_t i = 0; i < set->n; i++) {
        if (from[i] != TC_RING_ADDED && !tc_rh_same_key(set->at[i].endpoint, old->at[from[i]].endpoint))
            from[i] = TC_RING_ADDED;
        if (from[i] != TC_RING_ADDED)
            kept[from[i]] = true;
    }
    struct tc_ring_item *known = build_items_of(old, kept, text);
    for (uint32_t i = 0; i < set->n; i++)
        if (from[i] != TC_RING_ADDED)
            known[from[i]] = items[i];
    tc_free(kept);
    return known;
}

struct tc_rh_build *tc_rh_build_new(const struct tc_rh_set *set, const struct tc_rh_set *old, const uint32_t *from,
                                    uint32_t cap)
{
    struct tc_rh_build *b = TC_NEW(struct tc_rh_build);
    b->n = set->n;
    b->min = set->config->min_ring_size;
    b->max = set->config->max_ring_size;
    b->cap = cap;
    b->table_size = set->config->table_size;
    b->items = build_items_of(set, NULL, &b->text);
    if (b->table_size) {
        b->weights = tc_reallocarray(NULL, b->n, sizeof(*b->weights));
        tc_rh_set_weights(set, b->weights);
        b->id = tc_maglev_id(b->items, b->weights, b->n, b->table_size);
        return b;
    }
    b->id = tc_ring_id(b->items, b->n, b->min, b->max, b->cap);
    if (old && old->config->use_hostname == set->config->use_hostname) {
        b->from = tc_reallocarray(NULL, set->n, sizeof(*b->from));
        memcpy(b->from, from, set->n * sizeof(*b->from));
        b->known = build_old_items_of(old, set, b->items, b->from, &b->old_text);
        b->old = tc_ring_ref(old->ring);
    }
    return b;
}

void tc_rh_build_free(struct tc_rh_build *b)
{
    if (!b)
        return;
    tc_ring_unref(b->old);
    tc_free(b->items);
    tc_free(b->known);
    tc_free(b->from);
    tc_free(b->weights);
    tc_buf_fini(&b->text);
    tc_buf_fini(&b->old_text);
    tc_free(b);
}

struct tc_ring *tc_rh_build_find(const struct tc_rh_build *b)
{
    return tc_ring_cache_find(&b->id);
}

bool tc_rh_build_exceeds(const struct tc_rh_build *b, uint32_t entries)
{
    uint64_t steps = (uint64_t)b->table_size * b->n; /* no build takes more */
    if (b->table_size)
        return TC_MAX(b->table_size, b->n) > entries || steps / 128 > entries;
    return TC_MIN(b->max, b->cap) > entries && tc_ring_entries(b->items, b->n, b->min, b->max, b->cap) > entries;
}

struct tc_ring *tc_rh_build_run(const struct tc_rh_build *b)
{
    struct tc_ring *ring;
    if (b->table_size)
        ring = tc_maglev_new(b->items, b->weights, b->n, b->table_size);
    else if (b->old)
        ring = tc_ring_update(b->old, b->known, b->from, b->items, b->n, b->min, b->max, b->cap);
    else
        ring = tc_ring_new(b->items, b->n, b->min, b->max, b->cap);
    return tc_ring_cache_add(&b->id, ring);
}
