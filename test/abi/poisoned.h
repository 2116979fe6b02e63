/* Options structs of a program that was compiled against older headers. What lies behind such a struct is not the
 * library's: it is poison, which the library would take for settings and which it must not overwrite. */
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

/* Frees the structs. Prints and counts those behind which the library has written. */
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
