/* The connect queue: which connections may begin to connect, and when.
 *
 * A policy may ask for any number of connections in one loop turn. Beginning all of them would keep the loop from all
 * other work, and each endpoint that does not answer holds a descriptor until the connect timeout. So:
 *
 *   in a loop turn    at most AT_ONCE (16) connections begin, counted from the end of one turn to the end of the next;
 *   under way         up to half of RLIMIT_NOFILE, or UNDER_WAY_MIN (64) if that is more, any connection may begin; up
 *                     to 5/8, connections of localities without a connection under way; up to 3/4, connections of
 *                     channels with fewer than OWN (8) under way. So silent endpoints do not keep other channels and
 *                     localities waiting.
 *
 * Other connections wait in lines. A channel has a line for each locality. Channels take turns, and lines take turns
 * within their channel, lines with nothing under way ("fresh") first.
 *
 *   want -> [line] -> begin -> began ... over          under_way is counted from began to over
 *
 * Connections of private channels (to xDS servers) begin at once, whatever the limits: without a control plane nobody
 * learns what to do about the other connections. A connection that was READY before and has no transport does not wait
 * in a line: its descriptor is not an additional one. Of the two limits only AT_ONCE holds it up (`again`). A further
 * transport of a READY connection (A105) needs an additional descriptor, and waits in its line. A transport that
 * replaces others does not ask the queue at all. All of these count as under way, each in its line.
 *
 * The queue owns channels and lines; a line exists while it has an entry that waits or is under way, a channel while it
 * has a line (line_place). Entries belong to their connections. Loop thread only. */
#include "subchannel/connect_queue.h"

#include <sys/resource.h>

#include "base/table.h"

enum {
    AT_ONCE = 16,       /* begin in one loop turn */
    UNDER_WAY_MIN = 64, /* may be under way however small RLIMIT_NOFILE is */
    OWN = 8             /* FOR_OTHERS: channels with fewer entries under way may begin */
};

/* Which entries may begin, by the number of entries under way. */
enum room {
    FOR_ALL,    /* less than half of the descriptors are connecting, or fewer than UNDER_WAY_MIN: all */
    FOR_LINES,  /* less than five eighths: localities without an entry under way, and the channels of FOR_OTHERS */
    FOR_OTHERS, /* less than three quarters: channels with fewer than OWN under way */
    FOR_NOBODY
};

struct tc_connect_channel {
    const void *id; /* tc_connect_asker.channel, the key of tc_connect_queue.channels */
    UT_hash_handle hh;
    struct tc_connect_line *lines; /* by locality */
    struct tc_link link;           /* in tc_connect_queue.waiting */
    struct tc_link fresh, used;    /* lines with waiting entries: fresh have no entry under way, used have some */
    uint64_t under_way;            /* entries of all lines */
};

struct tc_connect_line {
    const void *locality; /* tc_connect_asker.locality */
    UT_hash_handle hh;
    struct tc_connect_channel *channel;
    struct tc_link link; /* in fresh or used of its channel */
    struct tc_link due;  /* entries that wait, the next one first */
    uint64_t under_way;  /* entries */
};

/* Returns the channel of this id, made if there is none. */
static struct tc_connect_channel *channel_get(struct tc_connect_queue *q, const void *id)
{
    struct tc_connect_channel *ch;
    HASH_FIND_PTR(q->channels, &id, ch);
    if (!ch) {
        ch = TC_NEW(struct tc_connect_channel);
        ch->id = id;
        tc_list_init(&ch->link);
        tc_list_init(&ch->fresh);
        tc_list_init(&ch->used);
        HASH_ADD_PTR(q->channels, id, ch);
    }
    return ch;
}

/* Returns the asker's line, made if there is none. The caller adds an entry, and then calls line_place. */
static struct tc_connect_line *line_get(struct tc_connect_queue *q, const struct tc_connect_asker *who)
{
    struct tc_connect_channel *ch = channel_get(q, who->channel);
    struct tc_connect_line *l;
    HASH_FIND_PTR(ch->lines, &who->locality, l);
    if (!l) {
        l = TC_NEW(struct tc_connect_line);
        l->locality = who->locality;
        l->channel = ch;
        tc_list_init(&l->link);
        tc_list_init(&l->due);
        HASH_ADD_PTR(ch->lines, locality, l);
    }
    return l;
}

/* Moves the line and its channel to the end of the lists where they now belong. Frees a line without entries, and a
 * channel without lines. */
static void line_place(struct tc_connect_queue *q, struct tc_connect_line *l)
{
    struct tc_connect_channel *ch = l->channel;
    tc_list_remove(&l->link);
    tc_list_remove(&ch->link);
    if (!tc_list_empty(&l->due)) {
        tc_list_append(l->under_way ? &ch->used : &ch->fresh, &l->link);
    } else if (!l->under_way) {
        HASH_DELETE(hh, ch->lines, l);
        tc_free(l);
    }
    if (!tc_list_empty(&ch->fresh) || !tc_list_empty(&ch->used)) {
        tc_list_append(&q->waiting, &ch->link);
    } else if (!ch->lines) {
        HASH_DELETE(hh, q->channels, ch);
        tc_free(ch);
    }
}

static enum room queue_room(const struct tc_connect_queue *q)
{
    struct rlimit most; /* read each time: the application may change it */
    if (q->under_way < UNDER_WAY_MIN || getrlimit(RLIMIT_NOFILE, &most) != 0)
        return FOR_ALL;
    rlim_t eighth = most.rlim_cur / 8;
    return q->under_way < 4 * eighth   ? FOR_ALL
           : q->under_way < 5 * eighth ? FOR_LINES
           : q->under_way < 6 * eighth ? FOR_OTHERS
                                       : FOR_NOBODY;
}

/* Returns the next line of a channel that waits, or NULL if the channel may not begin anything. */
static struct tc_connect_line *channel_next_line(const struct tc_connect_channel *ch, enum room room)
{
    bool fresh = !tc_list_empty(&ch->fresh);
    bool may = room == FOR_ALL || (room == FOR_LINES && fresh) || (room != FOR_NOBODY && ch->under_way < OWN);
    return may ? TC_CONTAINER_OF(fresh ? ch->fresh.next : ch->used.next, struct tc_connect_line, link) : NULL;
}

static void entry_begin(struct tc_connect_queue *q, struct tc_connect_entry *e)
{
    q->begun++;
    e->begin(e);
}

/* Begins the next entry that waits in a line. Returns false if none may begin. */
static bool queue_begin_next(struct tc_connect_queue *q)
{
    enum room now = queue_room(q);
    TC_LIST_FOREACH(it, &q->waiting)
    {
        struct tc_connect_line *l = channel_next_line(TC_CONTAINER_OF(it, struct tc_connect_channel, link), now);
        if (l) {
            entry_begin(q, TC_CONTAINER_OF(tc_list_pop(&l->due), struct tc_connect_entry, due));
            return true;
        }
    }
    return false;
}

static void on_turn(struct tc_task *task)
{
    struct tc_connect_queue *q = TC_CONTAINER_OF(task, struct tc_connect_queue, turn);
    struct tc_link *link;
    q->begun = 0;
    while (q->begun < AT_ONCE && (link = tc_list_pop(&q->again)))
        entry_begin(q, TC_CONTAINER_OF(link, struct tc_connect_entry, due));
    while (q->begun < AT_ONCE && queue_begin_next(q))
        ;
    if (q->begun)
        tc_loop_at_turn_end(q->loop, &q->turn);
}

void tc_connect_queue_init(struct tc_connect_queue *q, struct tc_loop *loop)
{
    *q = (struct tc_connect_queue){.loop = loop};
    tc_list_init(&q->waiting);
    tc_list_init(&q->again);
    tc_task_init(&q->turn, on_turn);
}

void tc_connect_queue_stop(struct tc_connect_queue *q)
{
    tc_task_cancel(&q->turn);
    q->loop = NULL;
}

void tc_connect_queue_want(struct tc_connect_queue *q, struct tc_connect_entry *e, const struct tc_connect_asker *who)
{
    tc_loop_at_turn_end(q->loop, &q->turn);
    bool now = q->begun < AT_ONCE && tc_list_empty(&q->again);
    if (who->is_private) {
        entry_begin(q, e);
    } else if (who->was_ready) {
        if (now)
            entry_begin(q, e);
        else
            tc_list_append(&q->again, &e->due);
    } else if (now && tc_list_empty(&q->waiting) && queue_room(q) == FOR_ALL) {
        entry_begin(q, e);
    } else {
        e->line = line_get(q, who);
        tc_list_append(&e->line->due, &e->due);
        line_place(q, e->line);
    }
}

void tc_connect_queue_began(struct tc_connect_queue *q, struct tc_connect_entry *e, const struct tc_connect_asker *who)
{
    if (!e->line)
        e->line = line_get(q, who);
    e->under_way = true;
    e->line->under_way++;
    e->line->channel->under_way++;
    q->under_way++;
    line_place(q, e->line);
}

void tc_connect_queue_over(struct tc_connect_queue *q, struct tc_connect_entry *e)
{
    struct tc_connect_line *l = e->line;
    tc_list_remove(&e->due);
    if (!l)
        return;
    if (e->under_way) {
        l->under_way--;
        l->channel->under_way--;
        q->under_way--;
    }
    e->under_way = false;
    e->line = NULL;
    line_place(q, l);
    if (q->loop && !tc_list_empty(&q->waiting))
        tc_loop_at_turn_end(q->loop, &q->turn);
}
