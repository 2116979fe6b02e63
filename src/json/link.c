/* References between descriptors.
 *
 * Four steps (tc_schema_resolve):
 *
 *   symbols_sort    New symbols are sorted in by name. A name that is defined twice is an error.
 *   symbol_link     For each new symbol: fields, extensions and methods get their types, an extension goes to the
 *                   message that it extends, an enum gets its tables.
 *   message_sort    Each changed message (new, or with a new extension) gets its tables, by number and by name.
 *   message_check   Map entries and well-known types must have their form.
 *
 * If a step fails, link_undo takes the new symbols out again. Look-ups are binary searches, which no choice of names
 * can slow down.
 *
 * A link costs what is new, times the logarithm of what there is. Besides, pointers to old symbols are moved, all
 * between two new ones as one block. An old message changes only if it gets a new extension: its tables are then
 * rebuilt.
 *
 * Imports are not followed: all files share one name space. So imports may go in a circle, and an imported file whose
 * types nobody uses may be absent.
 *
 * Tables are blocks outside the arenas (json/model.h): schema.c frees them with their message or enum. No other thread
 * uses the schema during a link. */
#include "json/link.h"

#include <stdlib.h>

#include "json/fail.h"
#include "json/known.h"

static bool link_fail(torc_error **error, int code, const struct tc_schema_file *file, const char *who, const char *why)
{
    return tc_json_fail(error, code, "file " TC_SHOWN ": %s: %s", TC_SHOW(file->name), who, why);
}

/* --- symbols --- */

static int symbol_compare(const void *a, const void *b)
{
    return strcmp((*(struct tc_schema_symbol *const *)a)->name, (*(struct tc_schema_symbol *const *)b)->name);
}

/* Sorts `all`, whose first `old` symbols are sorted already. Returns false, with the two in `twice`, if two symbols
 * have the same name; an old one comes first. */
static bool symbols_merge(struct tc_schema_symbols *all, size_t old, struct tc_schema_symbol *twice[2])
{
    size_t n = all->len - old, high = old;
    struct tc_schema_symbol **added = tc_reallocarray(NULL, n + 1, sizeof(*added));
    bool unique = true;
    if (n)
        memcpy(added, all->data + old, n * sizeof(*added));
    qsort(added, n, sizeof(*added), symbol_compare);
    for (size_t k = n; k-- > 0;) {
        size_t low = 0, end = high;
        while (low < end) {
            size_t middle = low + (end - low) / 2;
            if (symbol_compare(&all->data[middle], &added[k]) < 0)
                low = middle + 1;
            else
                end = middle;
        }
        bool is_old = low < high;
        struct tc_schema_symbol *next = is_old ? all->data[low] : k + 1 < n ? added[k + 1] : NULL;
        if (next && symbol_compare(&next, &added[k]) == 0) {
            twice[!is_old] = next;
            twice[is_old] = added[k];
            unique = false;
        }
        memmove(&all->data[low + k + 1], &all->data[low], (high - low) * sizeof(*added));
        all->data[low + k] = added[k];
        high = low;
    }
    tc_free(added);
    return unique;
}

static bool symbols_sort(torc_schema *s, torc_error **error)
{
    size_t symbols = s->symbols.len, services = s->services.len;
    struct tc_schema_symbol *twice[2];
    for (size_t i = s->linked.symbols; i < s->added.len; i++) {
        *tc_vec_push(&s->symbols) = s->added.data[i];
        if (s->added.data[i]->kind == TC_SYMBOL_SERVICE)
            *tc_vec_push(&s->services) = s->added.data[i];
    }
    symbols_merge(&s->services, services, twice);
    return symbols_merge(&s->symbols, symbols, twice) ||
           tc_json_fail(error, TORC_EEXIST, "%s is defined by file " TC_SHOWN " and by file " TC_SHOWN, twice[0]->name,
                        TC_SHOW(twice[0]->file->name), TC_SHOW(twice[1]->file->name));
}

/* Stores the error that `what`, to which `who` refers, is not defined; it names the file's first import that was not
 * added. Returns false. */
static bool not_found(torc_schema *s, const struct tc_schema_file *file, const char *who, const char *what,
                      torc_error **error)
{
    struct tc_buf why = {0};
    const char *missing = NULL;
    for (size_t i = 0; i < file->imports.len && !missing; i++)
        if (!tc_schema_file(s, tc_slice_str(file->imports.data[i])))
            missing = file->imports.data[i];
    tc_buf_printf(&why, "%s is not defined", what);
    if (missing)
        tc_buf_printf(&why, ", and its import " TC_SHOWN " was not added", TC_SHOW(missing));
    link_fail(error, TORC_ENOTFOUND, file, who, tc_buf_cstr(&why));
    tc_buf_fini(&why);
    return false;
}

/* Returns the symbol to which `who` refers, old or new. Returns NULL with an error if it is not there or of another
 * kind. */
static const struct tc_schema_symbol *find(torc_schema *s, const struct tc_schema_file *file, const char *who,
                                           const char *name, enum tc_symbol_kind kind, torc_error **error)
{
    const struct tc_schema_symbol key = {.name = name}, *wanted = &key;
    struct tc_schema_symbol *const *found =
        s->symbols.len ? bsearch(&wanted, s->symbols.data, s->symbols.len, sizeof(wanted), symbol_compare) : NULL;
    if (!found)
        return not_found(s, file, who, name, error), NULL;
    if ((*found)->kind != kind)
        return link_fail(error, TORC_EPARSE, file, who, "refers to what is not a type of that kind"), NULL;
    return *found;
}

/* --- references --- */

static bool field_link(torc_schema *s, struct tc_schema_field *f, torc_error **error)
{
    const struct tc_schema_symbol *found = NULL;
    if (f->type_name) {
        bool is_enum = f->type == TC_TYPE_ENUM;
        found = find(s, f->file, f->full_name, f->type_name, is_enum ? TC_SYMBOL_ENUM : TC_SYMBOL_MESSAGE, error);
        if (!found)
            return false;
        f->enumeration = is_enum ? found->of.enumeration : NULL;
        f->message = is_enum ? NULL : found->of.message;
        /* The first of the fields that share a group owns it: text of the schema has each message once. */
        if (f->type == TC_TYPE_GROUP && f->file->edition < 1000 && found->of.message->scope == f->scope &&
            found->of.message->file == f->file && !found->of.message->owner)
            found->of.message->owner = f;
    }
    if (f->message && f->message->map_entry) {
        if (!f->repeated || f->message->scope != f->parent || f->extension ||
            (f->message->owner && f->message->owner != f))
            return link_fail(error, TORC_EPARSE, f->file, f->full_name, "uses the map entry of another field");
        found->of.message->owner = f;
        f->type = TC_TYPE_MESSAGE; /* whatever the feature message_encoding says */
        f->map = true;
    }
    return true;
}

static void message_changed(torc_schema *s, torc_schema_message *m)
{
    if (!m->changed)
        *tc_vec_push(&s->changed) = m;
    m->changed = true;
}

static bool extension_link(torc_schema *s, struct tc_schema_field *f, torc_error **error)
{
    const struct tc_schema_symbol *found = find(s, f->file, f->full_name, f->extendee, TC_SYMBOL_MESSAGE, error);
    if (!found)
        return false;
    f->parent = found->of.message;
    message_changed(s, f->parent);
    *tc_vec_push(&f->parent->extensions) = f;
    return field_link(s, f, error);
}

static bool service_link(torc_schema *s, torc_schema_service *service, torc_error **error)
{
    for (size_t i = 0; i < service->methods.len; i++) {
        torc_schema_method *m = service->methods.data[i];
        const struct tc_schema_symbol *in = NULL, *out = NULL;
        in = find(s, service->file, m->path + 1, m->request_name, TC_SYMBOL_MESSAGE, error);
        if (in)
            out = find(s, service->file, m->path + 1, m->response_name, TC_SYMBOL_MESSAGE, error);
        if (!out)
            return false;
        m->request = in->of.message;
        m->response = out->of.message;
    }
    return true;
}

/* --- tables of a message and of an enum --- */

static int number_compare(const void *a, const void *b)
{
    int32_t x = (*(struct tc_schema_field *const *)a)->number, y = (*(struct tc_schema_field *const *)b)->number;
    return (x > y) - (x < y);
}

/* Orders by name. Of equal aliases, a field's own name comes before a name in JSON; then the lower number is first. */
static int alias_compare(const void *a, const void *b)
{
    const struct tc_schema_alias *x = a, *y = b;
    int c = strcmp(x->name, y->name);
    if (c)
        return c;
    bool x_own = x->name == x->field->name, y_own = y->name == y->field->name;
    return x_own != y_own ? y_own - x_own
                          : (x->field->number > y->field->number) - (x->field->number < y->field->number);
}

static int range_compare(const void *a, const void *b)
{
    int32_t x = ((const struct tc_schema_range *)a)->from, y = ((const struct tc_schema_range *)b)->from;
    return (x > y) - (x < y);
}

/* Checks that the number of each extension is in an extension range of the message. */
static bool extensions_check(torc_schema_message *m, torc_error **error)
{
    size_t r = 0;
    if (m->ranges.len)
        qsort(m->ranges.data, m->ranges.len, sizeof(m->ranges.data[0]), range_compare);
    for (size_t i = 0; i < m->n_by_number; i++) {
        const struct tc_schema_field *f = m->by_number[i];
        while (r < m->ranges.len && m->ranges.data[r].to <= f->number)
            r++;
        if (f->extension && (r == m->ranges.len || m->ranges.data[r].from > f->number))
            return link_fail(error, TORC_EPARSE, f->file, f->full_name,
                             "has a number that its message does not leave to extensions");
    }
    return true;
}

/* Fills what follows from by_number and by_name: `implicit`, the counts, and `index` and `shadowed` of each field. */
static void message_tables(torc_schema_message *m)
{
    m->implicit = m->by_number + m->n_by_number;
    m->n_implicit = m->n_required = 0;
    for (size_t i = 0; i < m->n_by_number; i++) {
        struct tc_schema_field *f = m->by_number[i];
        f->index = (unsigned)i;
        /* Within an Any, "@type" is the type of the message. */
        f->shadowed = !f->extension && (strcmp(f->json_name, "@type") == 0 ||
                                        tc_schema_field_by_name(m, tc_slice_str(f->json_name)) != f);
        m->n_required += f->required;
        if (!f->extension && !f->has_presence)
            m->implicit[m->n_implicit++] = f;
    }
}

/* Builds the tables of a message. Checks that fields differ in number and name, and the numbers of extensions. */
static bool message_sort(torc_schema_message *m, torc_error **error)
{
    size_t n = m->fields.len + m->extensions.len;
    if (n > TC_SCHEMA_MAX_FIELDS)
        return link_fail(error, TORC_ELIMIT, m->file, m->full_name, "more than 65536 fields");
    m->by_number = tc_reallocarray(m->by_number, 2 * n + 1, sizeof(*m->by_number));
    m->by_name = tc_reallocarray(m->by_name, 2 * n + 1, sizeof(*m->by_name));
    m->n_by_number = m->n_by_name = 0;
    for (size_t i = 0; i < n; i++) {
        struct tc_schema_field *f = i < m->fields.len ? m->fields.data[i] : m->extensions.data[i - m->fields.len];
        m->by_number[m->n_by_number++] = f;
        if (!f->extension)
            m->by_name[m->n_by_name++] = (struct tc_schema_alias){f->name, f};
        m->by_name[m->n_by_name++] = (struct tc_schema_alias){f->json_name, f};
    }
    qsort(m->by_number, n, sizeof(*m->by_number), number_compare);
    qsort(m->by_name, m->n_by_name, sizeof(*m->by_name), alias_compare);
    for (size_t i = 1; i < n; i++) {
        if (m->by_number[i - 1]->number == m->by_number[i]->number)
            return tc_json_fail(error, TORC_EEXIST, "file " TC_SHOWN ": %s: fields %s and %s have one number",
                                TC_SHOW(m->file->name), m->full_name, m->by_number[i - 1]->name, m->by_number[i]->name);
    }
    for (size_t i = 1; i < m->n_by_name; i++) {
        const struct tc_schema_alias *a = &m->by_name[i - 1], *b = a + 1;
        if (a->field != b->field && a->name == a->field->name && b->name == b->field->name &&
            strcmp(a->name, b->name) == 0)
            return link_fail(error, TORC_EEXIST, m->file, a->field->full_name, "is defined twice");
    }
    message_tables(m);
    return extensions_check(m, error);
}

struct enum_sort {
    unsigned index;
    const struct tc_schema_value *value;
};

static int value_number_compare(const void *a, const void *b)
{
    const struct enum_sort *x = a, *y = b;
    int c = (x->value->number > y->value->number) - (x->value->number < y->value->number);
    return c ? c : (x->index > y->index) - (x->index < y->index);
}

static int value_name_compare(const void *a, const void *b)
{
    const struct enum_sort *x = a, *y = b;
    int c = strcmp(x->value->name, y->value->name);
    return c ? c : (x->index > y->index) - (x->index < y->index);
}

static void enum_sort(torc_schema_enum *e)
{
    size_t n = e->values.len;
    struct enum_sort *order = tc_reallocarray(NULL, n, sizeof(*order));
    for (size_t i = 0; i < n; i++)
        order[i] = (struct enum_sort){(unsigned)i, &e->values.data[i]};
    e->by_number = tc_reallocarray(NULL, n, 2 * sizeof(*e->by_number));
    e->by_name = e->by_number + n;
    qsort(order, n, sizeof(*order), value_number_compare);
    for (size_t i = 0; i < n; i++)
        e->by_number[i] = order[i].index;
    qsort(order, n, sizeof(*order), value_name_compare);
    for (size_t i = 0; i < n; i++)
        e->by_name[i] = order[i].index;
    tc_free(order);
}

/* --- forms --- */

static bool entry_check(const torc_schema_message *m, torc_error **error)
{
    const struct tc_schema_field *key = m->n_by_number == 2 ? m->by_number[0] : NULL;
    const struct tc_schema_field *value = key ? m->by_number[1] : NULL;
    if (!m->scope || !key || key->number != 1 || value->number != 2 || key->repeated || value->repeated || key->oneof ||
        value->oneof || key->extension || value->extension || tc_schema_is_message(key) ||
        (value->message && value->type == TC_TYPE_GROUP) || key->type == TC_TYPE_ENUM || key->type == TC_TYPE_BYTES ||
        key->type == TC_TYPE_FLOAT || key->type == TC_TYPE_DOUBLE)
        return link_fail(error, TORC_EPARSE, m->file, m->full_name, "is not an entry of a map");
    return true;
}

/* Checks the form of a message and sets `known`. All messages have their tables. */
static bool message_check(torc_schema_message *m, torc_error **error)
{
    if (m->map_entry && !entry_check(m, error))
        return false;
    if (!tc_known_of(m, &m->known))
        return link_fail(error, TORC_EPARSE, m->file, m->full_name, "does not have the fields of that well-known type");
    return true;
}

static bool symbol_link(torc_schema *s, struct tc_schema_symbol *symbol, torc_error **error)
{
    switch (symbol->kind) {
    case TC_SYMBOL_EXTENSION:
        return extension_link(s, symbol->of.extension, error);
    case TC_SYMBOL_SERVICE:
        return service_link(s, symbol->of.service, error);
    case TC_SYMBOL_ENUM:
        enum_sort(symbol->of.enumeration);
        return true;
    case TC_SYMBOL_MESSAGE:
        message_changed(s, symbol->of.message);
        for (size_t i = 0; i < symbol->of.message->fields.len; i++)
            if (!field_link(s, symbol->of.message->fields.data[i], error))
                return false;
        return true;
    }
    return true;
}

/* Takes the new symbols out of the schema's lists, and the new extensions out of the messages that they extend. Builds
 * the tables of the old ones among these messages again. */
static void link_undo(torc_schema *s)
{
    struct tc_schema_symbols *lists[] = {&s->symbols, &s->services};
    for (size_t i = s->added.len; i-- > s->linked.symbols;)
        if (s->added.data[i]->kind == TC_SYMBOL_EXTENSION && s->added.data[i]->of.extension->parent)
            s->added.data[i]->of.extension->parent->extensions.len--;
    for (size_t i = 0; i < s->changed.len; i++)
        if (s->changed.data[i]->file->first < s->linked.symbols)
            message_sort(s->changed.data[i], NULL);
    for (size_t l = 0; l < TC_ARRAY_LEN(lists); l++) {
        size_t kept = 0;
        for (size_t i = 0; i < lists[l]->len; i++)
            if (lists[l]->data[i]->file->first < s->linked.symbols)
                lists[l]->data[kept++] = lists[l]->data[i];
        lists[l]->len = kept;
    }
}

bool tc_schema_resolve(torc_schema *s, torc_error **error)
{
    bool good = symbols_sort(s, error);
    for (size_t i = s->linked.symbols; good && i < s->added.len; i++)
        good = symbol_link(s, s->added.data[i], error);
    for (size_t i = 0; good && i < s->changed.len; i++)
        good = message_sort(s->changed.data[i], error);
    for (size_t i = 0; good && i < s->changed.len; i++)
        good = message_check(s->changed.data[i], error);
    for (size_t i = 0; i < s->changed.len; i++)
        s->changed.data[i]->changed = false;
    if (!good)
        link_undo(s);
    s->changed.len = 0;
    return good;
}
