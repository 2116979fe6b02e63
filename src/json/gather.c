/* Sorts the items of a message by field. A sender may send fields in any order, a list in parts, a message in pieces,
 * and several members of one oneof; JSON wants each field once.
 *
 * An entry is a run of items: a list of a million numbers, each with its tag, is one entry. A message whose fields are
 * in order is not sorted, unless at least two of its items belong to oneofs with several members. If there are two
 * such items, the entries are sorted by oneof first, and members that a later member replaced are dropped; then the
 * entries are sorted by field. */
#include "json/gather.h"

#include <stdlib.h>

/* Returns whether tc_gather takes the item for the field (gather.h). */
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

/* Adds the item from `data` to `end`: to the last entry if it continues that run, else as a new entry. */
static void entry_add(struct tc_gathered *g, const struct tc_schema_field *f, const char *data, const char *end)
{
    struct tc_entry *last = g->entries.len ? &g->entries.data[g->entries.len - 1] : NULL;
    if (last && last->field == f && f->repeated && last->data + last->len == data)
        last->len = (size_t)(end - last->data);
    else
        *tc_vec_push(&g->entries) = (struct tc_entry){f, data, (size_t)(end - data)};
}

/* Returns the oneof of an entry if another member could replace it, else NULL. */
static const struct tc_schema_oneof *choice_of(const struct tc_entry *e)
{
    const struct tc_schema_oneof *o = e->field->oneof;
    return o && o->members > 1 ? o : NULL;
}

/* Puts the entries of one oneof next to one another, in the order of the message; entries without a choice come
 * first. */
static int choice_compare(const void *a, const void *b)
{
    const struct tc_entry *x = a, *y = b;
    const struct tc_schema_oneof *p = choice_of(x), *q = choice_of(y);
    if (p != q)
        return !p || (q && p->index < q->index) ? -1 : 1;
    return x->data < y->data ? -1 : x->data > y->data;
}

/* For each oneof keeps the last entry, and the entries right before it that are of the same member, since they may be
 * pieces of one message. Drops all earlier entries of the oneof: the last member has replaced them. */
static void choices_apply(struct tc_gathered *g)
{
    const struct tc_schema_oneof *oneof = NULL;
    const struct tc_schema_field *last = NULL;
    size_t kept = g->entries.len;
    qsort(g->entries.data, g->entries.len, sizeof(g->entries.data[0]), choice_compare);
    for (size_t i = g->entries.len; i-- > 0;) {
        const struct tc_entry e = g->entries.data[i];
        const struct tc_schema_oneof *o = choice_of(&e);
        if (o != oneof)
            last = e.field;
        oneof = o;
        if (o && e.field != last)
            last = NULL;
        if (!o || last)
            g->entries.data[--kept] = e;
    }
    g->entries.len -= kept;
    memmove(g->entries.data, g->entries.data + kept, g->entries.len * sizeof(g->entries.data[0]));
}

struct gathering {
    const torc_schema_message *type;
    struct tc_gathered *out;
    size_t choices; /* items of oneofs that have several members */
    bool sorted;
};

static bool gather_bytes(struct gathering *g, struct tc_slice bytes)
{
    struct tc_item item;
    int more;
    for (const char *at = bytes.data; (more = tc_item_next(&bytes, &item)) > 0; at = bytes.data) {
        const struct tc_schema_field *f = tc_schema_field_by_number(g->type, item.number);
        if (!f || !type_fits(f, &item))
            continue;
        const struct tc_entry *last = g->out->entries.len ? &g->out->entries.data[g->out->entries.len - 1] : NULL;
        g->sorted = g->sorted && (!last || last->field->index <= f->index);
        entry_add(g->out, f, at, bytes.data);
        g->choices += f->oneof && f->oneof->members > 1;
    }
    return more == 0;
}

bool tc_gather(const torc_schema_message *type, const struct tc_content *content, struct tc_gathered *out)
{
    struct gathering g = {.type = type, .out = out, .sorted = true};
    bool good = content->pieces || gather_bytes(&g, content->bytes);
    for (size_t i = 0; good && i < content->n; i++)
        good = gather_bytes(&g, tc_entry_item(&content->pieces[i]).bytes);
    if (g.choices > 1)
        choices_apply(out);
    if (g.choices > 1 || !g.sorted)
        qsort(out->entries.data, out->entries.len, sizeof(out->entries.data[0]), entry_compare);
    return good;
}

void tc_gathered_fini(struct tc_gathered *g)
{
    tc_vec_fini(&g->entries);
}

struct tc_item tc_entry_item(const struct tc_entry *e)
{
    struct tc_slice rest = tc_slice_of(e->data, e->len);
    struct tc_item item = {0};
    tc_item_next(&rest, &item);
    return item;
}
