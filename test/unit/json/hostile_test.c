/* Files of many descriptors of one kind: the time of the descriptor index, the schema, its link and its text does not
 * grow with the square of their number. Four times the descriptors may take ten times the CPU time plus 0.2 s: a cost
 * that grows with the square would take sixteen times. Each function of `rows` appends `n` descriptors of its kind, and
 * what they need, to a file of package p that is empty otherwise. many_links measures many files, each linked by
 * itself. texts_of_many_files does not measure: a walk would crash on a NULL. */
#include <time.h>

#include "kit.h"
#include "proto/descriptor_index.h"

enum { N = 100000 };

/* Returns the name with a number appended, valid until the second call after this one. */
static const char *numbered(const char *name, unsigned i)
{
    static char texts[2][32];
    static unsigned n;
    char *text = texts[n++ % 2];
    snprintf(text, sizeof(texts[0]), "%s%u", name, i);
    return text;
}

/* Appends a descriptor that has only a name, as field `number`. */
static void put_named(struct tc_buf *b, unsigned number, const char *name)
{
    struct tc_buf part = {0};
    put_text(&part, 1, name);
    put_part(b, number, &part);
}

/* Adds the message M to the file. `m` is its content after the name. Frees `m`. */
static void put_message(struct tc_buf *file, struct tc_buf *m)
{
    struct tc_buf whole = {0};
    put_text(&whole, 1, "M");
    tc_buf_append_slice(&whole, tc_buf_slice(m));
    tc_buf_fini(m);
    put_part(file, 4, &whole);
}

/* Returns a descriptor of the range from `from` to `to` - 1. The caller frees the buffer. */
static struct tc_buf range_of(unsigned from, unsigned to)
{
    struct tc_buf r = {0};
    put_number(&r, 1, from);
    put_number(&r, 2, to);
    return r;
}

/* Returns the i-th number that a field may have, from 0 on: 19000 to 19999 are left out. */
static unsigned number_of(unsigned i)
{
    return i < 18999 ? i + 1 : i + 1001;
}

/* --- files --- */

static void imports(struct tc_buf *file, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        put_text(file, 3, numbered("i", i));
}

static void one_import(struct tc_buf *file, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        put_text(file, 3, "i");
}

static void public_imports(struct tc_buf *file, unsigned n)
{
    put_text(file, 3, "i");
    for (unsigned i = 0; i < n; i++)
        put_number(file, 10, i);
}

static void messages(struct tc_buf *file, unsigned n)
{
    for (unsigned i = n; i-- > 0;)
        put_named(file, 4, numbered("M", i));
}

static void nested(struct tc_buf *file, unsigned n)
{
    struct tc_buf m = {0};
    for (unsigned i = 0; i < n; i++)
        put_named(&m, 3, numbered("N", i));
    put_message(file, &m);
}

/* Messages within one another. sizes[i] is the size of a message with i - 1 others inside. */
static void deep(struct tc_buf *file, unsigned n)
{
    size_t *sizes = tc_calloc(n + 1, sizeof(*sizes));
    for (unsigned i = 0; i < n; i++) {
        struct tc_buf head = {0};
        tc_wire_append_head(&head, 3, sizes[i]);
        sizes[i + 1] = 3 + (i ? head.len + sizes[i] : 0);
        tc_buf_fini(&head);
    }
    for (unsigned i = n; i > 0; i--) {
        tc_wire_append_head(file, i == n ? 4 : 3, sizes[i]);
        put_text(file, 1, "M");
    }
    tc_free(sizes);
}

static void fields(struct tc_buf *file, unsigned n)
{
    struct tc_buf m = {0};
    for (unsigned i = n; i-- > 0;)
        put_field(&m, numbered("f", i), number_of(i), OPTIONAL, AN_INT32, NULL);
    put_message(file, &m);
}

static void maps(struct tc_buf *file, unsigned n)
{
    struct tc_buf m = {0};
    for (unsigned i = 0; i < n; i++) {
        struct tc_buf entry = {0};
        put_text(&entry, 1, numbered("E", i));
        put_field(&entry, "key", 1, OPTIONAL, AN_INT32, NULL);
        put_field(&entry, "value", 2, OPTIONAL, A_STRING, NULL);
        tc_buf_append(&entry, "\x3a\x02\x38\x01", 4); /* map_entry */
        put_part(&m, 3, &entry);
        put_field(&m, numbered("f", i), number_of(i), REPEATED, A_MESSAGE, numbered(".p.M.E", i));
    }
    put_message(file, &m);
}

/* Appends the message M with `n` fields in `n_oneofs` oneofs. */
static void put_oneofs(struct tc_buf *file, unsigned n, unsigned n_oneofs)
{
    struct tc_buf m = {0};
    for (unsigned i = 0; i < n; i++) {
        struct tc_buf f = field_of(numbered("f", i), number_of(i), OPTIONAL, AN_INT32, NULL);
        put_number(&f, 9, i % n_oneofs);
        put_part(&m, 2, &f);
        if (i < n_oneofs)
            put_named(&m, 8, numbered("o", i));
    }
    put_message(file, &m);
}

static void oneofs(struct tc_buf *file, unsigned n)
{
    put_oneofs(file, n, n);
}

static void members_of_a_oneof(struct tc_buf *file, unsigned n)
{
    put_oneofs(file, n, 1);
}

/* Appends an enum of `n` values, each with a number of its own, or all with 0 (`one`). */
static void put_values(struct tc_buf *file, unsigned n, bool one)
{
    struct tc_buf e = {0};
    put_text(&e, 1, "E");
    for (unsigned i = 0; i < n; i++) {
        struct tc_buf v = {0};
        put_text(&v, 1, numbered("V", i));
        put_number(&v, 2, one ? 0 : n - 1 - i);
        put_part(&e, 2, &v);
    }
    put_part(file, 5, &e);
}

static void values(struct tc_buf *file, unsigned n)
{
    put_values(file, n, false);
}

static void values_of_one_number(struct tc_buf *file, unsigned n)
{
    put_values(file, n, true);
}

static void reserved_ranges(struct tc_buf *file, unsigned n)
{
    struct tc_buf m = {0};
    for (unsigned i = 0; i < n; i++) {
        struct tc_buf range = range_of(1, n - i + 1);
        put_part(&m, 9, &range);
    }
    put_message(file, &m);
}

static void reserved_names(struct tc_buf *file, unsigned n)
{
    struct tc_buf m = {0};
    for (unsigned i = 0; i < n; i++)
        put_text(&m, 10, "r");
    put_message(file, &m);
}

/* Appends the message M with `n_ranges` extension ranges, and `n` extensions of M. */
static void put_extensions(struct tc_buf *file, unsigned n, unsigned n_ranges)
{
    struct tc_buf m = {0};
    for (unsigned i = 0; i < n_ranges; i++) {
        struct tc_buf range = range_of(1, (1 << 29) - i);
        put_part(&m, 5, &range);
    }
    put_message(file, &m);
    for (unsigned i = n; i-- > 0;) {
        struct tc_buf f = field_of(numbered("e", i), number_of(i), OPTIONAL, AN_INT32, NULL);
        put_text(&f, 2, ".p.M");
        put_part(file, 7, &f);
    }
}

static void extensions(struct tc_buf *file, unsigned n)
{
    put_extensions(file, n, 1);
}

static void extension_ranges(struct tc_buf *file, unsigned n)
{
    put_extensions(file, 1000, n);
}

static void services(struct tc_buf *file, unsigned n)
{
    for (unsigned i = n; i-- > 0;)
        put_named(file, 6, numbered("S", i));
}

static void methods(struct tc_buf *file, unsigned n)
{
    struct tc_buf s = {0}, m = {0};
    put_message(file, &m);
    put_text(&s, 1, "S");
    for (unsigned i = 0; i < n; i++) {
        struct tc_buf method = {0};
        put_text(&method, 1, numbered("m", i));
        put_text(&method, 2, ".p.M");
        put_text(&method, 3, ".p.M");
        put_part(&s, 2, &method);
    }
    put_part(file, 6, &s);
}

/* --- the cost --- */

/* The codes are those that N descriptors give. */
static const struct row {
    const char *name;
    void (*fill)(struct tc_buf *file, unsigned n);
    int index_code, schema_code;
} rows[] = {
    {"imports", imports, 0, TORC_ELIMIT},
    {"one import, many times", one_import, 0, 0},
    {"public imports", public_imports, 0, 0},
    {"messages", messages, 0, 0},
    {"messages in a message", nested, 0, 0},
    {"messages within one another", deep, TORC_EPARSE, TORC_ELIMIT},
    {"fields", fields, 0, TORC_ELIMIT},
    {"maps", maps, 0, TORC_ELIMIT},
    {"oneofs", oneofs, 0, TORC_ELIMIT},
    {"members of a oneof", members_of_a_oneof, 0, TORC_ELIMIT},
    {"values", values, 0, 0},
    {"values of one number", values_of_one_number, 0, 0},
    {"reserved ranges", reserved_ranges, 0, 0},
    {"reserved names", reserved_names, 0, 0},
    {"extensions", extensions, 0, TORC_ELIMIT},
    {"extension ranges", extension_ranges, 0, 0},
    {"services", services, 0, 0},
    {"methods", methods, 0, 0},
};

static double cpu_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Returns the CPU time in seconds that `n` descriptors cost. Stores the codes of the index and of the schema. */
static double cost(const struct row *row, unsigned n, int *index_code, int *schema_code)
{
    struct tc_descriptor_index x = {0};
    struct tc_status why = {0};
    struct tc_buf file = file_of("hostile.proto", "p");
    torc_schema *s = torc_schema_new();
    row->fill(&file, n);
    double begin = cpu_seconds();
    *index_code = tc_descriptor_index_add(&x, tc_buf_slice(&file), &why);
    tc_descriptor_index_fini(&x);
    *schema_code = torc_schema_add_file(s, file.data, file.len, NULL);
    if (*schema_code == 0)
        *schema_code = torc_schema_link(s, NULL);
    char *text = torc_schema_describe(s, "hostile.proto", NULL);
    assert_int_equal(text != NULL, *schema_code == 0);
    torc_free(text);
    torc_schema_free(s);
    double seconds = cpu_seconds() - begin;
    tc_status_fini(&why);
    tc_buf_fini(&file);
    return seconds;
}

static void many_of_a_kind(void **state)
{
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        int index_code, schema_code;
        double some = cost(&rows[i], N / 4, &index_code, &schema_code), all;
        all = cost(&rows[i], N, &index_code, &schema_code);
        if (all > 10 * some + 0.2)
            fail_msg("%s: %.3f s, and a quarter %.3f s", rows[i].name, all, some);
        if (index_code != rows[i].index_code || schema_code != rows[i].schema_code)
            fail_msg("%s: %d and %d", rows[i].name, index_code, schema_code);
    }
}

/* Returns the CPU time in seconds of `n` files that are added and linked one after the other, after a file whose
 * message has an extension range. */
static double cost_of_links(unsigned n)
{
    torc_schema *s = torc_schema_new();
    struct tc_buf file = file_of("first.proto", "p");
    put_named(&file, 6, "S");
    put_extensions(&file, 0, 1);
    double begin = cpu_seconds();
    assert_int_equal(add(s, &file, NULL), 0);
    for (unsigned i = n; i-- > 0;) {
        assert_int_equal(torc_schema_link(s, NULL), 0);
        file = file_of(numbered("f", i), numbered("p", i));
        put_named(&file, 4, "M");
        put_named(&file, 6, "S");
        assert_int_equal(add(s, &file, NULL), 0);
    }
    assert_int_equal(torc_schema_link(s, NULL), 0);
    assert_non_null(torc_schema_find_message(s, "p7.M"));
    assert_non_null(torc_schema_service_at(s, n));
    torc_schema_free(s);
    return cpu_seconds() - begin;
}

static void many_links(void **state)
{
    (void)state;
    double some = cost_of_links(3500), all = cost_of_links(14000);
    if (all > 10 * some + 0.2)
        fail_msg("%.3f s, and a quarter %.3f s", all, some);
}

/* The text of one file is made without a walk through the descriptors of all files: all but the file's own are NULL
 * meanwhile. */
static void texts_of_many_files(void **state)
{
    torc_schema *s = torc_schema_new();
    struct tc_buf file = file_of("large.proto", "p");
    (void)state;
    messages(&file, N);
    assert_int_equal(add(s, &file, NULL), 0);
    file = file_of("small.proto", "q");
    put_named(&file, 4, "M");
    assert_int_equal(add(s, &file, NULL), 0);
    assert_int_equal(torc_schema_link(s, NULL), 0);
    struct tc_schema_symbol **added = s->added.data, *symbol = added[N];
    struct tc_schema_symbol **gone = tc_calloc(N + 1, sizeof(*gone));
    gone[N] = symbol;
    s->added.data = gone;
    char *text = torc_schema_describe(s, "small.proto", NULL);
    s->added.data = added;
    assert_string_equal(text, "syntax = \"proto3\";\n\npackage q;\n\nmessage M {\n}\n");
    torc_free(text);
    tc_free(gone);
    torc_schema_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_of_a_kind),
        cmocka_unit_test(many_links),
        cmocka_unit_test(texts_of_many_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
