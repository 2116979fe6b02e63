/* bench/ring: what the ring costs.
 *
 *     build    against a sorted vector (peers/vector_ring.h)
 *     pick     against a binary search in that vector
 *     update   against a full build of the same ring
 *     table    Maglev's table, against one built by divisions (peers/modulo_maglev.h)
 *     memory   bytes an entry, of the ring and of the vector
 *
 * Both sides get the same endpoints. The program compares the results of both sides, and ends at a difference: after
 * each update, after each table, and for the rings that remain at the end of a build's first pair. Addresses and hashes
 * are random and differ in each run. With TORC_BENCH_SMALL in the environment the largest ring is left out.
 *
 * One thread; all times are its CPU time. The bench functions add one pair at a time to the caller's row, and free what
 * they make. main, which names the rows and their targets, is to be read first. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/common.h"
#include "base/mem.h"
#include "measure.h"
#include "peers/modulo_maglev.h"
#include "peers/vector_ring.h"
#include "ring/maglev.h"
#include "ring/ring_internal.h"
#include "ring/update.h"

enum {
    KEY_MAX = 32,
    COLD_BYTES = 96 << 20 /* of all rings that cold picks choose from, at 16 bytes an entry */
};

static volatile uint64_t sink; /* keeps the compiler from dropping picks */

/* Endpoints with random addresses, as items of both rings. The items' keys are in `text`. */
struct set {
    size_t n;
    char (*text)[KEY_MAX];
    struct tc_ring_item *ours;
    struct vector_ring_item *peer;
};

static void set_item(struct set *s, size_t i)
{
    uint64_t r = measure_random();
    int len = snprintf(s->text[i], KEY_MAX, "10.%u.%u.%u:%u", (unsigned)(r & 255), (unsigned)(r >> 8 & 255),
                       (unsigned)(r >> 16 & 255), 1024 + (unsigned)(r >> 32) % 60000);
    s->ours[i] = (struct tc_ring_item){tc_slice_of(s->text[i], (size_t)len), 1};
    s->peer[i] = (struct vector_ring_item){s->text[i], (size_t)len, 1};
}

static void set_init(struct set *s, size_t n)
{
    s->n = n;
    s->text = tc_calloc(n + 1, sizeof(*s->text));
    s->ours = tc_calloc(n + 1, sizeof(*s->ours));
    s->peer = tc_calloc(n + 1, sizeof(*s->peer));
    for (size_t i = 0; i < n; i++)
        set_item(s, i);
}

static void set_fini(struct set *s)
{
    tc_free(s->text);
    tc_free(s->ours);
    tc_free(s->peer);
}

/* Builds Torc's ring of at least `min` entries. The caller unrefs the ring. */
static struct tc_ring *build_ours(const struct set *s, uint64_t min, uint64_t max)
{
    return tc_ring_new(s->ours, s->n, min, max, TC_RING_SIZE_MAX);
}

/* Ends the program unless both rings have the same hashes, entry by entry, and the same endpoint for 1,000 random
 * hashes. */
static void check_same(const struct tc_ring *a, const struct vector_ring *b)
{
    bool same = tc_ring_size(a) == vector_ring_size(b);
    for (uint32_t e = 0; same && e < tc_ring_size(a); e++)
        same = tc_ring_hash_at(a, e) == vector_ring_hash_at(b, e);
    for (unsigned k = 0; same && k < 1000; k++) {
        uint64_t h = measure_random();
        same = tc_ring_item_at(a, tc_ring_find(a, h)) == vector_ring_pick(b, h);
    }
    if (same)
        return;
    fprintf(stderr, "bench/ring: the two rings differ; the figures would mean nothing\n");
    exit(1);
}

/* How a benchmark treats the rings that it builds. */
enum memory {
    REPLACED, /* the old ring is freed once the new one is built, as in an update: later rings reuse its memory */
    FRESH     /* all rings of a pair stay until the pair's end, so that none of them reuses another one's memory */
};

/* Measures the ms of a build of at least `min` entries over 1,000 endpoints. In a pair each side builds `batch` rings,
 * one for each set of endpoints. With REPLACED the time includes freeing the old ring. */
static void bench_build(struct measure_row *row, uint64_t min, enum memory memory, unsigned pairs)
{
    unsigned batch = min > 100000 ? 1 : min > 10000 ? 8 : 64;
    struct set *sets = tc_calloc(batch, sizeof(*sets));
    struct tc_ring **ours = tc_calloc(batch, sizeof(struct tc_ring *));
    struct vector_ring **peer = tc_calloc(batch, sizeof(struct vector_ring *));
    for (unsigned p = 0; p < pairs; p++) {
        for (unsigned b = 0; b < batch; b++)
            set_init(&sets[b], 1000);
        uint64_t t0 = measure_cpu_ns();
        for (unsigned b = 0; b < batch; b++) {
            struct tc_ring **to = &ours[memory == FRESH ? b : 0], *old = *to;
            *to = build_ours(&sets[b], min, TC_RING_SIZE_MAX);
            tc_ring_unref(old);
        }
        uint64_t t1 = measure_cpu_ns();
        for (unsigned b = 0; b < batch; b++) {
            struct vector_ring **to = &peer[memory == FRESH ? b : 0], *old = *to;
            *to = vector_ring_new(sets[b].peer, 1000, min, TC_RING_SIZE_MAX);
            vector_ring_free(old);
        }
        uint64_t t2 = measure_cpu_ns();
        for (unsigned b = 0; b < batch; b++) {
            if (p == 0 && ours[b]) /* REPLACED: only the last ring is left, at index 0 */
                check_same(ours[b], peer[b]);
            if (memory == FRESH) {
                tc_ring_unref(ours[b]);
                vector_ring_free(peer[b]);
                ours[b] = NULL;
                peer[b] = NULL;
            }
            set_fini(&sets[b]);
        }
        measure_add(row, (double)(t1 - t0) / 1e6 / batch, (double)(t2 - t1) / 1e6 / batch);
    }
    tc_ring_unref(ours[0]);
    vector_ring_free(peer[0]);
    tc_free(sets);
    tc_free(ours);
    tc_free(peer);
}

static inline uint64_t next_hash(uint64_t h, uint64_t found)
{
    h = (h ^ found) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

/* Each pick's hash depends on the result of the last pick, so picks do not overlap. The hash also chooses the ring. A
 * single ring stays in the caches unless it is too large for them; many rings do not fit. Returns the ns of a pick with
 * its share of the loop. */
static double picks_ours(struct tc_ring **rings, size_t n_rings, unsigned picks)
{
    uint64_t h = measure_random(), sum = 0;
    uint64_t t0 = measure_cpu_ns();
    for (unsigned k = 0; k < picks; k++) {
        const struct tc_ring *r = rings[n_rings == 1 ? 0 : h % n_rings];
        uint32_t found = tc_ring_item_at(r, tc_ring_find(r, h));
        sum += found;
        h = next_hash(h, found);
    }
    uint64_t t1 = measure_cpu_ns();
    sink = sum;
    return (double)(t1 - t0) / picks;
}

/* Measures the sorted vectors with the loop of picks_ours. Returns the ns of a pick with its share of the loop. */
static double picks_peer(struct vector_ring **rings, size_t n_rings, unsigned picks)
{
    uint64_t h = measure_random(), sum = 0;
    uint64_t t0 = measure_cpu_ns();
    for (unsigned k = 0; k < picks; k++) {
        const struct vector_ring *r = rings[n_rings == 1 ? 0 : h % n_rings];
        size_t found = vector_ring_pick(r, h);
        sum += found;
        h = next_hash(h, found);
    }
    uint64_t t1 = measure_cpu_ns();
    sink = sum;
    return (double)(t1 - t0) / picks;
}

/* Returns the ns of an iteration without a pick, to be subtracted on both sides. */
static double picks_none(unsigned picks)
{
    uint64_t h = measure_random();
    uint64_t t0 = measure_cpu_ns();
    for (unsigned k = 0; k < picks; k++) {
        h = next_hash(h, k);
        __asm__ volatile("" : "+r"(h));
    }
    uint64_t t1 = measure_cpu_ns();
    sink = h;
    return (double)(t1 - t0) / picks;
}

/* Measures the ns of a pick in rings of at least `min` entries over 1,000 endpoints: in one ring or, if `cold`, in
 * rings of at least COLD_BYTES together, each of which differs from the next by one endpoint. */
static void bench_picks(struct measure_row *row, uint64_t min, bool cold, unsigned pairs)
{
    struct set s;
    set_init(&s, 1000);
    size_t n_rings = 1;
    struct tc_ring *first = build_ours(&s, min, TC_RING_SIZE_MAX);
    if (cold)
        n_rings = COLD_BYTES / (16 * (size_t)tc_ring_size(first)) + 1;
    tc_ring_unref(first);
    struct tc_ring **ours = tc_calloc(n_rings, sizeof(struct tc_ring *));
    struct vector_ring **peer = tc_calloc(n_rings, sizeof(struct vector_ring *));
    for (size_t i = 0; i < n_rings; i++) {
        set_item(&s, i % s.n);
        ours[i] = build_ours(&s, min, TC_RING_SIZE_MAX);
        peer[i] = vector_ring_new(s.peer, s.n, min, TC_RING_SIZE_MAX);
    }
    unsigned picks = cold || min > 100000 ? 300000 : 1000000;
    picks_ours(ours, n_rings, picks);
    picks_peer(peer, n_rings, picks);
    for (unsigned p = 0; p < pairs; p++) {
        double a = picks_ours(ours, n_rings, picks), b = picks_peer(peer, n_rings, picks), none = picks_none(picks);
        measure_add(row, a - none, b - none);
    }
    for (size_t i = 0; i < n_rings; i++) {
        tc_ring_unref(ours[i]);
        vector_ring_free(peer[i]);
    }
    tc_free(ours);
    tc_free(peer);
    set_fini(&s);
}

/* Copies the n items of `before` to `after`: with `added` inserted before a random one of them, or, if `added` is NULL,
 * without a random one of them. Fills `from` for tc_ring_update. Returns the new number of items. */
static size_t change_one(struct tc_ring_item *after, uint32_t *from, const struct tc_ring_item *before, size_t n,
                         const struct tc_ring_item *added)
{
    size_t where = measure_random() % n, m = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == where && added) {
            from[m] = TC_RING_ADDED;
            after[m++] = *added;
        }
        if (i == where && !added)
            continue;
        from[m] = (uint32_t)i;
        after[m++] = before[i];
    }
    return m;
}

/* Measures the ms of an update against a build of the same ring of 65,536 to `max` entries, while endpoints are added
 * to the first n, or removed, one by one. The time of each side includes freeing that side's old ring. The ring that is
 * updated comes from the last update or, with `fresh`, from a build. */
static void bench_update(struct measure_row *row, size_t n, uint64_t max, bool add, bool fresh, unsigned pairs)
{
    size_t room = n + pairs, used = n;
    struct set set;
    set_init(&set, room);
    struct tc_ring_item *before = tc_calloc(room, sizeof(*before)), *after = tc_calloc(room, sizeof(*after));
    uint32_t *from = tc_calloc(room, sizeof(*from));
    memcpy(before, set.ours, n * sizeof(*before));
    struct tc_ring *updated = tc_ring_new(before, n, 65536, max, TC_RING_SIZE_MAX),
                   *built = tc_ring_new(before, n, 65536, max, TC_RING_SIZE_MAX);
    for (unsigned p = 0; p < pairs; p++) {
        struct tc_ring *old = updated, *old_built = built;
        if (fresh) {
            old = tc_ring_new(before, n, 65536, max, TC_RING_SIZE_MAX);
            tc_ring_unref(updated);
        }
        size_t m = change_one(after, from, before, n, add ? &set.ours[used++] : NULL);
        uint64_t t0 = measure_cpu_ns();
        updated = tc_ring_update(old, before, from, after, m, 65536, max, TC_RING_SIZE_MAX);
        tc_ring_unref(old);
        uint64_t t1 = measure_cpu_ns();
        built = tc_ring_new(after, m, 65536, max, TC_RING_SIZE_MAX);
        tc_ring_unref(old_built);
        uint64_t t2 = measure_cpu_ns();
        if (tc_ring_fingerprint(updated) != tc_ring_fingerprint(built)) {
            fprintf(stderr, "bench/ring: the update and the build differ\n");
            exit(1);
        }
        if (p > 1) /* the first two warm the allocator */
            measure_add(row, (double)(t1 - t0) / 1e6, (double)(t2 - t1) / 1e6);
        struct tc_ring_item *swap = before;
        before = after;
        after = swap;
        n = m;
    }
    tc_ring_unref(updated);
    tc_ring_unref(built);
    tc_free(before);
    tc_free(after);
    tc_free(from);
    set_fini(&set);
}

/* Prints the bytes that an entry takes in rings of three sizes, by malloc's own count. */
static void report_memory(void)
{
    static const uint64_t mins[] = {1024, 4096, 65536};
    struct set s;
    set_init(&s, 1000);
    for (unsigned i = 0; i < TC_ARRAY_LEN(mins); i++) {
        struct mallinfo2 a = mallinfo2();
        struct tc_ring *ours = build_ours(&s, mins[i], TC_RING_SIZE_MAX);
        struct mallinfo2 b = mallinfo2();
        struct vector_ring *peer = vector_ring_new(s.peer, s.n, mins[i], TC_RING_SIZE_MAX);
        struct mallinfo2 c = mallinfo2();
        double entries = tc_ring_size(ours);
        printf("bytes an entry, %.0f entries: torc %.1f, sorted vector %.1f\n", entries,
               (double)(b.uordblks + b.hblkhd - a.uordblks - a.hblkhd) / entries,
               (double)(c.uordblks + c.hblkhd - b.uordblks - b.hblkhd) / entries);
        tc_ring_unref(ours);
        vector_ring_free(peer);
    }
    set_fini(&s);
}

/* Measures the ms of building a Maglev table of `size` slots, which must be a prime. `uneven`: weights from 1 to 4;
 * else all endpoints have the same weight. */
static void bench_table(struct measure_row *row, size_t endpoints, uint32_t size, bool uneven, unsigned pairs)
{
    uint32_t *peer = tc_calloc(size, sizeof(*peer));
    const char **keys = tc_calloc(endpoints, sizeof(*keys));
    size_t *lengths = tc_calloc(endpoints, sizeof(*lengths));
    double *weights = tc_calloc(endpoints, sizeof(*weights)), sum = 0;
    for (unsigned p = 0; p < pairs; p++) {
        struct set s;
        set_init(&s, endpoints);
        sum = 0;
        for (size_t i = 0; i < endpoints; i++)
            sum += weights[i] = uneven ? 1 + (double)(i % 4) : 1;
        for (size_t i = 0; i < endpoints; i++) {
            keys[i] = s.ours[i].key.data;
            lengths[i] = s.ours[i].key.len;
            weights[i] /= sum;
        }
        uint64_t t0 = measure_cpu_ns();
        struct tc_ring *ours = tc_maglev_new(s.ours, weights, endpoints, size);
        uint64_t t1 = measure_cpu_ns();
        modulo_maglev(keys, lengths, weights, endpoints, peer, size);
        uint64_t t2 = measure_cpu_ns();
        for (uint32_t e = 0; e < size; e++)
            if (tc_ring_item_at(ours, e) != peer[e]) {
                fprintf(stderr, "bench/ring: the two tables differ\n");
                exit(1);
            }
        if (p > 0) /* the first warms the allocator */
            measure_add(row, (double)(t1 - t0) / 1e6, (double)(t2 - t1) / 1e6);
        tc_ring_unref(ours);
        set_fini(&s);
    }
    tc_free(peer);
    tc_free(keys);
    tc_free(lengths);
    tc_free(weights);
}

int main(void)
{
    static const uint64_t mins[] = {1024, 4096, 65536, TC_RING_SIZE_MAX};
    static const unsigned entries[] = {2000, 5000, 66000, 8388609};
    static const double pick_targets[] = {5, 5, 4, 3}, build_targets[] = {0, 5, 5, 3};
    static struct measure_row rows[26];
    size_t n = 0;
    bool large = !getenv("TORC_BENCH_SMALL");
    unsigned sizes = large ? 4 : 3;
    measure_pin(0);
    for (unsigned i = 0; i < sizes; i++) {
        measure_init(&rows[n], "ms", "sorted vector", build_targets[i], "build, 1,000 endpoints, %u entries",
                     entries[i]);
        /* The largest ring gets new memory from the system in either case. */
        bench_build(&rows[n++], mins[i], i < 3 ? REPLACED : FRESH, i < 3 ? 21 : 7);
    }
    for (unsigned i = 1; i < 3; i++) {
        measure_init(&rows[n], "ms", "sorted vector", 0, "build in fresh memory, %u entries", entries[i]);
        bench_build(&rows[n++], mins[i], FRESH, 21);
    }
    for (unsigned cold = 0; cold < 2; cold++)
        for (unsigned i = 0; i < sizes; i++) {
            measure_init(&rows[n], "ns", "sorted vector", cold ? 1 : pick_targets[i], "pick, %s, %u entries",
                         cold ? "cold (out of L2)" : "warm", entries[i]);
            bench_picks(&rows[n++], mins[i], cold, 11);
        }
    for (unsigned add = 0; add < 2; add++)
        for (unsigned exact = 0; exact < 3; exact++) {
            static const char *const which[] = {"70,000 entries", "65,536 (at the maximum)",
                                                "65,536 (at the maximum), ring just built"};
            measure_init(&rows[n], "ms", "own full build", exact ? 1.5 : 5, "%s one of 10,000 endpoints, %s",
                         add ? "add" : "remove", which[exact]);
            bench_update(&rows[n++], 10000, exact ? 65536 : TC_RING_SIZE_MAX, add, exact == 2, 42);
        }
    for (unsigned uneven = 0; uneven < 2; uneven++) {
        measure_init(&rows[n], "ms", "Maglev by divisions", 3, "Maglev table, 1,000 endpoints%s, 65,537 slots",
                     uneven ? " of weights 1 to 4" : "");
        bench_table(&rows[n++], 1000, 65537, uneven, 22);
    }
    measure_report("ring", rows, n);
    report_memory();
    return 0;
}
