/* Hash policies (A42), made by hand: the hash that they give for the headers of an RPC. Each test has its own headers.
 * Hexadecimal numbers are the XXH64 of the text that is hashed. */
#include "xds/resource/hash_policy.h"

#include "support/case.h"
#include "support/cmocka.h"

#include "base/hash.h"
#include "base/mem.h"

struct fixture {
    struct tc_arena arena;
    struct tc_headers headers;
};

static int setup(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    tc_arena_init(&f->arena, 0, 0);
    tc_headers_init(&f->headers, &f->arena);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tc_arena_fini(&f->arena);
    tc_free(f);
    return 0;
}

static void add(struct fixture *f, const char *name, const char *value)
{
    assert_int_equal(tc_headers_add(&f->headers, tc_slice_str(name), tc_slice_str(value)), 0);
}

static struct tc_hash_policy header(const char *name, bool terminal)
{
    return (struct tc_hash_policy){.kind = TC_HASH_HEADER, .terminal = terminal, .header = tc_slice_str(name)};
}

static struct tc_hash_policy channel_id(bool terminal)
{
    return (struct tc_hash_policy){.kind = TC_HASH_CHANNEL_ID, .terminal = terminal};
}

/* Asserts the hash that the n policies give for f->headers and the channel id 7. */
static void assert_hash(struct fixture *f, const struct tc_hash_policy *p, size_t n, uint64_t expected)
{
    uint64_t hash = 0;
    assert_true(tc_hash_policies_compute(p, n, &f->headers, 7, &hash));
    assert_true(hash == expected);
}

static void header_value_is_hashed(void **state)
{
    TC_CASE(HP01);
    struct fixture *f = *state;
    add(f, "k", "grpc value");
    add(f, "empty", "");
    assert_hash(f, (struct tc_hash_policy[]){header("k", false)}, 1, 0x39e1df386a5817a5u);
    assert_hash(f, (struct tc_hash_policy[]){header("empty", false)}, 1, 0xef46db3751d8e999u);
}

static void values_of_one_name_are_joined(void **state)
{
    TC_CASE(HP02);
    struct fixture *f = *state;
    add(f, "k", "a");
    add(f, "other", "x");
    add(f, "k", "b");
    assert_hash(f, (struct tc_hash_policy[]){header("k", false)}, 1, 0xf0e4978678bbcc60u);
}

static void binary_headers_give_nothing(void **state)
{
    TC_CASE(HP03);
    struct fixture *f = *state;
    uint64_t hash = 99;
    add(f, "k-bin", "a");
    struct tc_hash_policy p = header("k-bin", true);
    assert_false(tc_hash_policies_compute(&p, 1, &f->headers, 7, &hash));
    assert_true(hash == 99);
}

static void content_type_is_the_librarys(void **state)
{
    TC_CASE(HP04);
    struct fixture *f = *state;
    add(f, "content-type", "text/html");
    assert_hash(f, (struct tc_hash_policy[]){header("content-type", false)}, 1,
                tc_xxh64_slice(tc_slice_str("application/grpc")));
}

static void header_is_rewritten(void **state)
{
    TC_CASE(HP05);
    TC_CASE(HP06);
    struct fixture *f = *state;
    char *why = NULL;
    add(f, "path", "/products");
    add(f, "abc", "abc");
    struct tc_hash_policy p = header("path", false);
    p.regex = tc_regex_new(tc_slice_str("/products"), NULL, &why);
    p.rewrite = tc_slice_str("/new-products");
    assert_hash(f, &p, 1, 0x639a4ec6e1c10cd8u);
    tc_regex_free(p.regex);
    p = header("abc", false);
    p.regex = tc_regex_new(tc_slice_str(""), NULL, &why);
    p.rewrite = tc_slice_str("e");
    assert_hash(f, &p, 1, 0x756f0be6bbcf0ccau);
    tc_regex_free(p.regex);
}

static void long_results_are_cut(void **state)
{
    struct fixture *f = *state;
    char *why = NULL, letters[101], rewrite[TC_REGEX_REWRITE_MAX_BYTES];
    static char expected[TC_REGEX_REPLACED_MAX_BYTES];
    memset(letters, 'a', sizeof(letters) - 1);
    letters[sizeof(letters) - 1] = '\0';
    memset(rewrite, 'x', sizeof(rewrite));
    memset(expected, 'x', sizeof(expected));
    add(f, "k", letters);
    struct tc_hash_policy p = header("k", false);
    p.regex = tc_regex_new(tc_slice_str("a"), NULL, &why);
    p.rewrite = tc_slice_of(rewrite, sizeof(rewrite));
    assert_hash(f, &p, 1, tc_xxh64_slice(tc_slice_of(expected, sizeof(expected))));
    tc_regex_free(p.regex);
}

static uint64_t rotl(uint64_t v)
{
    return (v << 1) | (v >> 63);
}

/* The rewrites of one RPC share a budget. The policy that uses it up hashes a value of which only the first matches are
 * replaced; the policies after it hash the unchanged value. */
static void rewriting_is_bounded(void **state)
{
    struct fixture *f = *state;
    char *why = NULL;
    static char text[16384], rewritten[1000];
    struct tc_hash_policy p[3];
    memset(text, 'a', sizeof(text) - 1);
    memset(rewritten, 'x', sizeof(rewritten) - 1);
    add(f, "long", text);
    text[sizeof(rewritten) - 1] = '\0';
    add(f, "k", text);
    struct tc_regex *quadratic = tc_regex_new(tc_slice_str("a(?:.*b)?"), NULL, &why);
    for (size_t i = 0; i < 3; i++) {
        p[i] = header("k", false);
        p[i].regex = quadratic;
        p[i].rewrite = tc_slice_str("x");
    }
    const uint64_t whole = tc_xxh64_slice(tc_slice_str(rewritten)), none = tc_xxh64_slice(tc_slice_str(text));
    assert_hash(f, p, 2, rotl(whole) ^ whole);
    p[0].header = tc_slice_str("long"); /* uses up the budget */
    uint64_t first = 0;
    assert_true(tc_hash_policies_compute(p, 1, &f->headers, 7, &first));
    assert_hash(f, p, 3, rotl(rotl(first) ^ none) ^ none);
    assert_hash(f, p, 1, first); /* the hash is the same each time */
    tc_regex_free(quadratic);
}

static void results_are_combined(void **state)
{
    TC_CASE(HP07);
    struct fixture *f = *state;
    const uint64_t foo = 0x33bf00a859c4ba3fu, bar = 0x48a37c90ad27a659u;
    add(f, "f", "foo");
    add(f, "b", "bar");
    assert_hash(f, (struct tc_hash_policy[]){header("f", false), header("b", false)}, 2, rotl(foo) ^ bar);
    assert_hash(f, (struct tc_hash_policy[]){header("none", false), header("b", false)}, 2, bar);
    assert_hash(f, (struct tc_hash_policy[]){header("b", false), header("none", false)}, 2, bar);
    assert_hash(f, (struct tc_hash_policy[]){header("f", false), header("b", false), channel_id(false)}, 3,
                rotl(rotl(foo) ^ bar) ^ 7);
}

static void terminal_ends_only_with_a_hash(void **state)
{
    TC_CASE(HP08);
    struct fixture *f = *state;
    const uint64_t foo = 0x33bf00a859c4ba3fu, bar = 0x48a37c90ad27a659u;
    add(f, "f", "foo");
    add(f, "b", "bar");
    assert_hash(f, (struct tc_hash_policy[]){header("f", true), header("b", false)}, 2, foo);
    assert_hash(f, (struct tc_hash_policy[]){header("none", true), header("b", false)}, 2, bar);
    /* A terminal policy without a result of its own ends the walk too when there is a hash already. */
    assert_hash(f, (struct tc_hash_policy[]){header("f", false), header("none", true), header("b", false)}, 3, foo);
    const struct tc_hash_policy cookie = {.kind = TC_HASH_NOTHING, .terminal = true};
    assert_hash(f, (struct tc_hash_policy[]){header("f", false), cookie, header("b", false)}, 3, foo);
    assert_hash(f, (struct tc_hash_policy[]){cookie, header("b", false)}, 2, bar);
}

static void none_gives_no_hash(void **state)
{
    struct fixture *f = *state;
    uint64_t hash = 1;
    struct tc_hash_policy p = header("absent", false);
    assert_false(tc_hash_policies_compute(&p, 1, &f->headers, 7, &hash));
    assert_false(tc_hash_policies_compute(NULL, 0, &f->headers, 7, &hash));
    assert_true(hash == 1);
}

static void channel_id_is_stable(void **state)
{
    struct fixture *f = *state;
    struct tc_hash_policy p = channel_id(false);
    assert_hash(f, &p, 1, 7);
    assert_hash(f, &p, 1, 7);
    uint64_t hash;
    assert_true(tc_hash_policies_compute(&p, 1, &f->headers, 8, &hash));
    assert_true(hash == 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(header_value_is_hashed, setup, teardown),
        cmocka_unit_test_setup_teardown(values_of_one_name_are_joined, setup, teardown),
        cmocka_unit_test_setup_teardown(binary_headers_give_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(content_type_is_the_librarys, setup, teardown),
        cmocka_unit_test_setup_teardown(header_is_rewritten, setup, teardown),
        cmocka_unit_test_setup_teardown(long_results_are_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(rewriting_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(results_are_combined, setup, teardown),
        cmocka_unit_test_setup_teardown(terminal_ends_only_with_a_hash, setup, teardown),
        cmocka_unit_test_setup_teardown(none_gives_no_hash, setup, teardown),
        cmocka_unit_test_setup_teardown(channel_id_is_stable, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
