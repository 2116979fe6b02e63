/* Blocks of memory that one thread takes and any thread gives back: what a loop lends to the application (response
 * messages, the metadata of results), so that a steady stream of calls asks the system for none. What is kept for reuse
 * is bounded: a few hundred small blocks, and four of a mebibyte, whose pages cost more to be had anew than to be
 * filled. Other sizes come from the system and go back to it. */
#ifndef TC_BASE_BLOCKS_H
#define TC_BASE_BLOCKS_H

#include "base/common.h"

/* Bytes up to which small blocks are reused, and those of large ones: more than the first, no more than the second. */
#define TC_BLOCKS_LARGEST 2048u
#define TC_BLOCKS_LARGE_OVER (65u * 1024u)
#define TC_BLOCKS_LARGE (1025u * 1024u)

struct tc_blocks;

struct tc_blocks *tc_blocks_new(void);
/* Blocks that are still lent stay what they are; the last of them takes the rest with it. NULL is allowed. */
void tc_blocks_end(struct tc_blocks *b);
/* A block of at least `size` bytes, aligned for anything, for tc_blocks_give. Only one thread at a time. NULL blocks:
 * from the system. */
void *tc_blocks_take(struct tc_blocks *b, size_t size);
/* The same for what a peer chooses the size of (mem.h): NULL when the system does not give so much. */
void *tc_blocks_try_take(struct tc_blocks *b, size_t size);
/* Gives a block back, to where it came from. Any thread. */
void tc_blocks_give(void *block);

#endif
