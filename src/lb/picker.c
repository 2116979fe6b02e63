#include "lb/picker.h"

#include "base/mem.h"

static enum tc_pick_kind pick_queue(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    (void)picker, (void)args, (void)out;
    return TC_PICK_QUEUE;
}

static void free_plain(struct tc_picker *picker)
{
    tc_free(picker);
}

static const struct tc_picker_ops queue_ops = {pick_queue, free_plain};

struct tc_picker *tc_picker_queue(void)
{
    struct tc_picker *p = TC_NEW(struct tc_picker);
    p->ops = &queue_ops;
    tc_lref_init(&p->ref);
    return p;
}

struct fail_picker {
    struct tc_picker base;
    struct tc_status status;
};

static enum tc_pick_kind pick_fail(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    (void)args;
    tc_status_set(&out->status, tc_status_ref(&((struct fail_picker *)picker)->status));
    return TC_PICK_FAIL;
}

static void free_fail(struct tc_picker *picker)
{
    tc_status_fini(&((struct fail_picker *)picker)->status);
    tc_free(picker);
}

static const struct tc_picker_ops fail_ops = {pick_fail, free_fail};

struct tc_picker *tc_picker_fail(const struct tc_status *status)
{
    struct fail_picker *p = TC_NEW(struct fail_picker);
    p->base.ops = &fail_ops;
    tc_lref_init(&p->base.ref);
    p->status = tc_status_ref(status);
    return &p->base;
}
