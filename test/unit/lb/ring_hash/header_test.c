/* ring_hash with the hash of a request header (A76), and the config of ring_hash.
 *
 * The policy runs in fakes/lb, which the setup of each test makes and the teardown frees. `update` asks for the hash of
 * HEADER; set_header adds the header to all later picks. Without the header a pick takes the random number of its
 * arguments (pick_random) for the hash. The text "ADDRESS_0" has the hash of entry 0 of the endpoint with that address,
 * and so hits that endpoint. One thread, on the fake's virtual time. */
#include <stdlib.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/hash.h"
#include "base/mem.h"
#include "lb/registry.h"
#include "lb/ring_hash/policy.h"
#include "ring/ring.h"

#define E0 "1.1.1.1:1"
#define E1 "2.2.2.2:2"
#define E2 "3.3.3.3:3"
#define HEADER "address_hash"

static int setup(void **state)
{
    *state = fake_lb_new("ring_hash");
    return 0;
}

static int teardown(void **state)
{
    fake_lb_free(*state);
    return 0;
}

static void update(struct fake_lb *f, const char *endpoints)
{
    fake_lb_update(f, fake_lb_endpoints(endpoints),
                   fake_lb_config(f, "ring_hash", "{'requestHashHeader': 'Address_Hash'}", NULL), NULL);
}

static void set_header(struct fake_lb *f, const char *value)
{
    tc_headers_add_copy(&f->headers, tc_slice_str(HEADER), tc_slice_str(value));
}

/* Picks with this random number. Returns what fake_lb_pick does. */
static const char *pick_random(struct fake_lb *f, uint64_t random)
{
    f->args.random = random;
    return fake_lb_pick(f);
}

static void the_header_chooses(void **state)
{
    TC_CASE(RH38);
    struct fake_lb *f = *state;
    update(f, E0 " " E1 " " E2);
    f->args.has_hash = true; /* the hash that comes with the pick is ignored */
    set_header(f, E1 "_0");
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    assert_connects(f, E1 " ");
    fake_lb_set(f, E1, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), E1);
}

static void several_values_are_joined(void **state)
{
    TC_CASE(RH40);
    struct fake_lb *f = *state;
    update(f, "1.1.1.1:1#v1,v2 " E1);
    /* Entry 0 of the key "v1,v2" has the hash of "v1,v2_0". */
    set_header(f, "v1");
    set_header(f, "v2_0");
    fake_lb_pick(f);
    assert_connects(f, E0 " ");
}

static void without_the_header_the_hash_is_random(void **state)
{
    TC_CASE(RH39);
    struct fake_lb *f = *state;
    update(f, E0 " " E1 " " E2);
    uint64_t first = tc_xxh64(E0 "_0", strlen(E0 "_0")), second = tc_xxh64(E1 "_0", strlen(E1 "_0"));
    /* The endpoint that the random number hits is connected. While it connects, no other endpoint is. */
    assert_string_equal(pick_random(f, first), "QUEUE");
    assert_connects(f, E0 " ");
    assert_string_equal(pick_random(f, second), "QUEUE");
    assert_connects(f, "");
    /* The first READY endpoint takes the RPC, and the IDLE one on the way is connected. */
    fake_lb_set(f, E0, TORC_CONNECTIVITY_READY);
    assert_string_equal(pick_random(f, second), E0);
    assert_connects(f, E1 " ");
    assert_string_equal(pick_random(f, second), E0);
    assert_connects(f, "");
    fake_lb_set(f, E1, TORC_CONNECTIVITY_READY);
    assert_string_equal(pick_random(f, second), E1);
}

static void a_pick_connects_one_at_most(void **state)
{
    struct fake_lb *f = *state;
    update(f, E0 " " E1 " " E2);
    f->args.random = 0;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(tc_picker_pick(f->picker, &f->args, &f->pick), TC_PICK_QUEUE);
    tc_loop_drain(f->loop);
    assert_int_equal(fake_lb_count(f, NULL), 1);
}

static void all_failing_fails(void **state)
{
    struct fake_lb *f = *state;
    update(f, E0 " " E1);
    pick_random(f, 0);
    fake_lb_set_failed(f, fake_lb_count(f, E0) ? E0 : E1, "down");
    fake_lb_set_failed(f, fake_lb_state(f, E0) == TORC_CONNECTIVITY_CONNECTING ? E0 : E1, "down");
    assert_string_equal(pick_random(f, 0), "FAIL");
    assert_true(tc_slice_starts(tc_slice_str(fake_lb_pick_error(f)),
                                tc_slice_str("ring hash cannot find a connected endpoint; first failure: ")));
}

static void an_empty_value_counts_as_absent(void **state)
{
    TC_CASE(RH41);
    struct fake_lb *f = *state;
    update(f, E0 " " E1 " " E2);
    set_header(f, "");
    uint64_t first = tc_xxh64(E0 "_0", strlen(E0 "_0")), second = tc_xxh64(E1 "_0", strlen(E1 "_0"));
    pick_random(f, first);
    fake_lb_set(f, E0, TORC_CONNECTIVITY_READY);
    pick_random(f, second);
    fake_lb_set(f, E1, TORC_CONNECTIVITY_READY);
    assert_string_equal(pick_random(f, first), E0);
    assert_string_equal(pick_random(f, second), E1);
}

/* Asserts that the config is refused with exactly this text. */
static void assert_refused(struct fake_lb *f, const char *json, const char *why)
{
    char *text;
    assert_null(fake_lb_config(f, "ring_hash_experimental", json, &text));
    assert_string_equal(text, why);
    tc_free(text);
}

#define AT "field [1].ring_hash_experimental"

static void headers_that_are_refused(void **state)
{
    TC_CASE(RH42);
    struct fake_lb *f = *state;
    assert_refused(f, "{'requestHashHeader': 'a b'}", AT ".requestHashHeader: is not a valid header name");
    assert_refused(f, "{'requestHashHeader': 'Key-BIN'}", AT ".requestHashHeader: must not be a binary header");
    assert_refused(f, "{'request_hash_header': 7}", AT ".request_hash_header: must be a string, is number");
}

static void sizes_that_are_refused(void **state)
{
    TC_CASE(RH48);
    struct fake_lb *f = *state;
    assert_refused(f, "{'minRingSize': 0}", AT ".minRingSize: must be a whole number from 1 to 8388608");
    assert_refused(f, "{'maxRingSize': 0}", AT ".maxRingSize: must be a whole number from 1 to 8388608");
    assert_refused(f, "{'min_ring_size': 8388609, 'max_ring_size': '8388609'}",
                   AT ".min_ring_size: must be a whole number from 1 to 8388608; " AT
                      ".max_ring_size: must be a whole number from 1 to 8388608");
    assert_refused(f, "{'minRingSize': 20, 'maxRingSize': 10}", AT ".maxRingSize: must not be less than minRingSize");
    assert_refused(f, "{'minRingSize': null, 'min_ring_size': 20, 'max_ring_size': 10}",
                   AT ".max_ring_size: must not be less than min_ring_size");
    struct tc_lb_config *c =
        fake_lb_config(f, "ring_hash", "{'minRingSize': '1', 'maxRingSize': 8388608, 'unknown': [1]}", NULL);
    assert_int_equal(((struct tc_ring_hash_config *)c)->min_ring_size, 1);
    assert_int_equal(((struct tc_ring_hash_config *)c)->max_ring_size, 8388608);
    tc_lb_config_unref(c);
    c = tc_lb_default_config(f->registry, "ring_hash");
    assert_int_equal(((struct tc_ring_hash_config *)c)->min_ring_size, 1024);
    assert_int_equal(((struct tc_ring_hash_config *)c)->max_ring_size, 4096);
    assert_null(((struct tc_ring_hash_config *)c)->request_hash_header);
    tc_lb_config_unref(c);
}

static void the_switch_turns_the_header_off(void **state)
{
    struct fake_lb *f = *state;
    setenv("GRPC_EXPERIMENTAL_RING_HASH_SET_REQUEST_HASH_KEY", "false", 1);
    struct tc_lb_config *c = fake_lb_config(f, "ring_hash", "{'requestHashHeader': 'k-bin'}", NULL);
    unsetenv("GRPC_EXPERIMENTAL_RING_HASH_SET_REQUEST_HASH_KEY");
    assert_non_null(c);
    assert_null(((struct tc_ring_hash_config *)c)->request_hash_header);
    tc_lb_config_unref(c);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_header_chooses),          TEST(several_values_are_joined), TEST(without_the_header_the_hash_is_random),
        TEST(a_pick_connects_one_at_most), TEST(all_failing_fails),         TEST(an_empty_value_counts_as_absent),
        TEST(headers_that_are_refused),    TEST(sizes_that_are_refused),    TEST(the_switch_turns_the_header_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
