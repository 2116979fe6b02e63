#include "channel/attempts.h"

#include <sys/resource.h>

#include "base/mem.h"
#include "channel/connection.h"

enum {
    AT_ONCE = 16,       /* begin in one turn of the loop */
    UNDER_WAY_MIN = 64, /* may be under way however few descriptors the process may have */
    OWN = 8             /* of each channel, whatever the others have, as long as a quarter of the descriptors is free */
};

struct tc_attempts_line {
    const void *channel; /* its configuration, which may be gone: another's in its place shares the line */
    UT_hash_handle hh;
    struct tc_link link; /* on the list of those that wait */
    struct tc_link due;  /* connections */
    uint64_t under_way;
};

static struct tc_attempts_line *line_for(struct tc_attempts *a, const struct tc_conn_config *config)
{
    const void *channel = config->channel ? config->channel : config;
    struct tc_attempts_line *l;
    HASH_FIND_PTR(a->lines, &channel, l);
    if (!l) {
        l = TC_NEW(struct tc_attempts_line);
        l->channel = channel;
        tc_list_init(&l->link);
        tc_list_init(&l->due);
        HASH_ADD_PTR(a->lines, channel, l);
    }
    return l;
}

static void drop_if_unused(struct tc_attempts *a, struct tc_attempts_line *l)
{
    if (tc_list_empty(&l->due))
        tc_list_remove(&l->link);
    if (l->under_way || !tc_list_empty(&l->due))
        return;
    HASH_DELETE(hh, a->lines, l);
    tc_free(l);
}

/* A descriptor that there was before is not one more. */
static bool may_begin(const struct tc_attempts *a, const struct tc_attempts_line *l, const struct tc_connection *c)
{
    struct rlimit most;
    if (a->begun >= AT_ONCE)
        return false;
    if (c->was_ready || a->under_way < UNDER_WAY_MIN)
        return true;
    /* The application may change it. */
    if (getrlimit(RLIMIT_NOFILE, &most) != 0 || a->under_way < most.rlim_cur / 2)
        return true;
    return l->under_way < OWN && a->under_way < most.rlim_cur / 4 * 3;
}

static void begin(struct tc_attempts *a, struct tc_connection *c)
{
    a->begun++;
    tc_connection_begin(c);
}

/* The next whose turn it is; false: nobody may. */
static bool begin_next(struct tc_attempts *a)
{
    TC_LIST_FOREACH(it, &a->waiting)
    {
        struct tc_attempts_line *l = TC_CONTAINER_OF(it, struct tc_attempts_line, link);
        struct tc_connection *c = TC_CONTAINER_OF(l->due.next, struct tc_connection, due);
        if (!may_begin(a, l, c))
            continue;
        tc_list_remove(&c->due);
        tc_list_remove(&l->link);
        if (!tc_list_empty(&l->due))
            tc_list_append(&a->waiting, &l->link);
        begin(a, c);
        return true;
    }
    return false;
}

static void on_turn(struct tc_task *task)
{
    struct tc_attempts *a = TC_CONTAINER_OF(task, struct tc_attempts, turn);
    a->begun = 0;
    while (begin_next(a))
        ;
    if (a->begun)
        tc_loop_at_turn_end(a->loop, &a->turn);
}

void tc_attempts_init(struct tc_attempts *a, struct tc_loop *loop)
{
    *a = (struct tc_attempts){.loop = loop};
    tc_list_init(&a->waiting);
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
    c->line = line_for(a, c->config);
    if (tc_list_empty(&a->waiting) && may_begin(a, c->line, c)) {
        begin(a, c);
        return;
    }
    if (c->was_ready)
        tc_list_prepend(&c->line->due, &c->due);
    else
        tc_list_append(&c->line->due, &c->due);
    if (!tc_list_linked(&c->line->link))
        tc_list_append(&a->waiting, &c->line->link);
}

void tc_attempts_began(struct tc_attempts *a, struct tc_connection *c)
{
    if (!c->line)
        c->line = line_for(a, c->config);
    c->under_way = true;
    c->line->under_way++;
    a->under_way++;
}

void tc_attempts_over(struct tc_attempts *a, struct tc_connection *c)
{
    struct tc_attempts_line *l = c->line;
    if (!l)
        return;
    if (c->under_way) {
        l->under_way--;
        a->under_way--;
    }
    tc_list_remove(&c->due);
    c->under_way = false;
    c->line = NULL;
    drop_if_unused(a, l);
    if (a->loop && !tc_list_empty(&a->waiting))
        tc_loop_at_turn_end(a->loop, &a->turn);
}
