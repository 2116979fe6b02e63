/* The tree of endpoint lists: weights, proxies, names of priorities, draining endpoints, and objects that stay the same
 * over updates.
 *
 * A zeroed tree is empty, `take` updates the tree from a text (kits/config.h), and tc_eds_tree_fini ends the tree.
 * Lists and endpoints are borrowed from the tree: a test that uses one after the update that drops it holds a
 * reference. The environment variable SHUFFLING chooses between products and A113's shares as weights, shares by
 * default; a test that sets the variable also unsets it. Everything runs on the test's thread. */
#include <stdlib.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/config.h"

#include "io/addr.h"
#include "xds/lb/eds_tree.h"

/* Updates the tree from an EDS resource, which the tree does not keep. */
static void take(struct tc_eds_tree *tree, const char *localities)
{
    const struct tc_eds *eds = kit_config_eds(localities, NULL);
    tc_eds_tree_update_eds(tree, eds);
    kit_config_eds_unref(eds);
}

static void assert_name(const struct tc_eds_tree *tree, size_t priority, const char *name)
{
    assert_string_equal(tree->priorities[priority].name->data, name);
}

static const struct tc_endpoint *endpoint(const struct tc_eds_tree *tree, size_t priority, size_t i)
{
    assert_in_range(i, 0, tree->priorities[priority].node->n - 1);
    return tree->priorities[priority].node->at[i];
}

#define SHUFFLING "GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING"

/* A42's own example, as it was before A113: localities L1 weight 3 {A 2, B 1} and L2 weight 2 {C 3, D 1}. */
static void weights_are_products(void **state)
{
    TC_CASE(ED24);
    TC_CASE(RC15);
    (void)state;
    struct tc_eds_tree t = {0};
    setenv(SHUFFLING, "false", 1);
    take(&t, "0/l1=3: 1.1.1.1:1*2 1.1.1.1:2*1; 0/l2=2: 1.1.1.1:3*3 1.1.1.1:4*1");
    const uint64_t want[] = {6, 3, 6, 2};
    assert_int_equal(t.priorities[0].node->n, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(endpoint(&t, 0, i)->weight, want[i]);
    assert_int_equal(endpoint(&t, 0, 0)->lb_weight, 2);
    assert_int_equal(endpoint(&t, 0, 0)->locality_weight, 3);
    take(&t, "0/l1=3000000000: 1.1.1.1:1*3 1.1.1.1:2");
    assert_true(endpoint(&t, 0, 0)->weight == UINT64_C(9000000000));
    assert_true(endpoint(&t, 0, 1)->weight == UINT64_C(3000000000));
    unsetenv(SHUFFLING);
    tc_eds_tree_fini(&t);
}

/* A86: an endpoint is reached through its proxy if the cluster says so. */
static void proxies(void **state)
{
    (void)state;
    struct tc_eds_tree t = {0};
    struct tc_addr proxy = {0}, other = {0};
    tc_addr_parse(&proxy, tc_slice_str("9.9.9.9:3128"));
    tc_addr_parse(&other, tc_slice_str("9.9.9.8:3128"));
    const struct tc_eds *eds = kit_config_eds("0/l1=1: 1.1.1.1:1 1.1.1.1:2", NULL);
    struct tc_eds_endpoint *first = (struct tc_eds_endpoint *)(uintptr_t)&eds->priorities[0].localities[0].endpoints[0];
    first->proxy = &proxy;
    tc_eds_tree_update_eds(&t, eds);
    assert_null(endpoint(&t, 0, 0)->addrs[0].proxy_hop);
    const struct tc_endpoint *second = endpoint(&t, 0, 1);
    struct tc_endpoint *direct = tc_endpoint_ref(t.priorities[0].node->at[0]);

    t.http_connect = true;
    tc_eds_tree_update_eds(&t, eds);
    const struct tc_endpoint *proxied = endpoint(&t, 0, 0);
    assert_true(tc_addr_eq(&proxied->addrs[0].proxy_hop->proxy, &proxy));
    assert_null(proxied->addrs[0].proxy_hop->target);
    /* With the proxy the address of the first endpoint is another one; the second endpoint is the same object. */
    assert_false(tc_endpoint_same_addrs(direct, proxied));
    tc_endpoint_unref(direct);
    assert_ptr_equal(endpoint(&t, 0, 1), second);

    const struct tc_endpoints *list = t.priorities[0].node;
    tc_eds_tree_update_eds(&t, eds);
    assert_ptr_equal(t.priorities[0].node, list);
    first->proxy = &other;
    tc_eds_tree_update_eds(&t, eds);
    assert_true(tc_addr_eq(&endpoint(&t, 0, 0)->addrs[0].proxy_hop->proxy, &other));
    first->proxy = NULL;
    tc_eds_tree_update_eds(&t, eds);
    assert_null(endpoint(&t, 0, 0)->addrs[0].proxy_hop);
    kit_config_eds_unref(eds);
    tc_eds_tree_fini(&t);
}

static void expect_weights(const struct tc_eds_tree *t, const uint64_t *want, size_t n)
{
    assert_int_equal(t->priorities[0].node->n, n);
    for (size_t i = 0; i < n; i++)
        assert_true(endpoint(t, 0, i)->weight == want[i]);
}

/* A113: A42's example in shares of UQ1.31, each step rounded down: 3/5 is 1288490188, 2/5 858993459, 2/3 1431655765,
 * 1/3 715827882, 3/4 1610612736, 1/4 536870912. */
static void weights_as_shares(void **state)
{
    TC_CASE(RC15);
    TC_CASE(PD08);
    (void)state;
    static const char example[] = "0/l1=3: 1.1.1.1:1*2 1.1.1.1:2*1; 0/l2=2: 1.1.1.1:3*3 1.1.1.1:4*1";
    static const uint64_t shares[] = {858993458, 429496728, 644245094, 214748364}, products[] = {6, 3, 6, 2};
    static const struct {
        const char *variable;
        const uint64_t *want;
    } rows[] = {{NULL, shares}, {"true", shares},    {"", shares},
                {"0", shares},  {"false", products}, {"FALSE", products}};
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct tc_eds_tree t = {0};
        if (rows[i].variable)
            setenv(SHUFFLING, rows[i].variable, 1);
        take(&t, example);
        expect_weights(&t, rows[i].want, 4);
        /* Each priority by itself. */
        take(&t, "0/z=9: 1.1.1.1:9; 1/l1=3: 1.1.1.1:1*2 1.1.1.1:2*1; 1/l2=2: 1.1.1.1:3*3 1.1.1.1:4*1");
        for (size_t k = 0; k < 4; k++)
            assert_true(endpoint(&t, 1, k)->weight == rows[i].want[k]);
        unsetenv(SHUFFLING);
        tc_eds_tree_fini(&t);
    }
}

static void extreme_shares(void **state)
{
    (void)state;
    struct tc_eds_tree t = {0};
    /* A share that is rounded to 0 counts as 1; sums of weights need more than 32 bits. */
    take(&t, "0/a=1: 1.1.1.1:1*1 1.1.1.1:2*4294967295; 0/b=4294967294: 1.1.1.1:3*4294967295 1.1.1.1:4*4294967295");
    expect_weights(&t, (const uint64_t[]){1, 1, 1073741823, 1073741823}, 4);
    /* A locality keeps its share when an endpoint of it drains or fails its health check. */
    take(&t, "0/a=3: 1.1.1.1:1*1 1.1.1.1:2*7!DRAINING 1.1.1.1:5*7!UNHEALTHY; 0/b=1: 1.1.1.1:3*1 1.1.1.1:4*3");
    expect_weights(&t, (const uint64_t[]){1610612736, 134217728, 402653184}, 3);
    tc_eds_tree_fini(&t);
}

/* Endpoints that all have the same share weigh 1 each, so that unchanged endpoints stay the same objects. */
static void equal_shares(void **state)
{
    (void)state;
    static const uint64_t ones[] = {1, 1, 1, 1};
    struct tc_eds_tree t = {0};
    take(&t, "0/a=7: 1.1.1.1:1*9 1.1.1.1:2*9 1.1.1.1:8*2!DRAINING");
    expect_weights(&t, ones, 2);
    struct tc_endpoint *first = tc_endpoint_ref(t.priorities[0].node->at[0]);
    take(&t, "0/a=7: 1.1.1.1:1*9 1.1.1.1:2*9 1.1.1.1:3*9 1.1.1.1:4*9");
    expect_weights(&t, ones, 4);
    assert_ptr_equal(endpoint(&t, 0, 0), first);
    take(&t, "0/a=3: 1.1.1.1:1*9 1.1.1.1:2*9; 0/b=3: 1.1.1.1:3 1.1.1.1:4; 0/c=5: 1.1.1.1:5!DRAINING");
    expect_weights(&t, ones, 4);
    take(&t, "0/a=7: 1.1.1.1:1*9 1.1.1.1:2*8");
    expect_weights(&t, (const uint64_t[]){1136903107, 1010580540}, 2);
    /* Each locality's weight is the number of its endpoints, as istiod sends it: the shares differ by A113's rounding
     * only. */
    take(&t, "0/a=5: 1.1.1.1:1 1.1.1.1:2 1.1.1.1:3 1.1.1.1:4 1.1.1.1:5; 0/b=1: 1.1.1.1:6");
    expect_weights(&t, (const uint64_t[]){357913940, 357913940, 357913940, 357913940, 357913940, 357913941}, 6);
    tc_endpoint_unref(first);
    tc_eds_tree_fini(&t);
}

static void attributes(void **state)
{
    TC_CASE(ED09);
    (void)state;
    struct tc_eds_tree t = {0};
    take(&t, "0/b: 1.1.1.1:1#k!HEALTHY 1.1.1.1:2!DRAINING 1.1.1.1:3!UNHEALTHY; 0/a: 1.1.1.1:4");
    const struct tc_endpoints *node = t.priorities[0].node;
    assert_int_equal(node->n, 2);
    /* Localities in the order of their names. */
    assert_string_equal(node->at[0]->locality->sub_zone->data, "a");
    assert_string_equal(node->at[1]->hash_key->data, "k");
    assert_int_equal(node->at[1]->health, TC_HEALTH_HEALTHY);
    assert_int_equal(node->n_children, 2);
    assert_string_equal(node->children[1].name->data, "{region=\"\", zone=\"\", sub_zone=\"b\"}");
    assert_int_equal(node->children[1].list->n, 1);
    assert_ptr_equal(tc_endpoints_child(t.root, tc_slice_str("priority-0")), node);
    tc_eds_tree_fini(&t);
}

static void equal_resources_give_the_same_tree(void **state)
{
    (void)state;
    struct tc_eds_tree t = {0};
    take(&t, "0/a: 1.1.1.1:1 1.1.1.1:2; 1/b: 1.1.1.1:3");
    const struct tc_endpoints *root = t.root;
    take(&t, "0/a: 1.1.1.1:1 1.1.1.1:2; 1/b: 1.1.1.1:3");
    assert_ptr_equal(t.root, root);
    tc_eds_tree_fini(&t);
}

static void only_what_changed_is_new(void **state)
{
    (void)state;
    struct tc_eds_tree t = {0};
    setenv(SHUFFLING, "false", 1); /* so that weights do not depend on the number of endpoints */
    take(&t, "0/a: 1.1.1.1:1 1.1.1.1:2; 0/b: 1.1.1.1:3; 1/c: 1.1.1.1:4");
    /* References keep new objects from lying at the same addresses. */
    struct tc_endpoints *root = tc_endpoints_ref(t.root), *p0 = tc_endpoints_ref(t.priorities[0].node);
    const struct tc_endpoints *p1 = t.priorities[1].node;
    const struct tc_endpoints *b = t.priorities[0].localities[1].list;
    const struct tc_endpoint *second = endpoint(&t, 0, 1);
    /* One more endpoint in front. */
    take(&t, "0/a: 1.1.1.1:9 1.1.1.1:1 1.1.1.1:2; 0/b: 1.1.1.1:3; 1/c: 1.1.1.1:4");
    assert_ptr_not_equal(t.root, root);
    assert_ptr_not_equal(t.priorities[0].node, p0);
    tc_endpoints_unref(root);
    tc_endpoints_unref(p0);
    assert_ptr_equal(t.priorities[1].node, p1);
    assert_ptr_equal(t.priorities[0].localities[1].list, b);
    assert_ptr_equal(endpoint(&t, 0, 2), second);
    /* A weight changes: that endpoint is new, its neighbour is not. */
    const struct tc_endpoint *first = endpoint(&t, 0, 1);
    take(&t, "0/a: 1.1.1.1:9 1.1.1.1:1 1.1.1.1:2*5; 0/b: 1.1.1.1:3; 1/c: 1.1.1.1:4");
    assert_ptr_equal(endpoint(&t, 0, 1), first);
    assert_int_equal(endpoint(&t, 0, 2)->weight, 5);
    unsetenv(SHUFFLING);
    tc_eds_tree_fini(&t);
}

/* Endpoints that move within the list stay the same objects. The first few that moved are each found by a search
 * through the list, and the others through a map. */
static void any_order(void **state)
{
    static const char *const orders[] = {
        "0/a: 1.1.1.1:1 1.1.1.1:2 1.1.1.1:3 1.1.1.1:4 1.1.1.1:5 1.1.1.1:6 1.1.1.1:7 1.1.1.1:8 1.1.1.1:9",
        "0/a: 1.1.1.1:9 1.1.1.1:1 1.1.1.1:2 1.1.1.1:3 1.1.1.1:4 1.1.1.1:5 1.1.1.1:6 1.1.1.1:7 1.1.1.1:8",
        "0/a: 1.1.1.1:8 1.1.1.1:7 1.1.1.1:6 1.1.1.1:5 1.1.1.1:4 1.1.1.1:3 1.1.1.1:2 1.1.1.1:1 1.1.1.1:9",
        "0/a: 1.1.1.1:5 1.1.1.1:9 1.1.1.1:4 1.1.1.1:8 1.1.1.1:3 1.1.1.1:7 1.1.1.1:2 1.1.1.1:6 1.1.1.1:1",
    };
    (void)state;
    struct tc_eds_tree t = {0};
    const struct tc_endpoint *by_port[10] = {0};
    for (size_t i = 0; i < TC_ARRAY_LEN(orders); i++) {
        take(&t, orders[i]);
        for (size_t k = 0; k < 9; k++) {
            const struct tc_endpoint *e = endpoint(&t, 0, k);
            uint16_t port = ntohs(e->addrs[0].sa.in.sin_port);
            if (i == 0)
                by_port[port] = e;
            assert_ptr_equal(e, by_port[port]);
        }
    }
    tc_eds_tree_fini(&t);
}

static void names_follow_localities(void **state)
{
    TC_CASE(PR13);
    TC_CASE(PR17);
    (void)state;
    struct tc_eds_tree t = {0};
    take(&t, "0/a: 1.1.1.1:1; 1/c: 1.1.1.1:3");
    assert_name(&t, 0, "priority-0");
    assert_name(&t, 1, "priority-1");
    const struct tc_endpoints *a = t.priorities[0].node;
    /* A new priority in front: the old ones keep name and list. */
    take(&t, "0/b: 1.1.1.1:2; 1/a: 1.1.1.1:1; 2/c: 1.1.1.1:3");
    assert_name(&t, 0, "priority-2");
    assert_name(&t, 1, "priority-0");
    assert_name(&t, 2, "priority-1");
    assert_ptr_equal(t.priorities[1].node, a);
    /* Two priorities change places. */
    take(&t, "0/a: 1.1.1.1:1; 1/b: 1.1.1.1:2; 2/c: 1.1.1.1:3");
    assert_name(&t, 0, "priority-0");
    assert_name(&t, 1, "priority-2");
    /* Two priorities go; no later priority takes one of their names. */
    take(&t, "0/b: 1.1.1.1:2");
    assert_name(&t, 0, "priority-2");
    take(&t, "0/b: 1.1.1.1:2; 1/x: 1.1.1.1:7");
    assert_name(&t, 1, "priority-3");
    /* Two localities of one priority part: the first of their two priorities keeps the name. */
    take(&t, "0/b: 1.1.1.1:2; 0/x: 1.1.1.1:7");
    assert_name(&t, 0, "priority-2");
    take(&t, "0/x: 1.1.1.1:7; 1/b: 1.1.1.1:2");
    assert_name(&t, 0, "priority-2");
    assert_name(&t, 1, "priority-4");
    tc_eds_tree_fini(&t);
}

/* A locality in two priorities: each of them has a name of its own, and an equal update keeps the tree. */
static void one_locality_twice(void **state)
{
    TC_CASE(ED04);
    (void)state;
    struct tc_eds_tree t = {0};
    take(&t, "0/a: 1.1.1.1:1; 1/a: 1.1.1.1:2");
    assert_name(&t, 0, "priority-0");
    assert_name(&t, 1, "priority-1");
    const struct tc_endpoints *root = t.root;
    take(&t, "0/a: 1.1.1.1:1; 1/a: 1.1.1.1:2");
    assert_ptr_equal(t.root, root);
    tc_eds_tree_fini(&t);
}

static void nothing_is_one_empty_priority(void **state)
{
    TC_CASE(PR18);
    (void)state;
    struct tc_eds_tree t = {0};
    tc_eds_tree_update_eds(&t, NULL);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.priorities[0].node->n, 0);
    const struct tc_endpoints *root = t.root;
    take(&t, "");
    assert_ptr_equal(t.root, root);
    assert_name(&t, 0, "priority-0");
    take(&t, "0/a: 1.1.1.1:1");
    assert_name(&t, 0, "priority-1");
    tc_eds_tree_fini(&t);
}

/* A55: draining endpoints are in the root with all their attributes, and in no priority. */
static void draining_endpoints(void **state)
{
    TC_CASE(ED09);
    (void)state;
    struct tc_eds_tree t = {0};
    take(&t, "0/a=3: 1.1.1.1:1 1.1.1.1:2*5!DRAINING; 1/b: 1.1.1.1:3!DRAINING");
    assert_int_equal(t.root->n, 2);
    assert_int_equal(t.root->n_children, 2);
    assert_int_equal(t.root->at[0]->health, TC_HEALTH_DRAINING);
    assert_int_equal(t.root->at[0]->lb_weight, 5);
    assert_int_equal(t.root->at[0]->locality_weight, 3);
    assert_ptr_equal(t.root->at[0]->locality, endpoint(&t, 0, 0)->locality);
    assert_string_equal(t.root->at[1]->locality->sub_zone->data, "b");
    assert_int_equal(t.priorities[0].node->n, 1);
    assert_int_equal(t.priorities[1].node->n, 0);
    const struct tc_endpoints *root = t.root, *node = t.priorities[0].node;
    const struct tc_endpoint *first = t.root->at[0];
    take(&t, "0/a=3: 1.1.1.1:1 1.1.1.1:2*5!DRAINING; 1/b: 1.1.1.1:3!DRAINING");
    assert_ptr_equal(t.root, root);
    /* One leaves. The other is still the same object, and so is the priority's list. */
    take(&t, "0/a=3: 1.1.1.1:1 1.1.1.1:2*5!DRAINING; 1/b: 1.1.1.1:4");
    assert_int_equal(t.root->n, 1);
    assert_ptr_equal(t.root->at[0], first);
    assert_ptr_equal(t.priorities[0].node, node);
    take(&t, "0/a=3: 1.1.1.1:1; 1/b: 1.1.1.1:4");
    assert_int_equal(t.root->n, 0);
    assert_ptr_equal(t.priorities[0].node, node);
    /* A draining endpoint moves to another locality of the same weight. */
    take(&t, "0/a=3: 1.1.1.1:1; 0/b=3: 1.1.1.1:4; 0/c=3: 1.1.1.1:2!DRAINING");
    assert_string_equal(t.root->at[0]->locality->sub_zone->data, "c");
    take(&t, "0/a=3: 1.1.1.1:1 1.1.1.1:2!DRAINING; 0/b=3: 1.1.1.1:4; 0/c=3: 1.1.1.1:5");
    assert_int_equal(t.root->n, 1);
    assert_string_equal(t.root->at[0]->locality->sub_zone->data, "a");
    tc_eds_tree_fini(&t);
}

static void dns_is_one_locality(void **state)
{
    TC_CASE(DN02);
    (void)state;
    struct tc_eds_tree t = {0};
    struct tc_endpoints *list = fake_lb_endpoints("1.1.1.1:1,1.1.1.1:2");
    tc_eds_tree_update_dns(&t, list);
    assert_int_equal(t.n, 1);
    assert_ptr_equal(t.priorities[0].localities[0].list, list);
    assert_int_equal(t.priorities[0].node->at[0]->n_addrs, 2);
    const struct tc_endpoints *root = t.root;
    tc_eds_tree_update_dns(&t, list);
    assert_ptr_equal(t.root, root);
    tc_endpoints_unref(list);
    tc_eds_tree_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_products),
        cmocka_unit_test(weights_as_shares),
        cmocka_unit_test(extreme_shares),
        cmocka_unit_test(equal_shares),
        cmocka_unit_test(proxies),
        cmocka_unit_test(attributes),
        cmocka_unit_test(equal_resources_give_the_same_tree),
        cmocka_unit_test(only_what_changed_is_new),
        cmocka_unit_test(any_order),
        cmocka_unit_test(names_follow_localities),
        cmocka_unit_test(one_locality_twice),
        cmocka_unit_test(nothing_is_one_empty_priority),
        cmocka_unit_test(draining_endpoints),
        cmocka_unit_test(dns_is_one_locality),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
