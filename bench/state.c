/* bench/state: what the change of one endpoint's state costs, to the next pick. An endpoint of a ring_hash policy is
 * lost, wanted by a pick, connected, picked; again and again. Without arguments a report: among 10,000 endpoints
 * against the same among 100, in turns. `bench_state N CHANGES`: among N alone; for a count of instructions run it
 * under valgrind
 * --tool=callgrind with two numbers of changes and take the difference (ratchet/state.py). */
#include <stdio.h>
#include <stdlib.h>

#include "lb/ring_hash.h"
#include "measure.h"
#include "support/fake_lb.h"

#include "base/hash.h"
#include "base/mem.h"

enum { FEW = 100, MANY = 10000, CHANGES = 20000, PAIRS = 11 };

static struct fake_lb *ring_of(size_t n)
{
    struct fake_lb *f = fake_lb_new("ring_hash_experimental");
    struct tc_buf b = {0};
    f->env.ring_size_cap = f->env.ring_inline_entries = 1 << 20;
    for (size_t i = 0; i < n; i++)
        tc_buf_printf(&b, "10.0.%zu.%zu:80 ", i >> 8, i & 255);
    fake_update(f, fake_endpoints(tc_buf_cstr(&b)), tc_ring_hash_config_new(65536, 65536, tc_slice_of(NULL, 0)), NULL);
    tc_buf_fini(&b);
    return f;
}

/* Nanoseconds a change and its pick; ends the program when a pick goes wrong. */
static double toggle(struct fake_lb *f, unsigned changes)
{
    uint64_t hash = tc_xxh64("10.0.0.7:80_0", 13), began = measure_cpu_ns();
    unsigned wrong = 0;
    fake_pick_hash(f, hash);
    for (unsigned i = 0; i < changes; i++) {
        fake_set(f, "10.0.0.7:80", TORC_READY);
        wrong += strcmp(fake_pick_hash(f, hash), "10.0.0.7:80") != 0;
        fake_set(f, "10.0.0.7:80", TORC_IDLE);
        wrong += strcmp(fake_pick_hash(f, hash), "QUEUE") != 0;
        f->connects.len = 0;
        f->history.len = 0;
    }
    if (wrong) {
        fprintf(stderr, "bench/state: %u picks gave something else\n", wrong);
        exit(1);
    }
    return (double)(measure_cpu_ns() - began) / (2.0 * (changes ? changes : 1));
}

static void report(void)
{
    static struct measure_row row;
    struct fake_lb *few = ring_of(FEW), *many = ring_of(MANY);
    /* 0.85: differences below 15 % are noise. */
    measure_init(&row, "ns", "among 100", 0.85, "one endpoint's change of state and the next pick, among 10,000");
    for (unsigned p = 0; p < PAIRS; p++) {
        double ours = toggle(many, CHANGES);
        measure_add(&row, ours, toggle(few, CHANGES));
    }
    fake_lb_free(few);
    fake_lb_free(many);
    measure_report("state", &row, 1);
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
    struct fake_lb *f = ring_of(strtoul(argv[1], NULL, 10));
    printf("%s endpoints: %.0f ns a change and its pick\n", argv[1], toggle(f, (unsigned)strtoul(argv[2], NULL, 10)));
    fake_lb_free(f);
    return 0;
}
