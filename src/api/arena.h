/* The application's arena (torc/arena.h). One thread at a time. */
#ifndef TC_API_ARENA_H
#define TC_API_ARENA_H

#include <torc/arena.h>

#include "base/arena.h"

struct torc_arena {
    struct tc_arena arena;
};

#endif
