/* The policy maglev: connecting and failing as ring_hash does, weights, keys, and the config.
 *
 * The policy runs in fakes/lb, which the setup of each test makes and the teardown frees. A hash h hits slot h % n of a
 * table of n slots, so picks with the hashes 0 to n - 1 read the whole table (`owners`). The last digit of the port
 * stands for an endpoint: Envoy's table 2,4,0,1,5,0,3 of ports 90 to 95 is "2401503". Tables of the default size are
 * built in the background, behind a gate. Everything else is on the test's thread. */
#include "lb/ring_hash/policy.h"

#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"
#include "support/gate.h"

#include "base/hash.h"
#include "base/mem.h"
#include "lb/registry.h"
#include "ring/maglev.h"

static int setup(void **state)
{
    *state = fake_lb_new("maglev");
    return 0;
}

static int teardown(void **state)
{
    fake_lb_free(*state);
    return 0;
}

static bool update(struct fake_lb *f, const char *endpoints, const char *config)
{
    return fake_lb_update(f, fake_lb_endpoints(endpoints), fake_lb_config(f, "maglev_experimental", config, NULL),
                          NULL);
}

#define PORTS                                                                                                          \
    "127.0.0.1:90 127.0.0.1:91 127.0.0.1:92 127.0.0.1:93 127.0.0.1:94 "                                                \
    "127.0.0.1:95"
#define SEVEN "{'tableSize': 7}"

/* Picks with the hash. If the pick asks for a connection, makes the endpoint READY and picks again. Ends the RPC, and
 * returns the last digit of the port of the endpoint that took the RPC. */
static char owner(struct fake_lb *f, uint64_t hash)
{
    const char *found = fake_lb_pick_hash(f, hash);
    if (strcmp(found, "QUEUE") == 0) {
        char *connects = tc_strdup(fake_lb_take_connects(f));
        connects[strlen(connects) - 1] = '\0';
        fake_lb_set(f, connects, TORC_CONNECTIVITY_READY);
        tc_free(connects);
        found = fake_lb_pick_hash(f, hash);
    }
    struct tc_status ok = {0};
    for (struct tc_call_tracker *t = f->pick.trackers, *next; t; t = next) {
        next = t->next;
        t->on_done(t, &ok, NULL);
    }
    return found[strlen(found) - 1];
}

/* Returns the owners of all slots of a table of n slots: a character for each slot. The text is in the fake's arena. */
static const char *owners(struct fake_lb *f, unsigned n)
{
    char *text = tc_arena_calloc(&f->arena, n + 1, 1);
    for (unsigned i = 0; i < n; i++)
        text[i] = owner(f, i);
    return text;
}

static void lazily_by_the_table(void **state)
{
    TC_CASE(MG01);
    struct fake_lb *f = *state;
    assert_true(update(f, PORTS, SEVEN));
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE);
    assert_string_equal(fake_lb_pick_hash(f, 7), "QUEUE");
    assert_connects(f, "127.0.0.1:92 ");
    fake_lb_set(f, "127.0.0.1:92", TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick_hash(f, 7), "127.0.0.1:92");
    assert_string_equal(owners(f, 7), "2401503");
}

/* The next slot's endpoint takes over. The policy fails as ring_hash does, with maglev's name in the texts. */
static void the_next_slot_takes_over(void **state)
{
    struct fake_lb *f = *state;
    update(f, PORTS, SEVEN);
    owners(f, 7);
    fake_lb_set(f, "127.0.0.1:92", TORC_CONNECTIVITY_IDLE);
    fake_lb_pick_hash(f, 0);
    fake_lb_set_failed(f, "127.0.0.1:92", "refused");
    fake_lb_take_connects(f);
    assert_int_equal(owner(f, 0), '4');
    update(f, "127.0.0.1:92", SEVEN);
    assert_string_equal(fake_lb_pick_hash(f, 0), "FAIL");
    assert_string_equal(fake_lb_pick_error(f),
                        "maglev cannot find a connected endpoint; first failure: 127.0.0.1:92: refused");
    assert_string_equal(tc_status_text(&f->status),
                        "maglev cannot find a connected endpoint; last failure: 127.0.0.1:92: refused");
}

/* Sets the hostname of endpoint i of the list, which must have none yet. Returns the list. */
static struct tc_endpoints *host(struct tc_endpoints *list, size_t i, const char *hostname)
{
    list->at[i]->hostname = tc_rstr_str(hostname);
    return list;
}

static void keys(void **state)
{
    TC_CASE(MG02);
    struct fake_lb *f = *state;
    update(f, "127.0.0.1:90#90 127.0.0.1:91#91 127.0.0.1:92#92 127.0.0.1:93#93 127.0.0.1:94#94 127.0.0.1:95#95",
           "{'table_size': 7, 'hash_balance_factor': 200}");
    assert_string_equal(owners(f, 7), "2503410");
    struct tc_endpoints *list = fake_lb_endpoints(PORTS);
    for (unsigned i = 0; i < 6; i++)
        host(list, i, (const char *[]){"90", "91", "92", "93", "94", "95"}[i]);
    fake_lb_update(f, tc_endpoints_ref(list), fake_lb_config(f, "maglev", SEVEN, NULL), NULL);
    assert_string_equal(owners(f, 7), "2401503"); /* the config does not ask for hostnames */
    const char *const by_host = "{'tableSize': 7, 'useHostnameForHashing': true}";
    fake_lb_update(f, tc_endpoints_ref(list), fake_lb_config(f, "maglev", by_host, NULL), NULL);
    assert_string_equal(owners(f, 7), "2503410");
    tc_endpoints_unref(list);
    list = fake_lb_endpoints(PORTS);
    for (unsigned i = 0; i < 6; i++) /* hash_key counts before the hostname */
        host(list, i, "same")->at[i]->hash_key = tc_rstr_printf("%u", 95 - i);
    fake_lb_update(f, list, fake_lb_config(f, "maglev", by_host, NULL), NULL);
    assert_string_equal(owners(f, 7), "3052145");
    update(f, PORTS, by_host); /* without hostnames the addresses count, not one empty key for all */
    assert_string_equal(owners(f, 7), "2401503");
}

/* Returns endpoints with the weights that an EDS resource gives, of_locality[i] and weights[i] for endpoint i, with one
 * reference. Their `weight`, which contains the locality's weight (A113), must not count for tables. */
static struct tc_endpoints *eds(const char *endpoints, const uint32_t *of_locality, const uint32_t *weights)
{
    struct tc_endpoints *list = fake_lb_endpoints(endpoints);
    for (size_t i = 0; i < list->n; i++) {
        list->at[i]->weight = 1 + i * 12345;
        list->at[i]->lb_weight = weights[i];
        list->at[i]->locality_weight = of_locality[i];
    }
    return list;
}

static void weights_of_localities(void **state)
{
    TC_CASE(MG03);
    TC_CASE(MG04);
    TC_CASE(MG05);
    TC_CASE(MG16);
    struct fake_lb *f = *state;
    static const uint32_t equal[] = {1, 1}, weights[] = {1, 2}, eight[] = {8, 2};
    const char *const two = "127.0.0.1:90@a 127.0.0.1:91@b", *const seventeen = "{'tableSize': 17}",
                      *const weighted = "{'tableSize': 17, 'localityWeighted': true}";
    fake_lb_update(f, eds(two, equal, weights), fake_lb_config(f, "maglev", seventeen, NULL), NULL);
    assert_string_equal(owners(f, 17), "10010110111110101");
    fake_lb_update(f, eds(two, equal, weights), fake_lb_config(f, "maglev", weighted, NULL), NULL);
    assert_string_equal(owners(f, 17), "10010110010100101");
    fake_lb_update(f, eds(two, eight, weights), fake_lb_config(f, "maglev", weighted, NULL), NULL);
    assert_string_equal(owners(f, 17), "10000010010100000");
    static const uint32_t three[] = {3, 3, 1, 1, 1}, of_five[] = {1, 2, 1, 1, 2};
    struct gate g; /* a table of this size is built in the background */
    gate_close(&g);
    fake_lb_update(f, eds("10.0.0.1:80@a 10.0.0.2:80@a 10.0.0.3:80@b 10.0.0.4:80@b 10.0.0.5:80@b", three, of_five),
                   fake_lb_config(f, "maglev", "{'locality_weighted': true}", NULL), NULL);
    assert_int_equal(owner(f, 0), '1'); /* the old table serves meanwhile */
    gate_open(&g);
    tc_loop_drain(f->loop);
    static const char first[] = {2, 1, 0, 1, 1, 1, 0, 1, 1, 0, 0, 1, 4, 1, 0, 4, 1, 1, 1, 2};
    for (unsigned i = 0; i < sizeof(first); i++) {
        char *addr = tc_asprintf("10.0.0.%d:80", first[i] + 1);
        if (strcmp(fake_lb_pick_hash(f, i), "QUEUE") == 0)
            fake_lb_set(f, addr, TORC_CONNECTIVITY_READY);
        assert_string_equal(fake_lb_pick_hash(f, i), addr);
        tc_free(addr);
    }
}

/* The table does not depend on whether the endpoints of a locality stand together in the list; a list of
 * random_subsetting mixes localities. */
static void localities_in_any_order(void **state)
{
    struct fake_lb *f = *state;
    static const uint32_t apart[] = {3, 1, 3, 1, 3}, of_apart[] = {1, 2, 2, 1, 1}, together[] = {3, 3, 3, 1, 1},
                          of_together[] = {1, 2, 1, 2, 1};
    const char *const config = "{'tableSize': 101, 'localityWeighted': true}";
    fake_lb_update(f, eds("10.0.0.1:1@a 10.0.0.4:4@b 10.0.0.2:2@a 10.0.0.5:5@b 10.0.0.3:3@a", apart, of_apart),
                   fake_lb_config(f, "maglev", config, NULL), NULL);
    const char *slots = owners(f, 101);
    fake_lb_update(f, eds("10.0.0.1:1@a 10.0.0.2:2@a 10.0.0.3:3@a 10.0.0.4:4@b 10.0.0.5:5@b", together, of_together),
                   fake_lb_config(f, "maglev", config, NULL), NULL);
    assert_string_equal(owners(f, 101), slots);
}

static void the_hash_of_a_header(void **state)
{
    struct fake_lb *f = *state;
    update(f, PORTS, SEVEN);
    f->args.has_hash = false;
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_string_equal(fake_lb_pick_error(f), "hash attribute not present");
    update(f, PORTS, "{'tableSize': 7, 'requestHashHeader': 'X-Key'}");
    tc_headers_add_copy(&f->headers, tc_slice_str("x-key"), tc_slice_str("abc"));
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    char *wanted = tc_asprintf("127.0.0.1:9%c ", "2401503"[tc_xxh64("abc", 3) % 7]);
    assert_connects(f, wanted);
    tc_free(wanted);
}

static void the_heaviest_endpoint_fails(void **state)
{
    struct fake_lb *f = *state;
    /* The endpoint with a million times the weight of each other endpoint fails: RPCs wait for another endpoint. */
    static const uint32_t one[] = {1, 1, 1, 1, 1, 1}, weights[] = {1000000, 1, 1, 1, 1, 1};
    struct gate g;
    gate_close(&g);
    fake_lb_update(f, eds(PORTS, one, weights), fake_lb_config(f, "maglev", "{}", NULL), NULL);
    gate_open(&g);
    tc_loop_drain(f->loop);
    assert_string_equal(fake_lb_pick_hash(f, 0), "QUEUE");
    assert_connects(f, "127.0.0.1:90 ");
    fake_lb_set_failed(f, "127.0.0.1:90", "down");
    fake_lb_take_connects(f);
    for (uint64_t slot = 0; slot < 65537; slot += 6553) {
        fake_lb_pick_hash(f, slot);
        assert_int_equal(f->kind, TC_PICK_QUEUE);
    }
}

#define AT "field [1].maglev_experimental"

static void configs(void **state)
{
    TC_CASE(MG09);
    struct fake_lb *f = *state;
    static const struct {
        const char *json, *why; /* why: NULL: valid */
        uint32_t size, factor;
    } rows[] = {
        {"{}", NULL, 65537, 0},
        {"{'tableSize': 8}", AT ".tableSize: " TC_MAGLEV_SIZE_REFUSED, 0, 0},
        {"{'tableSize': 4}", AT ".tableSize: " TC_MAGLEV_SIZE_REFUSED, 0, 0},
        {"{'table_size': '0'}", AT ".table_size: must be a whole number from 2 to 5000011", 0, 0},
        {"{'tableSize': -1}", AT ".tableSize: must be a whole number from 2 to 5000011", 0, 0},
        {"{'tableSize': 1}", AT ".tableSize: must be a whole number from 2 to 5000011", 0, 0},
        {"{'tableSize': 5000012}", AT ".tableSize: must be a whole number from 2 to 5000011", 0, 0},
        {"{'tableSize': '18446744073709551615'}", AT ".tableSize: must be a whole number from 2 to 5000011", 0, 0},
        {"{'tableSize': '5000011', 'hashBalanceFactor': 100}", NULL, 5000011, 100},
        {"{'tableSize': 2, 'hash_balance_factor': 4294967295}", NULL, 2, UINT32_MAX},
        {"{'hashBalanceFactor': 99}", AT ".hashBalanceFactor: must be a whole number from 100 to 4294967295", 0, 0},
        {"{'hashBalanceFactor': 0}", AT ".hashBalanceFactor: must be a whole number from 100 to 4294967295", 0, 0},
        {"{'requestHashHeader': 'a-bin'}", AT ".requestHashHeader: must not be a binary header", 0, 0},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        char *text = NULL;
        struct tc_lb_config *c = fake_lb_config(f, "maglev_experimental", rows[i].json, &text);
        if (rows[i].why)
            assert_string_equal(text, rows[i].why);
        assert_int_equal(c == NULL, rows[i].why != NULL);
        if (c) {
            assert_int_equal(((struct tc_ring_hash_config *)c)->table_size, rows[i].size);
            assert_int_equal(((struct tc_ring_hash_config *)c)->balance_factor, rows[i].factor);
        }
        tc_lb_config_unref(c);
        tc_free(text);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lazily_by_the_table),
        TEST(the_next_slot_takes_over),
        TEST(keys),
        TEST(weights_of_localities),
        TEST(localities_in_any_order),
        TEST(the_hash_of_a_header),
        TEST(the_heaviest_endpoint_fails),
        TEST(configs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
