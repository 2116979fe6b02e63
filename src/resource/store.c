#include "resource/store.h"

void tc_store_init(struct tc_store *s)
{
    *s = (struct tc_store){0};
    tc_arena_init(&s->arena, 0, 0);
}

void tc_store_set_bytes(struct tc_store *s, struct tc_slice bytes)
{
    char *copy = tc_store_array(s, bytes.len, 1);
    if (bytes.len)
        memcpy(copy, bytes.data, bytes.len);
    s->bytes = tc_slice_of(copy, bytes.len);
}

void tc_store_fini(struct tc_store *s)
{
    for (size_t i = s->items.len; i-- > 0;)
        s->items.data[i].release(s->items.data[i].ptr);
    tc_vec_fini(&s->items);
    tc_arena_fini(&s->arena);
}

void *tc_store_array(struct tc_store *s, size_t n, size_t size)
{
    /* The arena has no budget, so only a size that cannot exist fails; base/ ends the process then. */
    void *p = tc_arena_calloc(&s->arena, n ? n : 1, size);
    return p ? p : tc_reallocarray(NULL, SIZE_MAX, SIZE_MAX);
}

struct tc_slice tc_store_text(struct tc_store *s, const char *text)
{
    struct tc_slice from = tc_slice_str(text ? text : "");
    char *copy = tc_store_array(s, from.len + 1, 1);
    memcpy(copy, from.data, from.len);
    return tc_slice_of(copy, from.len);
}

static void release_rstr(void *ptr)
{
    tc_rstr_unref(ptr);
}

struct tc_rstr *tc_store_rstr(struct tc_store *s, const char *text)
{
    struct tc_rstr *r = tc_rstr_str(text ? text : "");
    tc_store_keep(s, release_rstr, r);
    return r;
}

void tc_store_keep(struct tc_store *s, void (*release)(void *ptr), void *ptr)
{
    struct tc_store_item *item = tc_vec_push(&s->items);
    item->release = release;
    item->ptr = ptr;
}

static void release_json(void *ptr)
{
    json_decref(ptr);
}

json_t *tc_store_keep_json(struct tc_store *s, json_t *v)
{
    if (v)
        tc_store_keep(s, release_json, v);
    return v;
}
