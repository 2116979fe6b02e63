/* Blocks of memory that one thread takes and any thread gives back. A loop lends them to the application (response
 * messages, the metadata of results), so that a steady stream of calls asks the system for no memory.
 *
 * The number of free blocks kept for reuse is bounded: about two thousand small blocks and four of a mebibyte, at worst
 * twice as many (blocks.c). Blocks of a mebibyte are kept because getting their pages from the system costs more than
 * filling them. Blocks of other sizes come from the system and go back to it. The bytes of lent blocks are counted. All
 * functions but tc_blocks_give are for one thread, the taker, unless a comment says otherwise. */
#ifndef TC_BASE_BLOCKS_H
#define TC_BASE_BLOCKS_H

#include "base/common.h"

/* Blocks are reused for sizes of at most TC_BLOCKS_LARGEST bytes, and for sizes above TC_BLOCKS_LARGE_OVER and at most
 * TC_BLOCKS_LARGE. Such a block has 128 bytes, or less than twice the bytes that were asked for. */
#define TC_BLOCKS_LARGEST 2048u
#define TC_BLOCKS_LARGE_OVER (TC_BLOCKS_LARGE / 2)
#define TC_BLOCKS_LARGE (1025u * 1024u)

struct tc_blocks;

/* Never NULL. The caller ends it with tc_blocks_end. */
struct tc_blocks *tc_blocks_new(void);
/* Frees the free blocks, and `b` once no block is lent. Lent blocks stay valid until they are given back. NULL is
 * allowed. */
void tc_blocks_end(struct tc_blocks *b);
/* Returns a block of at least `size` bytes, aligned for any type, which the caller gives back with tc_blocks_give; NULL
 * if the system does not give the memory. With `b` NULL the block comes from the system and is not counted, and any
 * thread may call. */
void *tc_blocks_try_take(struct tc_blocks *b, size_t size);
/* Returns whether blocks of that size are reused. Any thread. */
bool tc_blocks_reuses(size_t size);
/* Returns whether the next tc_blocks_try_take of that size finds a free block. Returns false for NULL. */
bool tc_blocks_keeps(struct tc_blocks *b, size_t size);
/* Makes a block (`block` NULL) or resizes a block that this function made with the same `b`, which may be NULL. The
 * block is given back like any other, but never reused. Returns NULL, with `block` unchanged, if the system does not
 * give the memory. */
void *tc_blocks_try_resize(struct tc_blocks *b, void *block, size_t size);
/* Returns the bytes of the lent blocks: a block of a size class counts with the bytes of its class, any other with
 * the bytes that were asked for. */
size_t tc_blocks_lent(const struct tc_blocks *b);
/* Gives a block back to the tc_blocks it came from. Any thread. */
void tc_blocks_give(void *block);

#endif
