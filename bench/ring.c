/* bench/ring: building, updating and searching the ring against a sorted vector with a binary search, in one run. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/common.h"
#include "base/mem.h"
#include "lb/ring.h"
#include "measure.h"
#include "peers/vector_ring.h"

enum { KEY_MAX = 32, COLD_BYTES = 96 << 20 };

static volatile uint64_t sink; /* what picks found; keeps them */

/* One set of endpoints with new addresses, in the forms of both sides. */
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

static struct tc_ring *build_ours(const struct set *s, uint64_t min, uint64_t max)
{
    return tc_ring_new(s->ours, s->n, min, max, TC_RING_SIZE_MAX);
}

/* Both rings must be the same, but for the order of equal hashes. */
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

static void bench_build(struct measure_row *row, uint64_t min, unsigned pairs)
{
    unsigned batch = min > 100000 ? 1 : min > 10000 ? 8 : 64;
    struct set *sets = tc_calloc(batch, sizeof(*sets));
    struct tc_ring **ours = tc_calloc(batch, sizeof(struct tc_ring *));
    struct vector_ring **peer = tc_calloc(batch, sizeof(struct vector_ring *));
    for (unsigned p = 0; p < pairs; p++) {
        for (unsigned b = 0; b < batch; b++)
            set_init(&sets[b], 1000);
        uint64_t t0 = measure_cpu_ns();
        for (unsigned b = 0; b < batch; b++)
            ours[b] = build_ours(&sets[b], min, TC_RING_SIZE_MAX);
        uint64_t t1 = measure_cpu_ns();
        for (unsigned b = 0; b < batch; b++)
            peer[b] = vector_ring_new(sets[b].peer, 1000, min, TC_RING_SIZE_MAX);
        uint64_t t2 = measure_cpu_ns();
        for (unsigned b = 0; b < batch; b++) {
            if (p == 0)
                check_same(ours[b], peer[b]);
            tc_ring_unref(ours[b]);
            vector_ring_free(peer[b]);
            set_fini(&sets[b]);
        }
        measure_add(row, (double)(t1 - t0) / 1e6 / batch, (double)(t2 - t1) / 1e6 / batch);
    }
    tc_free(sets);
    tc_free(ours);
    tc_free(peer);
}

static inline uint64_t next_hash(uint64_t h, uint64_t found)
{
    h = (h ^ found) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

/* Each pick's hash depends on what the last found, and goes to another of the rings: one ring is warm, many are not. */
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

/* What one iteration costs without a pick, to be taken off both sides. */
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

/* One endpoint comes or goes, anywhere among the others: an update against a build of the same ring. */
static void bench_update(struct measure_row *row, size_t n, uint64_t max, bool add, unsigned pairs)
{
    struct set before, after;
    set_init(&before, n);
    set_init(&after, n + 1);
    uint32_t *from = tc_calloc(n + 1, sizeof(*from));
    for (unsigned p = 0; p < pairs; p++) {
        for (size_t i = 0; i < n; i++)
            set_item(&before, i);
        struct tc_ring *old = build_ours(&before, 65536, max);
        size_t where = measure_random() % n, m = 0;
        for (size_t i = 0; i < n; i++) {
            if (i == where && add)
                from[m++] = TC_RING_ADDED; /* the key that is there from the last time is new to this set */
            if (i == where && !add)
                continue;
            after.ours[m] = before.ours[i];
            from[m++] = (uint32_t)i;
        }
        if (add)
            set_item(&after, where);
        uint64_t t0 = measure_cpu_ns();
        struct tc_ring *updated = tc_ring_update(old, before.ours, from, after.ours, m, 65536, max, TC_RING_SIZE_MAX);
        uint64_t t1 = measure_cpu_ns();
        struct tc_ring *built = tc_ring_new(after.ours, m, 65536, max, TC_RING_SIZE_MAX);
        uint64_t t2 = measure_cpu_ns();
        if (tc_ring_fingerprint(updated) != tc_ring_fingerprint(built)) {
            fprintf(stderr, "bench/ring: the update and the build differ\n");
            exit(1);
        }
        if (p > 0) /* the first warms the allocator */
            measure_add(row, (double)(t1 - t0) / 1e6, (double)(t2 - t1) / 1e6);
        tc_ring_unref(old);
        tc_ring_unref(updated);
        tc_ring_unref(built);
    }
    tc_free(from);
    set_fini(&before);
    set_fini(&after);
}

/* What malloc gave for each ring, by its own count. */
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

int main(void)
{
    static const uint64_t mins[] = {1024, 4096, 65536, TC_RING_SIZE_MAX};
    static const unsigned entries[] = {2000, 5000, 66000, 8388609};
    static const double pick_targets[] = {5, 5, 4, 3}, build_targets[] = {0, 5, 5, 3};
    static struct measure_row rows[16];
    size_t n = 0;
    bool large = !getenv("TORC_BENCH_SMALL");
    unsigned sizes = large ? 4 : 3;
    measure_pin(0);
    for (unsigned i = 0; i < sizes; i++) {
        measure_init(&rows[n], "ms", "sorted vector", build_targets[i], "build, 1,000 endpoints, %u entries",
                     entries[i]);
        bench_build(&rows[n++], mins[i], mins[i] > 100000 ? 5 : 21);
    }
    for (unsigned cold = 0; cold < 2; cold++)
        for (unsigned i = 0; i < sizes; i++) {
            measure_init(&rows[n], "ns", "sorted vector", cold ? 1 : pick_targets[i], "pick, %s, %u entries",
                         cold ? "cold (out of L2)" : "warm", entries[i]);
            bench_picks(&rows[n++], mins[i], cold, 11);
        }
    for (unsigned add = 0; add < 2; add++)
        for (unsigned exact = 0; exact < 2; exact++) {
            measure_init(&rows[n], "ms", "own full build", 5, "%s one of 10,000 endpoints, %s entries",
                         add ? "add" : "remove", exact ? "65,536 (at the maximum)" : "70,000");
            bench_update(&rows[n++], 10000, exact ? 65536 : TC_RING_SIZE_MAX, add, 22);
        }
    measure_report("ring", rows, n);
    report_memory();
    return 0;
}
