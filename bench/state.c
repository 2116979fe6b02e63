/* bench/state: the cost of a change of one endpoint's state, up to the next pick, through the policies of an xDS
 * channel. Without arguments it prints a report, 10,000 endpoints against 100: one endpoint that is lost, asked for by
 * a pick, connected and picked, again and again; and endpoints that become READY one after another.
 *
 * `bench_state N CHANGES` makes the first kind of change alone, with ring_hash over N endpoints. To count instructions,
 * run it under valgrind --tool=callgrind with two numbers of changes and take the difference (ratchet/state.py). */
#include <stdio.h>
#include <stdlib.h>

#include "measure.h"
#include "tree.h"

enum { FEW = 100, SOME = 1000, MANY = 10000, CHANGES = 20000, RUNS = 11 };

/* Differences below 15 % are noise. */
#define INDEPENDENT 0.85

static const struct {
    const char *name;
    enum tree_kind kind;
} policies[] = {{"ring_hash", TREE_MANAGER}, {"round_robin", TREE_ROUND_ROBIN}};

static void check(bool good)
{
    if (good)
        return;
    fprintf(stderr, "bench/state: a pick gave something else\n");
    exit(1);
}

/* Nanoseconds of a change and the pick after it. The subchannel is the newest one: a lost endpoint gets a new
 * subchannel. With round_robin other endpoints serve meanwhile. */
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

/* Makes a tree with one connected endpoint (ring) or all connected (round_robin). */
static struct tree *connected(enum tree_kind kind, size_t n)
{
    struct tree *t = tree_new(kind, n);
    if (kind == TREE_ROUND_ROBIN)
        for (size_t i = 0; i < n; i++)
            fake_lb_set_at(tree_lb(t), i, TORC_CONNECTIVITY_READY);
    else
        check(tree_connect(t, 0));
    return t;
}

static void bench_toggle(struct measure_row *row, size_t policy)
{
    struct tree *few = connected(policies[policy].kind, FEW), *many = connected(policies[policy].kind, MANY);
    /* Each pick of round_robin goes to another endpoint, which with many endpoints is in no cache: no target. */
    measure_init(row, "ns", "among 100", policies[policy].kind == TREE_ROUND_ROBIN ? 0 : INDEPENDENT,
                 "%s: one endpoint's change of state and the next pick, among 10,000", policies[policy].name);
    for (int i = -1; i < RUNS; i++) { /* the first warms up */
        double ours = toggle(many, CHANGES), peer = toggle(few, CHANGES);
        if (i >= 0)
            measure_add(row, ours, peer);
    }
    tree_free(few);
    tree_free(many);
}

/* Seconds until n endpoints are READY, one after another, with an RPC after each. */
static double become_ready(enum tree_kind kind, size_t n)
{
    struct tree *t = tree_new(kind, n);
    uint64_t began = measure_cpu_ns();
    if (kind == TREE_ROUND_ROBIN)
        for (size_t i = 0; i < n; i++) {
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
    for (size_t p = 0; p < 2; p++)
        bench_toggle(&rows[n++], p);
    for (size_t p = 0; p < 2; p++) {
        bench_ready(&rows[n++], p, FEW);
        bench_ready(&rows[n++], p, SOME);
        bench_ready(&rows[n++], p, MANY);
    }
    measure_report("state", rows, n);
}

int main(int argc, char **argv)
{
    if (argc == 1) {
        measure_pin(0);
        report();
        return 0;
    }
    if (argc != 3) {
        fprintf(stderr, "usage: %s [ENDPOINTS CHANGES]\n", argv[0]);
        return 2;
    }
    struct tree *t = connected(TREE_RING, strtoul(argv[1], NULL, 10));
    printf("%s endpoints: %.0f ns a change and its pick\n", argv[1], toggle(t, (unsigned)strtoul(argv[2], NULL, 10)));
    tree_free(t);
    return 0;
}
