/* The ring against a naive construction over random sets: keys of all lengths, weights, sizes, equal keys. */
#include <math.h>
#include <stdlib.h>

#include "support/cmocka.h"

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/vec.h"
#include "lb/ring.h"
#include "lb/ring_sort.h"

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

static void model_build(struct model *m, const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max)
{
    double sum = 0, least = HUGE_VAL;
    for (size_t i = 0; i < n; i++)
        sum += (double)items[i].weight;
    for (size_t i = 0; i < n; i++)
        least = fmin(least, (double)items[i].weight / sum);
    double scale = fmin(ceil(least * (double)min) / least, (double)max);
    double target = 0, current = 0;
    for (size_t i = 0; i < n; i++) {
        target += scale * ((double)items[i].weight / sum);
        for (unsigned k = 0; current < target; k++, current++) {
            char *text = tc_asprintf("%.*s_%u", (int)items[i].key.len, items[i].key.data, k);
            *tc_vec_push(&m->entries) = (struct entry){tc_xxh64(text, strlen(text)), (uint32_t)i};
            tc_free(text);
        }
    }
    qsort(m->entries.data, m->entries.len, sizeof(struct entry), by_hash_then_item);
}

static uint32_t model_find(const struct model *m, uint64_t h)
{
    for (uint32_t i = 0; i < m->entries.len; i++)
        if (m->entries.data[i].hash >= h)
            return i;
    return 0;
}

static char *random_key(struct tc_rng *rng)
{
    size_t len = tc_rng_below(rng, 10) == 0 ? tc_rng_below(rng, 200) : tc_rng_below(rng, 24);
    char *key = tc_malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        key[i] = (char)('!' + tc_rng_below(rng, 90));
    key[len] = 0;
    return key;
}

static void check_round(struct tc_rng *rng)
{
    size_t n = 1 + tc_rng_below(rng, 30);
    struct tc_ring_item items[30];
    char *keys[30];
    uint64_t range = tc_rng_below(rng, 4) == 0 ? 1 : 1 + tc_rng_below(rng, 1000);
    for (size_t i = 0; i < n; i++) {
        bool repeat = i > 0 && tc_rng_below(rng, 12) == 0;
        keys[i] = repeat ? tc_strdup(keys[i - 1]) : random_key(rng);
        items[i] = (struct tc_ring_item){tc_slice_str(keys[i]), 1 + tc_rng_below(rng, range)};
    }
    uint64_t max = 1 + tc_rng_below(rng, 400), min = 1 + tc_rng_below(rng, max);
    struct model m = {0};
    model_build(&m, items, n, min, max);
    struct tc_ring *r = tc_ring_new(items, n, min, max, TC_RING_DEFAULT_CAP);

    assert_int_equal(tc_ring_size(r), m.entries.len);
    uint32_t counts[30] = {0}, absent = 0;
    for (uint32_t i = 0; i < m.entries.len; i++) {
        assert_true(tc_ring_hash_at(r, i) == m.entries.data[i].hash);
        assert_int_equal(tc_ring_item_at(r, i), m.entries.data[i].item);
        counts[m.entries.data[i].item]++;
    }
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(tc_ring_count_of(r, i), counts[i]);
        absent += counts[i] == 0;
    }
    assert_int_equal(tc_ring_absent(r), absent);
    for (unsigned k = 0; k < 20; k++) {
        uint64_t h = tc_rng_u64(rng);
        if (k % 2)
            h = m.entries.data[tc_rng_below(rng, m.entries.len)].hash + tc_rng_below(rng, 3) - 1;
        assert_int_equal(tc_ring_find(r, h), model_find(&m, h));
    }
    tc_ring_unref(r);
    tc_vec_fini(&m.entries);
    for (size_t i = 0; i < n; i++)
        tc_free(keys[i]);
}

static void rings_match_the_model(void **state)
{
    (void)state;
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 42);
    for (unsigned round = 0; round < 3000; round++)
        check_round(&rng);
}

/* Sorts of all shapes and both sizes of method: uniform, few distinct values, all in one bucket. */
static void sort_is_stable_and_complete(void **state)
{
    (void)state;
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 7);
    static const size_t sizes[] = {0, 1, 2, 3, 1000, 99999, 150000};
    for (size_t s = 0; s < TC_ARRAY_LEN(sizes); s++) {
        for (unsigned shape = 0; shape < 3; shape++) {
            size_t n = sizes[s];
            uint64_t *hash = tc_calloc(n + 1, sizeof(*hash)), *out_hash = tc_calloc(n + 1, sizeof(*out_hash));
            uint32_t *item = tc_calloc(n + 1, sizeof(*item)), *out_item = tc_calloc(n + 1, sizeof(*out_item));
            struct entry *model = tc_calloc(n + 1, sizeof(*model));
            for (size_t i = 0; i < n; i++) {
                uint64_t h = tc_rng_u64(&rng);
                hash[i] = shape == 0 ? h : shape == 1 ? h & 0xf : h >> 40;
                item[i] = (uint32_t)i;
                model[i] = (struct entry){hash[i], item[i]};
            }
            if (n)
                qsort(model, n, sizeof(*model), by_hash_then_item);
            tc_ring_sort(hash, item, out_hash, out_item, n);
            for (size_t i = 0; i < n; i++) {
                assert_true(out_hash[i] == model[i].hash);
                assert_int_equal(out_item[i], model[i].item);
            }
            tc_free(hash), tc_free(out_hash), tc_free(item), tc_free(out_item), tc_free(model);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings_match_the_model),
        cmocka_unit_test(sort_is_stable_and_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
