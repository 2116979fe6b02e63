/* Explains calls and channels to people: which event a call waits for, where a call would go without sending it, and
 * the tree of LB policies. Loop thread only. */
#ifndef TC_CHANNEL_EXPLAIN_H
#define TC_CHANNEL_EXPLAIN_H

#include "base/json.h"
#include "channel/call_internal.h"

struct tc_describe;

/* Writes the JSON of torc_channel_describe, as the member `key`; NULL: as the root. */
void tc_channel_describe(const torc_channel *ch, const char *key, struct tc_describe *d);

/* Returns the arguments of a call's pick, which borrow from the call. `trace` may be NULL. */
static inline struct tc_pick_args tc_call_pick_args(struct tc_call *c, struct tc_pick_trace *trace)
{
    return (struct tc_pick_args){
        .path = c->asked.path,
        .headers = &c->asked.metadata,
        .cluster = c->config.cluster,
        .has_hash = c->config.has_hash,
        .hash = c->config.hash,
        .channel_id = c->config.channel_id,
        .random = c->attempt.random,
        .arena = &c->arena,
        .session = c->config.session,
        .auto_host_rewrite = c->config.auto_host_rewrite,
        .trace = trace,
    };
}

/* Appends to `b` what the call waits for in its stage, for people. Returns the text of `b`, valid until `b` changes. */
const char *tc_call_awaited_text(struct tc_call *c, struct tc_buf *b);
/* Picks for a dry call, sets attempt.outcome, and ends the call: with the pick's status if the outcome is "fail" or
 * "drop", else with OK. */
void tc_call_explain_pick(struct tc_call *c, const struct tc_pick_args *args);
/* Returns a new array, which the caller owns, of the addresses (at most 16) whose connection a dry call waits for.
 * `channel_json` is the text of tc_channel_describe. */
json_t *tc_call_awaited(const struct tc_call *c, const char *channel_json);

#endif
