#include "sim/message.h"

#include <string.h>

struct head {
    uint64_t id;
    uint32_t from, index;
};

static unsigned char pattern(const struct head *h, size_t at)
{
    return (unsigned char)(h->id * 7 + h->index * 31 + at * 13);
}

const void *sim_message_write(const struct sim_message *m, size_t size, size_t *written)
{
    static unsigned char bytes[SIM_MESSAGE_MAX];
    const struct head h = {m->id, m->from, m->index};
    size = size < sizeof(h) ? sizeof(h) : size > sizeof(bytes) ? sizeof(bytes) : size;
    memcpy(bytes, &h, sizeof(h));
    for (size_t i = sizeof(h); i < size; i++)
        bytes[i] = pattern(&h, i);
    *written = size;
    return bytes;
}

bool sim_message_read(struct sim_message *m, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    struct head h;
    if (size < sizeof(h))
        return false;
    memcpy(&h, bytes, sizeof(h));
    *m = (struct sim_message){h.from, h.id, h.index};
    for (size_t i = sizeof(h); i < size; i++)
        if (bytes[i] != pattern(&h, i))
            return false;
    return true;
}
