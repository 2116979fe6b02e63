/* The connect queue of a pool: which connections may begin to connect, and when. Loop thread only.
 *
 * A connection embeds a struct tc_connect_entry, and asks with tc_connect_queue_want. The entry's `begin` is called
 * when its turn has come, possibly from inside tc_connect_queue_want. `begin` must call tc_connect_queue_began. The
 * queue owns its channels and lines. See connect_queue.c for the order and the limits. */
#ifndef TC_SUBCHANNEL_CONNECT_QUEUE_H
#define TC_SUBCHANNEL_CONNECT_QUEUE_H

#include "io/loop.h"

struct tc_connect_line;    /* the entries of one locality of a channel */
struct tc_connect_channel; /* the lines of one channel */

struct tc_connect_queue {
    struct tc_loop *loop; /* NULL after tc_connect_queue_stop */
    struct tc_connect_channel *channels;
    struct tc_link waiting; /* channels with entries that wait in lines; the next channel first */
    struct tc_link again;   /* entries with was_ready: they wait only for a loop turn with room */
    struct tc_task turn;    /* at a turn's end: begins the entries that may begin */
    uint32_t begun;         /* since the end of the last loop turn */
    uint64_t under_way;     /* entries whose connecting has begun and is not over */
};

/* The owner zeroes the entry, initialises `due` and sets `begin`. */
struct tc_connect_entry {
    void (*begin)(struct tc_connect_entry *e);
    /* The queue's: */
    struct tc_connect_line *line; /* NULL: neither waiting in a line nor under way */
    struct tc_link due;           /* linked while the entry waits */
    bool under_way;
};

/* On whose behalf an entry connects. Borrowed by the functions below until they return. */
struct tc_connect_asker {
    const void *channel;  /* identity only: never dereferenced, and may be gone */
    const void *locality; /* identity only; NULL: none */
    bool is_private;      /* private channels alone use the connection */
    bool was_ready;       /* the connection existed before, and is gone: its descriptor is free */
};

/* Begins with an empty queue. `loop` is borrowed until tc_connect_queue_stop. */
void tc_connect_queue_init(struct tc_connect_queue *q, struct tc_loop *loop);
/* Stops the queue: nothing begins any longer. Only tc_connect_queue_over may be called after it. */
void tc_connect_queue_stop(struct tc_connect_queue *q);

/* Calls the entry's `begin` at once or when its turn has come. The entry must not wait or be under way. */
void tc_connect_queue_want(struct tc_connect_queue *q, struct tc_connect_entry *e, const struct tc_connect_asker *who);
/* Counts the entry, which must not wait, as under way. Called when the connecting begins, even if tc_connect_queue_want
 * was not called. */
void tc_connect_queue_began(struct tc_connect_queue *q, struct tc_connect_entry *e, const struct tc_connect_asker *who);
/* Takes the entry off the queue: it no longer waits or connects. Does nothing if it did neither. */
void tc_connect_queue_over(struct tc_connect_queue *q, struct tc_connect_entry *e);

#endif
