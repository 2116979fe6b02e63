/* The index of file descriptors: files found by name, and by the symbols and extensions that they define; files that
 * are refused; the bound on memory; and files that are taken out again.
 *
 * The tests write each descriptor field by field, with the numbers of descriptor.proto; malformed ones may have other
 * bytes, too. A descriptor is a tc_buf of its bytes; put_part and add free the descriptor that they are given. The
 * index keeps a copy of each file until tc_descriptor_index_cut or tc_descriptor_index_fini. One thread. */
#include "proto/descriptor_index.h"

#include <stdio.h>

#include "base/buf.h"
#include "proto/wire.h"
#include "support/cmocka.h"

/* Appends a text field to a descriptor. */
static void put(struct tc_buf *b, unsigned number, const char *text)
{
    tc_wire_append(b, number, tc_slice_str(text));
}

/* Appends `part` as a field and frees it. */
static void put_part(struct tc_buf *b, unsigned number, struct tc_buf *part)
{
    tc_wire_append(b, number, tc_buf_slice(part));
    tc_buf_fini(part);
}

static void put_number(struct tc_buf *b, unsigned number, uint64_t value)
{
    tc_wire_append_varint(b, number << 3 | TC_WIRE_VARINT);
    tc_wire_append_varint(b, value);
}

/* Returns a descriptor that has only a name. The caller frees it. */
static struct tc_buf named(const char *name)
{
    struct tc_buf b = {0};
    put(&b, 1, name);
    return b;
}

static void put_named(struct tc_buf *b, unsigned number, const char *name)
{
    struct tc_buf part = named(name);
    put_part(b, number, &part);
}

/* Returns a file that has a name and a package (NULL: none). The caller frees it. */
static struct tc_buf file_of(const char *name, const char *package)
{
    struct tc_buf b = named(name);
    if (package)
        put(&b, 2, package);
    return b;
}

/* Appends an extension of the message `extendee` (".a.M") as a field. */
static void put_extension(struct tc_buf *b, unsigned field, const char *name, const char *extendee, uint64_t number)
{
    struct tc_buf e = named(name);
    put(&e, 2, extendee);
    put_number(&e, 3, number);
    put_part(b, field, &e);
}

/* Returns a/b.proto, package a.b, which imports c.proto and d.proto: message M { field f; oneof o; message N { g };
 * enum E { V }; extension within of x.Y }, enum T { W }, service S { method C }, extension e of x.Y. The caller frees
 * it. */
static struct tc_buf whole_file(void)
{
    struct tc_buf file = file_of("a/b.proto", "a.b"), m = named("M"), n = named("N"), e = named("E"), t = named("T"),
                  s = named("S");
    put_named(&m, 2, "f");
    put_named(&m, 8, "o");
    put_named(&n, 2, "g");
    put_part(&m, 3, &n);
    put_named(&e, 2, "V");
    put_part(&m, 4, &e);
    put_extension(&m, 6, "within", ".x.Y", 200);
    put_named(&t, 2, "W");
    put_named(&s, 2, "C");
    put(&file, 3, "c.proto");
    put(&file, 3, "d.proto");
    put_part(&file, 4, &m);
    put_part(&file, 5, &t);
    put_part(&file, 6, &s);
    put_extension(&file, 7, "e", ".x.Y", 100);
    return file;
}

/* Adds the file and frees it. Asserts the result and the text of the error (NULL: not compared). */
static void add(struct tc_descriptor_index *x, struct tc_buf *file, int rc, const char *text)
{
    struct tc_status why = {0};
    assert_int_equal(tc_descriptor_index_add(x, tc_buf_slice(file), &why), rc);
    if (text)
        assert_string_equal(tc_status_text(&why), text);
    tc_status_fini(&why);
    tc_buf_fini(file);
}

/* Returns the name of the file that defines the symbol, borrowed from the index; "none" if there is no such file. */
static const char *file_with(const struct tc_descriptor_index *x, const char *symbol)
{
    const struct tc_descriptor_file *f = tc_descriptor_index_symbol(x, tc_slice_str(symbol));
    return f ? f->name : "none";
}

static void finds_what_a_file_defines(void **state)
{
    (void)state;
    static const char *const symbols[] = {"a.b.M",   "a.b.M.f", "a.b.M.o",     "a.b.M.N", "a.b.M.N.g",
                                          "a.b.M.E", "a.b.M.V", "a.b.T",       "a.b.W",   "a.b.S",
                                          "a.b.S.C", "a.b.e",   "a.b.M.within"};
    static const char *const others[] = {"",       "a",         "a.b",     "M",      "a.b.M.",
                                         ".a.b.M", "a.b.M.E.V", "a.b.T.W", "a.b.MN", "x.Y"};
    struct tc_descriptor_index x = {0};
    struct tc_buf file = whole_file();
    add(&x, &file, 0, NULL);
    for (size_t i = 0; i < TC_ARRAY_LEN(symbols); i++)
        assert_string_equal(file_with(&x, symbols[i]), "a/b.proto");
    for (size_t i = 0; i < TC_ARRAY_LEN(others); i++)
        assert_string_equal(file_with(&x, others[i]), "none");
    const struct tc_descriptor_file *f = tc_descriptor_index_file(&x, tc_slice_str("a/b.proto"));
    assert_int_equal(f->imports.len, 2);
    assert_true(tc_slice_eq_str(f->imports.data[1], "d.proto"));
    assert_null(tc_descriptor_index_file(&x, tc_slice_str("b.proto")));
    tc_descriptor_index_fini(&x);
}

static void finds_extensions(void **state)
{
    (void)state;
    struct tc_descriptor_index x = {0};
    struct tc_buf file = whole_file(), other = file_of("o.proto", NULL);
    put_extension(&other, 7, "h", ".x.Y", 150);
    put_extension(&other, 7, "k", ".x.Z", 1);
    add(&x, &file, 0, NULL);
    add(&x, &other, 0, NULL);
    const struct tc_descriptor_numbers *e = tc_descriptor_index_extensions(&x, tc_slice_str("x.Y"));
    assert_int_equal(e->list.len, 3);
    assert_int_equal(e->list.data[0], 200); /* in the order of addition */
    assert_int_equal(e->list.data[1], 100);
    assert_int_equal(e->list.data[2], 150);
    assert_string_equal(tc_descriptor_index_extension(&x, tc_slice_str("x.Y"), 150)->name, "o.proto");
    assert_string_equal(tc_descriptor_index_extension(&x, tc_slice_str("x.Y"), 200)->name, "a/b.proto");
    assert_null(tc_descriptor_index_extension(&x, tc_slice_str("x.Y"), 151));
    assert_null(tc_descriptor_index_extension(&x, tc_slice_str("x.Y"), 201));
    assert_null(tc_descriptor_index_extension(&x, tc_slice_str("a.b.M"), 100));
    assert_null(tc_descriptor_index_extensions(&x, tc_slice_str("a.b.M")));
    tc_descriptor_index_fini(&x);
}

static void refuses_what_is_there(void **state)
{
    (void)state;
    struct tc_descriptor_index x = {0};
    struct tc_buf file = whole_file(), same = whole_file(), renamed = file_of("a/b.proto", "z"),
                  symbol = file_of("n.proto", "a"), extension = file_of("p.proto", NULL), b = named("b");
    add(&x, &file, 0, NULL);
    add(&x, &same, 0, NULL);
    add(&x, &renamed, TORC_EEXIST, "another file has the name a/b.proto");
    put_named(&symbol, 4, "Own");
    put_named(&b, 4, "S"); /* an enum of message a.b: its full name is a.b.S */
    put_part(&symbol, 4, &b);
    add(&x, &symbol, TORC_EEXIST, "file n.proto: a.b.S is defined by a/b.proto, too");
    put_extension(&extension, 7, "q", ".x.Y", 100);
    add(&x, &extension, TORC_EEXIST, "file p.proto: an extension is defined by a/b.proto, too");
    assert_string_equal(file_with(&x, "a.Own"), "none");
    assert_string_equal(file_with(&x, "q"), "none");
    assert_int_equal(x.files.len, 1);
    tc_descriptor_index_fini(&x);
}

/* Every prefix of a file, and the file with each byte changed in two ways, is refused or added. Each lies in a block of
 * exactly its size, so that a sanitizer sees a read beyond the end. */
static void survives_malformed_files(void **state)
{
    (void)state;
    struct tc_buf whole = whole_file();
    for (size_t i = 0; i < whole.len; i++) {
        for (unsigned change = 0; change < 3; change++) {
            struct tc_descriptor_index x = {0};
            struct tc_status why = {0};
            size_t len = change ? whole.len : i;
            char *bytes = tc_malloc(len);
            memcpy(bytes, whole.data, len);
            if (change)
                bytes[i] = (char)(change == 1 ? 0xff : bytes[i] ^ 0x21);
            int rc = tc_descriptor_index_add(&x, tc_slice_of(bytes, len), &why);
            assert_true(rc == 0 || rc == TORC_EPARSE);
            tc_status_fini(&why);
            tc_free(bytes);
            tc_descriptor_index_fini(&x);
        }
    }
    tc_buf_fini(&whole);
}

static void refuses_malformed_files(void **state)
{
    (void)state;
    struct tc_descriptor_index x = {0};
    struct tc_buf empty = {0}, nameless = file_of("n.proto", "p"), zero = file_of("z.proto", NULL),
                  cut = file_of("c.proto", NULL), deep = named("M"), file = file_of("deep.proto", NULL), part = {0};
    add(&x, &empty, TORC_EPARSE, "malformed: a file without a name");
    put_number(&part, 9, 1);
    put_part(&nameless, 4, &part);
    add(&x, &nameless, TORC_EPARSE, "file n.proto: malformed: a name");
    put_extension(&zero, 7, "e", ".x.Y", 0);
    add(&x, &zero, TORC_EPARSE, "file z.proto: malformed: an extension without a message or a number");
    tc_buf_append(&cut, "\x22\x7f", 2); /* a message of 127 bytes that are not there */
    add(&x, &cut, TORC_EPARSE, "file c.proto: malformed: a field that cannot be read");
    for (int i = 0; i < 100; i++) {
        struct tc_buf outer = named("M");
        put_part(&outer, 3, &deep);
        deep = outer;
    }
    put_part(&file, 4, &deep);
    add(&x, &file, TORC_EPARSE, "file deep.proto: malformed: more than 100 messages within each other");
    assert_int_equal(x.files.len, 0);
    assert_null(x.entries);
    tc_descriptor_index_fini(&x);
}

/* Returns a file of `n` small descriptors, whose full names have a little more than `scope` bytes. Each full name
 * contains the file's name, so files of different names share no symbol. The caller frees the file. */
static struct tc_buf long_names(const char *name, size_t scope, unsigned n)
{
    char text[4096], small[16];
    struct tc_buf file = file_of(name, NULL), m;
    memset(text, 's', scope);
    snprintf(text + scope, sizeof(text) - scope, "%s", name);
    m = named(text);
    for (unsigned i = 0; i < n; i++) {
        snprintf(small, sizeof(small), "f%u", i);
        put_named(&m, 2, small);
    }
    put_part(&file, 4, &m);
    return file;
}

/* Small descriptors may have long names, so the index bounds its memory. A file that was refused or taken out again
 * does not count. */
static void holds_so_much_at_most(void **state)
{
    (void)state;
    struct tc_descriptor_index x = {0};
    struct tc_buf file = long_names("large.proto", 4000, 100000), imports = file_of("imports.proto", NULL);
    assert_true(file.len < 2 << 20);
    add(&x, &file, TORC_ELIMIT, "file large.proto: with it the descriptors take more than 256 MiB of memory");
    for (size_t i = 0; i <= (256 << 20) / (2 * sizeof(struct tc_slice)); i++)
        tc_buf_append(&imports, "\x1a\x00", 2);
    add(&x, &imports, TORC_ELIMIT, "file imports.proto: with it the descriptors take more than 256 MiB of memory");
    assert_int_equal(x.memory, 0);
    for (int i = 0; i < 3; i++) {
        file = long_names("half.proto", 4000, 40000);
        add(&x, &file, 0, NULL);
        file = long_names("other.proto", 3999, 40000);
        add(&x, &file, TORC_ELIMIT, "file other.proto: with it the descriptors take more than 256 MiB of memory");
        assert_in_range(x.memory, 150 << 20, 180 << 20);
        tc_descriptor_index_cut(&x, 0);
        assert_int_equal(x.memory, 0);
        assert_null(x.entries);
    }
    tc_descriptor_index_fini(&x);
}

/* Files that are taken out leave no name behind. Earlier files keep theirs. */
static void takes_files_out(void **state)
{
    (void)state;
    struct tc_descriptor_index x = {0};
    for (int i = 0; i < 2; i++) {
        struct tc_buf first = whole_file(), second = file_of("o.proto", "o");
        add(&x, &first, 0, NULL);
        put_named(&second, 4, "M");
        put_extension(&second, 7, "h", ".x.Y", 150);
        put_extension(&second, 7, "k", ".x.Z", 1);
        add(&x, &second, 0, NULL);
        assert_string_equal(file_with(&x, "o.M"), "o.proto");
        tc_descriptor_index_cut(&x, 1);
        assert_string_equal(file_with(&x, "o.M"), "none");
        assert_null(tc_descriptor_index_file(&x, tc_slice_str("o.proto")));
        assert_null(tc_descriptor_index_extension(&x, tc_slice_str("x.Y"), 150));
        assert_null(tc_descriptor_index_extensions(&x, tc_slice_str("x.Z")));
        assert_int_equal(tc_descriptor_index_extensions(&x, tc_slice_str("x.Y"))->list.len, 2);
        assert_string_equal(tc_descriptor_index_extension(&x, tc_slice_str("x.Y"), 100)->name, "a/b.proto");
        assert_string_equal(file_with(&x, "a.b.M"), "a/b.proto");
    }
    tc_descriptor_index_cut(&x, 7);
    assert_int_equal(x.files.len, 1);
    tc_descriptor_index_fini(&x);
}

/* A message's list of extensions keeps the order of addition. The numbers fall here: in a list sorted by number each
 * addition would move all others. */
static void takes_extensions_in_any_order(void **state)
{
    enum { N = 100000 };
    (void)state;
    struct tc_descriptor_index x = {0};
    struct tc_buf file = file_of("falling.proto", NULL);
    char name[16];
    for (unsigned i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "e%u", i);
        put_extension(&file, 7, name, ".x.Y", N - i);
    }
    add(&x, &file, 0, NULL);
    const struct tc_descriptor_numbers *e = tc_descriptor_index_extensions(&x, tc_slice_str("x.Y"));
    assert_int_equal(e->list.len, N);
    for (int32_t i = 0; i < N; i++)
        assert_int_equal(e->list.data[i], N - i);
    assert_string_equal(tc_descriptor_index_extension(&x, tc_slice_str("x.Y"), N / 2)->name, "falling.proto");
    tc_descriptor_index_fini(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_a_file_defines), cmocka_unit_test(finds_extensions),
        cmocka_unit_test(refuses_what_is_there),     cmocka_unit_test(survives_malformed_files),
        cmocka_unit_test(refuses_malformed_files),   cmocka_unit_test(holds_so_much_at_most),
        cmocka_unit_test(takes_files_out),           cmocka_unit_test(takes_extensions_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
