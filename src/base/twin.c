#include "base/twin.h"

#include <string.h>
#include <sys/mman.h>

#define MAPPING (5u * 4096u)

/* At the start of the mapping; the blocks follow. */
struct tc_twin {
    struct tc_twin *next; /* in the list of those that lack one */
    bool small_taken, large_taken;
    _Alignas(16) char small[TC_TWIN_SMALL];
    _Alignas(16) char large[TC_TWIN_LARGE];
};

_Static_assert(sizeof(struct tc_twin) <= MAPPING, "a pair fits its mapping");
_Static_assert(offsetof(struct tc_twin, large) < 4096, "the large block starts in the first page");

static struct tc_twin *map(void)
{
    void *p = mmap(NULL, MAPPING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void drop_from(struct tc_twin **list, const struct tc_twin *twin)
{
    while (*list != twin)
        list = &(*list)->next;
    *list = twin->next;
}

static struct tc_twin *first_of(struct tc_twin **list)
{
    struct tc_twin *twin = *list;
    if (twin)
        *list = twin->next;
    return twin;
}

static void put_into(struct tc_twin **list, struct tc_twin *twin)
{
    twin->next = *list;
    *list = twin;
}

void *tc_twin_take_small(struct tc_twins *t)
{
    struct tc_twin *twin = first_of(&t->no_small);
    if (twin) {
        memset(twin->small, 0, sizeof(twin->small));
    } else {
        twin = map();
        if (!twin)
            return NULL;
        put_into(&t->no_large, twin);
    }
    twin->small_taken = true;
    return twin->small;
}

void *tc_twin_take_large(struct tc_twins *t)
{
    struct tc_twin *twin = first_of(&t->no_large);
    if (!twin) {
        twin = map();
        if (!twin)
            return NULL;
        put_into(&t->no_small, twin);
    }
    twin->large_taken = true;
    return twin->large;
}

void tc_twin_give_small(struct tc_twins *t, void *block)
{
    struct tc_twin *twin = TC_CONTAINER_OF(block, struct tc_twin, small);
    twin->small_taken = false;
    if (twin->large_taken) {
        put_into(&t->no_small, twin);
        return;
    }
    drop_from(&t->no_large, twin);
    munmap(twin, MAPPING);
}

void tc_twin_give_large(struct tc_twins *t, void *block)
{
    struct tc_twin *twin = TC_CONTAINER_OF(block, struct tc_twin, large);
    twin->large_taken = false;
    if (twin->small_taken) {
        put_into(&t->no_large, twin);
        return;
    }
    drop_from(&t->no_small, twin);
    munmap(twin, MAPPING);
}
