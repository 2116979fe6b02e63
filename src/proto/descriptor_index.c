/* Descriptors are walked by hand (proto/wire.h): the index needs names and numbers alone, and generated code for
 * descriptor.proto would be larger than this file.
 *
 * A file is walked twice. The first walk checks that the descriptors can be read, that no other file has one of their
 * names, and that there is room for the file. The second walk adds, and cannot fail. `rules` says which fields of which
 * descriptor are descriptors that have a name.
 *
 * One table has everything that can be looked up: an entry's key is a letter (`what`) and a name; the key of an
 * extension has its number between the two. The table keeps the order of addition, so the entries of the last file are
 * at its end.
 *
 * The index owns its files, each with a copy of its bytes, and the entries, which point to their files. One thread at a
 * time. */
#include "proto/descriptor_index.h"

#include "base/buf.h"
#include "base/parse.h"
#include "base/table.h"
#include "proto/wire.h"

enum { MAX_DEPTH = 100, MAX_NAME = 4096 };

/* The first letter of a key. The rest is a file's name, a symbol's full name, or the full name of an extended message,
 * with the extension's number before it for AN_EXTENSION. */
enum what { A_FILE = 'f', A_SYMBOL = 's', AN_EXTENDEE = 'x', AN_EXTENSION = 'e' };

struct tc_descriptor_entry {
    UT_hash_handle hh;
    struct tc_descriptor_file *file;      /* the file that defines it; NULL for an extendee */
    struct tc_descriptor_numbers numbers; /* of an extendee */
    struct tc_descriptor_entry *extendee; /* of an extension */
    bool message;                         /* the symbol is a message */
    char key[];
};

/* The kinds of descriptors. The name of each is its field 1. */
enum kind { FILE_KIND, MESSAGE, ENUM, SERVICE, VALUE, EXTENSION, LEAF }; /* from VALUE on: without children */

static const struct {
    enum kind parent;
    uint64_t field;
    enum kind child;
} rules[] = {
    {FILE_KIND, 4, MESSAGE}, {FILE_KIND, 5, ENUM},  {FILE_KIND, 6, SERVICE}, {FILE_KIND, 7, EXTENSION},
    {MESSAGE, 2, LEAF},      {MESSAGE, 3, MESSAGE}, {MESSAGE, 4, ENUM},      {MESSAGE, 6, EXTENSION},
    {MESSAGE, 8, LEAF},      {ENUM, 2, VALUE},      {SERVICE, 2, LEAF},
};

enum { FILE_PACKAGE = 2, FILE_IMPORT = 3, FIELD_EXTENDEE = 2, FIELD_NUMBER = 3 };

/* One walk over a file. */
struct walk {
    struct tc_descriptor_index *x;
    struct tc_descriptor_file *file;
    bool adds;             /* the second walk */
    struct tc_status *why; /* set where a walk fails; its old content is not freed */
};

static bool malformed(struct walk *w, const char *what)
{
    *w->why = tc_status_make(TORC_STATUS_INVALID_ARGUMENT, TORC_LAYER_CODEC, "file " TC_SHOWN ": malformed: %s",
                             TC_SHOW(w->file->name), what);
    return false;
}

static bool taken(struct walk *w, const char *what, const struct tc_descriptor_file *by)
{
    *w->why = tc_status_make(TORC_STATUS_ALREADY_EXISTS, TORC_LAYER_CODEC,
                             "file " TC_SHOWN ": %s is defined by " TC_SHOWN ", too", TC_SHOW(w->file->name), what,
                             TC_SHOW(by->name));
    return false;
}

/* Counts memory of the file in the first walk. Returns false, with the reason in *why, if the index would be too
 * large; never in the second walk. */
static bool room(struct walk *w, size_t bytes)
{
    w->file->memory += w->adds ? 0 : bytes;
    if (w->adds || w->x->memory + w->file->memory <= TC_DESCRIPTOR_INDEX_MAX_BYTES)
        return true;
    *w->why = tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, TORC_LAYER_CODEC,
                             "file " TC_SHOWN ": with it the descriptors take more than %d MiB of memory",
                             TC_SHOW(w->file->name), TC_DESCRIPTOR_INDEX_MAX_BYTES >> 20);
    return false;
}

/* The 48 bytes are about what the hash table and the allocator take for an entry. */
static size_t entry_size(struct tc_slice name)
{
    return sizeof(struct tc_descriptor_entry) + 48 + name.len;
}

static bool name_is_good(struct tc_slice name)
{
    return name.len && name.len <= MAX_NAME && !memchr(name.data, '\0', name.len) && tc_utf8_valid(name);
}

/* --- the table --- */

static struct tc_buf key_of(enum what what, struct tc_slice name)
{
    struct tc_buf key = {0};
    tc_buf_append_char(&key, (char)what);
    tc_buf_append_slice(&key, name);
    return key;
}

static struct tc_descriptor_entry *entry_find(const struct tc_descriptor_index *x, enum what what, struct tc_slice name)
{
    struct tc_buf key = key_of(what, name);
    struct tc_descriptor_entry *e;
    HASH_FIND(hh, x->entries, key.data, key.len, e);
    tc_buf_fini(&key);
    return e;
}

/* Returns the entry, a new one if there is none. */
static struct tc_descriptor_entry *entry_get(struct tc_descriptor_index *x, enum what what, struct tc_slice name)
{
    struct tc_descriptor_entry *e = entry_find(x, what, name);
    if (e)
        return e;
    struct tc_buf key = key_of(what, name);
    e = tc_calloc(1, sizeof(*e) + key.len);
    memcpy(e->key, key.data, key.len);
    HASH_ADD_KEYPTR(hh, x->entries, e->key, key.len, e);
    tc_buf_fini(&key);
    return e;
}

/* --- symbols and extensions --- */

static bool symbol_visit(struct walk *w, enum kind kind, struct tc_buf *name)
{
    const struct tc_descriptor_entry *other = entry_find(w->x, A_SYMBOL, tc_buf_slice(name));
    if (!w->adds)
        return other ? taken(w, tc_buf_cstr(name), other->file) : room(w, entry_size(tc_buf_slice(name)));
    struct tc_descriptor_entry *e = entry_get(w->x, A_SYMBOL, tc_buf_slice(name));
    e->file = w->file;
    e->message = kind == MESSAGE;
    return true;
}

static struct tc_buf extension_key(struct tc_slice message, int32_t number)
{
    struct tc_buf key = {0};
    tc_buf_append(&key, &number, sizeof(number));
    tc_buf_append_slice(&key, message);
    return key;
}

const struct tc_descriptor_file *tc_descriptor_index_extension(const struct tc_descriptor_index *x,
                                                               struct tc_slice message, int32_t number)
{
    struct tc_buf key = extension_key(message, number);
    const struct tc_descriptor_entry *e = entry_find(x, AN_EXTENSION, tc_buf_slice(&key));
    tc_buf_fini(&key);
    return e ? e->file : NULL;
}

static void extension_add(struct walk *w, struct tc_slice message, int32_t number)
{
    struct tc_buf key = extension_key(message, number);
    struct tc_descriptor_entry *extendee = entry_get(w->x, AN_EXTENDEE, message);
    struct tc_descriptor_entry *e = entry_get(w->x, AN_EXTENSION, tc_buf_slice(&key));
    *tc_vec_push(&extendee->numbers.list) = number;
    e->file = w->file;
    e->extendee = extendee;
    tc_buf_fini(&key);
}

/* Visits the FieldDescriptorProto of an extension. It names the extended message as ".a.M". */
static bool extension_visit(struct walk *w, struct tc_slice bytes)
{
    struct tc_slice extendee = tc_wire_find(bytes, FIELD_EXTENDEE);
    struct tc_wire_field f;
    uint64_t number = 0;
    for (struct tc_slice rest = bytes; rest.len && tc_wire_next(&rest, &f);)
        if (f.number == FIELD_NUMBER)
            number = f.varint;
    if (extendee.len < 2 || *extendee.data != '.' || number < 1 || number > INT32_MAX)
        return malformed(w, "an extension without a message or a number");
    extendee = tc_slice_of(extendee.data + 1, extendee.len - 1);
    const struct tc_descriptor_file *other = tc_descriptor_index_extension(w->x, extendee, (int32_t)number);
    if (!w->adds)
        return other ? taken(w, "an extension", other) : room(w, 2 * entry_size(extendee));
    if (!other)
        extension_add(w, extendee, (int32_t)number);
    return true;
}

/* --- the walk --- */

static bool visit(struct walk *w, enum kind kind, struct tc_slice scope, struct tc_slice bytes, unsigned depth);

/* Visits the descriptors within a descriptor of `kind`; their names are in `scope`. */
static bool children_visit(struct walk *w, enum kind kind, struct tc_slice scope, struct tc_slice bytes, unsigned depth)
{
    struct tc_wire_field f;
    for (struct tc_slice rest = bytes; rest.len;) {
        if (!tc_wire_next(&rest, &f))
            return malformed(w, "a field that cannot be read");
        for (size_t i = 0; i < TC_ARRAY_LEN(rules); i++)
            if (f.is_bytes && rules[i].parent == kind && rules[i].field == f.number &&
                !visit(w, rules[i].child, scope, f.value, depth + 1))
                return false;
    }
    return true;
}

static bool visit(struct walk *w, enum kind kind, struct tc_slice scope, struct tc_slice bytes, unsigned depth)
{
    struct tc_slice name = tc_wire_find(bytes, 1);
    struct tc_buf full = {0};
    if (depth > MAX_DEPTH)
        return malformed(w, "more than 100 messages within each other");
    if (!name_is_good(name))
        return malformed(w, "a name");
    tc_buf_append_slice(&full, scope);
    if (scope.len)
        tc_buf_append_char(&full, '.');
    tc_buf_append_slice(&full, name);
    if (full.len > MAX_NAME) {
        tc_buf_fini(&full);
        return malformed(w, "a full name of more than 4096 bytes");
    }
    bool good = symbol_visit(w, kind, &full) && (kind != EXTENSION || extension_visit(w, bytes)) &&
                /* The values of an enum are named beside it, as in C++. */
                (kind >= VALUE || children_visit(w, kind, kind == ENUM ? scope : tc_buf_slice(&full), bytes, depth));
    tc_buf_fini(&full);
    return good;
}

/* --- files --- */

static void file_free(struct tc_descriptor_file *f)
{
    tc_vec_fini(&f->imports);
    tc_free(f->name);
    tc_free(f);
}

/* Copies the bytes behind the struct. */
static struct tc_descriptor_file *file_new(struct tc_slice bytes, struct tc_slice name)
{
    struct tc_descriptor_file *f = tc_calloc(1, sizeof(*f) + bytes.len);
    memcpy(f + 1, bytes.data, bytes.len);
    f->bytes = tc_slice_of(f + 1, bytes.len);
    f->name = tc_malloc(name.len + 1);
    memcpy(f->name, name.data, name.len);
    f->name[name.len] = '\0';
    return f;
}

/* Walks over the file; the names in it are in the scope of its package. */
static bool file_visit(struct walk *w)
{
    struct tc_slice package = tc_wire_find(w->file->bytes, FILE_PACKAGE);
    if (package.len && !name_is_good(package))
        return malformed(w, "the package");
    return children_visit(w, FILE_KIND, package, w->file->bytes, 0);
}

static bool imports_read(struct walk *w)
{
    struct tc_wire_field f;
    for (struct tc_slice rest = w->file->bytes; rest.len && tc_wire_next(&rest, &f);) {
        if (!f.is_bytes || f.number != FILE_IMPORT)
            continue;
        if (!room(w, 2 * sizeof(f.value))) /* the list grows by doubling */
            return false;
        *tc_vec_push(&w->file->imports) = f.value;
    }
    return true;
}

static int refuse(struct tc_status *why, int rc, const char *what, const char *name)
{
    *why = tc_status_make(rc == TORC_EEXIST ? TORC_STATUS_ALREADY_EXISTS : TORC_STATUS_INVALID_ARGUMENT,
                          TORC_LAYER_CODEC, "%s" TC_SHOWN, what, TC_SHOW(name));
    return rc;
}

int tc_descriptor_index_add(struct tc_descriptor_index *x, struct tc_slice bytes, struct tc_status *why)
{
    struct tc_slice name = bytes.len ? tc_wire_find(bytes, 1) : bytes;
    if (!name_is_good(name))
        return refuse(why, TORC_EPARSE, "malformed: a file without a name", "");
    const struct tc_descriptor_file *other = tc_descriptor_index_file(x, name);
    if (other)
        return tc_slice_eq(other->bytes, bytes) ? 0
                                                : refuse(why, TORC_EEXIST, "another file has the name ", other->name);
    struct tc_descriptor_file *file = file_new(bytes, name);
    struct walk w = {.x = x, .file = file, .why = why};
    if (!room(&w, sizeof(*file) + bytes.len + 2 * entry_size(name)) || !imports_read(&w) || !file_visit(&w)) {
        file_free(file);
        return why->code == TORC_STATUS_ALREADY_EXISTS       ? TORC_EEXIST
               : why->code == TORC_STATUS_RESOURCE_EXHAUSTED ? TORC_ELIMIT
                                                             : TORC_EPARSE;
    }
    file->entries_before = HASH_COUNT(x->entries);
    w.adds = true;
    file_visit(&w);
    file->index = x->files.len;
    *tc_vec_push(&x->files) = file;
    entry_get(x, A_FILE, name)->file = file;
    x->memory += file->memory;
    return 0;
}

void tc_descriptor_index_cut(struct tc_descriptor_index *x, size_t n)
{
    while (x->files.len > n) {
        struct tc_descriptor_file *file = x->files.data[--x->files.len];
        while (HASH_COUNT(x->entries) > file->entries_before) {
            struct tc_descriptor_entry *e = ELMT_FROM_HH(x->entries->hh.tbl, x->entries->hh.tbl->tail);
            HASH_DEL(x->entries, e);
            if (e->extendee)
                e->extendee->numbers.list.len--;
            tc_vec_fini(&e->numbers.list);
            tc_free(e);
        }
        x->memory -= file->memory;
        file_free(file);
    }
}

void tc_descriptor_index_fini(struct tc_descriptor_index *x)
{
    tc_descriptor_index_cut(x, 0);
    tc_vec_fini(&x->files);
}

/* --- lookups --- */

const struct tc_descriptor_file *tc_descriptor_index_file(const struct tc_descriptor_index *x, struct tc_slice name)
{
    const struct tc_descriptor_entry *e = entry_find(x, A_FILE, name);
    return e ? e->file : NULL;
}

const struct tc_descriptor_file *tc_descriptor_index_symbol(const struct tc_descriptor_index *x, struct tc_slice name)
{
    const struct tc_descriptor_entry *e = entry_find(x, A_SYMBOL, name);
    return e ? e->file : NULL;
}

bool tc_descriptor_index_message(const struct tc_descriptor_index *x, struct tc_slice name)
{
    const struct tc_descriptor_entry *e = entry_find(x, A_SYMBOL, name);
    return e && e->message;
}

const struct tc_descriptor_numbers *tc_descriptor_index_extensions(const struct tc_descriptor_index *x,
                                                                   struct tc_slice message)
{
    const struct tc_descriptor_entry *e = entry_find(x, AN_EXTENDEE, message);
    return e ? &e->numbers : NULL;
}
