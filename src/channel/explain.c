/* What explains calls and channels: where a call would go without sending it, and the tree of LB policies as it is. */
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "channel/call_api.h"
#include "channel/pool.h"
#include "channel/runtime.h"
#include "lb/describe.h"

void tc_channel_describe(const torc_channel *ch, const char *key, struct tc_describe *d)
{
    struct tc_pool *pool = tc_runtime_pool(ch->rt);
    size_t of_xds, idle_of_xds;
    tc_pool_private_counts(pool, &of_xds, &idle_of_xds);
    tc_describe_open(d, key, '{');
    tc_describe_text(d, "target", tc_slice_str(ch->target.text));
    tc_describe_state(d, "state", ch->state);
    if (!tc_status_ok(&ch->status))
        tc_describe_text(d, "status", tc_slice_str(tc_status_text(&ch->status)));
    tc_describe_open(d, "pool", '{');
    tc_describe_number(d, "connections", tc_pool_count(pool) - of_xds);
    tc_describe_number(d, "unused", tc_pool_idle_count(pool) - idle_of_xds);
    tc_describe_close(d, '}');
    tc_describe_child(d, "child", ch->child);
    tc_describe_close(d, '}');
}

/* Calls that are not sent. */

enum { MAX_AWAITED = 16 };

static const json_t *named(const json_t *list, struct tc_slice name)
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(json_object_get(item, "name"));
        if (text && tc_slice_eq_str(name, text))
            return item;
    }
    return NULL;
}

static const json_t *serving(const json_t *list)
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item) if (json_is_true(json_object_get(item, "serves"))) return item;
    return NULL;
}

/* Its connection was asked for, which the subchannel tells a turn later, and has not come about. */
static bool is_awaited(const json_t *address)
{
    const char *state = json_string_value(json_object_get(address, "state"));
    return state && (strcmp(state, "CONNECTING") == 0 || strcmp(state, "IDLE") == 0) &&
           json_is_true(json_object_get(address, "tried")) && !json_is_true(json_object_get(address, "failed"));
}

/* Down the tree that tc_channel_describe shows, where it branches by the cluster and by the priority that serves, to
 * the addresses that are being connected. */
static void find_awaited(const json_t *node, struct tc_slice cluster, json_t *out)
{
    static const char *const branches[] = {"child", "clusters", "priorities", "targets", "endpoints", "children"};
    const json_t *item, *addresses = json_object_get(node, "addresses");
    size_t i;
    json_array_foreach(addresses, i, item)
    {
        if (is_awaited(item) && json_array_size(out) < MAX_AWAITED)
            json_array_append(out, json_object_get(item, "address"));
    }
    for (size_t k = 0; k < TC_ARRAY_LEN(branches); k++) {
        const json_t *below = json_object_get(node, branches[k]), *only = NULL;
        if (strcmp(branches[k], "clusters") == 0)
            only = named(below, cluster);
        else if (strcmp(branches[k], "priorities") == 0)
            only = serving(below);
        if (only || json_is_object(below))
            find_awaited(only ? only : below, cluster, out);
        else
            json_array_foreach(below, i, item) find_awaited(item, cluster, out);
    }
}

json_t *tc_call_awaited(const struct tc_call *c, const char *channel_json)
{
    json_t *channel = json_loads(channel_json, 0, NULL), *out = json_array();
    find_awaited(channel, c->config.cluster, out);
    json_decref(channel);
    return out;
}

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
