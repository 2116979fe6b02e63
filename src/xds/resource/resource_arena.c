/* The memory of a decoded resource: an arena, and a list of objects to be released with it. The objects are released in
 * reverse order, before the arena: an object may use memory of the arena, and objects that were added before it. */
#include "xds/resource/resource_arena.h"

void tc_resource_arena_init(struct tc_resource_arena *s)
{
    *s = (struct tc_resource_arena){0};
    tc_arena_init(&s->arena, 0, 0);
}

void tc_resource_arena_set_bytes(struct tc_resource_arena *s, struct tc_slice bytes)
{
    char *copy = tc_resource_arena_array(s, bytes.len, 1);
    if (bytes.len)
        memcpy(copy, bytes.data, bytes.len);
    s->bytes = tc_slice_of(copy, bytes.len);
}

void tc_resource_arena_fini(struct tc_resource_arena *s)
{
    for (size_t i = s->items.len; i-- > 0;)
        s->items.data[i].release(s->items.data[i].ptr);
    tc_vec_fini(&s->items);
    tc_arena_fini(&s->arena);
}

void *tc_resource_arena_array(struct tc_resource_arena *s, size_t n, size_t size)
{
    /* The arena has no budget, so only a size that overflows fails; tc_reallocarray then ends the process. */
    void *p = tc_arena_calloc(&s->arena, n ? n : 1, size);
    return p ? p : tc_reallocarray(NULL, SIZE_MAX, SIZE_MAX);
}

struct tc_slice tc_resource_arena_text(struct tc_resource_arena *s, const char *text)
{
    struct tc_slice from = tc_slice_str(text ? text : "");
    char *copy = tc_resource_arena_array(s, from.len + 1, 1);
    memcpy(copy, from.data, from.len);
    return tc_slice_of(copy, from.len);
}

static void release_rstr(void *ptr)
{
    tc_rstr_unref(ptr);
}

struct tc_rstr *tc_resource_arena_rstr(struct tc_resource_arena *s, const char *text)
{
    struct tc_rstr *r = tc_rstr_str(text ? text : "");
    tc_resource_arena_keep(s, release_rstr, r);
    return r;
}

void tc_resource_arena_keep(struct tc_resource_arena *s, void (*release)(void *ptr), void *ptr)
{
    struct tc_resource_arena_item *item = tc_vec_push(&s->items);
    item->release = release;
    item->ptr = ptr;
}

static void release_json(void *ptr)
{
    json_decref(ptr);
}

json_t *tc_resource_arena_keep_json(struct tc_resource_arena *s, json_t *v)
{
    if (v)
        tc_resource_arena_keep(s, release_json, v);
    return v;
}
