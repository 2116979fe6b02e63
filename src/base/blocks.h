/* Blocks of memory that one thread takes and any thread gives back: what a loop lends to the application (response
 * messages, the metadata of results), so that a steady stream of calls asks the system for none. The number of free
 * blocks kept for reuse is bounded: some two thousand small ones and four of a mebibyte, at worst twice as many
 * (blocks.c). Blocks of a mebibyte are kept because getting their pages from the system costs more than filling them.
 * Other sizes come from the system and go back to it. Blocks that are lent are counted. One thread, the taker, calls
 * every function but tc_blocks_give. */
#ifndef TC_BASE_BLOCKS_H
#define TC_BASE_BLOCKS_H

#include "base/common.h"

/* Small blocks of at most TC_BLOCKS_LARGEST bytes are reused, and large blocks of more than TC_BLOCKS_LARGE_OVER and at
 * most TC_BLOCKS_LARGE. So a block that is reused has less than twice the bytes that were asked for, or 128. */
#define TC_BLOCKS_LARGEST 2048u
#define TC_BLOCKS_LARGE_OVER (TC_BLOCKS_LARGE / 2)
#define TC_BLOCKS_LARGE (1025u * 1024u)

struct tc_blocks;

struct tc_blocks *tc_blocks_new(void);
/* Frees the blocks that are kept. Lent blocks stay valid; the last one that is given back frees `b`. NULL is
 * allowed. */
void tc_blocks_end(struct tc_blocks *b);
/* Returns a block of at least `size` bytes, aligned for anything, for tc_blocks_give. With `b` NULL the block comes
 * from the system, and any thread may call. */
void *tc_blocks_take(struct tc_blocks *b, size_t size);
/* tc_blocks_take for a size that a peer chooses: returns NULL if the system does not give the memory. */
void *tc_blocks_try_take(struct tc_blocks *b, size_t size);
/* Returns whether blocks of that size are reused. */
bool tc_blocks_reuses(size_t size);
/* Returns whether a block of at least that size lies ready, so that tc_blocks_take asks the system for nothing. Returns
 * false for NULL. */
bool tc_blocks_keeps(struct tc_blocks *b, size_t size);
/* Makes a block (`block` NULL) or resizes a block that this function made with the same `b`. The block is counted and
 * given back like any other, but never reused. Returns NULL, with `block` unchanged, if the system does not give the
 * memory. */
void *tc_blocks_try_resize(struct tc_blocks *b, void *block, size_t size);
/* Returns the bytes of the lent blocks: a block that is to be reused counts with its whole size class, any other with
 * the bytes that were asked for. */
size_t tc_blocks_lent(const struct tc_blocks *b);
/* Gives a block back to the tc_blocks it came from. Any thread. */
void tc_blocks_give(void *block);

#endif
