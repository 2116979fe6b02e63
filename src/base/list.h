/* A doubly linked list, intrusive and circular around its head. tc_list_init initialises a head, or a link that is on
 * no list: an empty head and such a link point at themselves. One thread at a time. */
#ifndef TC_BASE_LIST_H
#define TC_BASE_LIST_H

#include "base/common.h"

struct tc_link {
    struct tc_link *prev, *next;
};

static inline void tc_list_init(struct tc_link *head)
{
    head->prev = head->next = head;
}

static inline bool tc_list_empty(const struct tc_link *head)
{
    return head->next == head;
}

/* Returns true if the link, which must be initialised, is on a list. */
static inline bool tc_list_linked(const struct tc_link *link)
{
    return link->next != link;
}

/* Adds a link that is on no list; it need not be initialised. */
static inline void tc_list_append(struct tc_link *head, struct tc_link *link)
{
    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
}

static inline void tc_list_prepend(struct tc_link *head, struct tc_link *link)
{
    tc_list_append(head->next, link);
}

/* Takes the link off its list; does nothing to an initialised link that is on no list. */
static inline void tc_list_remove(struct tc_link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    tc_list_init(link);
}

/* Takes the first link off the list and returns it; NULL if the list is empty. */
static inline struct tc_link *tc_list_pop(struct tc_link *head)
{
    struct tc_link *link = head->next;
    if (link == head)
        return NULL;
    tc_list_remove(link);
    return link;
}

/* Moves all of `from` to the end of `to`. */
static inline void tc_list_splice(struct tc_link *to, struct tc_link *from)
{
    if (tc_list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    tc_list_init(from);
}

/* The body must not take `it` off the list. */
#define TC_LIST_FOREACH(it, head) for (struct tc_link *it = (head)->next; it != (head); it = it->next)

#endif
