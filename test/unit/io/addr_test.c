/* Addresses (io/addr.h): to and from text and sockaddr, equality and hashes, their bounds, hosts of authorities.
 *
 * The texts are the canonical form, which clients hash into rings. A Unix address owns a reference to its path, which
 * tc_addr_fini drops; the other addresses here own nothing. The zone "lo" must be an interface of the system. The last
 * section makes addresses that collide under XXH64 with a known seed. One thread. */
#include "io/addr.h"

#include <arpa/inet.h>
#include <endian.h>

#include "base/hash.h"
#include "base/mem.h"
#include "support/cmocka.h"

/* Asserts that the text is parsed, and that the address is printed as `canonical`. */
static void check_text(const char *text, const char *canonical)
{
    struct tc_addr a;
    if (tc_addr_parse(&a, tc_slice_str(text)) != 0)
        fail_msg("\"%s\" was not parsed", text);
    char *out = tc_addr_text(&a);
    assert_string_equal(out, canonical);
    /* A printed address parses to the same address. */
    struct tc_addr again;
    assert_int_equal(tc_addr_parse(&again, tc_slice_str(out)), 0);
    assert_true(tc_addr_eq(&a, &again));
    assert_int_equal(tc_addr_hash(&a), tc_addr_hash(&again));
    /* A sockaddr of the address makes an equal address. */
    struct sockaddr_un un;
    socklen_t len;
    const struct sockaddr *sa = tc_addr_sockaddr(&a, &un, &len);
    struct tc_addr third;
    assert_int_equal(tc_addr_from_sockaddr(&third, sa, len), 0);
    assert_true(tc_addr_eq(&a, &third));
    struct tc_addr copy = tc_addr_ref(&third);
    tc_addr_fini(&third);
    assert_true(tc_addr_eq(&a, &copy));
    tc_addr_fini(&copy);
    tc_addr_fini(&again);
    tc_addr_fini(&a);
    tc_free(out);
}

static void texts_are_canonical(void **state)
{
    (void)state;
    check_text("127.0.0.1:80", "127.0.0.1:80");
    check_text("1.2.3.4:0", "1.2.3.4:0");
    check_text("255.255.255.255:65535", "255.255.255.255:65535");
    check_text("[::1]:80", "[::1]:80");
    check_text("[0:0:0:0:0:0:0:1]:80", "[::1]:80");
    check_text("[2001:DB8:0:0:1:0:0:1]:443", "[2001:db8::1:0:0:1]:443");
    check_text("[::ffff:1.2.3.4]:80", "[::ffff:1.2.3.4]:80"); /* v4-mapped stays IPv6 */
    check_text("[fe80::1%lo]:80", "[fe80::1%lo]:80");
    check_text("[fe80::1%99999]:80", "[fe80::1%99999]:80");
    check_text("unix:/run/a.sock", "unix:/run/a.sock");
    check_text("unix:relative", "unix:relative");
    check_text("unix-abstract:name", "unix-abstract:name");
}

static void malformed_texts_are_refused(void **state)
{
    (void)state;
    const char *bad[] = {"",
                         ":80",
                         "1.2.3.4",
                         "1.2.3.4:",
                         "1.2.3.4:65536",
                         "1.2.3.4:-1",
                         "1.2.3.4:+1",
                         "1.2.3:80",
                         "1.2.3.4.5:80",
                         "01.2.3.4:80x",
                         "localhost:80",
                         "::1:80",
                         "[::1]",
                         "[::1]:",
                         "[::1:80",
                         "[1.2.3.4]:80",
                         "[::g]:80",
                         "[]:80",
                         "[::1]80",
                         "[::1%]:80",
                         "[::1%noif0]:80",
                         "1.2.3.4:80:90",
                         "unix:",
                         "unix-abstract:",
                         " 1.2.3.4:80",
                         "1.2.3.4 :80",
                         "1.2.3.4:80 ",
                         "[fe80::1%1%2]:1"};
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        struct tc_addr a = {.len = 77};
        if (tc_addr_parse(&a, tc_slice_str(bad[i])) != TORC_EPARSE)
            fail_msg("\"%s\" was parsed", bad[i]);
        assert_int_equal(a.len, 77); /* untouched */
    }
}

static void parts_are_told_apart(void **state)
{
    (void)state;
    const char *texts[] = {"1.2.3.4:80",          "1.2.3.4:81",     "1.2.3.5:80",     "[::1]:80", "[::1]:81",
                           "[::ffff:1.2.3.4]:80", "[fe80::1%1]:80", "[fe80::1%2]:80", "unix:a",   "unix-abstract:a"};
    struct tc_addr a[TC_ARRAY_LEN(texts)];
    for (size_t i = 0; i < TC_ARRAY_LEN(texts); i++)
        assert_int_equal(tc_addr_parse(&a[i], tc_slice_str(texts[i])), 0);
    for (size_t i = 0; i < TC_ARRAY_LEN(texts); i++)
        for (size_t j = 0; j < TC_ARRAY_LEN(texts); j++) {
            assert_int_equal(tc_addr_eq(&a[i], &a[j]), i == j);
            assert_int_equal(tc_addr_hash(&a[i]) == tc_addr_hash(&a[j]), i == j);
        }
    for (size_t i = 0; i < TC_ARRAY_LEN(texts); i++)
        tc_addr_fini(&a[i]);
}

static void vsock_and_descriptors(void **state)
{
    (void)state;
    struct tc_addr a[6];
    const char *texts[] = {"vsock:2:1024", "vsock:2:1025", "vsock:3:1024", "fd:3", "fd:4", "unix:a"};
    assert_int_equal(tc_addr_from_vsock(&a[0], 2, 1024), 0);
    assert_int_equal(tc_addr_from_vsock(&a[1], 2, 1025), 0);
    assert_int_equal(tc_addr_from_vsock(&a[2], 3, 1024), 0);
    tc_addr_from_fd(&a[3], 3);
    tc_addr_from_fd(&a[4], 4);
    assert_int_equal(tc_addr_from_unix(&a[5], tc_slice_str("a"), false), 0);
    for (size_t i = 0; i < TC_ARRAY_LEN(a); i++) {
        char *text = tc_addr_text(&a[i]);
        assert_string_equal(text, texts[i]);
        tc_free(text);
        for (size_t j = 0; j < TC_ARRAY_LEN(a); j++) {
            assert_int_equal(tc_addr_eq(&a[i], &a[j]), i == j);
            assert_int_equal(tc_addr_hash(&a[i]) == tc_addr_hash(&a[j]), i == j);
        }
    }
    struct sockaddr_un un;
    struct tc_addr copy;
    socklen_t len;
    const struct sockaddr *sa = tc_addr_sockaddr(&a[0], &un, &len);
    assert_int_equal(sa->sa_family, AF_VSOCK);
    assert_int_equal(tc_addr_from_sockaddr(&copy, sa, len), 0);
    assert_true(tc_addr_eq(&copy, &a[0]));
    assert_int_equal(tc_addr_from_sockaddr(&copy, sa, len - 1), TORC_EINVAL);
    tc_addr_fini(&a[5]);
}

static void unix_names_have_bounds(void **state)
{
    (void)state;
    char long_path[200];
    memset(long_path, 'x', sizeof(long_path));
    struct tc_addr a;
    const size_t max = sizeof(((struct sockaddr_un *)0)->sun_path);
    assert_int_equal(tc_addr_from_unix(&a, tc_slice_of(long_path, max), false), TORC_EPARSE);
    assert_int_equal(tc_addr_from_unix(&a, tc_slice_of(long_path, max), true), TORC_EPARSE);
    assert_int_equal(tc_addr_from_unix(&a, tc_slice_of("a\0b", 3), false), TORC_EPARSE);
    for (int abstract = 0; abstract < 2; abstract++) {
        assert_int_equal(tc_addr_from_unix(&a, tc_slice_of(long_path, max - 1), abstract), 0);
        struct sockaddr_un un;
        socklen_t len;
        const struct sockaddr *sa = tc_addr_sockaddr(&a, &un, &len);
        assert_int_equal(len, sizeof(un));
        struct tc_addr again;
        assert_int_equal(tc_addr_from_sockaddr(&again, sa, len), 0);
        assert_true(tc_addr_eq(&a, &again));
        tc_addr_fini(&again);
        tc_addr_fini(&a);
    }
    /* An abstract name may hold a NUL. */
    assert_int_equal(tc_addr_from_unix(&a, tc_slice_of("a\0b", 3), true), 0);
    tc_addr_fini(&a);
}

static void short_sockaddrs_are_refused(void **state)
{
    (void)state;
    struct tc_addr a;
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr other = {.sa_family = AF_APPLETALK};
    assert_int_equal(tc_addr_from_sockaddr(&a, (struct sockaddr *)&in, sizeof(in) - 1), TORC_EINVAL);
    assert_int_equal(tc_addr_from_sockaddr(&a, (struct sockaddr *)&in6, sizeof(in6) - 1), TORC_EINVAL);
    assert_int_equal(tc_addr_from_sockaddr(&a, &other, sizeof(other)), TORC_EINVAL);
    assert_int_equal(tc_addr_from_sockaddr(&a, &other, 1), TORC_EINVAL);
    /* The unnamed end of a Unix connection has a family and nothing else. */
    assert_int_equal(tc_addr_from_sockaddr(&a, (struct sockaddr *)&un, sizeof(sa_family_t)), 0);
    char *text = tc_addr_text(&a);
    assert_string_equal(text, "unix:");
    tc_free(text);
    tc_addr_fini(&a);
}

static void hosts_of_authorities(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"a.test:80", "a.test"},
                                           {"a.test", "a.test"},
                                           {"[::1]:80", "::1"},
                                           {"[::1]", "::1"},
                                           {"::1", "::1"},
                                           {"", ""},
                                           {":80", ""}};
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++)
        assert_true(tc_slice_eq_str(tc_addr_host_of(tc_slice_str(cases[i][0])), cases[i][1]));
}

/* --- XXH64 with a known seed can be computed backwards --- */

#define P1 UINT64_C(0x9e3779b185ebca87)
#define P2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define P4 UINT64_C(0x85ebca77c2b2ae63)
#define P5 UINT64_C(0x27d4eb2f165667c5)

static uint64_t rotl(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

/* Returns the inverse of an odd number modulo 2^64. */
static uint64_t inverse(uint64_t odd)
{
    uint64_t x = odd;
    for (int bits = 3; bits < 64; bits *= 2)
        x *= 2 - odd * x;
    return x;
}

/* Returns what XXH64 makes of a word before it mixes the word into its state. word_of_mixed is the inverse. */
static uint64_t word_mixed(uint64_t word)
{
    return rotl(word * P2, 31) * P1;
}
static uint64_t word_of_mixed(uint64_t mixed)
{
    return rotl(mixed * inverse(P1), 33) * inverse(P2);
}

/* `key` holds what tc_addr_hash takes of an IPv6 address: port, scope, address. Bytes 2 to 9 of each address make up
 * for what bytes 0 and 1 did to the state: XXH64 with a known seed gives all keys the same hash. tc_addr_hash gives
 * each address a different hash. */
static void addresses_of_one_plain_hash_differ(void **state)
{
    (void)state;
    enum { N = 64 };
    unsigned char key[2 + 4 + 16] = {0, 80};
    struct tc_addr all[N];
    uint64_t target = 0, plain = 0, words[2];
    for (unsigned i = 0; i < N; i++) {
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
        key[7] = (unsigned char)i;
        memcpy(words, key, sizeof(words));
        uint64_t begin = rotl((P5 + sizeof(key)) ^ word_mixed(le64toh(words[0])), 27) * P1 + P4;
        target = i ? target : begin;
        words[1] = htole64(word_of_mixed(begin ^ target));
        memcpy(key, words, sizeof(words));
        plain = i ? plain : tc_xxh64(key, sizeof(key));
        assert_true(tc_xxh64(key, sizeof(key)) == plain);
        memcpy(&in6.sin6_addr, key + 6, sizeof(in6.sin6_addr));
        assert_int_equal(tc_addr_from_sockaddr(&all[i], (const struct sockaddr *)&in6, sizeof(in6)), 0);
        for (unsigned k = 0; k < i; k++)
            assert_true(tc_addr_hash(&all[k]) != tc_addr_hash(&all[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_canonical),    cmocka_unit_test(malformed_texts_are_refused),
        cmocka_unit_test(parts_are_told_apart),   cmocka_unit_test(vsock_and_descriptors),
        cmocka_unit_test(unix_names_have_bounds), cmocka_unit_test(short_sockaddrs_are_refused),
        cmocka_unit_test(hosts_of_authorities),   cmocka_unit_test(addresses_of_one_plain_hash_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
