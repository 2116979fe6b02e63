/* Resource sets: the resources that a control plane serves, one array per resource type.
 *
 * Invariant: each array is sorted by name and holds a name once. Lookups are binary searches, and equal contents are
 * equal arrays.
 *
 * A set owns its arrays and holds a reference to each name and value. Names and values never change, so a copy shares
 * them. tc_resource_set_version gives the versions when a set replaces another: a type with unchanged content keeps its
 * version. A set is for one thread at a time. */
#include "controlplane/resource_set.h"

#include "base/mem.h"

struct tc_resource_set *tc_resource_set_new(void)
{
    return TC_NEW(struct tc_resource_set);
}

static void resource_fini(struct tc_set_resource *r)
{
    tc_rstr_unref(r->name);
    tc_rstr_unref(r->value);
    tc_rstr_unref(r->file);
}

void tc_resource_set_free(struct tc_resource_set *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->types.len; i++) {
        struct tc_set_type *t = &s->types.data[i];
        for (size_t k = 0; k < t->resources.len; k++)
            resource_fini(&t->resources.data[k]);
        tc_vec_fini(&t->resources);
        tc_rstr_unref(t->type_url);
        tc_rstr_unref(t->version);
        tc_rstr_unref(t->version_hint);
        tc_rstr_unref(t->version_base);
    }
    tc_vec_fini(&s->types);
    tc_free(s);
}

struct tc_resource_set *tc_resource_set_copy(const struct tc_resource_set *s)
{
    struct tc_resource_set *copy = tc_resource_set_new();
    for (size_t i = 0; s && i < s->types.len; i++) {
        const struct tc_set_type *from = &s->types.data[i];
        struct tc_set_type *to = tc_vec_push(&copy->types);
        to->type_url = tc_rstr_ref(from->type_url);
        to->version = tc_rstr_ref(from->version);
        to->version_base = tc_rstr_ref(from->version_base);
        to->changes = from->changes;
        for (size_t k = 0; k < from->resources.len; k++)
            *tc_vec_push(&to->resources) = (struct tc_set_resource){
                .name = tc_rstr_ref(from->resources.data[k].name), .value = tc_rstr_ref(from->resources.data[k].value)};
    }
    return copy;
}

static struct tc_set_type *type_at(const struct tc_resource_set *s, struct tc_slice type_url)
{
    for (size_t i = 0; s && i < s->types.len; i++)
        if (tc_slice_eq(tc_rstr_slice(s->types.data[i].type_url), type_url))
            return &s->types.data[i];
    return NULL;
}

const struct tc_set_type *tc_resource_set_type(const struct tc_resource_set *s, struct tc_slice type_url)
{
    return type_at(s, type_url);
}

/* Returns the index of `name` if *found, else the index at which it has to be inserted. */
static size_t type_position(const struct tc_set_type *t, struct tc_slice name, bool *found)
{
    size_t lo = 0, hi = t->resources.len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = tc_slice_cmp(tc_rstr_slice(t->resources.data[mid].name), name);
        if (c == 0) {
            *found = true;
            return mid;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *found = false;
    return lo;
}

const struct tc_set_resource *tc_set_type_find(const struct tc_set_type *t, struct tc_slice name)
{
    bool found;
    size_t i = type_position(t, name, &found);
    return found ? &t->resources.data[i] : NULL;
}

/* Returns the type, made if there is none. Valid until another type is made. */
static struct tc_set_type *type_add(struct tc_resource_set *s, struct tc_slice type_url)
{
    struct tc_set_type *t = type_at(s, type_url);
    if (!t) {
        t = tc_vec_push(&s->types);
        t->type_url = tc_rstr_new(type_url.data, type_url.len);
    }
    return t;
}

void tc_resource_set_put(struct tc_resource_set *s, struct tc_slice type_url, struct tc_slice name,
                         struct tc_slice value)
{
    struct tc_set_type *t = type_add(s, type_url);
    bool found;
    size_t i = type_position(t, name, &found);
    if (found) {
        tc_rstr_unref(t->resources.data[i].value);
        t->resources.data[i].value = tc_rstr_new(value.data, value.len);
        return;
    }
    tc_vec_push(&t->resources);
    memmove(&t->resources.data[i + 1], &t->resources.data[i],
            (t->resources.len - 1 - i) * sizeof(t->resources.data[0]));
    t->resources.data[i] = (struct tc_set_resource){.name = tc_rstr_new(name.data, name.len),
                                                    .value = tc_rstr_new(value.data, value.len),
                                                    .file = tc_rstr_ref(s->file)};
}

bool tc_resource_set_remove(struct tc_resource_set *s, struct tc_slice type_url, struct tc_slice name)
{
    struct tc_set_type *t = type_at(s, type_url);
    bool found = false;
    size_t i = t ? type_position(t, name, &found) : 0;
    if (!found)
        return false;
    resource_fini(&t->resources.data[i]);
    tc_vec_remove(&t->resources, i);
    return true;
}

static bool type_same_content(const struct tc_set_type *a, const struct tc_set_type *b)
{
    if (a->resources.len != b->resources.len)
        return false;
    for (size_t i = 0; i < a->resources.len; i++)
        if (!tc_rstr_eq(a->resources.data[i].name, b->resources.data[i].name) ||
            !tc_rstr_eq(a->resources.data[i].value, b->resources.data[i].value))
            return false;
    return true;
}

/* Returns the version of changed content (tc_resource_set_version), a new reference. Reads the new t->changes
 * and t->version_base. `old` is the type in the set before; NULL: that set does not have the type. */
static struct tc_rstr *type_next_version(const struct tc_set_type *t, const struct tc_set_type *old)
{
    unsigned long long n = (unsigned long long)t->changes;
    if (!t->version_base)
        return tc_rstr_printf("%llu", n);
    bool numbered = !t->version_hint;
    if (old)
        numbered |= !old->version_base || tc_slice_starts(tc_rstr_slice(old->version), tc_rstr_slice(t->version_base));
    return numbered ? tc_rstr_printf("%s.%llu", tc_rstr_cstr(t->version_base), n) : tc_rstr_ref(t->version_base);
}

void tc_resource_set_version(struct tc_resource_set *s, const struct tc_resource_set *before)
{
    for (size_t i = 0; before && i < before->types.len; i++)
        type_add(s, tc_rstr_slice(before->types.data[i].type_url));
    for (size_t i = 0; i < s->types.len; i++) {
        struct tc_set_type *t = &s->types.data[i];
        const struct tc_set_type *old = type_at(before, tc_rstr_slice(t->type_url));
        bool same = old && type_same_content(t, old);
        struct tc_rstr *base = t->version_hint && !same ? t->version_hint : old ? old->version_base : NULL;
        tc_rstr_ref(base);
        tc_rstr_unref(t->version_base);
        t->version_base = base;
        t->changes = !old ? 1 : same ? old->changes : old->changes + 1;
        struct tc_rstr *version = same ? tc_rstr_ref(old->version) : type_next_version(t, old);
        tc_rstr_unref(t->version);
        t->version = version;
    }
}
