/* What explains calls and channels: where a call would go without sending it, and the tree of LB policies as it is. */
#include <stdlib.h>

#include "base/mem.h"
#include "channel/call_api.h"
#include "channel/pool.h"
#include "channel/runtime.h"
#include "lb/describe.h"

void tc_channel_describe(const torc_channel *ch, const char *key, struct tc_describe *d)
{
    struct tc_pool *pool = tc_runtime_pool(ch->rt);
    tc_describe_open(d, key, '{');
    tc_describe_text(d, "target", tc_slice_str(ch->target.text));
    tc_describe_state(d, "state", ch->state);
    if (!tc_status_ok(&ch->status))
        tc_describe_text(d, "status", tc_slice_str(tc_status_text(&ch->status)));
    tc_describe_open(d, "pool", '{');
    tc_describe_number(d, "connections", tc_pool_count(pool));
    tc_describe_number(d, "unused", tc_pool_idle_count(pool));
    tc_describe_close(d, '}');
    tc_describe_child(d, "child", ch->child);
    tc_describe_close(d, '}');
}

/* Calls that are not sent. */

void tc_call_explain_pick(struct tc_call *c, const struct tc_pick_args *args)
{
    struct tc_pick_args dry = *args;
    struct tc_pick pick = {0};
    dry.trace = &c->trace;
    dry.dry = true;
    enum tc_pick_kind kind = tc_picker_pick(c->channel->picker, &dry, &pick);
    bool waits = kind == TC_PICK_QUEUE || (kind == TC_PICK_FAIL && c->waits);
    c->outcome = kind == TC_PICK_COMPLETE ? "send" : waits ? "wait" : kind == TC_PICK_FAIL ? "fail" : "drop";
    if (waits) {
        tc_status_fini(&pick.status);
        pick.status = (struct tc_status){0};
    }
    if (tc_status_ok(&pick.status))
        tc_call_fail(c, pick.status);
    else
        tc_call_fail(c, tc_status_from_control_plane(pick.status));
}

int torc_call_explain(torc_channel *ch, const char *method, const struct torc_call_options *options,
                      struct torc_result *result)
{
    return tc_call_unary_blocking(ch, method, tc_slice_of(NULL, 0), options, true, result);
}

int torc_call_explain_async(torc_channel *ch, const char *method, const struct torc_call_options *options,
                            torc_unary_fn fn, void *arg, torc_call **call)
{
    return tc_call_unary_async(ch, method, tc_slice_of(NULL, 0), options, true, fn, arg, call);
}

/* The tree, asked for by a thread that waits. */

struct asked {
    const torc_channel *ch;
    char *text; /* for free() */
};

static void on_asked(void *arg)
{
    struct asked *a = arg;
    struct tc_describe d = {0};
    tc_channel_describe(a->ch, NULL, &d);
    a->text = tc_buf_take(&d.out);
}

int torc_channel_describe(torc_channel *ch, char **json)
{
    int rc = ch && json ? tc_runtime_check_blocking(ch->rt) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    struct asked a = {.ch = tc_channel_ref(ch)};
    rc = tc_runtime_do(ch->rt, on_asked, &a);
    tc_channel_unref(ch);
    if (rc == 0)
        *json = a.text;
    return rc;
}
