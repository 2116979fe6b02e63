/* The ring against a naive one: a sorted list and a binary search. The input: bounds of the size, then items. */
#include <math.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"
#include "fuzz.h"
#include "lb/ring.h"

#define ITEMS_MAX 64u

struct entry {
    uint64_t hash;
    uint32_t item;
};

struct model {
    TC_VEC(struct entry) entries;
};

static int by_hash_then_item(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

/* A42, "building the ring", word by word. */
static void model_build(struct model *m, const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max)
{
    double weights[ITEMS_MAX], sum = 0, least = 1, target = 0, current = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)TC_MAX(items[i].weight, (uint64_t)1);
    for (size_t i = 0; i < n; i++) {
        weights[i] = (double)TC_MAX(items[i].weight, (uint64_t)1) / sum;
        least = fmin(least, weights[i]);
    }
    double scale = fmin(ceil(least * (double)min) / least, (double)max);
    for (size_t i = 0; i < n; i++) {
        target += scale * weights[i];
        for (unsigned k = 0; current < target; k++, current++) {
            struct tc_buf text = {0};
            tc_buf_append_slice(&text, items[i].key);
            tc_buf_printf(&text, "_%u", k);
            *tc_vec_push(&m->entries) = (struct entry){tc_xxh64(text.data, text.len), (uint32_t)i};
            tc_buf_fini(&text);
        }
    }
    if (m->entries.len)
        qsort(m->entries.data, m->entries.len, sizeof(struct entry), by_hash_then_item);
}

static uint32_t model_find(const struct model *m, uint64_t h)
{
    size_t low = 0, high = m->entries.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->entries.data[middle].hash < h)
            low = middle + 1;
        else
            high = middle;
    }
    return low == m->entries.len ? 0 : (uint32_t)low;
}

static void check_ring(const struct tc_ring *r, const struct model *m, size_t n)
{
    uint32_t counts[ITEMS_MAX] = {0}, absent = 0;
    TC_FUZZ_CHECK(tc_ring_size(r) == m->entries.len);
    for (uint32_t i = 0; i < m->entries.len; i++) {
        const struct entry *e = &m->entries.data[i];
        TC_FUZZ_CHECK(tc_ring_hash_at(r, i) == e->hash && tc_ring_item_at(r, i) == e->item);
        counts[e->item]++;
        for (uint64_t d = 0; d < 3; d++)
            TC_FUZZ_CHECK(tc_ring_find(r, e->hash + d - 1) == model_find(m, e->hash + d - 1));
    }
    for (uint32_t i = 0; i < n; i++) {
        TC_FUZZ_CHECK(tc_ring_count_of(r, i) == counts[i]);
        absent += counts[i] == 0;
    }
    TC_FUZZ_CHECK(tc_ring_absent(r) == absent);
    for (uint64_t h = 0; m->entries.len && h < 64; h++) {
        uint64_t at = h * 0x0410410410410411u;
        TC_FUZZ_CHECK(tc_ring_find(r, at) == model_find(m, at));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_fuzz_input in = {data, size};
    struct tc_ring_item items[ITEMS_MAX];
    struct model m = {0};
    size_t n = 0;
    uint64_t cap = 1 + tc_fuzz_uint(&in, 2) % 1024, max = 1 + tc_fuzz_uint(&in, 2) % 2048,
             min = 1 + tc_fuzz_uint(&in, 2) % max;
    size_t weight_bytes = 1 + (size_t)tc_fuzz_u8(&in) % 5; /* sums stay exact in a double */
    while (in.len && n < ITEMS_MAX) {
        items[n].weight = tc_fuzz_uint(&in, weight_bytes);
        items[n++].key = tc_fuzz_short(&in);
    }
    if (n)
        model_build(&m, items, n, TC_MIN(min, cap), TC_MIN(max, cap));
    struct tc_ring *r = tc_ring_new(items, n, min, max, cap);
    check_ring(r, &m, n);
    tc_ring_unref(r);
    tc_vec_fini(&m.entries);
    return 0;
}
