/* The memory of a decoded resource: an arena for its structs and texts, and a list of objects to be released with it
 * (shared strings, regexes, JSON). All that it returns lives as long as the resource. Any thread, one at a time. */
#ifndef TC_XDS_RESOURCE_RESOURCE_ARENA_H
#define TC_XDS_RESOURCE_RESOURCE_ARENA_H

#include <jansson.h>

#include "base/arena.h"
#include "base/rstr.h"
#include "base/vec.h"
#include "xds/client/resource_type.h"

struct tc_resource_arena {
    struct tc_arena arena;
    TC_VEC(struct tc_resource_arena_item {
        void (*release)(void *ptr);
        void *ptr;
    })
    items;
    struct tc_slice bytes; /* the resource message as received, once it is valid; tc_decoded_equal compares it */
};

/* The first member of every decoded resource. */
struct tc_decoded {
    struct tc_xds_resource head;
    struct tc_resource_arena arena;
};

void tc_resource_arena_init(struct tc_resource_arena *s);
void tc_resource_arena_fini(struct tc_resource_arena *s);
/* Keeps a copy of the message, once the resource is known to be valid. */
void tc_resource_arena_set_bytes(struct tc_resource_arena *s, struct tc_slice bytes);
/* Returns a zeroed array; never NULL (n may be 0). */
void *tc_resource_arena_array(struct tc_resource_arena *s, size_t n, size_t size);
/* Returns a NUL-terminated copy; NULL is "". */
struct tc_slice tc_resource_arena_text(struct tc_resource_arena *s, const char *text);
/* Returns a new shared string, borrowed: the arena has its reference. NULL is "". */
struct tc_rstr *tc_resource_arena_rstr(struct tc_resource_arena *s, const char *text);
/* Takes over `ptr`: calls release(ptr) when the resource goes. */
void tc_resource_arena_keep(struct tc_resource_arena *s, void (*release)(void *ptr), void *ptr);
/* Takes over the reference. NULL stays NULL. */
json_t *tc_resource_arena_keep_json(struct tc_resource_arena *s, json_t *v);

#define TC_RESOURCE_NEW(s, type) ((type *)tc_resource_arena_array((s), 1, sizeof(type)))
#define TC_RESOURCE_ARRAY(s, n, type) ((type *)tc_resource_arena_array((s), (n), sizeof(type)))

#endif
