/* The cost of descriptors, messages and texts of a peer, in allocated bytes or in the length of a text. Where a loop
 * would cost time and no memory, the table that the loop would walk, or an entry of it, is NULL meanwhile: a walk would
 * crash. The library's allocator is the one below (set_up). It asserts that the system has memory, and counts: a test
 * looks at `live`, or calls count(), then what it measures, and looks at `peak` or `taken`. One thread runs all
 * tests. */
#include <torc/memory.h>

#include "kit.h"

enum { WIDE = 30000 };

static size_t live, peak, taken; /* bytes now; the most since count(); the sum of all requests since count() */

/* Stands before each allocation. `unused` keeps the memory behind it aligned. */
struct head {
    size_t size, unused;
};

static void *resize(void *ptr, size_t size)
{
    struct head *h = ptr ? (struct head *)ptr - 1 : NULL;
    live -= h ? h->size : 0;
    h = realloc(h, sizeof(*h) + size);
    assert_non_null(h);
    h->size = size;
    live += size;
    taken += size;
    peak = live > peak ? live : peak;
    return h + 1;
}

static void *take(size_t size)
{
    return resize(NULL, size);
}

static void *take_zeroed(size_t n, size_t size)
{
    return memset(resize(NULL, n * size), 0, n * size);
}

static void give(void *ptr)
{
    if (!ptr)
        return;
    live -= ((struct head *)ptr - 1)->size;
    free((struct head *)ptr - 1);
}

/* Begins to count. Returns the bytes that are allocated now. */
static size_t count(void)
{
    peak = live;
    taken = 0;
    return live;
}

static int set_up(void **state)
{
    static const struct torc_allocator counting = {TORC_SIZE(torc_allocator), take, take_zeroed, resize, give};
    (void)state;
    return torc_set_allocator(&counting);
}

/* Returns a linked schema. Its message M has a list of M, and WIDE fields with the label, each in a oneof of its own if
 * `oneofs` is set. The caller frees the schema. */
static torc_schema *wide(unsigned label, bool oneofs)
{
    struct tc_buf file = {0}, m = {0};
    torc_schema *s = torc_schema_new();
    put_text(&file, 1, "wide.proto");
    put_text(&m, 1, "M");
    put_field(&m, "list", 1, REPEATED, A_MESSAGE, ".M");
    for (unsigned i = 0; i < WIDE; i++) {
        char name[16];
        struct tc_buf f, oneof = {0};
        snprintf(name, sizeof(name), "f%u", i);
        f = field_of(name, i + 20000, label, AN_INT32, NULL);
        if (oneofs)
            put_number(&f, 9, i);
        put_part(&m, 2, &f);
        snprintf(name, sizeof(name), "o%u", i);
        put_text(&oneof, 1, name);
        if (oneofs)
            tc_wire_append(&m, 8, tc_buf_slice(&oneof));
        tc_buf_fini(&oneof);
    }
    put_part(&file, 4, &m);
    assert_int_equal(add(s, &file, NULL), 0);
    assert_int_equal(torc_schema_link(s, NULL), 0);
    return s;
}

/* Converts input that begins with a brace from JSON to bytes, while the table by_number of M is NULL. Converts other
 * input from bytes to JSON. `json` has a byte to look at even if `size` is 0. Returns the code. */
static int convert(const torc_schema *s, const char *json, size_t size, const struct torc_json_options *o)
{
    torc_schema_message *m = (torc_schema_message *)torc_schema_find_message(s, "M");
    struct tc_schema_field **by_number = m->by_number;
    void *bytes = NULL;
    char *text = NULL;
    int rc;
    if (*json == '{') {
        size_t n;
        m->by_number = NULL;
        rc = torc_json_to_bytes(s, m, json, size, o, &bytes, &n, NULL);
    } else {
        rc = torc_json_from_bytes(s, m, json, size, o, &text, NULL, NULL);
    }
    m->by_number = by_number;
    torc_free(bytes);
    torc_free(text);
    return rc;
}

/* Returns `before`, `n` times `part`, and `after`. The caller frees the buffer. */
static struct tc_buf times(const char *before, const char *part, size_t n, const char *after)
{
    struct tc_buf text = {0};
    tc_buf_append_str(&text, before);
    for (size_t i = 0; i < n; i++)
        tc_buf_append_str(&text, part);
    tc_buf_append_str(&text, after);
    return text;
}

/* A message costs what it has, not what its type might have. */
static void messages_of_wide_types(void **state)
{
    const struct torc_json_options all = {TORC_SIZE(torc_json_options), .emit_defaults = TORC_ON};
    struct tc_buf json = times("{\"list\":[", "{\"f7\":1},{},", 10000, "{}]}"), bytes = {0};
    (void)state;
    for (int i = 0; i < 20000; i++)
        tc_buf_append(&bytes, "\x0a\x00", 2);
    for (int oneofs = 0; oneofs < 2; oneofs++) {
        torc_schema *s = wide(OPTIONAL, oneofs);
        torc_schema_message *m = (torc_schema_message *)torc_schema_find_message(s, "M");
        count();
        assert_int_equal(convert(s, json.data, json.len, NULL), 0);
        assert_true(taken < 20 << 20);
        count();
        assert_int_equal(convert(s, bytes.data, bytes.len, NULL), 0);
        assert_true(taken < 4 << 20);
        /* In proto2 emit_defaults writes the list alone: the writer looks at no other field that is not set. */
        assert_int_equal(m->n_implicit, 1);
        assert_int_equal(m->n_required, 0);
        assert_int_equal(convert(s, bytes.data, bytes.len, &all), 0);
        torc_schema_free(s);
    }
    tc_buf_fini(&json);
    tc_buf_fini(&bytes);
}

/* max_bytes stops the writer in the middle of a message, too, not only between messages. A template ends soon
 * after 1 MiB. */
static void texts_of_wide_types(void **state)
{
    const struct torc_json_options all = {TORC_SIZE(torc_json_options), .emit_defaults = TORC_ON,
                                          .max_bytes = 64 << 10};
    struct tc_buf file = file_of("wide.proto", NULL), m = {0}, sent = {0};
    torc_schema *s = torc_schema_new();
    char name[4000];
    (void)state;
    memset(name, 'n', sizeof(name));
    put_text(&m, 1, "M");
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(name + 3990, 10, "%u", i);
        put_field(&m, name, i + 1, OPTIONAL, AN_INT32, NULL);
        put_number(&sent, i + 1, 1);
    }
    put_part(&file, 4, &m);
    assert_int_equal(add(s, &file, NULL), 0);
    assert_int_equal(torc_schema_link(s, NULL), 0);
    size_t before = count();
    assert_int_equal(convert(s, "", 0, &all), TORC_ELIMIT);
    assert_true(peak - before < 512 << 10);
    before = count();
    assert_int_equal(convert(s, sent.data, sent.len, &all), TORC_ELIMIT);
    assert_true(peak - before < 1 << 20);
    before = count();
    char *text = torc_schema_template(torc_schema_find_message(s, "M"));
    assert_true(strlen(text) > 1 << 20 && strlen(text) < (1 << 20) + 5000);
    torc_free(text);
    tc_buf_fini(&sent);
    torc_schema_free(s);
}

/* A template shows the first member of a oneof and steps over the others. */
static void templates_of_oneofs(void **state)
{
    struct tc_buf file = file_of("x.proto", NULL), m = {0}, oneof = {0}, f;
    torc_schema *s = torc_schema_new();
    (void)state;
    put_text(&m, 1, "M");
    put_text(&oneof, 1, "o");
    put_part(&m, 8, &oneof);
    for (unsigned i = 0; i < 3; i++) {
        f = field_of(i == 0 ? "a" : i == 1 ? "b" : "c", i + 1, OPTIONAL, AN_INT32, NULL);
        put_number(&f, 9, 0);
        put_part(&m, 2, &f);
    }
    put_part(&file, 4, &m);
    assert_int_equal(add(s, &file, NULL), 0);
    assert_int_equal(torc_schema_link(s, NULL), 0);
    torc_schema_message *type = (torc_schema_message *)torc_schema_find_message(s, "M");
    struct tc_schema_field *b = type->fields.data[1];
    type->fields.data[1] = NULL;
    char *text = torc_schema_template(type);
    type->fields.data[1] = b;
    assert_string_equal(text, "{\n  \"a\": 0\n}");
    torc_free(text);
    torc_schema_free(s);
}

/* --- memory of a conversion --- */

/* Asserts that the bytes become text, and that the conversion never holds more memory than the sum of 64 KiB, 40 bytes
 * for each byte of `bytes`, and 3 bytes for each byte of the text, whose buffer doubles as it grows. Frees `bytes`. */
static void written(const torc_schema *s, const char *type, struct tc_buf *bytes)
{
    char *text = NULL;
    size_t n = 0, before = count();
    assert_int_equal(
        torc_json_from_bytes(s, torc_schema_find_message(s, type), bytes->data, bytes->len, NULL, &text, &n, NULL), 0);
    if (peak - before > 3 * n + 40 * bytes->len + (64 << 10))
        fail_msg("%s: %zu bytes for %zu, and %zu of text", type, peak - before, bytes->len, n);
    torc_free(text);
    tc_buf_fini(bytes);
}

static void memory_of_writing(void **state)
{
    enum { N = 1 << 17 };
    torc_schema *s = kit_schema();
    struct tc_buf b = {0}, inner = {0};
    (void)state;
    for (int i = 0; i <= N; i++) /* fields that are not in order */
        tc_buf_append(&b, i % 2 ? "\x18\x01" : "\x20\x01", 2);
    written(s, ALL, &b);
    for (int i = 0; i <= N; i++) /* entries of a map */
        tc_buf_append(&b, "\x4a\x00", 2);
    written(s, OLD, &b);
    for (int i = 0; i <= N; i++) /* entries of a map, with another field between them */
        tc_buf_append(&b, "\x4a\x00\x08\x01", 4);
    written(s, OLD, &b);
    for (int i = 0; i < N; i++) /* members of a oneof, in turns */
        tc_buf_append(&b, "\x58\x01\x52\x00", 4);
    written(s, OLD, &b);
    tc_wire_append_head(&inner, 13, N);
    memset(tc_buf_reserve(&inner, N), 'x', N);
    inner.len += N;
    for (int i = 0; i < 90; i++) { /* a message within itself, at each level in two pieces */
        struct tc_buf outer = {0};
        tc_wire_append(&outer, 12, tc_buf_slice(&inner));
        tc_wire_append(&outer, 12, tc_slice_of("", 0));
        tc_buf_fini(&inner);
        inner = outer;
    }
    written(s, OLD, &inner);
    torc_schema_free(s);
}

/* The reader never holds more memory than the sum of 20 bytes for each byte of the JSON and 3 bytes for each byte of
 * the result, whose buffer doubles as it grows. A reader that stops at a max_bytes of 1 MiB holds less than 3 MiB. */
static void memory_of_reading(void **state)
{
    const struct torc_json_options small = {TORC_SIZE(torc_json_options), .max_bytes = 1 << 20};
    torc_schema *s = kit_schema();
    struct tc_buf text = {0};
    void *bytes = NULL;
    size_t size = 0, before;
    (void)state;
    tc_buf_append_str(&text, "{\"mInt64String\":{");
    for (int i = 0; i < 1 << 17; i++)
        tc_buf_printf(&text, "%s\"%d\":\"\"", i ? "," : "", i);
    tc_buf_append_str(&text, "}}");
    before = count();
    assert_int_equal(
        torc_json_to_bytes(s, torc_schema_find_message(s, ALL), text.data, text.len, NULL, &bytes, &size, NULL), 0);
    assert_true(peak - before < 3 * size + 20 * text.len);
    torc_free(bytes);
    tc_buf_fini(&text);
    /* Eight bytes for two of the text: the reader stops when it has more than max_bytes. */
    text = times("{\"rDouble\":[", "0,", 1 << 18, "0]}");
    before = count();
    assert_int_equal(
        torc_json_to_bytes(s, torc_schema_find_message(s, ALL), text.data, text.len, &small, &bytes, &size, NULL),
        TORC_ELIMIT);
    assert_true(peak - before < 3 << 20);
    tc_buf_fini(&text);
    torc_schema_free(s);
}

/* --- schemas --- */

/* Returns the descriptor of `depth` messages G within one another, and of an empty message E within the innermost. The
 * message around an inner message has two fields, a and b, and both have the inner message as their group. `full_name`
 * is that of the outermost message, with a dot in front. The caller frees the buffer. */
static struct tc_buf shared_groups(unsigned depth, const char *full_name)
{
    struct tc_buf m = {0}, name = {0};
    put_text(&m, 1, depth ? "G" : "E");
    if (depth) {
        tc_buf_printf(&name, "%s.%s", full_name, depth > 1 ? "G" : "E");
        struct tc_buf inner = shared_groups(depth - 1, tc_buf_cstr(&name));
        put_part(&m, 3, &inner);
        put_field(&m, "a", 1, OPTIONAL, A_GROUP, tc_buf_cstr(&name));
        put_field(&m, "b", 2, OPTIONAL, A_GROUP, tc_buf_cstr(&name));
    }
    tc_buf_fini(&name);
    return m;
}

/* A group that two fields share is written once: the text does not have 2^25 copies. */
static void groups_that_fields_share(void **state)
{
    struct tc_buf file = {0}, m = shared_groups(25, ".G");
    torc_schema *s = torc_schema_new();
    (void)state;
    put_text(&file, 1, "x.proto");
    put_part(&file, 4, &m);
    assert_int_equal(add(s, &file, NULL), 0);
    assert_int_equal(torc_schema_link(s, NULL), 0);
    char *text = torc_schema_describe(s, "G", NULL);
    assert_true(strlen(text) < 10000);
    torc_free(text);
    torc_schema_free(s);
}

/* A feature that a descriptor gives many times is written once, with its last value. */
static void features_given_again(void **state)
{
    struct tc_buf file = {0}, m = {0}, options = {0}, set = {0};
    torc_schema *s = torc_schema_new();
    (void)state;
    put_text(&file, 1, "x.proto");
    put_text(&file, 12, "editions");
    put_number(&file, 14, 1000);
    put_text(&m, 1, "M");
    for (int i = 0; i < 100000; i++)
        put_number(&set, 1, i % 2 ? 1 : 2);
    put_part(&options, 12, &set);
    put_part(&m, 7, &options);
    put_part(&file, 4, &m);
    assert_int_equal(add(s, &file, NULL), 0);
    assert_int_equal(torc_schema_link(s, NULL), 0);
    char *text = torc_schema_describe(s, "M", NULL);
    assert_string_equal(text, "message M {\n  option features.field_presence = EXPLICIT;\n}\n");
    torc_free(text);
    torc_schema_free(s);
}

/* Returns a file of `n` extensions whose descriptors are small. Their full names are long, since the message in which
 * they are defined has a long name. The caller frees the buffer. */
static struct tc_buf long_names(const char *name, unsigned n)
{
    struct tc_buf file = {0}, m = {0}, f = field_of("e", 1, OPTIONAL, AN_INT32, NULL);
    char scope[4001];
    memset(scope, 's', sizeof(scope) - 1);
    scope[sizeof(scope) - 1] = '\0';
    put_text(&file, 1, name);
    put_text(&m, 1, scope);
    put_text(&f, 2, ".M");
    for (unsigned i = 0; i < n; i++)
        tc_wire_append(&m, 6, tc_buf_slice(&f));
    tc_buf_fini(&f);
    put_part(&file, 4, &m);
    return file;
}

/* The descriptors of a schema, with their names, may take 512 MiB of memory at most. A file that is refused no longer
 * counts, and its memory is freed. */
static void memory_of_names(void **state)
{
    torc_schema *s = torc_schema_new();
    struct tc_buf file;
    size_t before = count();
    (void)state;
    for (int i = 0; i < 2; i++) {
        torc_error *error = NULL;
        file = long_names("names.proto", 100000);
        assert_int_equal(torc_schema_add_file(s, file.data, file.len, &error), TORC_ELIMIT);
        assert_non_null(strstr(torc_error_text(error), "take more than 512 MiB of memory"));
        torc_error_free(error);
        tc_buf_fini(&file);
        assert_true(peak - before < 580 << 20);
        assert_true(live - before < 16 << 20); /* the emptied array of symbols keeps its capacity */
    }
    for (int i = 0; i < 3; i++) { /* refused bytes are not among the 64 MiB */
        file = file_of("bytes.proto", "p");
        tc_wire_append_head(&file, 900, 40 << 20);
        memset(tc_buf_reserve(&file, 40 << 20), 0, 40 << 20);
        file.len += 40 << 20;
        tc_buf_append(&file, "\x22\x05", 2);
        assert_int_equal(add(s, &file, NULL), TORC_EPARSE);
    }
    file = long_names("names.proto", 10000);
    assert_int_equal(add(s, &file, NULL), 0);
    torc_schema_free(s);
    assert_true(live <= before);
}

/* The old tables of a message are not kept when the message gets another extension. */
static void memory_of_a_relink(void **state)
{
    torc_schema *s = wide(OPTIONAL, false);
    struct tc_buf file, m = {0}, range = {0};
    size_t before = 0;
    (void)state;
    file = (struct tc_buf){0};
    put_text(&file, 1, "extended.proto");
    put_text(&m, 1, "X");
    put_number(&range, 1, 1);
    put_number(&range, 2, 5000);
    put_part(&m, 5, &range);
    for (unsigned i = 0; i < WIDE; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%u", i);
        put_field(&m, name, i + 20000, OPTIONAL, AN_INT32, NULL);
    }
    put_part(&file, 4, &m);
    assert_int_equal(add(s, &file, NULL), 0);
    for (unsigned i = 1; i <= 20; i++) {
        char name[16];
        snprintf(name, sizeof(name), "e%u", i);
        struct tc_buf f = field_of(name, i, OPTIONAL, AN_INT32, NULL);
        file = (struct tc_buf){0};
        put_text(&file, 1, name);
        put_text(&f, 2, ".X");
        put_part(&file, 7, &f);
        assert_int_equal(add(s, &file, NULL), 0);
        assert_int_equal(torc_schema_link(s, NULL), 0);
        before = i == 1 ? live : before;
    }
    assert_true(live - before < 128 << 10);
    torc_schema_free(s);
}

/* The list of missing imports is made while files are added: torc_schema_missing_at does not walk the files. */
static void missing_imports(void **state)
{
    torc_schema *s = torc_schema_new();
    struct tc_buf file = file_of("x.proto", NULL);
    char name[16];
    (void)state;
    /* A name counts once among the 16384 that a schema may have, also where a file imports it many times, or imports
     * itself. */
    for (int i = 0; i < 16000; i++) {
        snprintf(name, sizeof(name), "i%d", i);
        put_text(&file, 3, name);
        put_text(&file, 3, name);
    }
    for (int i = 0; i < 1000; i++) {
        put_text(&file, 3, "i7");
        put_text(&file, 3, "x.proto");
    }
    assert_int_equal(add(s, &file, NULL), 0);
    file = file_of("y.proto", NULL);
    put_text(&file, 3, "i7");
    assert_int_equal(add(s, &file, NULL), 0);
    file = file_of("i0", NULL);
    assert_int_equal(add(s, &file, NULL), 0);
    struct tc_schema_file **files = s->files.data;
    s->files.data = NULL;
    for (int i = 0; i < 15999; i++) {
        snprintf(name, sizeof(name), "i%d", i + 1);
        assert_string_equal(torc_schema_missing_at(s, (size_t)i), name);
    }
    assert_null(torc_schema_missing_at(s, 15999));
    s->files.data = files;
    file = file_of("z.proto", NULL);
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof(name), "j%d", i);
        put_text(&file, 3, name);
    }
    assert_int_equal(add(s, &file, NULL), TORC_ELIMIT);
    assert_null(torc_schema_missing_at(s, 15999));
    assert_int_equal(torc_schema_link(s, NULL), 0);
    torc_schema_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_wide_types), cmocka_unit_test(texts_of_wide_types),
        cmocka_unit_test(templates_of_oneofs),    cmocka_unit_test(memory_of_writing),
        cmocka_unit_test(memory_of_reading),      cmocka_unit_test(groups_that_fields_share),
        cmocka_unit_test(memory_of_names),        cmocka_unit_test(memory_of_a_relink),
        cmocka_unit_test(missing_imports),        cmocka_unit_test(features_given_again),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
