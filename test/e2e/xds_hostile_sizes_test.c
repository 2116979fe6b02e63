/* Responses that are as large, or as expensive, as the limits allow, with many kinds of content. `torc call`, as a
 * process, rejects all but the good ones and uses at most 2 s of CPU time for each response. Its RPCs, 100 a second to
 * the cluster "good", go on. After a costly rejected response it pauses (without_end).
 *
 * With the stricter limits of docs/operations/limits.md a rejected response raises the peak of resident memory by at
 * most 32,000 KiB, or by 42,000 KiB if it has the most endpoints. With the default limits, where a response has up to
 * 64 MiB, it raises the peak by at most 200,000 KiB, or by 280,000 KiB if it is a row of HOSTILE_COPIED. These limits
 * of CPU time and memory are asserted only where FOOTPRINT_MEASURED.
 *
 * The tests share one mesh and one client (open_world), which has the stricter limits. The last test replaces the
 * client with one that has the default limits. send_it runs on the servers' thread (kits/mesh.h), all else on the
 * test's. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/footprint.h"
#include "support/hostile/resources.h"
#include "support/kits/mesh.h"
#include "support/kits/process.h"
#include "support/sanitizer.h"

#include "base/clock.h"
#include "base/mem.h"

#define STRICT "{\"ads_message_bytes\": 8388608, \"decode_bytes\": 12582912, \"held_bytes\": 67108864}"
#define AROUND 4096 /* bytes of a response that are left for all but its resources */
/* How much a rejected response may add to the peak of resident memory, in KiB (the "kB" of /proc). */
#define GROWN_KB_MAX (32 * 1000)
#define GROWN_KB_MAX_BY_DEFAULT (200 * 1000)
#define GROWN_KB_MAX_COPIED (280 * 1000) /* by default, for a row of HOSTILE_COPIED */
#define MOST_ENDPOINTS_KB (42 * 1000)    /* with the stricter limits, for 262,144 endpoints */
#define CPU_MS_MAX 2000
/* The client's calls were held up if the longest of them and the CPU time both exceed this. A long call alone may be
 * due to a machine that stalls. */
#define HELD_MS_MAX 1000

static struct kit_mesh *k;
static struct kit_process *client; /* one_resource_by_default makes it again */

/* With the thread sanitizer the rows that need much CPU time are left out. */
#if SANITIZER_THREAD
#define SLOW_ROWS false
#else
#define SLOW_ROWS true
#endif

/* A response: resources of the type `url`. All that it refers to is borrowed. */
struct sending {
    const char *url, *version;
    const struct tc_slice *resources;
    size_t n;
};

static void send_it(struct tc_control_plane *cp, void *arg)
{
    const struct sending *s = arg;
    tc_control_plane_send(cp, s->url, s->version, s->resources, s->n);
}

/* Sends the resources and waits for a request that contains `nack`: the NACK, or the ACK if they are good. Then waits
 * for ten more calls. Where FOOTPRINT_MEASURED, appends a line to `wrong` if the CPU time exceeds CPU_MS_MAX, if the
 * peak grows by more than most_kb (KiB), or if calls were held up (HELD_MS_MAX). */
static void play(const struct sending *s, const char *nack, long most_kb, struct tc_buf *wrong)
{
    size_t bytes = 0;
    for (size_t i = 0; i < s->n; i++)
        bytes += s->resources[i].len;
    tc_free(kit_mesh_requests(k));
    kit_process_longest_ms(client);
    kit_process_reset_peak(client);
    long before_kb = kit_process_resident_kb(client);
    double cpu = kit_process_cpu_ms(client);
    kit_mesh_do(k, send_it, (void *)s);
    kit_mesh_wait_request(k, nack);
    kit_process_go_on(client, 10);
    cpu = kit_process_cpu_ms(client) - cpu;
    long grown_kb = kit_process_peak_kb(client) - before_kb;
    double longest = kit_process_longest_ms(client);
    print_message("%s: %zu resources, %zu bytes: %.0f ms of CPU, %ld kB at the peak, the longest call %.0f ms\n",
                  s->version, s->n, bytes, cpu, grown_kb, longest);
    if (FOOTPRINT_MEASURED && (cpu > CPU_MS_MAX || grown_kb > most_kb || TC_MIN(longest, cpu) > HELD_MS_MAX))
        tc_buf_printf(wrong, "%s: %.0f ms of CPU, %ld kB, the longest call %.0f ms\n", s->version, cpu, grown_kb,
                      longest);
}

/* Starts the client with these limits (NULL: the defaults), under which a response may have response_bytes. */
static void open_client(const char *limits, size_t response_bytes)
{
    hostile_resources_room(response_bytes - AROUND);
    client = kit_process_new(k, limits);
    kit_process_go_on(client, 20);
}

static int open_world(void **state)
{
    (void)state;
    k = kit_process_mesh(NULL);
    open_client(STRICT, (size_t)8 << 20);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    kit_process_free(client);
    kit_mesh_free(k);
    return 0;
}

static void one_resource(void **state)
{
    (void)state;
    struct tc_buf wrong = {0};
    size_t n;
    const struct hostile_resource *rows = hostile_resources(&n);
    for (size_t i = 0; i < n; i++) {
        struct tc_buf b = {0};
        if ((rows[i].kind & HOSTILE_SLOW) && !SLOW_ROWS)
            continue;
        rows[i].make(&b);
        struct tc_slice resource = tc_buf_slice(&b);
        play(&(struct sending){rows[i].url, rows[i].name, &resource, 1}, rows[i].nack,
             (rows[i].kind & HOSTILE_MOST_ENDPOINTS) ? MOST_ENDPOINTS_KB : GROWN_KB_MAX, &wrong);
        tc_buf_fini(&b);
    }
    if (wrong.len)
        fail_msg("%s", tc_buf_cstr(&wrong));
}

/* The rows with the default limits, without the regexes, whose cost does not depend on the size of a response. Skipped
 * where figures are meaningless: one_resource tests the same code. */
static void one_resource_by_default(void **state)
{
    (void)state;
    struct tc_buf wrong = {0};
    if (!FOOTPRINT_MEASURED)
        skip();
    kit_process_free(client);
    open_client(NULL, (size_t)64 << 20);
    size_t n;
    const struct hostile_resource *rows = hostile_resources(&n);
    for (size_t i = 0; i < n; i++) {
        struct tc_buf b = {0};
        if (rows[i].kind & HOSTILE_REGEXES)
            continue;
        rows[i].make(&b);
        struct tc_slice resource = tc_buf_slice(&b);
        play(&(struct sending){rows[i].url, rows[i].name, &resource, 1}, "NACK",
             (rows[i].kind & HOSTILE_COPIED) ? GROWN_KB_MAX_COPIED : GROWN_KB_MAX_BY_DEFAULT, &wrong);
        tc_buf_fini(&b);
    }
    if (wrong.len)
        fail_msg("%s", tc_buf_cstr(&wrong));
}

static void many_resources(void **state)
{
    (void)state;
    enum { N = 65536 };
    static struct tc_slice resources[N + 1];
    struct tc_buf wrong = {0}, b = {0};
    for (size_t i = 0; i < N + 1; i++)
        resources[i] = tc_slice_str("\x0a\x01x");
    play(&(struct sending){CDS, "65,537 resources", resources, N + 1}, "NACK", GROWN_KB_MAX, &wrong);
    play(&(struct sending){CDS, "65,536 resources", resources, N}, "NACK", GROWN_KB_MAX, &wrong);
    /* One resource of about 1 MB, which ends within a field, among many small ones. */
    hostile_half_unknown_fields(&b);
    resources[0] = tc_slice_of(b.data, b.len / 8);
    play(&(struct sending){EDS, "65,536 resources, one of them large", resources, N}, "NACK", GROWN_KB_MAX, &wrong);
    tc_buf_fini(&b);
    if (wrong.len)
        fail_msg("%s", tc_buf_cstr(&wrong));
}

/* Returns the row of that name, which must exist. */
static const struct hostile_resource *find(const char *name)
{
    size_t n;
    const struct hostile_resource *rows = hostile_resources(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    fail_msg("no such resource: %s", name);
    return NULL;
}

/* Rejected responses one after another, each sent as soon as the last one is answered. The client pauses between them,
 * so that such a server does not use up the client's CPU time. */
static void without_end(void **state)
{
    (void)state;
    struct tc_buf b = {0};
    find("regexes of options")->make(&b);
    struct tc_slice resource = tc_buf_slice(&b);
    struct sending s = {LDS, "again and again", &resource, 1};
    tc_free(kit_mesh_requests(k));
    uint64_t began_ns = tc_system_clock.monotonic_ns(NULL);
    double cpu = kit_process_cpu_ms(client);
    for (int i = 0; i < 4; i++) {
        kit_mesh_do(k, send_it, &s);
        kit_mesh_wait_request(k, "regexes_total_bytes");
    }
    cpu = kit_process_cpu_ms(client) - cpu;
    double took = (double)(tc_system_clock.monotonic_ns(NULL) - began_ns) / (double)TC_NS_PER_MS;
    print_message("4 responses: %.0f ms of CPU in %.0f ms\n", cpu, took);
    tc_buf_fini(&b);
    /* After a rejected response that cost 20 ms or more, the client pauses for four times that cost, at most 2 s. Three
     * pauses are within `took`. The test demands three times the mean cost, at most 2 s, for each of them. */
    assert_true(took >= 3 * TC_MIN(cpu / 4 * 3, 2000.0));
    kit_process_go_on(client, 10);
}

/* Good resources are accepted, however much memory they take. The client's calls go on meanwhile. */
static void good_endpoints(void **state)
{
    (void)state;
    static const size_t sizes[] = {50000, 262144, 1};
    struct tc_buf wrong = {0};
    for (size_t i = 0; i < TC_ARRAY_LEN(sizes); i++) {
        struct tc_buf b = {0};
        char version[64], acked[128];
        snprintf(version, sizeof(version), "%zu-endpoints", sizes[i]);
        snprintf(acked, sizeof(acked), "ClusterLoadAssignment %s ", version);
        hostile_good_endpoints(&b, sizes[i]);
        struct tc_slice resource = tc_buf_slice(&b);
        play(&(struct sending){EDS, version, &resource, 1}, acked, LONG_MAX, &wrong);
        tc_buf_fini(&b);
    }
    if (wrong.len)
        fail_msg("%s", tc_buf_cstr(&wrong));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_resource),   cmocka_unit_test(many_resources),          cmocka_unit_test(without_end),
        cmocka_unit_test(good_endpoints), cmocka_unit_test(one_resource_by_default),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
