/* Localities that change their priorities, or go and come, a thousand times. After the first 200 changes no connection
 * is made, descriptors do not grow, and memory grows by at most 2 MiB. With sanitizers memory is only printed.
 *
 * Each test has a mesh of four backends (kits/mesh.h) and one channel. The servers run in this process on a thread of
 * their own, so descriptors and memory are those of client and servers together. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/footprint.h"
#include "support/kits/mesh.h"
#include "support/sanitizer.h"

#include "base/common.h"

enum { SANITIZED = SANITIZER_ADDRESS || SANITIZER_THREAD };

enum { FLAPS = 1000, SETTLED = 200, MAX_GROWTH_KB = 2048 };

/* The flaps go through these in turn. After each, the test calls until one of two backends answers. */
static const struct {
    const char *localities;
    size_t serves; /* the first of the two backends; the second is serves + 1 */
} shapes[] = {
    {"0/a: 0, 1; 1/b: 2, 3", 0}, {"0/b: 2, 3; 1/a: 0, 1", 2},
    {"0/a: 0, 1; 0/b: 2, 3", 0},                   /* one priority */
    {"0/b: 2, 3; 1/a: 0, 1", 2}, {"0/a: 0, 1", 0}, /* the other locality is gone */
    {"0/b: 2, 3; 1/a: 0, 1", 2},
};

/* Returns the resident memory of this process in KiB. */
static size_t resident_kb(void)
{
    unsigned long total, resident;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu %lu", &total, &resident), 2);
    fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* Calls until one of the two backends of shape i answers. Fails the test after 20,000 calls, or when a call fails. */
static void wait_shape(struct kit_mesh *k, torc_channel *ch, size_t i)
{
    bool there = false;
    for (unsigned tries = 0; !there; tries++) {
        torc_result *r = kit_mesh_call(ch, NULL, false, 60000);
        if (torc_result_code(r) != TORC_STATUS_OK || tries == 20000)
            fail_msg("flap to \"%s\": %s %s %s", shapes[i].localities, torc_status_code_name(torc_result_code(r)),
                     torc_result_text(r), torc_result_peer(r));
        there = strcmp(torc_result_peer(r), kit_mesh_address(k, shapes[i].serves)) == 0 ||
                strcmp(torc_result_peer(r), kit_mesh_address(k, shapes[i].serves + 1)) == 0;
        torc_result_free(r);
    }
}

/* Returns the number of connections that all backends have accepted so far. */
static uint64_t made(struct kit_mesh *k)
{
    uint64_t n = 0;
    for (size_t i = 0; i < 4; i++)
        n += kit_mesh_connections(k, i);
    return n;
}

/* policy: as `more` of kit_mesh_put_cluster. */
static void flapping(const char *policy)
{
    struct kit_mesh *k = kit_mesh_new(4);
    kit_mesh_put_endpoints(k, "c", shapes[0].localities, NULL);
    kit_mesh_put_cluster(k, "c", policy);
    kit_mesh_put_listener(k, "svc", "c", NULL);
    torc_channel *ch = kit_mesh_channel(k, "svc", NULL);
    size_t descriptors = 0, kb = 0;
    uint64_t connections = 0;
    for (size_t flap = 1; flap <= FLAPS; flap++) {
        size_t i = flap % TC_ARRAY_LEN(shapes);
        kit_mesh_put_endpoints(k, "c", shapes[i].localities, NULL);
        wait_shape(k, ch, i);
        if (flap == SETTLED) {
            descriptors = footprint_descriptors();
            kb = resident_kb();
            connections = made(k);
        }
    }
    /* Gives descriptors that close late the time of 20,000 calls. */
    for (unsigned i = 0; i < 20000 && footprint_descriptors() > descriptors; i++)
        kit_mesh_calls(ch, NULL, 1);
    print_message("%s: after %d flaps %zu kB resident (after %d: %zu), %zu descriptors (%zu), %llu connections made\n",
                  policy ? policy : "RING_HASH", FLAPS, resident_kb(), SETTLED, kb, footprint_descriptors(),
                  descriptors, (unsigned long long)connections);
    assert_true(footprint_descriptors() <= descriptors);
    assert_int_equal(made(k), connections);
    if (!SANITIZED) /* sanitizers retain freed memory */
        assert_true(resident_kb() <= kb + MAX_GROWTH_KB);
    torc_channel_free(ch);
    kit_mesh_free(k);
}

static void under_ring_hash(void **state)
{
    (void)state;
    flapping(NULL);
}

static void under_round_robin(void **state)
{
    (void)state;
    flapping("lb_policy: ROUND_ROBIN");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(under_ring_hash), cmocka_unit_test(under_round_robin)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
