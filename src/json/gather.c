/* Sorts what a message has by field. A sender may send fields in any order, a list in parts, a message in pieces, and
 * several members of one oneof; JSON wants each field once.
 *
 * An entry is a run: a list of a million numbers, each with its tag, is one. Most messages are in order already, and
 * are not sorted. */
#include "json/gather.h"

#include <stdlib.h>

/* The member of a oneof that counts, and the first entry that is of it. */
struct choice {
    const struct tc_schema_field *field;
    size_t begin;
};

static bool type_fits(const struct tc_schema_field *f, const struct tc_item *item)
{
    unsigned wire = tc_schema_wire(f->type);
    if (item->wire != wire)
        return f->repeated && item->wire == TC_WIRE_LENGTH && wire != TC_ITEM_GROUP;
    return f->type != TC_TYPE_ENUM || f->repeated || !f->enumeration->closed ||
           tc_schema_value_by_number(f->enumeration, (int32_t)(uint32_t)item->value);
}

static int entry_compare(const void *a, const void *b)
{
    const struct tc_entry *x = a, *y = b;
    if (x->field != y->field)
        return x->field->index < y->field->index ? -1 : 1;
    return x->data < y->data ? -1 : x->data > y->data;
}

static void entry_add(struct tc_gathered *g, const struct tc_schema_field *f, const char *data, const char *end)
{
    struct tc_entry *last = g->entries.len ? &g->entries.data[g->entries.len - 1] : NULL;
    if (last && last->field == f && f->repeated && last->data + last->len == data)
        last->len = (size_t)(end - last->data);
    else
        *tc_vec_push(&g->entries) = (struct tc_entry){f, data, (size_t)(end - data)};
}

/* Drops members of oneofs that others have replaced. */
static void choices_apply(struct tc_gathered *g, const struct choice *choices)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->entries.len; i++) {
        const struct tc_entry *e = &g->entries.data[i];
        const struct choice *c = e->field->oneof ? &choices[e->field->oneof->index] : NULL;
        if (!c || (c->field == e->field && i >= c->begin))
            g->entries.data[kept++] = *e;
    }
    g->entries.len = kept;
}

bool tc_gather(const torc_schema_message *type, struct tc_slice bytes, struct tc_gathered *out)
{
    struct choice *choices = type->oneofs.len ? tc_calloc(type->oneofs.len, sizeof(*choices)) : NULL;
    struct tc_item item;
    bool sorted = true, replaced = false;
    int more;
    for (const char *at = bytes.data; (more = tc_item_next(&bytes, &item)) > 0; at = bytes.data) {
        const struct tc_schema_field *f = tc_schema_field_by_number(type, item.number);
        if (!f || !type_fits(f, &item))
            continue;
        struct choice *c = f->oneof ? &choices[f->oneof->index] : NULL;
        if (c && c->field != f) {
            replaced = replaced || c->field;
            *c = (struct choice){f, out->entries.len};
        }
        sorted = sorted && (!out->entries.len || out->entries.data[out->entries.len - 1].field->index <= f->index);
        entry_add(out, f, at, bytes.data);
    }
    if (replaced)
        choices_apply(out, choices);
    if (!sorted)
        qsort(out->entries.data, out->entries.len, sizeof(out->entries.data[0]), entry_compare);
    tc_free(choices);
    return more == 0;
}

void tc_gathered_fini(struct tc_gathered *g)
{
    tc_vec_fini(&g->entries);
}

void tc_gather_merge(const struct tc_entry *entries, size_t n, struct tc_buf *out)
{
    struct tc_item item;
    for (size_t i = 0; i < n; i++) {
        struct tc_slice rest = tc_slice_of(entries[i].data, entries[i].len);
        while (tc_item_next(&rest, &item) > 0)
            tc_buf_append_slice(out, item.bytes);
    }
}
