/* The ring against published vectors: XXH64, Envoy's rings and histograms, and grpc-go's key form. Also the bounds of
 * size and weight, equal keys, and the rings that ring.c and update.c draw.
 *
 * ports_ring makes rings with keys as most of Envoy's tests have them, 127.0.0.1 and a port; keys_ring makes rings with
 * any keys. Each returns one reference, which the test drops. Expected entries are (hash, item), in the ring's order.
 * An item is the index of a key. One thread. */
#include "ring/ring.h"

#include <inttypes.h>

#include "support/case.h"
#include "support/cmocka.h"

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"

struct entry {
    uint64_t hash;
    uint32_t item;
};

/* Builds a ring with the keys 127.0.0.1:first, 127.0.0.1:first+1, ... `weights` may be NULL: all are 1. */
static struct tc_ring *ports_ring(unsigned first, size_t n, const uint64_t *weights, uint64_t min, uint64_t max)
{
    struct tc_ring_item *items = tc_calloc(n, sizeof(*items));
    for (size_t i = 0; i < n; i++) {
        items[i].key = tc_slice_str(tc_asprintf("127.0.0.1:%zu", first + i));
        items[i].weight = weights ? weights[i] : 1;
    }
    struct tc_ring *r = tc_ring_new(items, n, min, max, TC_RING_SIZE_MAX);
    for (size_t i = 0; i < n; i++)
        tc_free((char *)items[i].key.data);
    tc_free(items);
    return r;
}

/* Builds a ring with n keys. `weights` may be NULL: all are 1. */
static struct tc_ring *keys_ring(const char *const *keys, const uint64_t *weights, size_t n, uint64_t min, uint64_t max,
                                 uint64_t cap)
{
    struct tc_ring_item *items = tc_calloc(n + 1, sizeof(*items));
    for (size_t i = 0; i < n; i++)
        items[i] = (struct tc_ring_item){tc_slice_str(keys[i]), weights ? weights[i] : 1};
    struct tc_ring *r = tc_ring_new(items, n, min, max, cap);
    tc_free(items);
    return r;
}

static void assert_ring(const struct tc_ring *r, const struct entry *expected, size_t n)
{
    assert_int_equal(tc_ring_size(r), n);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(tc_ring_hash_at(r, i) == expected[i].hash);
        assert_int_equal(tc_ring_item_at(r, i), expected[i].item);
    }
}

static uint32_t hit(const struct tc_ring *r, uint64_t h)
{
    return tc_ring_item_at(r, tc_ring_find(r, h));
}

static void xxh64_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t hash;
    } vectors[] = {
        {"", 0xef46db3751d8e999},
        {"a", 0xd24ec4f1a98c6e5b},
        {"abc", 0x44bc2cf5ad770999},
        {"message digest", 0x066ed728fceeb3be},
        {"abcdefghijklmnopqrstuvwxyz", 0xcfe1f278fa89835c},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 0xaaa46907d3047814},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890", 0xe04a477f19ee145d},
        {"foo", 0x33bf00a859c4ba3f},
        {"bar", 0x48a37c90ad27a659},
        {"a,b", 0xf0e4978678bbcc60},
        {"eaebece", 0x756f0be6bbcf0cca},
        {"/new-products", 0x639a4ec6e1c10cd8},
        {"grpc value", 0x39e1df386a5817a5},
        {"fixed_value", 0x0c5084bd012117ae},
        {"key-0", 0x12daf06715ffa373},
        {"key-1", 0xdab069f200681a9e},
        {"127.0.0.1:443_0", 0x8231cb822705731a},
        {"[::1]:443_0", 0xc229292bb5f8c138},
        {"127.0.0.1:10001_0", 0x929561360b132b86},
        {"127.0.0.1:10001_1", 0x6cb041c1b88dccf1},
        {"a_0", 7866922100246443948u},
        {"b_0", 5637671355026233228u},
        {"c_0", 14801583559950740418u},
        {"server0_0", 0x9fc5aa520774582f},
        {"server1_0", 0x587d995900a0fd7c},
        {"server2_0", 0xde187cf809f4672e},
        {"FakeSocketAddress-server0_0", 0xdcb12f44ce50fc92},
        {"FakeSocketAddress-server1_0", 0x23776fb314665f5b},
        {"FakeSocketAddress-server2_0", 0x667b497813c424dd},
        {"/127.0.0.1:10001_0", 0x8f4561e4fb35edcc},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(vectors); i++)
        assert_true(tc_xxh64(vectors[i].text, strlen(vectors[i].text)) == vectors[i].hash);
    static const struct {
        size_t n;
        uint64_t hash;
    } runs[] = {{31, 0x60dd0d01083b99f0}, {32, 0xe2df261fc2ec30eb}, {33, 0xb3fa465f554208a6},
                {63, 0xb8467bf77f6c2c48}, {64, 0xa97161d5402f516e}, {100, 0x92f0de5a88a3c094}};
    char xs[100];
    memset(xs, 'x', sizeof(xs));
    for (size_t i = 0; i < TC_ARRAY_LEN(runs); i++)
        assert_true(tc_xxh64(xs, runs[i].n) == runs[i].hash);
}

static void envoy_basic(void **state)
{
    TC_CASE(RC01);
    TC_CASE(RC02);
    (void)state;
    static const struct entry expected[] = {
        {833437586790550860u, 4},   {928266305478181108u, 2},   {1033482794131418490u, 0},  {3551244743356806947u, 5},
        {3851675632748031481u, 3},  {5583722120771150861u, 1},  {6311230543546372928u, 1},  {7700377290971790572u, 3},
        {13144177310400110813u, 5}, {13444792449719432967u, 2}, {15516499411664133160u, 4}, {16117243373044804889u, 0},
    };
    struct tc_ring *r = ports_ring(90, 6, NULL, 12, TC_RING_SIZE_MAX);
    assert_ring(r, expected, TC_ARRAY_LEN(expected));
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(tc_ring_count_of(r, i), 2);
    assert_int_equal(tc_ring_absent(r), 0);
    assert_int_equal(hit(r, 0), 4);
    assert_int_equal(hit(r, UINT64_MAX), 4);
    assert_int_equal(hit(r, 3551244743356806947u), 5);
    assert_int_equal(hit(r, 3551244743356806948u), 3);
    assert_int_equal(hit(r, 16117243373044804880u), 0);
    assert_int_equal(tc_ring_find(r, 16117243373044804889u), 11);
    assert_int_equal(tc_ring_find(r, 16117243373044804890u), 0);
    tc_ring_unref(r);
}

static void envoy_hash_keys(void **state)
{
    (void)state;
    static const char *const keys[] = {"90", "91", "92", "93", "94", "95"};
    static const struct entry expected[] = {
        {1975508444536362413u, 5},  {2376063919839173711u, 5},  {2386806903309390596u, 3},  {6749904478991551885u, 4},
        {6803900775736438537u, 3},  {7225015537174310577u, 2},  {8787465352164086522u, 0},  {11282020843382717940u, 2},
        {13723418369486627818u, 1}, {13776502110861797421u, 0}, {14338313586354474791u, 1}, {15364271037087512980u, 4},
    };
    struct tc_ring *r = keys_ring(keys, NULL, 6, 12, TC_RING_SIZE_MAX, TC_RING_SIZE_MAX);
    assert_ring(r, expected, TC_ARRAY_LEN(expected));
    tc_ring_unref(r);
}

static void envoy_uneven(void **state)
{
    TC_CASE(RC03);
    (void)state;
    static const struct entry first[] = {
        {5454692015285649509u, 0}, {7859399908942313493u, 1}, {13838424394637650569u, 0}, {16064866803292627174u, 1}};
    static const struct entry second[] = {
        {7859399908942313493u, 0}, {8241336090459785962u, 1}, {12882406409176325258u, 1}, {16064866803292627174u, 0}};
    struct tc_ring *r = ports_ring(80, 2, NULL, 3, TC_RING_SIZE_MAX);
    assert_ring(r, first, 4);
    tc_ring_unref(r);
    r = ports_ring(81, 2, NULL, 3, TC_RING_SIZE_MAX);
    assert_ring(r, second, 4);
    tc_ring_unref(r);
}

static void envoy_tiny_weighted(void **state)
{
    TC_CASE(RC04);
    TC_CASE(RC06);
    (void)state;
    static const struct entry six[] = {{928266305478181108u, 2},   {4443673547860492590u, 2},
                                       {5583722120771150861u, 1},  {6311230543546372928u, 1},
                                       {13444792449719432967u, 2}, {16117243373044804889u, 0}};
    struct tc_ring *r = ports_ring(90, 3, (const uint64_t[]){1, 2, 3}, 6, 6);
    assert_ring(r, six, 6);
    assert_int_equal(tc_ring_count_of(r, 0), 1);
    assert_int_equal(tc_ring_count_of(r, 1), 2);
    assert_int_equal(tc_ring_count_of(r, 2), 3);
    tc_ring_unref(r);
    static const struct entry nine[] = {
        {928266305478181108u, 2},   {3851675632748031481u, 3},  {5583722120771150861u, 1},
        {6311230543546372928u, 1},  {7700377290971790572u, 3},  {12559126875973811811u, 3},
        {13444792449719432967u, 2}, {13784988426630141778u, 3}, {16117243373044804889u, 0}};
    r = ports_ring(90, 4, (const uint64_t[]){1, 2, 2, 4}, 9, 9);
    assert_ring(r, nine, 9);
    tc_ring_unref(r);
}

/* Looks up `probes` hashes at even distances from 0 on, and asserts how many belong to each of the n items, at most
 * 8. */
static void assert_histogram(const struct tc_ring *r, uint64_t probes, const unsigned *expected, size_t n)
{
    unsigned counts[8] = {0};
    for (uint64_t i = 0; i < probes; i++)
        counts[hit(r, i * (UINT64_MAX / probes))]++;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(counts[i], expected[i]);
}

static void envoy_histograms(void **state)
{
    TC_CASE(RC05);
    TC_CASE(RC07);
    TC_CASE(RC09);
    (void)state;
    struct tc_ring *r = ports_ring(90, 3, (const uint64_t[]){1, 2, 3}, 6144, TC_RING_SIZE_MAX);
    assert_int_equal(tc_ring_size(r), 6144);
    assert_int_equal(tc_ring_count_of(r, 0), 1024);
    assert_int_equal(tc_ring_count_of(r, 1), 2048);
    assert_int_equal(tc_ring_count_of(r, 2), 3072);
    assert_histogram(r, 6000, (const unsigned[]){987, 1932, 3081}, 3);
    tc_ring_unref(r);
    r = ports_ring(90, 4, (const uint64_t[]){1, 2, 2, 4}, 9216, TC_RING_SIZE_MAX);
    assert_histogram(r, 9000, (const unsigned[]){924, 2009, 2053, 4014}, 4);
    tc_ring_unref(r);
    r = ports_ring(90, 2, NULL, 1023, 1023);
    assert_int_equal(tc_ring_count_of(r, 0), 512);
    assert_int_equal(tc_ring_count_of(r, 1), 511);
    assert_histogram(r, 1023, (const unsigned[]){526, 497}, 2);
    tc_ring_unref(r);
}

static void small_fractional_scale(void **state)
{
    TC_CASE(RC08);
    (void)state;
    struct tc_ring *r = ports_ring(90, 4, NULL, 2, 2);
    assert_int_equal(tc_ring_size(r), 2);
    assert_int_equal(tc_ring_absent(r), 2);
    unsigned present = 0;
    for (uint32_t i = 0; i < 4; i++)
        present += tc_ring_count_of(r, i);
    assert_int_equal(present, 2);
    unsigned counts[4] = {0};
    for (uint64_t i = 0; i < 1000; i++)
        counts[hit(r, i * (UINT64_MAX / 1000))]++;
    for (uint32_t i = 0; i < 4; i++)
        assert_true((counts[i] > 0) == (tc_ring_count_of(r, i) > 0));
    tc_ring_unref(r);
}

static void lopsided(void **state)
{
    TC_CASE(RC10);
    (void)state;
    uint64_t weights[1024];
    weights[0] = 127 * 1023;
    for (size_t i = 1; i < 1024; i++)
        weights[i] = 1;
    struct tc_ring *r = ports_ring(0, 1024, weights, 1024, 1024);
    assert_int_equal(tc_ring_size(r), 1024);
    assert_int_equal(tc_ring_count_of(r, 0), 1016);
    static const uint32_t others[] = {1, 128, 256, 384, 512, 640, 768, 896};
    for (size_t i = 0; i < TC_ARRAY_LEN(others); i++)
        assert_int_equal(tc_ring_count_of(r, others[i]), 1);
    assert_int_equal(tc_ring_absent(r), 1024 - 9);
    static const struct entry probes[] = {{11664790346325243808u, 1},   {15894554872961148518u, 128},
                                          {13958138884277627155u, 256}, {15803774069438192949u, 384},
                                          {3829253010855396576u, 512},  {17918147347826565154u, 640},
                                          {6442769608292299103u, 768},  {5881074926069334434u, 896}};
    for (size_t i = 0; i < TC_ARRAY_LEN(probes); i++)
        assert_int_equal(hit(r, probes[i].hash), probes[i].item);
    tc_ring_unref(r);
}

static void empty_ring(void **state)
{
    TC_CASE(RC11);
    (void)state;
    struct tc_ring *r = tc_ring_new(NULL, 0, 1024, 4096, 4096);
    assert_int_equal(tc_ring_size(r), 0);
    assert_int_equal(tc_ring_absent(r), 0);
    tc_ring_unref(r);
}

static void cap_bounds_the_ring(void **state)
{
    TC_CASE(RC12);
    (void)state;
    static const char *const keys[] = {"a", "b"};
    struct tc_ring *r = keys_ring(keys, NULL, 2, 100000, TC_RING_SIZE_MAX, TC_RING_DEFAULT_CAP);
    assert_int_equal(tc_ring_size(r), 4096);
    tc_ring_unref(r);
    r = keys_ring(keys, NULL, 2, 100000, TC_RING_SIZE_MAX, 50000);
    assert_int_equal(tc_ring_size(r), 50000);
    tc_ring_unref(r);
    r = keys_ring(keys, NULL, 2, 100000, 200000, UINT64_MAX);
    assert_int_equal(tc_ring_size(r), 100000);
    tc_ring_unref(r);
    r = keys_ring(keys, NULL, 2, 0, 0, 0);
    assert_int_equal(tc_ring_size(r), 1);
    tc_ring_unref(r);
}

static void more_endpoints_than_cap(void **state)
{
    TC_CASE(RC13);
    (void)state;
    struct tc_ring *r = ports_ring(1, 5000, NULL, 4096, 4096);
    assert_int_equal(tc_ring_size(r), 4096);
    assert_int_equal(tc_ring_absent(r), 904);
    tc_ring_unref(r);
}

static void go_key_form(void **state)
{
    TC_CASE(RC14);
    (void)state;
    static const char *const keys[] = {"a", "b", "c"};
    static const uint64_t weights[] = {3, 3, 4};
    static const struct entry ten[] = {
        {4148279810343392165u, 0},  {4189641231046734040u, 1}, {5051629784258667479u, 2}, {5637671355026233228u, 1},
        {6560897439782492108u, 1},  {7866922100246443948u, 0}, {8142612688290817183u, 2}, {14554126711339088812u, 2},
        {14801583559950740418u, 2}, {18017992814255492179u, 0}};
    struct tc_ring *r = keys_ring(keys, weights, 3, 10, 20, 4096);
    assert_ring(r, ten, 10);
    tc_ring_unref(r);
    static const struct {
        uint64_t min, max;
        uint32_t size, counts[3];
    } sizes[] = {{3, 20, 4, {1, 1, 2}},
                 {4, 20, 7, {2, 2, 3}},
                 {6, 20, 7, {2, 2, 3}},
                 {8, 20, 10, {3, 3, 4}},
                 {8, 8, 8, {3, 2, 3}}};
    for (size_t i = 0; i < TC_ARRAY_LEN(sizes); i++) {
        r = keys_ring(keys, weights, 3, sizes[i].min, sizes[i].max, 4096);
        assert_int_equal(tc_ring_size(r), sizes[i].size);
        for (uint32_t k = 0; k < 3; k++) {
            double share = (double)tc_ring_count_of(r, k) / tc_ring_size(r), fair = (double)weights[k] / 10;
            assert_int_equal(tc_ring_count_of(r, k), sizes[i].counts[k]);
            assert_true(share > fair * 0.75 && share < fair * 1.26);
        }
        tc_ring_unref(r);
    }
}

static void weights_beyond_32_bits(void **state)
{
    TC_CASE(RC15);
    (void)state;
    static const char *const keys[] = {"a", "b"};
    /* 3e9 x 3 against 1e9: nine to one. Two equal weights whose sum is beyond 64 bits: one to one. */
    static const uint64_t some[] = {9000000000u, 1000000000u};
    static const uint64_t large[] = {UINT64_MAX, UINT64_MAX};
    struct tc_ring *r = keys_ring(keys, some, 2, 1000, 1000, 4096);
    assert_int_equal(tc_ring_count_of(r, 0), 900);
    assert_int_equal(tc_ring_count_of(r, 1), 100);
    tc_ring_unref(r);
    r = keys_ring(keys, large, 2, 1000, 1000, 4096);
    assert_int_equal(tc_ring_count_of(r, 0), 500);
    assert_int_equal(tc_ring_count_of(r, 1), 500);
    tc_ring_unref(r);
}

static void zero_weight_counts_as_one(void **state)
{
    TC_CASE(RC16);
    (void)state;
    static const char *const keys[] = {"a", "b"};
    struct tc_ring *with_zero = keys_ring(keys, (const uint64_t[]){0, 3}, 2, 100, 4096, 4096);
    struct tc_ring *with_one = keys_ring(keys, (const uint64_t[]){1, 3}, 2, 100, 4096, 4096);
    assert_true(tc_ring_fingerprint(with_zero) == tc_ring_fingerprint(with_one));
    assert_int_equal(tc_ring_count_of(with_zero, 0), 25);
    tc_ring_unref(with_zero);
    tc_ring_unref(with_one);
}

static void equal_keys_are_ordered_by_item(void **state)
{
    (void)state;
    static const char *const keys[] = {"same", "same", "same"};
    struct tc_ring *r = keys_ring(keys, NULL, 3, 3000, 3000, 4096);
    for (uint32_t e = 0; e < tc_ring_size(r); e++)
        assert_int_equal(tc_ring_item_at(r, e), e % 3);
    tc_ring_unref(r);
}

/* The two rings of ten entries that ring.c and update.c draw: of a, b and c, and without b. */
static void the_example(void **state)
{
    (void)state;
    static const char *const keys[] = {"a", "b", "c"}, *const without_b[] = {"a", "c"};
    static const struct {
        unsigned hash, item; /* the hash's first 16 bits */
    } before[] = {{0x3991, 0}, {0x3a24, 1}, {0x461a, 2}, {0x4e3d, 1}, {0x5b0c, 1},
                  {0x6d2c, 0}, {0x7100, 2}, {0xba5c, 0}, {0xcd69, 2}, {0xfa0c, 0}},
      after[] = {{0x3205, 1}, {0x3991, 0}, {0x461a, 1}, {0x6d2c, 0}, {0x7100, 1},
                 {0xba5c, 0}, {0xc9fa, 1}, {0xccad, 0}, {0xcd69, 1}, {0xfa0c, 0}};
    struct tc_ring *r = keys_ring(keys, NULL, 3, 10, 10, TC_RING_SIZE_MAX);
    struct tc_ring *s = keys_ring(without_b, NULL, 2, 10, 10, TC_RING_SIZE_MAX);
    assert_int_equal(tc_ring_size(r), 10);
    assert_int_equal(tc_ring_size(s), 10);
    for (uint32_t e = 0; e < 10; e++) {
        assert_int_equal(tc_ring_hash_at(r, e) >> 48, before[e].hash);
        assert_int_equal(tc_ring_item_at(r, e), before[e].item);
        assert_int_equal(tc_ring_hash_at(s, e) >> 48, after[e].hash);
        assert_int_equal(tc_ring_item_at(s, e), after[e].item);
    }
    assert_int_equal(tc_ring_find(r, UINT64_C(0x5000) << 48), 4);
    assert_int_equal(tc_ring_find(r, UINT64_C(0xff00) << 48), 0);
    tc_ring_unref(r);
    tc_ring_unref(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xxh64_vectors),
        cmocka_unit_test(envoy_basic),
        cmocka_unit_test(envoy_hash_keys),
        cmocka_unit_test(envoy_uneven),
        cmocka_unit_test(envoy_tiny_weighted),
        cmocka_unit_test(envoy_histograms),
        cmocka_unit_test(small_fractional_scale),
        cmocka_unit_test(lopsided),
        cmocka_unit_test(empty_ring),
        cmocka_unit_test(cap_bounds_the_ring),
        cmocka_unit_test(more_endpoints_than_cap),
        cmocka_unit_test(go_key_form),
        cmocka_unit_test(weights_beyond_32_bits),
        cmocka_unit_test(zero_weight_counts_as_one),
        cmocka_unit_test(equal_keys_are_ordered_by_item),
        cmocka_unit_test(the_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
