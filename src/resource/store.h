/* What a decoded resource owns: an arena for its structs and texts, and what must be released with it (shared strings,
 * regexes, JSON). Every pointer inside a resource's data lives as long as the resource. */
#ifndef TC_RESOURCE_STORE_H
#define TC_RESOURCE_STORE_H

#include <jansson.h>

#include "base/arena.h"
#include "base/rstr.h"
#include "base/vec.h"
#include "xds/resource_type.h"

struct tc_store {
    struct tc_arena arena;
    TC_VEC(struct tc_store_item {
        void (*release)(void *ptr);
        void *ptr;
    })
    items;
    struct tc_slice bytes; /* the resource message as received: equal bytes are equal resources */
};

void tc_store_init(struct tc_store *s);
void tc_store_fini(struct tc_store *s);
/* Keeps a copy of the message; for resources that turned out valid, so that refused ones cost nothing. */
void tc_store_set_bytes(struct tc_store *s, struct tc_slice bytes);
/* A zeroed array; never NULL (n may be 0). */
void *tc_store_array(struct tc_store *s, size_t n, size_t size);
/* A NUL-terminated copy. */
struct tc_slice tc_store_text(struct tc_store *s, const char *text);
/* A shared string that the store keeps a reference of; borrowed. */
struct tc_rstr *tc_store_rstr(struct tc_store *s, const char *text);
/* Calls release(ptr) when the resource goes. */
void tc_store_keep(struct tc_store *s, void (*release)(void *ptr), void *ptr);
/* Takes over the reference. NULL stays NULL. */
json_t *tc_store_keep_json(struct tc_store *s, json_t *v);

#define TC_STORE_NEW(s, type) ((type *)tc_store_array((s), 1, sizeof(type)))
#define TC_STORE_ARRAY(s, n, type) ((type *)tc_store_array((s), (n), sizeof(type)))

#endif
