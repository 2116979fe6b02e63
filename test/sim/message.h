/* The messages of streams: each says who sent it, for which call, and its number, and may have bytes after that, which
 * must arrive as they were. */
#ifndef SIM_MESSAGE_H
#define SIM_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_MESSAGE_MAX = 32768 };

struct sim_message {
    unsigned from; /* the host; SIM_HOSTS: the application */
    uint64_t id;
    unsigned index;
};

/* Writes a message of `size` bytes, but not less than its head and not more than SIM_MESSAGE_MAX, into memory of the
 * callee, which the next call overwrites. Stores the size. */
const void *sim_message_write(const struct sim_message *m, size_t size, size_t *written);
/* Returns false if the bytes are not a message, or are damaged. */
bool sim_message_read(struct sim_message *m, const void *data, size_t size);

#endif
