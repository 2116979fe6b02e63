/* The pickers that need no policy: one that queues, one that queues and explains what for, one that fails. They never
 * change, and hold a reference to everything that they point to. */
#include "lb/picker.h"

#include "base/mem.h"

struct tc_slice tc_pick_trace_addr(struct tc_arena *arena, const struct tc_addr *addr)
{
    struct tc_buf text = {0};
    tc_addr_format(addr, &text);
    struct tc_slice copy = tc_arena_copy(arena, tc_buf_slice(&text));
    tc_buf_fini(&text);
    return copy;
}

static enum tc_pick_kind queue_picker_pick(struct tc_picker *picker, const struct tc_pick_args *args,
                                           struct tc_pick *out)
{
    (void)picker, (void)args, (void)out;
    return TC_PICK_QUEUE;
}

static void queue_picker_free(struct tc_picker *picker)
{
    tc_free(picker);
}

static const struct tc_picker_ops queue_ops = {queue_picker_pick, queue_picker_free};

struct tc_picker *tc_picker_queue(void)
{
    struct tc_picker *p = TC_NEW(struct tc_picker);
    tc_picker_init(p, &queue_ops);
    return p;
}

struct waiting_picker {
    struct tc_picker base;
    struct tc_picker *waiting;
};

/* Queues. For a traced pick, a dry pick of `waiting` writes into the trace what the pick waits for. */
static enum tc_pick_kind waiting_picker_pick(struct tc_picker *picker, const struct tc_pick_args *args,
                                             struct tc_pick *out)
{
    (void)out;
    if (TC_UNLIKELY(args->trace != NULL)) {
        struct tc_pick_args dry = *args;
        struct tc_pick nothing = {0};
        dry.dry = true;
        tc_picker_pick(((struct waiting_picker *)picker)->waiting, &dry, &nothing);
        tc_status_fini(&nothing.status);
    }
    return TC_PICK_QUEUE;
}

static void waiting_picker_free(struct tc_picker *picker)
{
    tc_picker_unref(((struct waiting_picker *)picker)->waiting);
    tc_free(picker);
}

static const struct tc_picker_ops waiting_ops = {waiting_picker_pick, waiting_picker_free};

struct tc_picker *tc_picker_queue_for(struct tc_picker *waiting)
{
    if (!waiting)
        return tc_picker_queue();
    struct waiting_picker *p = TC_NEW(struct waiting_picker);
    tc_picker_init(&p->base, &waiting_ops);
    p->waiting = waiting;
    return &p->base;
}

struct fail_picker {
    struct tc_picker base;
    struct tc_status status;
};

static enum tc_pick_kind fail_picker_pick(struct tc_picker *picker, const struct tc_pick_args *args,
                                          struct tc_pick *out)
{
    (void)args;
    tc_status_set(&out->status, tc_status_ref(&((struct fail_picker *)picker)->status));
    return TC_PICK_FAIL;
}

static void fail_picker_free(struct tc_picker *picker)
{
    tc_status_fini(&((struct fail_picker *)picker)->status);
    tc_free(picker);
}

static const struct tc_picker_ops fail_ops = {fail_picker_pick, fail_picker_free};

struct tc_picker *tc_picker_fail(const struct tc_status *status)
{
    struct fail_picker *p = TC_NEW(struct fail_picker);
    tc_picker_init(&p->base, &fail_ops);
    p->status = tc_status_ref(status);
    return &p->base;
}
