/* Hash tables: keys that a peer chose to collide in uthash's own hash spread over the buckets. */
#include "base/table.h"

#include <endian.h>

#include "support/cmocka.h"

enum { N = 100000 };

struct element {
    UT_hash_handle hh;
    uint32_t key[6];
};

/* Makes key `n` of a set in which all keys have the same hash by uthash's own function, which has no seed. That
 * function's state after the first 12 bytes is known, and the next 12 bytes turn it into zero. */
static void key_make(uint32_t key[6], uint32_t n)
{
    uint32_t i = 0x9e3779b9u, j = i, hash = 0xfeedbeefu;
    i += n;
    HASH_JEN_MIX(i, j, hash);
    const uint32_t made[6] = {n, 0, 0, 0 - i, 0 - j, 0 - hash};
    for (int k = 0; k < 6; k++)
        key[k] = htole32(made[k]); /* HASH_JEN reads little-endian */
}

static void chosen_keys_spread_over_the_buckets(void **state)
{
    struct element *elements = tc_calloc(N, sizeof(*elements)), *table = NULL, *found;
    unsigned own, first = 0, most = 0;
    (void)state;
    for (unsigned i = 0; i < N; i++) {
        key_make(elements[i].key, i);
        HASH_JEN(elements[i].key, sizeof(elements[i].key), own);
        first = i ? first : own;
        assert_int_equal(own, first);
        HASH_ADD(hh, table, key, sizeof(elements[i].key), &elements[i]);
        if (i == 1000) /* fails early if the keys do not spread */
            for (unsigned k = 0; k < table->hh.tbl->num_buckets; k++)
                assert_in_range(table->hh.tbl->buckets[k].count, 0, 50);
    }
    for (unsigned k = 0; k < table->hh.tbl->num_buckets; k++)
        most = table->hh.tbl->buckets[k].count > most ? table->hh.tbl->buckets[k].count : most;
    assert_in_range(most, 1, 50);
    HASH_FIND(hh, table, elements[7].key, sizeof(elements[7].key), found);
    assert_ptr_equal(found, &elements[7]);
    HASH_CLEAR(hh, table);
    tc_free(elements);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chosen_keys_spread_over_the_buckets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
