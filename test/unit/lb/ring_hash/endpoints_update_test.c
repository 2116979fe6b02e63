/* Tests tc_rh_set_merge against a model that compares addresses pair by pair (A61): the order, the sums of weights, and
 * the places in the old set. */
#include "lb/ring_hash/endpoints.h"
#include "lb/ring_hash/policy.h"
#include "support/cmocka.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/random.h"

enum { ADDRESSES = 24, MOST = 40, ROUNDS = 1500 };

/* Returns an endpoint with one or two addresses out of ADDRESSES, with one reference. One weight in eight is near
 * UINT64_MAX, the others are 0 to 4. */
static struct tc_endpoint *endpoint(struct tc_rng *rng)
{
    struct tc_addr addrs[2];
    size_t n = tc_rng_below(rng, 4) ? 1 : 2;
    for (size_t i = 0; i < n; i++) {
        char text[32];
        snprintf(text, sizeof(text), "10.0.0.%u:80", (unsigned)tc_rng_below(rng, ADDRESSES));
        assert_int_equal(tc_addr_parse(&addrs[i], tc_slice_str(text)), 0);
    }
    struct tc_endpoint *e = tc_endpoint_new(addrs, n);
    e->weight = tc_rng_below(rng, 8) ? tc_rng_below(rng, 5) : UINT64_MAX - 2;
    return e;
}

/* Returns a list with one reference, made from the list `last` (NULL: from nothing). Removes about `changes` of every
 * 20 endpoints and adds `changes`, up to MOST in all. About a third of the added endpoints repeat the first or the last
 * endpoint. In one list of five the first and the last endpoint change places. */
static struct tc_endpoints *next_list(struct tc_rng *rng, const struct tc_endpoints *last, unsigned changes)
{
    struct tc_endpoint **at = tc_calloc(MOST, sizeof(struct tc_endpoint *));
    size_t n = 0;
    for (size_t i = 0; last && i < last->n && n < MOST; i++)
        if (tc_rng_below(rng, 20) >= changes)
            at[n++] = tc_endpoint_ref(last->at[i]);
    for (unsigned i = 0; i < changes && n < MOST; i++) {
        size_t place = tc_rng_below(rng, n + 1);
        memmove(at + place + 1, at + place, (n - place) * sizeof(*at));
        at[place] = n && tc_rng_below(rng, 3) == 0 ? tc_endpoint_ref(at[place ? 0 : n]) : endpoint(rng);
        n++;
    }
    if (n > 1 && tc_rng_below(rng, 5) == 0) {
        struct tc_endpoint *first = at[0];
        at[0] = at[n - 1];
        at[n - 1] = first;
    }
    return tc_endpoints_take(at, n);
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

/* Asserts that the set has the distinct endpoints of the list in order, with the sums of their weights, and that `was`
 * has the place of each endpoint in the old set (NULL: none), or TC_RING_ADDED. */
static void check(const struct tc_rh_set *set, const struct tc_rh_set *old, const struct tc_endpoints *list,
                  const uint32_t *was)
{
    uint32_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct tc_endpoint *e = list->at[i];
        uint64_t weight = 0;
        bool first = true;
        for (size_t k = 0; k < list->n; k++)
            if (tc_endpoint_same_addrs(e, list->at[k])) {
                first = first && k >= i;
                weight = sum(weight, TC_MAX(list->at[k]->weight, 1));
            }
        if (!first)
            continue;
        uint32_t place = TC_RING_ADDED;
        for (uint32_t k = 0; old && k < old->n; k++)
            if (tc_endpoint_same_addrs(e, old->at[k].endpoint))
                place = k;
        assert_true(n < set->n);
        assert_ptr_equal(set->at[n].endpoint, e);
        assert_true(set->at[n].weight == weight);
        assert_int_equal(was[n], place);
        n++;
    }
    assert_int_equal(set->n, n);
}

static void any_update(void **state)
{
    (void)state;
    struct tc_rng rng;
    struct tc_rh_set *old = NULL;
    struct tc_endpoints *last = NULL;
    struct tc_ring_hash_config *config =
        (struct tc_ring_hash_config *)tc_ring_hash_config_new(1024, 4096, tc_slice_of(NULL, 0));
    tc_rng_init_seed(&rng, 20261121);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct tc_endpoints *list = next_list(&rng, last, i == 0 ? 20 : (unsigned)tc_rng_below(&rng, i % 16 ? 4 : 12));
        struct tc_rh_set *set = tc_rh_set_new(list->n, config);
        uint32_t was[MOST];
        tc_rh_set_merge(set, old, list, was);
        check(set, old, list, was);
        tc_rh_set_unref(old);
        tc_endpoints_unref(last);
        old = set;
        last = list;
    }
    tc_rh_set_unref(old);
    tc_endpoints_unref(last);
    tc_lb_config_unref(&config->base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
