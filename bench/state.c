/* bench/state: what the change of one endpoint's state costs, to the next pick, among N: `bench_state N CHANGES`. An
 * endpoint of a ring_hash policy is lost, wanted by a pick, connected, picked; again and again. For a count of
 * instructions run it under valgrind --tool=callgrind with two numbers of changes and take the difference. */
#include <stdio.h>
#include <stdlib.h>

#include "lb/ring_hash.h"
#include "measure.h"
#include "support/fake_lb.h"

#include "base/hash.h"
#include "base/mem.h"

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s ENDPOINTS CHANGES\n", argv[0]);
        return 2;
    }
    size_t n = strtoul(argv[1], NULL, 10);
    unsigned changes = (unsigned)strtoul(argv[2], NULL, 10);
    struct fake_lb *f = fake_lb_new("ring_hash_experimental");
    struct tc_buf b = {0};
    f->env.ring_size_cap = f->env.ring_inline_entries = 1 << 20;
    for (size_t i = 0; i < n; i++)
        tc_buf_printf(&b, "10.0.%zu.%zu:80 ", i >> 8, i & 255);
    fake_update(f, fake_endpoints(tc_buf_cstr(&b)), tc_ring_hash_config_new(65536, 65536, tc_slice_of(NULL, 0)), NULL);
    uint64_t hash = tc_xxh64("10.0.0.7:80_0", 13), began = measure_cpu_ns();
    unsigned wrong = 0;
    fake_pick_hash(f, hash);
    for (unsigned i = 0; i < changes; i++) {
        fake_set(f, "10.0.0.7:80", TORC_READY);
        wrong += strcmp(fake_pick_hash(f, hash), "10.0.0.7:80") != 0;
        fake_set(f, "10.0.0.7:80", TORC_IDLE);
        wrong += strcmp(fake_pick_hash(f, hash), "QUEUE") != 0;
    }
    printf("%zu endpoints: %.0f ns a change and its pick\n", n,
           (double)(measure_cpu_ns() - began) / (2.0 * (changes ? changes : 1)));
    tc_buf_fini(&b);
    fake_lb_free(f);
    return wrong ? 1 : 0;
}
