/* Compares the hashes of entries with XXH64 of each entry's text. */
#include <stdio.h>

#include "support/cmocka.h"

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/random.h"
#include "ring/keys.h"

enum { KEY_MAX = 300, PARTS = 700, ENTRIES_MAX = 130 };

/* Parts, whose keys are in `text`. n: parts so far; entries: those of all parts. */
struct keys {
    char text[PARTS][KEY_MAX];
    struct tc_ring_part parts[PARTS];
    size_t n, entries;
};

/* Adds a part: a random key of `len` bytes, and its entries with the numbers first to first + n - 1. */
static void push(struct keys *k, struct tc_rng *rng, size_t len, uint32_t first, uint32_t n)
{
    char *text = k->text[k->n];
    for (size_t i = 0; i < len; i++)
        text[i] = (char)tc_rng_below(rng, 256);
    k->parts[k->n++] = (struct tc_ring_part){tc_slice_of(text, len), 0, first, n};
    k->entries += n;
}

static void assert_hashes(const struct keys *k)
{
    uint64_t *hash = tc_calloc(k->entries, sizeof(*hash));
    tc_ring_keys(k->parts, k->n, hash);
    size_t at = 0;
    for (size_t i = 0; i < k->n; i++) {
        for (uint32_t e = 0; e < k->parts[i].n; e++, at++) {
            struct tc_buf text = {0};
            tc_buf_append_slice(&text, k->parts[i].key);
            tc_buf_printf(&text, "_%u", k->parts[i].first + e);
            uint64_t expected = tc_xxh64(text.data, text.len);
            assert_true(hash[at] == expected);
            tc_buf_fini(&text);
        }
    }
    tc_free(hash);
}

/* Keys of 0 to 269 bytes, with entries whose numbers have one to seven digits. */
static void lengths(void **state)
{
    (void)state;
    static const uint32_t firsts[] = {0, 3, 9, 10, 97, 995, 9998, 123456, 8388600};
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 11);
    for (size_t f = 0; f < TC_ARRAY_LEN(firsts); f++) {
        struct keys *k = TC_NEW(struct keys);
        for (size_t len = 0; len < 270; len++)
            push(k, &rng, len, firsts[f], 1 + (uint32_t)tc_rng_below(&rng, 14));
        assert_hashes(k);
        tc_free(k);
    }
}

/* Parts as builds and updates have them: keys of 0 to 69 bytes, each with no entry, one or many. */
static void lists(void **state)
{
    (void)state;
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 12);
    for (unsigned round = 0; round < 20; round++) {
        struct keys *k = TC_NEW(struct keys);
        size_t n = tc_rng_below(&rng, PARTS);
        uint64_t most = round % 2 ? 10 : ENTRIES_MAX;
        for (size_t i = 0; i < n; i++)
            push(k, &rng, tc_rng_below(&rng, round % 4 ? 36 : 70), (uint32_t)tc_rng_below(&rng, 12),
                 (uint32_t)tc_rng_below(&rng, most));
        assert_hashes(k);
        tc_free(k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths),
        cmocka_unit_test(lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
