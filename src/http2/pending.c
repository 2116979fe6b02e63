/* One block, which at least doubles when it grows. The bytes that wait are data[at..len). When more than half of
 * data[0..len) was taken, the next add moves the rest to the front. A block whose bytes were all taken is given
 * back. */
#include "http2/pending.h"

#include <string.h>

static bool pending_reserve(struct tc_h2_pending *p, size_t more)
{
    if (more <= p->cap - p->len)
        return true;
    size_t cap = TC_MAX(p->len + more, p->cap * 2);
    char *data = tc_blocks_try_resize(p->blocks, p->data, cap);
    if (!data)
        return false;
    p->data = data;
    p->cap = cap;
    return true;
}

bool tc_h2_pending_add(struct tc_h2_pending *p, const void *data, size_t len)
{
    if (p->at > p->len / 2) {
        memmove(p->data, p->data + p->at, p->len - p->at);
        p->len -= p->at;
        p->at = 0;
    }
    if (!pending_reserve(p, len))
        return false;
    memcpy(p->data + p->len, data, len);
    p->len += len;
    return true;
}

void tc_h2_pending_skip(struct tc_h2_pending *p, size_t n)
{
    p->at += n;
    if (p->data && p->at >= p->len) {
        tc_blocks_give(p->data);
        *p = (struct tc_h2_pending){.blocks = p->blocks};
    }
}

void tc_h2_pending_cut(struct tc_h2_pending *p, size_t n)
{
    p->len = p->at + n;
    tc_h2_pending_skip(p, 0);
}
