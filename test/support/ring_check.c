#include "support/ring_check.h"

#include "base/buf.h"
#include "base/hash.h"

static uint64_t entry_hash(struct tc_slice key, uint32_t number)
{
    struct tc_buf text = {0};
    tc_buf_append_slice(&text, key);
    tc_buf_printf(&text, "_%u", number);
    uint64_t hash = tc_xxh64(text.data, text.len);
    tc_buf_fini(&text);
    return hash;
}

bool tc_ring_margin_right(const struct tc_ring *r, const struct tc_ring_item *items)
{
    const struct tc_ring_margin *m = &r->margin;
    uint32_t below = 0;
    if (m->n == 0)
        return true;
    if (m->n != r->n_items || r->ties)
        return false;
    for (uint32_t k = 0; k < m->n; k++) {
        uint64_t h = m->hash[k];
        uint32_t item = m->item[k];
        while (below < r->size && r->hash[below] < h)
            below++;
        bool first = k == 0 || m->hash[k - 1] < h, there = below < r->size && r->hash[below] == h;
        if (!first || item >= r->n_items || h != entry_hash(items[item].key, m->base) || m->at[k] != below ||
            there != (r->counts[item] > m->base) || (there && r->item[below] != item))
            return false;
    }
    return true; /* all are different, so no item is there twice */
}
