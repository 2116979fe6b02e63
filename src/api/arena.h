/* torc_arena (torc/arena.h): an object of torc_arena_new, or a part of a server's call. One thread at a time. */
#ifndef TC_API_ARENA_H
#define TC_API_ARENA_H

#include <torc/arena.h>

#include "base/arena.h"

struct torc_arena {
    struct tc_arena arena;
};

#endif
