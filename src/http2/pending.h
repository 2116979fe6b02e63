/* Received bytes of a stream that wait to be decoded: no message was asked for yet, a decoded message waits for its
 * delivery, or the stream rests (streams.c). They lie in a block of the loop, so that they count as lent
 * (base/blocks.h). The block goes back when no byte waits; the stream drops all bytes at its end. Loop thread only. */
#ifndef TC_HTTP2_PENDING_H
#define TC_HTTP2_PENDING_H

#include "base/blocks.h"
#include "base/slice.h"

struct tc_h2_pending {
    struct tc_blocks *blocks; /* the loop's; borrowed */
    char *data;               /* NULL while nothing waits */
    size_t at, len, cap;      /* data[at..len) waits; cap: the block's size */
};

/* Adds bytes at the end. Returns false, and the bytes that wait stay, when the system does not give the memory. */
bool tc_h2_pending_add(struct tc_h2_pending *p, const void *data, size_t len);
/* Drops `n` bytes at the front. `n` must not be larger than the number of bytes that wait. */
void tc_h2_pending_skip(struct tc_h2_pending *p, size_t n);
/* Keeps the first `n` bytes and drops the rest. `n` must not be larger than the number of bytes that wait. */
void tc_h2_pending_cut(struct tc_h2_pending *p, size_t n);

/* Returns the bytes that wait; data NULL: none. Borrowed until the next call of a function above. */
static inline struct tc_slice tc_h2_pending_bytes(const struct tc_h2_pending *p)
{
    return p->data ? tc_slice_of(p->data + p->at, p->len - p->at) : tc_slice_of(NULL, 0);
}

#endif
