/* Memory that is freed in one piece. SPDX-License-Identifier: Apache-2.0
 *
 * An arena gives out memory in pieces and takes all of it back at once: when the application resets or frees the arena.
 * A message that is unpacked into an arena (torc/protobuf_c.h) needs no free of its own.
 *
 *     torc_arena *arena = torc_arena_new(1 << 20); // at most 1 MiB
 *     while (next_record(&bytes, &n)) {
 *         const ProtobufCMessage *m = torc_protobuf_c_unpack(&shop__order__descriptor, bytes, n, arena, &error);
 *         ...
 *         torc_arena_reset(arena); // the message is gone, its memory serves the next
 *     }
 *     torc_arena_free(arena);
 *
 * One thread at a time uses an arena; different threads may make, use and free it. An arena does not depend on a
 * runtime or a channel. In a library that was built without xDS (TORC_XDS=off) the functions of this header are
 * missing. */
#ifndef TORC_ARENA_H
#define TORC_ARENA_H

#include <stdint.h>

#include <torc/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory that is given out in pieces and freed as a whole. */
typedef struct torc_arena torc_arena;

/* Returns a new arena, which the caller frees; never NULL. max_bytes: the most that the arena gives out until it is
 * reset, each piece rounded up to 16 bytes; 0: no limit. Any thread. */
TORC_API torc_arena *torc_arena_new(uint64_t max_bytes);

/* Returns `size` bytes, aligned for any type and not zeroed, which live until the arena is reset or freed; there is no
 * way to give back one piece. NULL: the arena is NULL, its limit would be exceeded, it has a limit and the system has
 * no memory, or `size` is close to SIZE_MAX. If the system has no memory for an arena without a limit, the program ends
 * as torc_set_out_of_memory_handler says. */
TORC_API void *torc_arena_alloc(torc_arena *arena, size_t size);

/* Takes back all that the arena gave out: pointers into it are dangling from then on. Keeps some memory for the next
 * round, and the limit counts from 0 again. NULL is allowed. */
TORC_API void torc_arena_reset(torc_arena *arena);

/* Frees the arena and all that it gave out. NULL is allowed. Only for arenas of torc_arena_new: that of a server's call
 * (torc_server_call_arena) belongs to the call. */
TORC_API void torc_arena_free(torc_arena *arena);

#ifdef __cplusplus
}
#endif
#endif
