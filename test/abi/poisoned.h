/* Options structs of a program that was compiled against older headers. The bytes behind such a struct are poison: a
 * library that read them would find settings that nobody made, and it must not overwrite them either. */
#ifndef TORC_TEST_POISONED_H
#define TORC_TEST_POISONED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POISON 0xa5
#define POISON_BYTES 4096

struct poisoned_block {
    struct poisoned_block *next;
    const char *name;
    size_t size;
    _Alignas(16) unsigned char bytes[];
};

static struct poisoned_block *poisoned_blocks;

static inline void *poisoned_new(size_t size, const char *name)
{
    struct poisoned_block *block = calloc(1, sizeof(*block) + size + POISON_BYTES);
    if (!block)
        abort();
    *block = (struct poisoned_block){poisoned_blocks, name, size};
    memset(block->bytes + size, POISON, POISON_BYTES);
    poisoned_blocks = block;
    return block->bytes;
}

/* A zeroed struct of that tag, with poison behind it. */
#define POISONED(tag) ((struct tag *)poisoned_new(sizeof(struct tag), #tag))

/* Frees the structs. Prints each struct behind which the library has written. Returns their number. */
static inline int poisoned_end(void)
{
    int written = 0;
    while (poisoned_blocks) {
        struct poisoned_block *block = poisoned_blocks;
        size_t i = 0;
        while (i < POISON_BYTES && block->bytes[block->size + i] == POISON)
            i++;
        if (i < POISON_BYTES) {
            printf("written behind struct %s, byte %zu\n", block->name, block->size + i);
            written++;
        }
        poisoned_blocks = block->next;
        free(block);
    }
    return written;
}

#endif
