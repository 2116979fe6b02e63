/* The inbox of a loop: a lock-free stack of posts from other threads, newest first. The loop takes all of them at once.
 * A zeroed stack is open and empty. A closed stack refuses posts; its `top` points at the stack itself. Posts are
 * chained by `next` alone; the stack does not own them. Take and close are for the loop's thread, the others for any
 * thread. */
#ifndef TC_IO_POSTS_H
#define TC_IO_POSTS_H

#include <stdatomic.h>

#include "base/list.h"

struct tc_posts {
    _Atomic(struct tc_link *) top;
};

static inline struct tc_link *tc_posts_closed_mark(const struct tc_posts *p)
{
    return (struct tc_link *)(uintptr_t)p;
}

static inline bool tc_posts_closed(const struct tc_posts *p)
{
    return atomic_load(&p->top) == tc_posts_closed_mark(p);
}

static inline bool tc_posts_empty(const struct tc_posts *p)
{
    return atomic_load(&p->top) == NULL;
}

/* Adds a post. Returns false if the stack is closed. */
static inline bool tc_posts_push(struct tc_posts *p, struct tc_link *link)
{
    struct tc_link *top = atomic_load_explicit(&p->top, memory_order_relaxed);
    do {
        if (top == tc_posts_closed_mark(p))
            return false;
        link->next = top;
    } while (!atomic_compare_exchange_weak(&p->top, &top, link));
    return true;
}

/* Appends the posts to `queue`, oldest first. Returns false if there were none. The stack must be open. */
static inline bool tc_posts_take(struct tc_posts *p, struct tc_link *queue)
{
    struct tc_link *link = atomic_exchange(&p->top, NULL);
    if (!link)
        return false;
    while (link) {
        struct tc_link *older = link->next;
        tc_list_append(queue, link);
        queue = link;
        link = older;
    }
    return true;
}

/* Closes the stack if it is empty and open. Returns whether it did. */
static inline bool tc_posts_close(struct tc_posts *p)
{
    struct tc_link *none = NULL;
    return atomic_compare_exchange_strong(&p->top, &none, tc_posts_closed_mark(p));
}

#endif
