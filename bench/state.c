/* bench/state: the cost of a change of one endpoint's state, up to the next pick. Without arguments it prints a report:
 *
 *     toggle   one endpoint is lost and becomes READY, again and again, with a pick after each change (a ring connects
 *              to the endpoint because the first of the two picks asks for it); among 10,000 endpoints against among
 *              100
 *     ready    100, 1,000 and 10,000 endpoints become READY one after another, without a comparison
 *
 * `bench_state POLICY ENDPOINTS ROUNDS` toggles alone; `bench_state pick:POLICY ENDPOINTS ROUNDS` picks among READY
 * endpoints alone (not ring_hash, whose tree has one READY endpoint). POLICY is the whole tree then, while the report's
 * ring_hash and round_robin are parts of the tree of a channel (tree.h). To count instructions, run it under valgrind
 * --tool=callgrind with two numbers of rounds and take the difference (ratchet/).
 *
 * One thread, which also turns the fake channel's loop: all figures are its CPU time. The function that asked for a
 * tree frees it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "tree.h"

enum { FEW = 100, SOME = 1000, MANY = 10000, CHANGES = 20000, RUNS = 11 };

/* The target of toggle with a ring: the time among 100 endpoints is at least this share of the time among 10,000. A
 * ratio between this share and 1 is noise. */
#define INDEPENDENT 0.85

static const struct {
    const char *name;
    enum tree_kind kind;
} policies[] = {
    {"ring_hash", TREE_MANAGER}, {"round_robin", TREE_ROUND_ROBIN}, {"least_request, all endpoints", TREE_SCAN}};
enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

/* Ends the program if a pick was not as expected. */
static void check(bool good)
{
    if (good)
        return;
    fprintf(stderr, "bench/state: a pick gave something else\n");
    exit(1);
}

/* Returns the CPU time in ns of one change and the pick after it; there are two such pairs in each of the `changes`
 * rounds. Changes the newest subchannel: a lost endpoint gets a new one. Without a ring other endpoints serve
 * meanwhile. */
static double toggle(struct tree *t, unsigned changes)
{
    struct fake_lb *f = tree_lb(t);
    uint64_t hash = tree_hash_of(0), began = measure_cpu_ns();
    bool ring = f->subchannels.len == 1;
    for (unsigned i = 0; i < changes; i++) {
        fake_lb_set_at(f, f->subchannels.len - 1, TORC_CONNECTIVITY_IDLE);
        check(!tree_pick(t, hash) == ring);
        tc_loop_drain(f->loop);
        fake_lb_set_at(f, f->subchannels.len - 1, TORC_CONNECTIVITY_READY);
        check(tree_pick(t, hash) != NULL);
        tc_buf_clear(&f->connects);
        tc_buf_clear(&f->history);
    }
    return (double)(measure_cpu_ns() - began) / (2.0 * (changes ? changes : 1));
}

static bool has_ring(enum tree_kind kind)
{
    return kind >= TREE_RING && kind != TREE_ROUND_ROBIN;
}

/* Makes a tree. With a ring endpoint 0 is connected, else all endpoints. */
static struct tree *connected(enum tree_kind kind, size_t n)
{
    struct tree *t = tree_new(kind, n);
    check(has_ring(kind) ? tree_connect(t, 0) : tree_connect_all(t));
    return t;
}

static void bench_toggle(struct measure_row *row, size_t policy)
{
    struct tree *few = connected(policies[policy].kind, FEW), *many = connected(policies[policy].kind, MANY);
    /* Without a ring there is no target: many endpoints do not fit into the caches. */
    measure_init(row, "ns", "among 100", has_ring(policies[policy].kind) ? INDEPENDENT : 0,
                 "%s: one endpoint's change of state and the next pick, among 10,000", policies[policy].name);
    for (int i = -1; i < RUNS; i++) { /* the first run is not counted */
        double ours = toggle(many, CHANGES), peer = toggle(few, CHANGES);
        if (i >= 0)
            measure_add(row, ours, peer);
    }
    tree_free(few);
    tree_free(many);
}

/* Returns the seconds of CPU time until n endpoints are READY, one after another, with a pick after each. */
static double become_ready(enum tree_kind kind, size_t n)
{
    struct tree *t = tree_new(kind, n);
    uint64_t began = measure_cpu_ns();
    if (!has_ring(kind))
        for (size_t i = 0; i < n; i++) {
            while (tree_lb(t)->subchannels.len <= i)
                tc_loop_advance(tree_lb(t)->loop, 1);
            fake_lb_set_at(tree_lb(t), i, TORC_CONNECTIVITY_READY);
            check(tree_pick(t, 0) != NULL);
        }
    else
        check(tree_connect_all(t));
    double took = (double)(measure_cpu_ns() - began) / 1e9;
    tree_free(t);
    return took;
}

static void bench_ready(struct measure_row *row, size_t policy, size_t n)
{
    measure_init(row, "ms", "", 0, "%s: %zu endpoints become READY one after another, a pick after each",
                 policies[policy].name, n);
    for (int i = 0; i < RUNS; i++)
        measure_add(row, become_ready(policies[policy].kind, n) * 1e3, 0);
}

static void report(void)
{
    static struct measure_row rows[16];
    size_t n = 0;
    for (size_t p = 0; p < POLICIES; p++)
        bench_toggle(&rows[n++], p);
    for (size_t p = 0; p < POLICIES; p++) {
        bench_ready(&rows[n++], p, FEW);
        bench_ready(&rows[n++], p, SOME);
        bench_ready(&rows[n++], p, MANY);
    }
    measure_report("state", rows, n);
}

static void make_picks(struct tree *t, unsigned picks)
{
    uint64_t h = 1;
    for (unsigned i = 0; i < picks; i++) {
        h = (h ^ i) * UINT64_C(0x9e3779b97f4a7c15);
        check(tree_pick(t, h) != NULL);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        enum tree_kind kind;
    } alone[] = {{"ring_hash", TREE_RING}, {"least_request", TREE_LEAST}, {"full_scan", TREE_SCAN}};
    if (argc == 1) {
        measure_pin(0);
        report();
        return 0;
    }
    bool picks = argc == 4 && strncmp(argv[1], "pick:", 5) == 0;
    for (size_t i = 0; argc == 4 && i < sizeof(alone) / sizeof(alone[0]); i++) {
        if (strcmp(argv[1] + (picks ? 5 : 0), alone[i].name) != 0 || (picks && alone[i].kind == TREE_RING))
            continue;
        struct tree *t = connected(alone[i].kind, strtoul(argv[2], NULL, 10));
        unsigned rounds = (unsigned)strtoul(argv[3], NULL, 10);
        if (picks)
            make_picks(t, rounds);
        else
            printf("%s endpoints: %.0f ns a change and its pick\n", argv[2], toggle(t, rounds));
        tree_free(t);
        return 0;
    }
    fprintf(stderr, "usage: %s [(ring_hash|[pick:]least_request|[pick:]full_scan) ENDPOINTS ROUNDS]\n", argv[0]);
    return 2;
}
