/* random_subsetting: the exact subsets, how clients spread over the servers, and the policy on virtual time.
 *
 * The tests above "the policy" are about configs, hashes and tc_random_subset, which needs no policy: the list, the
 * size and the seed alone decide the subset. The tests below run the policy over fakes/lb, whose subchannels show which
 * endpoints the child got. All seeds are fixed, so that each run is the same. `servers`, fake_lb_endpoints and
 * tc_random_subset return a list with one reference; fake_lb_update takes that reference. One thread. */
#include "lb/policies/random_subsetting.h"

#include "base/hash.h"
#include "base/mem.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"

#define SUBSETTING "random_subsetting_experimental"
#define CHILD "'childPolicy': [{'round_robin': {}}]"

static int setup(void **state)
{
    *state = fake_lb_new(SUBSETTING);
    return 0;
}

static int teardown(void **state)
{
    fake_lb_free(*state);
    return 0;
}

/* Makes n endpoints: 10.0.0.1:80 to 10.0.0.250:80, then 10.0.1.1:80 and so on. Returns one reference. */
static struct tc_endpoints *servers(size_t n)
{
    struct tc_buf text = {0};
    for (size_t i = 0; i < n; i++)
        tc_buf_printf(&text, "%s10.0.%zu.%zu:80", i ? " " : "", i / 250, i % 250 + 1);
    struct tc_endpoints *list = fake_lb_endpoints(n ? tc_buf_cstr(&text) : "");
    tc_buf_fini(&text);
    return list;
}

/* Returns the place of this very object in the list; SIZE_MAX if it is not there. */
static size_t index_of(const struct tc_endpoints *all, const struct tc_endpoint *e)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->at[i] == e)
            return i;
    return SIZE_MAX;
}

/* Asserts that the subset has the endpoints at these places of the list, in this order: "0,5,7". */
static void assert_subset(struct tc_endpoints *all, uint32_t size, uint64_t seed, const char *expected)
{
    struct tc_endpoints *subset = tc_random_subset(all, size, seed);
    struct tc_buf text = {0};
    for (size_t i = 0; i < subset->n; i++)
        tc_buf_printf(&text, "%s%zu", i ? "," : "", index_of(all, subset->at[i]));
    assert_string_equal(tc_buf_cstr(&text), expected);
    tc_buf_fini(&text);
    tc_endpoints_unref(subset);
}

/* Asserts that the config is invalid, with an error that contains `expected`. */
static void refuse(struct fake_lb *f, const char *config, const char *expected)
{
    char *why = NULL;
    assert_null(fake_lb_config(f, SUBSETTING, config, &why));
    if (!strstr(why, expected))
        fail_msg("%s: %s", config, why);
    tc_free(why);
}

static void configs(void **state)
{
    TC_CASE(SB01);
    struct fake_lb *f = *state;
    refuse(f, "{}", "subsetSize: must be given");
    refuse(f, "{}", "childPolicy: field not present");
    refuse(f, "{'subsetSize': 0, " CHILD "}", "subsetSize: must be a whole number from 1 to 4294967295");
    refuse(f, "{'subset_size': 0, " CHILD "}", "subset_size: must be a whole number from 1 to 4294967295");
    refuse(f, "{'subsetSize': -1, " CHILD "}", "subsetSize: must be a whole number from 1 to 4294967295");
    refuse(f, "{'subsetSize': 4294967296, " CHILD "}", "subsetSize");
    refuse(f, "{'subsetSize': 2}", "childPolicy: field not present");
    refuse(f, "{'subsetSize': 2, 'childPolicy': []}", "childPolicy");
    refuse(f, "{'subsetSize': 2, 'childPolicy': [{'no_such_policy': {}}]}", "childPolicy");
    struct tc_lb_config *a = fake_lb_config(f, SUBSETTING, "{'subsetSize': 4294967295, " CHILD "}", NULL),
                        *b = fake_lb_config(f, SUBSETTING, "{'subset_size': '4294967295', " CHILD "}", NULL),
                        *c = fake_lb_config(f, "random_subsetting", "{'subset_size': 7, " CHILD "}", NULL),
                        *d = fake_lb_config(f, "random_subsetting", "{'subset_size': null, 'subsetSize': 7, " CHILD "}",
                                            NULL);
    assert_true(tc_lb_config_eq(a, b));
    assert_false(tc_lb_config_eq(a, c));
    assert_true(tc_lb_config_eq(c, d));
    tc_lb_config_unref(a);
    tc_lb_config_unref(b);
    tc_lb_config_unref(c);
    tc_lb_config_unref(d);
}

static void small_lists_stay(void **state)
{
    TC_CASE(SB02);
    static const struct {
        size_t n;
        uint32_t size;
    } rows[] = {{0, 1}, {5, 10}, {5, 5}, {1, UINT32_MAX}};
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct tc_endpoints *all = servers(rows[i].n), *subset = tc_random_subset(all, rows[i].size, 7);
        assert_ptr_equal(subset, all);
        tc_endpoints_unref(subset);
        tc_endpoints_unref(all);
    }
}

static void order_by_hash(void **state)
{
    TC_CASE(SB03);
    TC_CASE(SB04);
    static const struct {
        uint64_t seed;
        const char *order;
    } rows[] = {
        {0, "0,5,7,9,8,3,4,6,1"},
        {1, "4,1,9,8,3,6,0,5,2"},
        {UINT64_C(0x123456789abcdef0), "9,7,8,3,2,4,6,5,1"}}; /* the last of ten is in no subset of up to nine */
    struct tc_endpoints *all = servers(10);
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++)
        for (uint32_t size = 1; size < 10; size++) {
            char expected[32];
            snprintf(expected, sizeof(expected), "%.*s", (int)(2 * size - 1), rows[i].order);
            assert_subset(all, size, rows[i].seed, expected);
        }
    tc_endpoints_unref(all);
}

/* The first row has the texts that grpc-go hashes, and the order that grpc-go's test states. The second row has the
 * names alone, and the order of an independent construction. */
static void order_of_names(void **state)
{
    TC_CASE(SB05);
    static const struct {
        const char *form;
        unsigned order[5];
    } rows[] = {{"{Addr: \"endpoint-%u\", ServerName: \"\", }", {6, 0, 1, 7, 3}}, {"endpoint-%u", {1, 3, 5, 2, 8}}};
    (void)state;
    for (size_t r = 0; r < TC_ARRAY_LEN(rows); r++) {
        bool taken[10] = {false};
        for (size_t k = 0; k < 5; k++) {
            unsigned least = 0;
            uint64_t least_hash = UINT64_MAX;
            for (unsigned i = 0; i < 10; i++) {
                char text[64];
                int len = snprintf(text, sizeof(text), rows[r].form, i);
                uint64_t hash = tc_xxh64_seeded(text, (size_t)len, 0);
                if (!taken[i] && hash < least_hash) {
                    least = i;
                    least_hash = hash;
                }
            }
            taken[least] = true;
            assert_int_equal(least, rows[r].order[k]);
        }
    }
}

/* Returns how many endpoints are in both lists, each of which has no endpoint twice. */
static size_t shared(const struct tc_endpoints *a, const struct tc_endpoints *b)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < b->n; k++)
            n += tc_endpoint_same_addrs(a->at[i], b->at[k]);
    return n;
}

/* One endpoint more in the list changes at most one endpoint of the subset. The order of the list does not matter: the
 * new endpoint comes first, and the one that was first comes last. */
static void changes_are_small(void **state)
{
    TC_CASE(SB06);
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++)
        for (uint32_t size = 1; size < 20; size += 3) {
            struct tc_endpoints *few = servers(40), *more = servers(41);
            struct tc_endpoint *first = more->at[0];
            more->at[0] = more->at[40];
            more->at[40] = first;
            struct tc_endpoints *a = tc_random_subset(few, size, seed), *b = tc_random_subset(more, size, seed);
            assert_in_range(shared(a, b), size - 1, size);
            tc_endpoints_unref(a);
            tc_endpoints_unref(b);
            tc_endpoints_unref(few);
            tc_endpoints_unref(more);
        }
}

/* Each client has its own seed. The busiest server has at most `busiest` clients, and chi squared is less than
 * 2 * servers + 10. */
static void spread(void **state)
{
    TC_CASE(SB07);
    static const struct {
        unsigned clients;
        size_t servers;
        uint32_t size;
        unsigned busiest;
    } rows[] = {{100, 100, 5, 15}, {100, 100, 25, 40}, {100, 10, 5, 65}, {500, 10, 5, 300}, {10000, 100, 10, 1150}};
    struct tc_rng rng;
    (void)state;
    tc_rng_init_seed(&rng, 68);
    for (size_t r = 0; r < TC_ARRAY_LEN(rows); r++) {
        unsigned counts[100] = {0};
        struct tc_endpoints *all = servers(rows[r].servers);
        for (unsigned c = 0; c < rows[r].clients; c++) {
            struct tc_endpoints *subset = tc_random_subset(all, rows[r].size, tc_rng_u64(&rng));
            assert_int_equal(subset->n, rows[r].size);
            for (size_t i = 0; i < subset->n; i++)
                counts[index_of(all, subset->at[i])]++;
            tc_endpoints_unref(subset);
        }
        double mean = (double)rows[r].clients * rows[r].size / (double)rows[r].servers, chi2 = 0;
        for (size_t i = 0; i < rows[r].servers; i++) {
            assert_in_range(counts[i], 0, rows[r].busiest);
            chi2 += (counts[i] - mean) * (counts[i] - mean) / mean;
        }
        assert_true(chi2 < 2.0 * (double)rows[r].servers + 10);
        tc_endpoints_unref(all);
    }
}

/* Each entry of a repeated endpoint counts, and an endpoint is hashed by its first address alone. */
static void repeated_addresses(void **state)
{
    (void)state;
    struct tc_endpoints *all = fake_lb_endpoints("10.0.0.1:80 10.0.0.1:80 10.0.0.2:80,10.0.0.1:80 10.0.0.10:80");
    assert_subset(all, 2, 0, "0,1"); /* by hash: 10.0.0.1, 10.0.0.10, 10.0.0.2 */
    assert_subset(all, 3, 0, "0,1,3");
    tc_endpoints_unref(all);
    struct tc_buf text = {0};
    for (unsigned i = 0; i < 5000; i++)
        tc_buf_append_str(&text, "10.0.0.1:80 ");
    all = fake_lb_endpoints(tc_buf_cstr(&text));
    struct tc_endpoints *subset = tc_random_subset(all, 4999, 3);
    for (size_t i = 0; i < subset->n; i++)
        assert_ptr_equal(subset->at[i], all->at[i]);
    tc_endpoints_unref(subset);
    tc_endpoints_unref(all);
    tc_buf_fini(&text);
}

/* Under xDS the list of a priority also has a list for each locality. Those lists keep the endpoints that the subset of
 * the whole list has. */
static void lists_of_localities(void **state)
{
    (void)state;
    struct tc_endpoints *all = servers(10);
    all->n_children = 2;
    all->children = tc_calloc(2, sizeof(*all->children));
    for (size_t l = 0; l < 2; l++) {
        struct tc_endpoint **at = tc_calloc(5, sizeof(struct tc_endpoint *));
        for (size_t i = 0; i < 5; i++)
            at[i] = tc_endpoint_ref(all->at[5 * l + i]);
        all->children[l] = (struct tc_endpoints_child){tc_rstr_str(l ? "b" : "a"), tc_endpoints_take(at, 5)};
    }
    struct tc_endpoints *subset = tc_random_subset(all, 4, 0); /* 0,5,7,9 */
    assert_int_equal(subset->n, 4);
    const struct tc_endpoints *a = tc_endpoints_child(subset, tc_slice_str("a")),
                              *b = tc_endpoints_child(subset, tc_slice_str("b"));
    assert_int_equal(a->n, 1);
    assert_ptr_equal(a->at[0], all->at[0]);
    assert_int_equal(b->n, 3);
    assert_ptr_equal(b->at[2], all->at[9]);
    tc_endpoints_unref(subset);
    tc_endpoints_unref(all);
}

/* --- the policy --- */

/* Takes ownership of `list`. Returns true if the policy accepted the update. */
static bool update(struct fake_lb *f, struct tc_endpoints *list, const char *config)
{
    return fake_lb_update(f, list, fake_lb_config(f, SUBSETTING, config, NULL), NULL);
}

/* Returns fake_lb_take_connects as a copy, for tc_free. */
static char *connects(struct fake_lb *f)
{
    const char *text = fake_lb_take_connects(f);
    return tc_strndup(text, strlen(text));
}

static void connects_to_the_subset_alone(void **state)
{
    TC_CASE(SB08);
    struct fake_lb *f = *state;
    assert_true(update(f, servers(100), "{'subsetSize': 3, " CHILD "}"));
    assert_int_equal(fake_lb_count(f, NULL), 3);
    for (size_t i = 0; i < 3; i++)
        fake_lb_set_at(f, i, TORC_CONNECTIVITY_READY);
    char *first = connects(f);
    assert_non_null(strstr(first, fake_lb_pick(f)));
    /* The same endpoints again and a failed resolution change nothing. Another child policy gets the same subset. */
    assert_true(update(f, servers(100), "{'subsetSize': 3, " CHILD "}"));
    struct tc_status error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_RESOLVER, "no answer");
    fake_lb_update_error(f, &error, fake_lb_config(f, SUBSETTING, "{'subsetSize': 3, " CHILD "}", NULL));
    tc_status_fini(&error);
    assert_connects(f, "");
    assert_true(update(f, servers(100), "{'subsetSize': 3, 'childPolicy': [{'least_request_experimental': {}}]}"));
    assert_connects(f, first);
    tc_free(first);
    fake_lb_set_at(f, f->subchannels.len - 1, TORC_CONNECTIVITY_READY); /* the new child policy serves */
    assert_int_equal(fake_lb_count(f, NULL), 3);
    assert_true(update(f, servers(100), "{'subsetSize': 5, 'childPolicy': [{'least_request_experimental': {}}]}"));
    assert_int_equal(fake_lb_count(f, NULL), 5);
    assert_true(update(f, servers(2), "{'subsetSize': 5, 'childPolicy': [{'least_request_experimental': {}}]}"));
    assert_int_equal(fake_lb_count(f, NULL), 2);
    assert_false(update(f, servers(0), "{'subsetSize': 5, " CHILD "}"));
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    fake_lb_take_connects(f);
}

/* Each policy draws its own seed: of 200 clients that use one of two servers, about half use the first. */
static void seeds_differ(void **state)
{
    unsigned first = 0;
    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        struct fake_lb *f = fake_lb_new(NULL);
        tc_rng_init_seed(tc_loop_rng(f->loop), i);
        f->policy = tc_lb_create(&tc_random_subsetting_factory, &f->helper);
        update(f, servers(2), "{'subsetSize': 1, " CHILD "}");
        first += fake_lb_count(f, "10.0.0.1:80");
        fake_lb_free(f);
    }
    assert_in_range(first, 60, 140);
}

/* An error before the first list goes to the child, which fails RPCs with it. */
static void no_list_yet(void **state)
{
    struct fake_lb *f = *state;
    struct tc_status error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_RESOLVER, "no answer");
    fake_lb_update_error(f, &error, fake_lb_config(f, SUBSETTING, "{'subsetSize': 3, " CHILD "}", NULL));
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_string_equal(fake_lb_pick_error(f), "no answer");
    tc_status_fini(&error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(configs, setup, teardown),
        cmocka_unit_test(small_lists_stay),
        cmocka_unit_test(order_by_hash),
        cmocka_unit_test(order_of_names),
        cmocka_unit_test(changes_are_small),
        cmocka_unit_test(spread),
        cmocka_unit_test(repeated_addresses),
        cmocka_unit_test(lists_of_localities),
        cmocka_unit_test_setup_teardown(connects_to_the_subset_alone, setup, teardown),
        cmocka_unit_test(seeds_differ),
        cmocka_unit_test_setup_teardown(no_list_yet, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
