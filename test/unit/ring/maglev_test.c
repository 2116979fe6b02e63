/* The table of Maglev: compared with Envoy's published tables and with tables of independent constructions; the sizes
 * that are valid; keys and weights that could make a build slow; walks; ids in the cache.
 *
 * Most tests fill a struct hosts, which owns its keys until `drop`. normalise() and locality() scale the weights as
 * Envoy does before it builds a table. Tables are compared slot by slot, or by their first slots and a CRC-32 of all.
 * All random numbers have fixed seeds. One thread. */
#include "ring/maglev.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "support/case.h"
#include "support/cmocka.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/random.h"

enum { HOSTS = 1100 };

/* Hosts with their weights, first as configured, then scaled by normalise() or locality(). The weights in `items` stay
 * 0: tables do not use them. */
struct hosts {
    struct tc_ring_item items[HOSTS];
    double weights[HOSTS];
    size_t n;
};

/* Takes over the key. */
static void add(struct hosts *h, char *key, double weight)
{
    h->items[h->n].key = tc_slice_str(key);
    h->weights[h->n++] = weight;
}

static void drop(struct hosts *h)
{
    for (size_t i = 0; i < h->n; i++)
        tc_free((char *)h->items[i].key.data);
    h->n = 0;
}

/* Divides each host's weight by the sum, as Envoy does without locality weights. */
static void normalise(struct hosts *h)
{
    double sum = 0;
    for (size_t i = 0; i < h->n; i++)
        sum += h->weights[i];
    for (size_t i = 0; i < h->n; i++)
        h->weights[i] = h->weights[i] * 1.0 / sum;
}

/* Makes a locality of the hosts from `first` on: scales their weights so that they add up to weight / sum. `sum` is the
 * sum of the localities' weights. */
static void locality(struct hosts *h, size_t first, double weight, double sum)
{
    double of_hosts = 0, share = weight / sum;
    for (size_t i = first; i < h->n; i++)
        of_hosts += h->weights[i];
    for (size_t i = first; i < h->n; i++)
        h->weights[i] = h->weights[i] * share / of_hosts;
}

/* Returns the CRC-32 of the items of all slots, written as "2,4,0". */
static uint32_t crc_of(const struct tc_ring *r)
{
    struct tc_buf text = {0};
    uint32_t crc = UINT32_MAX;
    for (uint32_t e = 0; e < tc_ring_size(r); e++)
        tc_buf_printf(&text, e ? ",%u" : "%u", tc_ring_item_at(r, e));
    for (size_t i = 0; i < text.len; i++) {
        crc ^= (unsigned char)text.data[i];
        for (unsigned k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    tc_buf_fini(&text);
    return ~crc;
}

/* Asserts the CRC-32 of the table (0: not asserted), its first slots, and the number of slots of each host (NULL: not
 * asserted). */
static void assert_table(const struct hosts *h, uint32_t size, uint32_t crc, const char *first, const char *counts)
{
    struct tc_ring *r = tc_maglev_new(h->items, h->weights, h->n, size);
    struct tc_buf text = {0};
    assert_int_equal(tc_ring_size(r), size);
    for (uint32_t e = 0; e < size && text.len < strlen(first); e++)
        tc_buf_printf(&text, e ? ",%u" : "%u", tc_ring_item_at(r, e));
    assert_string_equal(tc_buf_cstr(&text), first);
    if (crc)
        assert_int_equal(crc_of(r), crc);
    tc_buf_clear(&text);
    for (uint32_t i = 0; counts && i < h->n; i++)
        tc_buf_printf(&text, i ? "/%u" : "%u", tc_ring_count_of(r, i));
    if (counts)
        assert_string_equal(tc_buf_cstr(&text), counts);
    tc_buf_fini(&text);
    tc_ring_unref(r);
}

/* Adds n hosts of weight 1, from 127.0.0.1:first on. */
static void ports(struct hosts *h, unsigned first, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        add(h, tc_asprintf("127.0.0.1:%u", first + i), 1);
}

static void ports_90_to_95(void **state)
{
    TC_CASE(MG01);
    TC_CASE(MG02);
    (void)state;
    struct hosts h = {0};
    ports(&h, 90, 6);
    normalise(&h);
    assert_table(&h, 7, 0x67854767, "2,4,0,1,5,0,3", "2/1/1/1/1/1");
    drop(&h);
    for (unsigned i = 90; i < 96; i++)
        add(&h, tc_asprintf("%u", i), 1);
    normalise(&h);
    assert_table(&h, 7, 0x943f9bb3, "2,5,0,3,4,1,0", NULL);
    drop(&h);
}

static void weights_of_hosts(void **state)
{
    TC_CASE(MG03);
    (void)state;
    struct hosts h = {0};
    ports(&h, 90, 2);
    h.weights[1] = 2;
    normalise(&h);
    assert_table(&h, 17, 0xb1958645, "1,0,0,1,0,1,1,0,1,1,1,1,1,0,1,0,1", "6/11");
    drop(&h);
}

static void weights_of_localities(void **state)
{
    TC_CASE(MG04);
    TC_CASE(MG05);
    TC_CASE(MG06);
    TC_CASE(MG16);
    (void)state;
    struct hosts h = {0};
    ports(&h, 90, 1);
    locality(&h, 0, 1, 2);
    add(&h, tc_strdup("127.0.0.1:91"), 2);
    locality(&h, 1, 1, 2);
    assert_table(&h, 17, 0, "1,0,0,1,0,1,1,0,0,1,0,1,0,0,1,0,1", "9/8");
    drop(&h);
    ports(&h, 90, 1); /* a locality of weight 0 with port 92 is left out */
    locality(&h, 0, 8, 10);
    add(&h, tc_strdup("127.0.0.1:91"), 2);
    locality(&h, 1, 2, 10);
    assert_table(&h, 17, 0, "1,0,0,0,0,0,1,0,0,1,0,1,0,0,0,0,0", "13/4");
    drop(&h);
    ports(&h, 0, 1);
    locality(&h, 0, 127, 128);
    ports(&h, 1, 1023);
    locality(&h, 1, 1, 128);
    struct tc_ring *r = tc_maglev_new(h.items, h.weights, h.n, 65537);
    assert_int_equal(tc_ring_count_of(r, 0), 64514);
    for (uint32_t i = 1; i < 1024; i++)
        assert_int_equal(tc_ring_count_of(r, i), 1);
    assert_int_equal(crc_of(r), 0x55625613);
    tc_ring_unref(r);
    drop(&h);
    for (unsigned i = 0; i < 2; i++)
        add(&h, tc_asprintf("10.0.0.%u:80", i + 1), i + 1);
    locality(&h, 0, 3, 4);
    for (unsigned i = 2; i < 5; i++)
        add(&h, tc_asprintf("10.0.0.%u:80", i + 1), i == 4 ? 2 : 1);
    locality(&h, 2, 1, 4);
    assert_table(&h, 65537, 0x4af4ed71, "2,1,0,1,1,1,0,1,1,0,0,1,4,1,0,4,1,1,1,2", "16385/32768/4096/4096/8192");
    drop(&h);
}

static void tables_of_an_independent_construction(void **state)
{
    TC_CASE(MG11);
    TC_CASE(MG12);
    TC_CASE(MG13);
    TC_CASE(MG14);
    TC_CASE(MG15);
    TC_CASE(MG17);
    TC_CASE(MG18);
    (void)state;
    struct hosts h = {0};
    for (unsigned i = 1; i <= 3; i++)
        add(&h, tc_asprintf("10.0.0.%u:80", i), i);
    normalise(&h);
    assert_table(&h, 101, 0xc876de0d, "1,1,0,2,1,2,1,1,1,2,2,2,2,2,1,1,2,0,2,2", "17/34/50");
    assert_table(&h, 5000011, 0x4d2af6de, "2,0,1,0,1,2,2,1,2,2,2,1,1,0,1,2,2,1,2,2", "833336/1666671/2500004");
    drop(&h);
    for (unsigned i = 1; i <= 5; i++)
        add(&h, tc_asprintf("10.0.0.%u:80", i), 6 - i);
    normalise(&h);
    assert_table(&h, 65537, 0x652cadc6, "2,1,0,0,3,0,0,2,2,0,0,0,4,2,0,3,3,1,1,2", "21845/17477/13107/8738/4370");
    drop(&h);
    for (unsigned i = 1; i <= 20; i++)
        add(&h, tc_asprintf("10.0.1.%u:8080", i), i % 4 + 1);
    normalise(&h);
    assert_table(&h, 65537, 0x340c666c, "6,0,2,0,17,0,14,13,2,17,2,18,13,17,14,18,4,10,8,3", NULL);
    drop(&h);
    for (unsigned i = 1; i <= 4; i++)
        add(&h, tc_asprintf("[2001:db8::%u]:443", i), i == 4 ? 7 : 1);
    normalise(&h);
    assert_table(&h, 1021, 0x012c10ec, "3,1,3,1,3,3,3,3,2,3,3,3,1,3,3,3,0,0,3,3", "103/102/102/714");
    drop(&h);
    for (unsigned i = 0; i < 7; i++)
        add(&h, tc_asprintf("%c", 'a' + i), i + 1);
    normalise(&h);
    assert_table(&h, 251, 0x0b8a1c34, "2,6,5,0,5,5,6,4,2,5,4,0,6,3,4,6,6,6,3,0", "9/18/27/36/45/54/62");
    drop(&h);
    for (unsigned i = 1; i <= 10; i++)
        add(&h, tc_asprintf("10.0.0.%u:80", i), 1);
    normalise(&h);
    assert_table(&h, 7, 0, "5,9,4,2,1,3,0", "1/1/1/1/1/1/0/0/0/1");
    struct tc_ring *r = tc_maglev_new(h.items, h.weights, h.n, 7);
    assert_int_equal(tc_ring_absent(r), 3);
    tc_ring_unref(r);
    drop(&h);
}

static int by_key(const void *pa, const void *pb)
{
    const struct tc_ring_item *a = *(const struct tc_ring_item *const *)pa,
                              *b = *(const struct tc_ring_item *const *)pb;
    int c = tc_slice_cmp(a->key, b->key);
    return c ? c : (a > b) - (a < b);
}

/* Fills the `size` slots of `table` by the construction in its plainest form: each host, in the order of keys, looks at
 * its slots one by one. */
static void table_make(const struct hosts *h, uint32_t size, uint32_t *table)
{
    static const struct tc_ring_item *order[HOSTS];
    static double target[HOSTS];
    static uint64_t next[HOSTS];
    double largest = 0;
    for (size_t i = 0; i < h->n; i++) {
        order[i] = &h->items[i];
        target[i] = 0;
        next[i] = 0;
        largest = TC_MAX(largest, h->weights[i]);
    }
    qsort(order, h->n, sizeof(order[0]), by_key);
    memset(table, 0xff, size * sizeof(*table));
    for (uint32_t round = 1, filled = 0; filled < size; round++)
        for (size_t i = 0; i < h->n && filled < size; i++) {
            struct tc_slice key = order[i]->key;
            uint64_t offset = XXH64(key.data, key.len, 0) % size, skip = XXH64(key.data, key.len, 1) % (size - 1) + 1;
            uint32_t item = (uint32_t)(order[i] - h->items);
            if (round * h->weights[item] < target[i])
                continue;
            target[i] += largest;
            while (table[(offset + skip * next[i]) % size] != UINT32_MAX)
                next[i]++;
            table[(offset + skip * next[i]) % size] = item;
            filled++;
        }
}

/* Most numbers of hosts lie around 32, from which on paths are advanced together, and around 256, the most paths that
 * are advanced together. Some tables have fewer slots than hosts. The keys begin alike or are short. In half of the
 * cases the hosts' keys are drawn from 300 keys, so that hosts share keys. */
static void tables_of_the_plain_construction(void **state)
{
    TC_CASE(MG19);
    (void)state;
    static const uint32_t sizes[] = {2, 31, 257, 1021, 4093, 65537};
    static const size_t numbers[] = {2, 31, 32, 33, 255, 256, 257, 1000, HOSTS};
    enum { CASES = TC_ARRAY_LEN(sizes) * TC_ARRAY_LEN(numbers) };
    static uint32_t table[65537];
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 19);
    for (unsigned k = 0; k < CASES * 8; k++) {
        uint32_t size = sizes[k % TC_ARRAY_LEN(sizes)];
        size_t n = numbers[k / TC_ARRAY_LEN(sizes) % TC_ARRAY_LEN(numbers)];
        unsigned kind = k / CASES, largest = kind & 1 ? 4 : 1, keys = kind & 2 ? 300 : UINT32_MAX;
        struct hosts h = {0};
        for (size_t i = 0; i < n; i++) {
            unsigned key = (unsigned)tc_rng_below(&rng, keys);
            add(&h, tc_asprintf(kind & 4 ? "%x" : "10.0.0.0:%u", key), 1 + (double)tc_rng_below(&rng, largest));
        }
        normalise(&h);
        table_make(&h, size, table);
        struct tc_ring *r = tc_maglev_new(h.items, h.weights, h.n, size);
        for (uint32_t e = 0; e < size; e++)
            assert_int_equal(tc_ring_item_at(r, e), table[e]);
        for (uint32_t i = 0, total = 0; i < n; i++) {
            total += tc_ring_count_of(r, i);
            assert_true(i + 1 < n || total == size);
        }
        tc_ring_unref(r);
        drop(&h);
    }
}

static void the_order_of_the_list_does_not_count(void **state)
{
    TC_CASE(MG07);
    TC_CASE(PD06);
    (void)state;
    struct hosts h = {0}, shuffled = {0}; /* `shuffled` borrows the keys of `h` */
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 7);
    for (unsigned i = 0; i < 200; i++)
        add(&h, tc_asprintf("10.0.0.%u:80", i), i % 5 + 1);
    normalise(&h);
    struct tc_ring *r = tc_maglev_new(h.items, h.weights, h.n, 2053);
    shuffled = h;
    for (size_t i = h.n; i-- > 1;) {
        size_t k = (size_t)tc_rng_below(&rng, i + 1);
        struct tc_ring_item item = shuffled.items[i];
        double weight = shuffled.weights[i];
        shuffled.items[i] = shuffled.items[k];
        shuffled.weights[i] = shuffled.weights[k];
        shuffled.items[k] = item;
        shuffled.weights[k] = weight;
    }
    struct tc_ring *other = tc_maglev_new(shuffled.items, shuffled.weights, h.n, 2053);
    for (uint32_t e = 0; e < 2053; e++)
        assert_true(tc_slice_eq(h.items[tc_ring_item_at(r, e)].key, shuffled.items[tc_ring_item_at(other, e)].key));
    tc_ring_unref(r);
    tc_ring_unref(other);
    drop(&h);
}

/* When the host of a hash is refused, Envoy looks for another with hash ^ (2^64 - attempt), attempt 1, 2, ... */
static void the_hash_of_further_attempts(void **state)
{
    TC_CASE(MG08);
    (void)state;
    static const uint32_t items[] = {1, 0, 5};
    struct hosts h = {0};
    ports(&h, 90, 6);
    normalise(&h);
    struct tc_ring *r = tc_maglev_new(h.items, h.weights, h.n, 7);
    for (uint64_t attempt = 0; attempt < 3; attempt++) {
        uint64_t hash = attempt ? 10 ^ (UINT64_MAX - attempt + 1) : 10;
        assert_int_equal(tc_ring_item_at(r, tc_ring_find(r, hash)), items[attempt]);
    }
    tc_ring_unref(r);
    drop(&h);
}

static void sizes(void **state)
{
    TC_CASE(MG09);
    (void)state;
    static const uint64_t refused[] = {0, 1, 4, 8, 9, 65535, 65536, 5000010, 5000012, 5000021, UINT32_MAX, UINT64_MAX};
    static const uint64_t valid[] = {2, 3, 5, 7, 17, 101, 65537, 4999999, 5000011};
    for (size_t i = 0; i < TC_ARRAY_LEN(refused); i++)
        assert_false(tc_maglev_size_valid(refused[i]));
    for (size_t i = 0; i < TC_ARRAY_LEN(valid); i++)
        assert_true(tc_maglev_size_valid(valid[i]));
}

static void no_host_and_one(void **state)
{
    TC_CASE(MG10);
    (void)state;
    struct hosts h = {0};
    struct tc_ring *none = tc_maglev_new(h.items, h.weights, 0, 7);
    assert_int_equal(tc_ring_size(none), 0);
    tc_ring_unref(none);
    add(&h, tc_strdup("127.0.0.1:90"), 7);
    normalise(&h);
    for (uint32_t size = 2; size < 30; size++)
        if (tc_maglev_size_valid(size)) {
            struct tc_ring *one = tc_maglev_new(h.items, h.weights, 1, size);
            assert_int_equal(tc_ring_count_of(one, 0), size);
            assert_int_equal(tc_ring_item_at(one, tc_ring_find(one, UINT64_MAX)), 0);
            tc_ring_unref(one);
        }
    drop(&h);
}

/* tc_ring_find computes hash % size by a multiplication. An error of one would show next to multiples of the size. */
static void slots_of_hashes(void **state)
{
    (void)state;
    static const uint32_t primes[] = {2, 3, 5, 7, 101, 65537, 4999999, 5000011};
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 3);
    for (size_t i = 0; i < TC_ARRAY_LEN(primes); i++) {
        uint64_t size = primes[i];
        double weight = 1;
        const struct tc_ring_item item = {tc_slice_str("a"), 1};
        struct tc_ring *r = tc_maglev_new(&item, &weight, 1, (uint32_t)size);
        for (unsigned k = 0; k < 20000; k++) {
            uint64_t random = tc_rng_u64(&rng), multiple = random - random % size;
            const uint64_t hashes[] = {random, multiple, multiple - 1, multiple + 1, UINT64_MAX - k, k};
            for (size_t j = 0; j < TC_ARRAY_LEN(hashes); j++)
                assert_int_equal(tc_ring_find(r, hashes[j]), hashes[j] % size);
        }
        tc_ring_unref(r);
    }
}

/* All items have one key: each has its share, the first ones in the list one slot more. The time limit of the test
 * bounds the build. */
static void equal_keys(void **state)
{
    TC_CASE(PD07);
    (void)state;
    enum { N = 5000 };
    struct tc_ring_item *items = tc_calloc(N, sizeof(*items));
    double *weights = tc_calloc(N, sizeof(*weights));
    for (size_t i = 0; i < N; i++) {
        items[i].key = tc_slice_str("key");
        weights[i] = 1.0 / N;
    }
    struct tc_ring *r = tc_maglev_new(items, weights, N, 5000011);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(tc_ring_count_of(r, i), 1000 + (i < 11));
    tc_ring_unref(r);
    tc_free(items);
    tc_free(weights);
}

/* Returns the inverse of an odd number modulo 2^64. */
static uint64_t inverse_of(uint64_t x)
{
    uint64_t y = x;
    for (int i = 0; i < 6; i++)
        y *= 2 - x * y;
    return y;
}

/* Returns the y for which y ^ (y >> bits) is x. */
static uint64_t undo_shift(uint64_t x, int bits)
{
    uint64_t y = x;
    for (int done = bits; done < 64; done += bits)
        y = x ^ (y >> bits);
    return y;
}

/* Returns the key of eight bytes whose XXH64 with seed 1 is `hash`. The key is returned as the number whose
 * little-endian bytes it is. Undoes each step of XXH64. */
static uint64_t key_with_hash(uint64_t hash)
{
    uint64_t x = undo_shift(hash, 32) * inverse_of(XXH_PRIME64_3);
    x = undo_shift(x, 29) * inverse_of(XXH_PRIME64_2);
    x = (undo_shift(x, 33) - XXH_PRIME64_4) * inverse_of(XXH_PRIME64_1);
    x = (x >> 27 | x << 37) ^ (1 + XXH_PRIME64_5 + 8);
    x *= inverse_of(XXH_PRIME64_1);
    return (x >> 31 | x << 33) * inverse_of(XXH_PRIME64_2);
}

/* Returns the CPU time of a build with N keys, in ticks of clock(). If `chosen`, all keys have the step 1. Asserts that
 * each item has its share. */
static clock_t build_time(bool chosen)
{
    enum { N = 5000, SIZE = 1000003 };
    struct tc_ring_item *items = tc_calloc(N, sizeof(*items));
    double *weights = tc_calloc(N, sizeof(*weights));
    uint64_t *keys = tc_calloc(N, sizeof(*keys));
    for (size_t i = 0; i < N; i++) {
        keys[i] = chosen ? htole64(key_with_hash((uint64_t)(SIZE - 1) * (i + 1))) : i;
        items[i].key = tc_slice_of(&keys[i], sizeof(keys[i]));
        weights[i] = 1;
        if (chosen)
            assert_int_equal(XXH64(&keys[i], sizeof(keys[i]), 1) % (SIZE - 1), 0);
    }
    clock_t begin = clock();
    struct tc_ring *r = tc_maglev_new(items, weights, N, SIZE);
    clock_t took = clock() - begin;
    uint32_t slots = 0;
    for (uint32_t i = 0; i < N; i++) {
        assert_in_range(tc_ring_count_of(r, i), SIZE / N, SIZE / N + 1);
        slots += tc_ring_count_of(r, i);
    }
    assert_int_equal(slots, SIZE);
    tc_ring_unref(r);
    tc_free(items);
    tc_free(weights);
    tc_free(keys);
    return took;
}

/* With the chosen keys each item passes the slots of the others: a plain build would take up to 5,000 million steps.
 * The build may take 30 times the CPU time of a build with other keys. */
static void chosen_keys(void **state)
{
    (void)state;
    clock_t usual = build_time(false), chosen = build_time(true);
    if (chosen > 30 * usual)
        fail_msg("%ld instead of %ld ticks", (long)chosen, (long)usual);
}

/* The most uneven weights: after round 1 only the heaviest item claims. To look at each item in each round would take
 * 47,500 million steps; the heap takes few. The build may take 30 times the CPU time of a build of 5,000 items of equal
 * weight. */
static void extreme_weights(void **state)
{
    (void)state;
    enum { N = 50000 };
    clock_t usual = build_time(false);
    struct tc_ring_item *items = tc_calloc(N, sizeof(*items));
    double *weights = tc_calloc(N, sizeof(*weights));
    char(*keys)[16] = tc_calloc(N, sizeof(*keys));
    for (size_t i = 0; i < N; i++) {
        snprintf(keys[i], sizeof(keys[i]), "k%zu", i);
        items[i].key = tc_slice_str(keys[i]);
        weights[i] = i == 7 ? 4294967295.0 : 1e-300;
    }
    clock_t begin = clock();
    struct tc_ring *r = tc_maglev_new(items, weights, N, 1000003);
    clock_t extreme = clock() - begin;
    if (extreme > 30 * usual)
        fail_msg("%ld instead of %ld ticks", (long)extreme, (long)usual);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(tc_ring_count_of(r, i), i == 7 ? 1000003 - N + 1 : 1);
    tc_ring_unref(r);
    tc_free(items);
    tc_free(weights);
    tc_free(keys);
}

/* The walk passes every item that has a slot, however few slots it has. */
static void the_walk_reaches_all(void **state)
{
    (void)state;
    struct hosts h = {0};
    ports(&h, 0, 1);
    locality(&h, 0, 127, 128);
    ports(&h, 1, 1023);
    locality(&h, 1, 1, 128);
    struct tc_ring *r = tc_maglev_new(h.items, h.weights, h.n, 65537);
    assert_true(tc_ring_is_table(r));
    assert_int_equal(tc_ring_walk_steps(r), 4096 + 1024);
    for (uint32_t first = 0; first < 65537; first += 9999) {
        bool seen[1024] = {false};
        assert_int_equal(tc_ring_walk(r, first, 0), tc_ring_item_at(r, first));
        assert_int_equal(tc_ring_walk(r, first, 4095), tc_ring_item_at(r, (first + 4095) % 65537));
        assert_int_equal(tc_ring_walk(r, first, 4096), tc_ring_item_at(r, first));
        for (uint32_t k = 0; k < tc_ring_walk_steps(r); k++)
            seen[tc_ring_walk(r, first, k)] = true;
        for (unsigned i = 0; i < 1024; i++)
            assert_true(seen[i]);
    }
    tc_ring_unref(r);
    r = tc_maglev_new(h.items, h.weights, h.n, 7); /* 1,017 items have no slot: the walk leaves them out */
    for (uint32_t k = 0; k < tc_ring_walk_steps(r); k++)
        assert_true(tc_ring_count_of(r, tc_ring_walk(r, 6, k)) > 0);
    tc_ring_unref(r);
    drop(&h);
}

/* A table has another id than a ring, than a table with other weights, and than a table of another size. The cache
 * finds a table by its id until the last reference is dropped. */
static void identities(void **state)
{
    (void)state;
    struct hosts h = {0};
    ports(&h, 90, 2);
    struct tc_ring_id id = tc_maglev_id(h.items, h.weights, 2, 17), same = tc_maglev_id(h.items, h.weights, 2, 17);
    struct tc_ring_id size = tc_maglev_id(h.items, h.weights, 2, 19), ring = tc_ring_id(h.items, 2, 17, 17, 17);
    h.weights[1] = 2;
    struct tc_ring_id weight = tc_maglev_id(h.items, h.weights, 2, 17);
    assert_memory_equal(&id, &same, sizeof(id));
    assert_memory_not_equal(&id, &size, sizeof(id));
    assert_memory_not_equal(&id, &ring, sizeof(id));
    assert_memory_not_equal(&id, &weight, sizeof(id));
    struct tc_ring *r = tc_ring_cache_add(&weight, tc_maglev_new(h.items, h.weights, 2, 17));
    assert_ptr_equal(tc_ring_cache_find(&weight), r);
    assert_null(tc_ring_cache_find(&id));
    tc_ring_unref(r);
    tc_ring_unref(r);
    assert_null(tc_ring_cache_find(&weight));
    drop(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_90_to_95),
        cmocka_unit_test(weights_of_hosts),
        cmocka_unit_test(weights_of_localities),
        cmocka_unit_test(tables_of_an_independent_construction),
        cmocka_unit_test(tables_of_the_plain_construction),
        cmocka_unit_test(the_order_of_the_list_does_not_count),
        cmocka_unit_test(the_hash_of_further_attempts),
        cmocka_unit_test(sizes),
        cmocka_unit_test(no_host_and_one),
        cmocka_unit_test(slots_of_hashes),
        cmocka_unit_test(equal_keys),
        cmocka_unit_test(chosen_keys),
        cmocka_unit_test(extreme_weights),
        cmocka_unit_test(the_walk_reaches_all),
        cmocka_unit_test(identities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
