#include "channel/attempts.h"

#include <sys/resource.h>

#include "base/mem.h"
#include "channel/connection.h"

enum {
    AT_ONCE = 16,       /* begin in one turn of the loop */
    UNDER_WAY_MIN = 64, /* may be under way however few descriptors the process may have */
    OWN = 8             /* attempts of a channel that has little under way */
};

/* Who may begin. */
enum room {
    FOR_ALL,    /* less than half of the descriptors are taken by attempts */
    FOR_LINES,  /* less than five eighths: localities that have none under way */
    FOR_OTHERS, /* less than three quarters: channels that have fewer than OWN */
    FOR_NOBODY
};

struct tc_attempts_lines {
    const void *channel; /* its configuration, which may be gone: another's in its place shares this */
    UT_hash_handle hh;
    struct tc_attempts_line *lines;
    struct tc_link link;        /* on the list of those that wait */
    struct tc_link fresh, used; /* lines with connections that wait: without any under way, and the others */
    uint64_t under_way;
};

struct tc_attempts_line {
    const void *locality; /* identity alone, as above; NULL: none */
    UT_hash_handle hh;
    struct tc_attempts_lines *of;
    struct tc_link link; /* on one of the channel's lists */
    struct tc_link due;  /* connections */
    uint64_t under_way;
};

static struct tc_attempts_lines *lines_for(struct tc_attempts *a, const struct tc_conn_config *config)
{
    const void *channel = config->channel ? config->channel : config;
    struct tc_attempts_lines *of;
    HASH_FIND_PTR(a->channels, &channel, of);
    if (!of) {
        of = TC_NEW(struct tc_attempts_lines);
        of->channel = channel;
        tc_list_init(&of->link);
        tc_list_init(&of->fresh);
        tc_list_init(&of->used);
        HASH_ADD_PTR(a->channels, channel, of);
    }
    return of;
}

static struct tc_attempts_line *line_for(struct tc_attempts *a, const struct tc_connection *c)
{
    struct tc_attempts_lines *of = lines_for(a, c->config);
    struct tc_attempts_line *l;
    HASH_FIND_PTR(of->lines, &c->locality, l);
    if (!l) {
        l = TC_NEW(struct tc_attempts_line);
        l->locality = c->locality;
        l->of = of;
        tc_list_init(&l->link);
        tc_list_init(&l->due);
        HASH_ADD_PTR(of->lines, locality, l);
    }
    return l;
}

/* Puts the line and its channel at the end of the lists where they belong now; frees what has nothing left. */
static void place(struct tc_attempts *a, struct tc_attempts_line *l)
{
    struct tc_attempts_lines *of = l->of;
    tc_list_remove(&l->link);
    tc_list_remove(&of->link);
    if (!tc_list_empty(&l->due)) {
        tc_list_append(l->under_way ? &of->used : &of->fresh, &l->link);
    } else if (!l->under_way) {
        HASH_DELETE(hh, of->lines, l);
        tc_free(l);
    }
    if (!tc_list_empty(&of->fresh) || !tc_list_empty(&of->used)) {
        tc_list_append(&a->waiting, &of->link);
    } else if (!of->lines) {
        HASH_DELETE(hh, a->channels, of);
        tc_free(of);
    }
}

static enum room room(const struct tc_attempts *a)
{
    struct rlimit most; /* the application may change it */
    if (a->under_way < UNDER_WAY_MIN || getrlimit(RLIMIT_NOFILE, &most) != 0)
        return FOR_ALL;
    rlim_t eighth = most.rlim_cur / 8;
    return a->under_way < 4 * eighth   ? FOR_ALL
           : a->under_way < 5 * eighth ? FOR_LINES
           : a->under_way < 6 * eighth ? FOR_OTHERS
                                       : FOR_NOBODY;
}

/* The line of the channel whose turn it is; NULL: none may begin. */
static struct tc_attempts_line *next_line(const struct tc_attempts_lines *of, enum room room)
{
    bool fresh = !tc_list_empty(&of->fresh);
    bool may = room == FOR_ALL || (room == FOR_LINES && fresh) || (room != FOR_NOBODY && of->under_way < OWN);
    return may ? TC_CONTAINER_OF(fresh ? of->fresh.next : of->used.next, struct tc_attempts_line, link) : NULL;
}

static void begin(struct tc_attempts *a, struct tc_connection *c)
{
    a->begun++;
    tc_connection_begin(c);
}

/* Of those that wait, the next one; false: nobody may. */
static bool begin_next(struct tc_attempts *a)
{
    enum room now = room(a);
    TC_LIST_FOREACH(it, &a->waiting)
    {
        struct tc_attempts_line *l = next_line(TC_CONTAINER_OF(it, struct tc_attempts_lines, link), now);
        if (l) {
            begin(a, TC_CONTAINER_OF(tc_list_pop(&l->due), struct tc_connection, due));
            return true;
        }
    }
    return false;
}

static void on_turn(struct tc_task *task)
{
    struct tc_attempts *a = TC_CONTAINER_OF(task, struct tc_attempts, turn);
    struct tc_link *link;
    a->begun = 0;
    while (a->begun < AT_ONCE && (link = tc_list_pop(&a->again)))
        begin(a, TC_CONTAINER_OF(link, struct tc_connection, due));
    while (a->begun < AT_ONCE && begin_next(a))
        ;
    if (a->begun)
        tc_loop_at_turn_end(a->loop, &a->turn);
}

void tc_attempts_init(struct tc_attempts *a, struct tc_loop *loop)
{
    *a = (struct tc_attempts){.loop = loop};
    tc_list_init(&a->waiting);
    tc_list_init(&a->again);
    tc_task_init(&a->turn, on_turn);
}

void tc_attempts_stop(struct tc_attempts *a)
{
    tc_task_cancel(&a->turn);
    a->loop = NULL;
}

void tc_attempts_want(struct tc_attempts *a, struct tc_connection *c)
{
    tc_loop_at_turn_end(a->loop, &a->turn);
    if (tc_connection_is_private(c)) { /* without a control plane nobody learns what to do about the others */
        begin(a, c);
        return;
    }
    bool now = a->begun < AT_ONCE && tc_list_empty(&a->again);
    if (c->was_ready) { /* a descriptor that there was before is not one more */
        if (now)
            begin(a, c);
        else
            tc_list_append(&a->again, &c->due);
        return;
    }
    if (now && tc_list_empty(&a->waiting) && room(a) == FOR_ALL) {
        begin(a, c);
        return;
    }
    c->line = line_for(a, c);
    tc_list_append(&c->line->due, &c->due);
    place(a, c->line);
}

void tc_attempts_began(struct tc_attempts *a, struct tc_connection *c)
{
    if (!c->line)
        c->line = line_for(a, c);
    c->under_way = true;
    c->line->under_way++;
    c->line->of->under_way++;
    a->under_way++;
    place(a, c->line);
}

void tc_attempts_over(struct tc_attempts *a, struct tc_connection *c)
{
    struct tc_attempts_line *l = c->line;
    tc_list_remove(&c->due);
    if (!l)
        return;
    if (c->under_way) {
        l->under_way--;
        l->of->under_way--;
        a->under_way--;
    }
    c->under_way = false;
    c->line = NULL;
    place(a, l);
    if (a->loop && !tc_list_empty(&a->waiting))
        tc_loop_at_turn_end(a->loop, &a->turn);
}
