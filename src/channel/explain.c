/* Texts and JSON that explain calls and channels to people.
 *
 * tc_channel_describe writes the tree of LB policies as JSON. tc_call_awaited_text says what a call waits for in its
 * stage, for the text of DEADLINE_EXCEEDED. tc_call_explain_pick is the pick of a dry call (torc_explain), and
 * tc_call_awaited finds in the tree the connections that a dry call would wait for.
 *
 * Nothing here sends or connects: all picks are dry (lb/picker.h). tc_call_explain_pick alone ends its call; the other
 * functions leave calls as they were. */
#include "channel/explain.h"

#include "base/mem.h"
#include "lb/connectivity.h"
#include "lb/describe.h"
#include "runtime/runtime.h"
#include "subchannel/pool.h"
#include "subchannel/subchannel.h"

void tc_channel_describe(const torc_channel *ch, const char *key, struct tc_describe *d)
{
    struct tc_pool *pool = tc_runtime_pool(ch->rt);
    size_t of_xds, idle_of_xds;
    tc_pool_private_counts(pool, &of_xds, &idle_of_xds);
    tc_describe_open(d, key, '{');
    tc_describe_text(d, "target", tc_slice_str(ch->target.text));
    tc_describe_state(d, "state", ch->connectivity.state);
    if (!tc_status_ok(&ch->connectivity.status))
        tc_describe_text(d, "status", tc_slice_str(tc_status_text(&ch->connectivity.status)));
    tc_describe_open(d, "pool", '{');
    tc_describe_number(d, "connections", tc_pool_count(pool) - of_xds);
    tc_describe_number(d, "unused", tc_pool_idle_count(pool) - idle_of_xds);
    tc_describe_close(d, '}');
    tc_graceful_switch_describe(ch->lb.child, d, "child");
    tc_describe_close(d, '}');
}

/* --- the event that a call waits for --- */

static void text_append_pending(const torc_channel *ch, struct tc_buf *b)
{
    struct tc_buf pending = {0};
    if (ch->resolution.resolver && ch->resolution.resolver->ops->pending)
        ch->resolution.resolver->ops->pending(ch->resolution.resolver, &pending);
    if (pending.len)
        tc_buf_printf(b, ", which waits for %s", tc_buf_cstr(&pending));
    tc_buf_fini(&pending);
}

/* Shows the state of the call's own cluster: the channel may be READY because of another cluster. */
static void text_append_awaited(struct tc_call *c, struct tc_buf *b)
{
    const torc_channel *ch = c->channel;
    struct tc_pick_trace t = {.arena = &c->arena};
    struct tc_pick_args args = tc_call_pick_args(c, &t);
    struct tc_pick pick = {0};
    args.dry = args.waiting = true;
    tc_picker_pick(ch->lb.picker, &args, &pick);
    tc_buf_append_str(b, "a connected endpoint of ");
    if (t.cluster.data)
        tc_buf_printf(b, "cluster \"" TC_SHOWN "\" of ", TC_SHOW(t.cluster.data));
    tc_buf_printf(b, TC_SHOWN ", which is %s", TC_SHOW(ch->target.text),
                  tc_connectivity_name(t.has_state ? t.state : ch->connectivity.state));
    struct tc_slice why = t.has_state ? t.error : tc_slice_str(tc_status_text(&ch->connectivity.status));
    struct tc_subchannel *sc = t.awaited ? tc_subchannel_innermost(t.awaited) : NULL;
    const char *stage = sc ? tc_subchannel_stage(sc) : NULL;
    if (stage) {
        char *address = tc_addr_text(&sc->addr);
        tc_buf_printf(b, " (the connection to %s waits for %s)", address, stage);
        tc_free(address);
    } else if (why.len) {
        tc_buf_printf(b, " (%.*s)", (int)why.len, why.data);
    }
    tc_status_fini(&pick.status);
}

const char *tc_call_awaited_text(struct tc_call *c, struct tc_buf *b)
{
    const torc_channel *ch = c->channel;
    const char *holder = c->rpc ? tc_rpc_holder(c->rpc) : NULL;
    if (!holder && c->attempt.walk)
        holder = tc_walk_holder(c->attempt.walk);
    if (holder) {
        tc_buf_printf(b, "the interceptor \"" TC_SHOWN "\", which delays the call", TC_SHOW(holder));
        return tc_buf_cstr(b);
    }
    switch (c->stage) {
    case TC_CALL_NEW:
    case TC_CALL_WAIT_CONFIG:
        tc_buf_printf(b, "the name resolution of " TC_SHOWN, TC_SHOW(ch->target.text));
        text_append_pending(ch, b);
        if (!tc_status_ok(&ch->resolution.error))
            tc_buf_printf(b, " (last: %s)", tc_status_text(&ch->resolution.error));
        break;
    case TC_CALL_WAIT_INTERCEPTOR:
        tc_buf_append_str(b, "the interceptors of the channel");
        break;
    case TC_CALL_WAIT_FILTER:
        tc_buf_printf(b, "the HTTP filter \"%s\", which delays the call", tc_call_filters_waiting(c->filters));
        break;
    case TC_CALL_WAIT_PICK:
        text_append_awaited(c, b);
        break;
    case TC_CALL_WAIT_AUTH:
        tc_buf_append_str(b, "the call credentials (");
        tc_call_credentials_describe_awaited(c->credentials, b);
        tc_buf_append_char(b, ')');
        break;
    case TC_CALL_WAIT_STREAM:
        tc_buf_printf(b, "a free stream on the connection to %s (MAX_CONCURRENT_STREAMS reached)",
                      c->capacity.group->address->data);
        break;
    case TC_CALL_WAIT_RETRY:
        tc_buf_printf(b, "another attempt (the last: %s: %s)", torc_status_code_name(c->status.code),
                      tc_status_text(&c->status));
        break;
    case TC_CALL_HEDGING:
        tc_buf_printf(b, "the response of %s of its %u attempts", c->messages.committed ? "one" : "any", c->hedge->n);
        break;
    default:
        tc_buf_printf(b, c->attempt.headers ? "the end of the response of %s" : "the response of %s",
                      tc_rstr_cstr(c->attempt.peer));
        break;
    }
    return tc_buf_cstr(b);
}

/* --- calls that are not sent --- */

enum { MAX_AWAITED = 16 };

static const json_t *item_named(const json_t *list, struct tc_slice name)
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

static const json_t *item_serving(const json_t *list)
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item) if (json_is_true(json_object_get(item, "serves"))) return item;
    return NULL;
}

/* Returns whether the address was tried, has not failed, and is not connected yet. IDLE counts: the subchannel reports
 * CONNECTING by a task. */
static bool address_is_awaited(const json_t *address)
{
    const char *state = json_string_value(json_object_get(address, "state"));
    return state && (strcmp(state, "CONNECTING") == 0 || strcmp(state, "IDLE") == 0) &&
           json_is_true(json_object_get(address, "tried")) && !json_is_true(json_object_get(address, "failed"));
}

/* Walks the tree of tc_channel_describe down to the addresses that are being connected, and appends them to `out`. At a
 * cluster_manager it follows the call's cluster, at a priority policy the priority that serves. It follows all branches
 * at other policies, and where that cluster or priority does not exist. */
static void node_find_awaited(const json_t *node, struct tc_slice cluster, json_t *out)
{
    static const char *const branches[] = {"child", "clusters", "priorities", "targets", "endpoints", "children"};
    const json_t *item, *addresses = json_object_get(node, "addresses");
    size_t i;
    json_array_foreach(addresses, i, item)
    {
        if (address_is_awaited(item) && json_array_size(out) < MAX_AWAITED)
            json_array_append(out, json_object_get(item, "address"));
    }
    for (size_t k = 0; k < TC_ARRAY_LEN(branches); k++) {
        const json_t *below = json_object_get(node, branches[k]), *only = NULL;
        if (strcmp(branches[k], "clusters") == 0)
            only = item_named(below, cluster);
        else if (strcmp(branches[k], "priorities") == 0)
            only = item_serving(below);
        if (only || json_is_object(below))
            node_find_awaited(only ? only : below, cluster, out);
        else
            json_array_foreach(below, i, item) node_find_awaited(item, cluster, out);
    }
}

json_t *tc_call_awaited(const struct tc_call *c, const char *channel_json)
{
    json_t *channel = json_loads(channel_json, 0, NULL), *out = json_array();
    node_find_awaited(channel, c->config.cluster, out);
    json_decref(channel);
    return out;
}

void tc_call_explain_pick(struct tc_call *c, const struct tc_pick_args *args)
{
    struct tc_pick_args dry = *args;
    struct tc_pick pick = {0};
    dry.trace = &c->attempt.trace;
    dry.dry = true;
    enum tc_pick_kind kind = tc_picker_pick(c->channel->lb.picker, &dry, &pick);
    bool waits = kind == TC_PICK_QUEUE || (kind == TC_PICK_FAIL && c->waits);
    c->attempt.outcome = kind == TC_PICK_COMPLETE ? "send" : waits ? "wait" : kind == TC_PICK_FAIL ? "fail" : "drop";
    if (waits) {
        tc_status_fini(&pick.status);
        pick.status = (struct tc_status){0};
    }
    if (tc_status_ok(&pick.status))
        tc_call_fail(c, pick.status);
    else
        tc_call_fail(c, tc_status_legal(pick.status, kind == TC_PICK_DROP ? "LB drop" : "LB pick"));
}
