/* An EDS resource of 50,000 endpoints, from its bytes to the policies: its cost, and that a change of one endpoint
 * leaves the others as they are. Under sanitizers subchannels_stay has 5,000 endpoints.
 *
 * A test encodes the resource before the change and the one after it, and the real decoder decodes them. They go to a
 * tree of endpoint lists, or to cds and the policies below it, over fakes/lb. Times are printed; the CPU times of
 * decoding and of a policy's update have wide bounds. Everything runs on the test's thread. */
#include <time.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/config.h"

#include "api/builtin.h"
#include "base/clock.h"
#include "base/mem.h"
#include "xds/lb/eds_tree.h"
#include "xds/lb/policies.h"

enum { LOCALITIES = 10, EACH = 5000, N = LOCALITIES * EACH };

/* --- the resource --- */

static void append_field(struct tc_buf *b, char tag, struct tc_slice value)
{
    tc_buf_append_char(b, tag);
    for (size_t n = value.len;; n >>= 7) {
        tc_buf_append_char(b, (char)(n > 0x7f ? (n & 0x7f) | 0x80 : n));
        if (n <= 0x7f)
            break;
    }
    tc_buf_append_slice(b, value);
}

/* Wraps the bytes of *inner into a field, and empties *inner. */
static void wrap(struct tc_buf *b, char tag, struct tc_buf *inner)
{
    append_field(b, tag, tc_buf_slice(inner));
    inner->len = 0;
}

/* Appends lb_endpoints {endpoint {address {socket_address {address, port_value: 80}}}}. */
static void append_endpoint(struct tc_buf *b, size_t i)
{
    struct tc_buf x = {0}, y = {0};
    char *ip = tc_asprintf("10.%zu.%zu.%zu", i >> 16, i >> 8 & 255, i & 255);
    append_field(&x, 0x12, tc_slice_str(ip));
    tc_buf_append(&x, "\x18\x50", 2);
    wrap(&y, 0x0a, &x); /* Address */
    wrap(&x, 0x0a, &y); /* Endpoint */
    wrap(&y, 0x0a, &x); /* LbEndpoint */
    wrap(b, 0x12, &y);
    tc_free(ip);
    tc_buf_fini(&x);
    tc_buf_fini(&y);
}

/* Returns a new EDS resource, with one reference: ten localities of `each` endpoints, numbered from 0. Endpoint
 * `changed` (SIZE_MAX: none) has the address of endpoint number `address`. */
static const struct tc_eds *big_eds_of(size_t each, size_t changed, size_t address)
{
    struct tc_buf all = {0}, locality = {0};
    struct tc_rstr *name = NULL;
    struct tc_validation_errors errors = {0};
    const struct tc_xds_decode_context ctx = {.registries = tc_builtin_validation_context()};
    append_field(&all, 0x0a, tc_slice_str("c"));
    for (size_t l = 0; l < LOCALITIES; l++) {
        tc_buf_append(&locality, "\x0a\x03\x0a\x01", 4); /* locality {region} */
        tc_buf_append_char(&locality, (char)('a' + l));
        for (size_t i = l * each; i < (l + 1) * each; i++)
            append_endpoint(&locality, i == changed ? address : i);
        tc_buf_append(&locality, "\x1a\x02\x08\x01", 4); /* load_balancing_weight {value: 1} */
        wrap(&all, 0x12, &locality);
    }
    clock_t begin = clock();
    struct tc_xds_resource *r = tc_eds_type.decode(&tc_eds_type, &ctx, tc_buf_slice(&all), &name, &errors);
    double ms = (double)(clock() - begin) * 1e3 / CLOCKS_PER_SEC;
    if (!r)
        fail_msg("refused: %s", tc_validation_text(&errors));
    print_message("%zu endpoints, %zu bytes: decoded and validated in %.0f ms\n", each * LOCALITIES, all.len, ms);
    assert_true(ms < 10000); /* leaves room for a sanitizer on a slow machine */
    tc_rstr_unref(name);
    tc_validation_fini(&errors);
    tc_buf_fini(&all);
    tc_buf_fini(&locality);
    return tc_eds_of(r);
}

static const struct tc_eds *big_eds(size_t changed, size_t address)
{
    return big_eds_of(EACH, changed, address);
}

/* --- tests --- */

static void tree_keeps_what_did_not_change(void **state)
{
    (void)state;
    struct tc_eds_tree t = {0};
    const struct tc_eds *eds = big_eds(SIZE_MAX, 0), *next = big_eds(N / 2, N);
    tc_eds_tree_update_eds(&t, eds);
    struct tc_endpoints *root = tc_endpoints_ref(t.root);
    const struct tc_endpoints *lists[LOCALITIES];
    TC_VEC(const struct tc_endpoint *) before = {0};
    for (size_t l = 0; l < LOCALITIES; l++) {
        lists[l] = t.priorities[0].localities[l].list;
        for (size_t i = 0; i < EACH; i++)
            *tc_vec_push(&before) = lists[l]->at[i];
    }
    uint64_t begin = tc_system_clock.monotonic_ns(NULL);
    tc_eds_tree_update_eds(&t, next);
    print_message("tree updated in %.0f ms\n", (double)(tc_system_clock.monotonic_ns(NULL) - begin) / 1e6);
    size_t new_lists = 0, new_endpoints = 0;
    for (size_t l = 0; l < LOCALITIES; l++) {
        const struct tc_endpoints *list = t.priorities[0].localities[l].list;
        new_lists += list != lists[l];
        for (size_t i = 0; i < EACH; i++)
            new_endpoints += list->at[i] != before.data[l * EACH + i];
    }
    assert_int_equal(new_lists, 1);
    assert_int_equal(new_endpoints, 1);
    tc_vec_fini(&before);
    tc_endpoints_unref(root);
    tc_eds_tree_fini(&t);
    kit_config_eds_unref(eds);
    kit_config_eds_unref(next);
}

static struct tc_lb_config *cds_config(void)
{
    struct tc_rstr *name = tc_rstr_str("c");
    struct tc_lb_config *config = tc_child_config_single(&tc_cds_factory, name, NULL);
    tc_rstr_unref(name);
    return config;
}

static double update(struct fake_lb *f, const char *policy, const struct tc_eds *eds)
{
    clock_t begin = clock();
    kit_config_update(f, cds_config(), kit_config_config(kit_config_cluster("c", policy, eds), NULL));
    double ms = (double)(clock() - begin) * 1e3 / CLOCKS_PER_SEC;
    assert_true(ms < 20000); /* leaves room for a sanitizer on a slow machine */
    return ms;
}

/* The endpoints of a locality in subchannels_stay: under sanitizers a tenth, since the fake channel's own list of
 * subchannels is slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { EACH_CONNECTED = EACH / 10 };
#else
enum { EACH_CONNECTED = EACH };
#endif

/* round_robin has a subchannel for each endpoint. When one endpoint changes, one subchannel goes and one comes. */
static void subchannels_stay(void **state)
{
    enum { CONNECTED = LOCALITIES * EACH_CONNECTED };
    (void)state;
    struct fake_lb *f = kit_config_lb("cds_experimental");
    double first = update(f, ", 'lbPolicy': 'ROUND_ROBIN'", big_eds_of(EACH_CONNECTED, SIZE_MAX, 0));
    assert_int_equal(f->subchannels.len, CONNECTED);
    TC_VEC(struct fake_sc *) before = {0};
    for (size_t i = 0; i < CONNECTED; i++)
        *tc_vec_push(&before) = f->subchannels.data[i];
    assert_int_equal(fake_lb_count(f, "10.0.7.208:80"), 1); /* endpoint 2,000 */
    double second = update(f, ", 'lbPolicy': 'ROUND_ROBIN'", big_eds_of(EACH_CONNECTED, 2000, N));
    print_message("round_robin: first update %.0f ms, change of one %.0f ms\n", first, second);
    assert_int_equal(f->subchannels.len, CONNECTED);
    assert_int_equal(fake_lb_count(f, "10.0.7.208:80"), 0);
    assert_int_equal(fake_lb_count(f, "10.0.195.80:80"), 1); /* endpoint 50,000 */
    /* The fake lists subchannels in the order of their creation: one has left the list, one was appended. */
    size_t gone = 0;
    while (gone < CONNECTED - 1 && f->subchannels.data[gone] == before.data[gone])
        gone++;
    for (size_t i = gone; i < CONNECTED - 1; i++)
        assert_ptr_equal(f->subchannels.data[i], before.data[i + 1]);
    tc_vec_fini(&before);
    kit_config_lb_free(f);
}

/* ring_hash is lazy: it makes a subchannel for an endpoint only when an RPC needs it, and keeps it when another
 * endpoint changes. */
static void ring_is_updated(void **state)
{
    (void)state;
    struct fake_lb *f = kit_config_lb("cds_experimental");
    double first = update(f, ", 'lbPolicy': 'RING_HASH'", big_eds(SIZE_MAX, 0));
    assert_int_equal(f->subchannels.len, 0);
    assert_string_equal(fake_lb_pick_hash(f, 7), "QUEUE");
    assert_int_equal(f->subchannels.len, 1);
    const struct fake_sc *chosen = f->subchannels.data[0];
    double second = update(f, ", 'lbPolicy': 'RING_HASH'", big_eds(N / 2, N));
    print_message("ring_hash: first update %.0f ms, change of one %.0f ms\n", first, second);
    assert_int_equal(f->subchannels.len, 1);
    assert_ptr_equal(f->subchannels.data[0], chosen);
    kit_config_lb_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tree_keeps_what_did_not_change),
        cmocka_unit_test(subchannels_stay),
        cmocka_unit_test(ring_is_updated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
