/* tc_addr_list_new on one endpoint with addresses of every family: the families alternate. */
#include "lb/address_list.h"

#include "support/case.h"
#include "support/cmocka.h"

#include "base/mem.h"

/* Stores two addresses of each family that this system has, one family after another. Returns their number, 8 or 10.
 * The caller ends each address with tc_addr_fini. */
static size_t every_family(struct tc_addr *out)
{
    static const char *const texts[] = {"1.2.3.4:1", "1.2.3.4:2", "[::1]:1", "[::1]:2", "unix:/1", "unix:/2"};
    size_t n = 0;
    for (; n < TC_ARRAY_LEN(texts); n++)
        assert_int_equal(tc_addr_parse(&out[n], tc_slice_str(texts[n])), 0);
    for (int fd = 1; fd <= 2; fd++)
        tc_addr_from_fd(&out[n++], fd);
    for (uint32_t port = 1; port <= 2; port++)
        n += tc_addr_from_vsock(&out[n], 2, port) == 0;
    return n;
}

static void all_families_are_interleaved(void **state)
{
    TC_CASE(PF06);
    (void)state;
    struct tc_addr addrs[10];
    size_t n = every_family(addrs), len;
    assert_true(n >= 8);
    struct tc_endpoint **one = tc_calloc(1, sizeof(*one));
    one[0] = tc_endpoint_new(addrs, n);
    struct tc_endpoints *endpoints = tc_endpoints_take(one, 1);
    struct tc_addr_list_entry *list = tc_addr_list_new(endpoints, TC_SHUFFLE_NONE, NULL, &len);
    assert_int_equal(len, n);
    for (size_t i = 0; i < n; i++) /* the first of each family, then the second of each */
        assert_true(tc_addr_eq(list[i].addr, &addrs[i < n / 2 ? i * 2 : (i - n / 2) * 2 + 1]));
    tc_free(list);
    tc_endpoints_unref(endpoints);
    for (size_t i = 0; i < n; i++)
        tc_addr_fini(&addrs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_families_are_interleaved)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
