/* The messages of streams. Each has a head: who sent it, for which call, and its index. The bytes after the head are
 * computed from the call and the index, so that damage shows. */
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

/* Returns a message of `size` bytes, at least its head and at most SIM_MESSAGE_MAX, in static memory that the next call
 * overwrites. Stores its size in *written. */
const void *sim_message_write(const struct sim_message *m, size_t size, size_t *written);
/* Reads a message. Returns false if the bytes are too few (*m is untouched) or damaged (*m has what the head says). */
bool sim_message_read(struct sim_message *m, const void *data, size_t size);

#endif
