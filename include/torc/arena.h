/* Memory that is freed in one piece. SPDX-License-Identifier: Apache-2.0
 *
 * An arena gives out memory bit by bit and takes all of it back at once: when it is reset, or freed by its owner, the
 * application. A message that is unpacked into an arena (torc/protobuf_c.h) needs no free of its own. One thread at a
 * time uses an arena. */
#ifndef TORC_ARENA_H
#define TORC_ARENA_H

#include <stdint.h>

#include <torc/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory that is given out in pieces and freed as a whole. */
typedef struct torc_arena torc_arena;

/* Returns a new arena, which the caller frees. max_bytes: the most that the arena gives out until it is reset; 0: no
 * limit. */
TORC_API torc_arena *torc_arena_new(uint64_t max_bytes);

/* Returns `size` bytes, aligned for any type and not zeroed, which live until the arena is reset or freed. NULL: the
 * arena is NULL, or its limit would be exceeded. */
TORC_API void *torc_arena_alloc(torc_arena *arena, size_t size);

/* Takes back all that the arena gave out, and keeps some memory for the next round. NULL is allowed. */
TORC_API void torc_arena_reset(torc_arena *arena);

/* Frees the arena and all that it gave out. NULL is allowed. */
TORC_API void torc_arena_free(torc_arena *arena);

#ifdef __cplusplus
}
#endif
#endif
