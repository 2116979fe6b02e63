/* The functions of interceptors (torc/interceptor.h), over channel/rpc.h.
 *
 * Functions of a torc_rpc are called inside its hooks, on the loop's thread: `in` is the walk that is inside a hook
 * with a verdict, and `at_end` is set inside on_end. Metadata that is shown is copied to the RPC's arena
 * (torc_rpc.arena) at the first call, and again after a field was added.
 *
 * Functions of a torc_pending are called by the thread that has it. They change only the torc_pending; the RPC changes
 * when the loop resumes it. */
#include <torc/interceptor.h>

#include "api/call_object.h"
#include "api/metadata.h"
#include "channel/rpc.h"

/* --- the RPC --- */

const char *torc_rpc_method(const torc_rpc *rpc)
{
    return rpc ? rpc->side->method(rpc) : NULL;
}

const char *torc_rpc_target(const torc_rpc *rpc)
{
    return rpc ? rpc->side->target(rpc) : NULL;
}

const char *torc_rpc_authority(const torc_rpc *rpc)
{
    return rpc ? rpc->side->authority(rpc) : NULL;
}

const char *torc_rpc_peer(const torc_rpc *rpc)
{
    return rpc ? rpc->side->peer(rpc) : "";
}

int64_t torc_rpc_time_left(const torc_rpc *rpc)
{
    uint64_t at_ns = rpc ? rpc->side->deadline_ns(rpc) : UINT64_MAX;
    if (at_ns == UINT64_MAX)
        return 0;
    uint64_t now_ns = tc_loop_clock_ns(tc_runtime_loop(rpc->rt));
    return at_ns > now_ns ? (int64_t)((at_ns - now_ns + TC_NS_PER_MS - 1) / TC_NS_PER_MS) : -1;
}

uint32_t torc_rpc_attempts(const torc_rpc *rpc)
{
    return rpc ? rpc->attempts : 0;
}

/* Returns *copy, which it makes if there is none; borrowed from the RPC's arena. Returns NULL if `headers` is NULL. */
static const torc_metadata *shown(torc_rpc *rpc, const torc_metadata **copy, const struct tc_headers *headers)
{
    if (!*copy)
        *copy = tc_metadata_in_arena(rpc->arena, headers);
    return *copy;
}

const torc_metadata *torc_rpc_metadata(torc_rpc *rpc)
{
    return rpc ? shown(rpc, &rpc->shown_metadata, rpc->metadata) : NULL;
}

/* Adds a copy of the field, in the list's arena. Returns 0, or an error of torc_metadata_add or tc_metadata_to_headers.
 */
static int header_add(struct tc_headers *headers, const char *name, const void *value, size_t value_len)
{
    torc_metadata *one = torc_metadata_new();
    int rc = torc_metadata_add(one, name, value, value_len);
    if (rc == 0)
        rc = tc_metadata_to_headers(one, headers);
    torc_metadata_free(one);
    return rc;
}

int torc_rpc_add_metadata(torc_rpc *rpc, const char *name, const void *value, size_t value_len)
{
    if (!rpc)
        return TORC_EINVAL;
    if (!rpc->in || rpc->in->hook != TC_HOOK_START)
        return TORC_ESTATE;
    rpc->shown_metadata = NULL;
    return header_add(rpc->metadata, name, value, value_len);
}

/* Adds a field to a list of the response. `to` NULL: it is too late, or the RPC is a channel's. */
static int response_add(torc_rpc *rpc, struct tc_headers *to, const char *name, const void *value, size_t value_len)
{
    if (!to || !rpc->in)
        return TORC_ESTATE;
    rpc->shown_headers = rpc->shown_trailers = NULL;
    return header_add(to, name, value, value_len);
}

int torc_rpc_add_header(torc_rpc *rpc, const char *name, const void *value, size_t value_len)
{
    return rpc ? response_add(rpc, rpc->more_headers, name, value, value_len) : TORC_EINVAL;
}

int torc_rpc_add_trailer(torc_rpc *rpc, const char *name, const void *value, size_t value_len)
{
    return rpc ? response_add(rpc, rpc->more_trailers, name, value, value_len) : TORC_EINVAL;
}

int torc_rpc_set_text(torc_rpc *rpc, const char *text)
{
    if (!rpc)
        return TORC_EINVAL;
    if (!rpc->in)
        return TORC_ESTATE;
    tc_rstr_unref(rpc->text);
    rpc->text = text ? tc_rstr_str(text) : NULL;
    return 0;
}

/* Returns true inside on_status and on_end. Other hooks may run meanwhile: on_wire while on_status is delayed, say. */
static bool shows_outcome(const torc_rpc *rpc)
{
    return rpc && (rpc->at_end || (rpc->in && rpc->in->hook == TC_HOOK_STATUS));
}

const torc_metadata *torc_rpc_headers(torc_rpc *rpc)
{
    return shows_outcome(rpc) ? shown(rpc, &rpc->shown_headers, rpc->side->headers(rpc)) : NULL;
}

const torc_metadata *torc_rpc_trailers(torc_rpc *rpc)
{
    return shows_outcome(rpc) ? shown(rpc, &rpc->shown_trailers, rpc->side->trailers(rpc)) : NULL;
}

const char *torc_rpc_text(const torc_rpc *rpc)
{
    return shows_outcome(rpc) ? tc_status_text(rpc->status) : "";
}

int torc_rpc_layer(const torc_rpc *rpc)
{
    return shows_outcome(rpc) && rpc->status->code != TORC_STATUS_OK ? rpc->status->layer : TORC_LAYER_NONE;
}

/* --- delays --- */

torc_pending *torc_rpc_suspend(torc_rpc *rpc)
{
    return rpc ? tc_rpc_suspend(rpc) : NULL;
}

int torc_pending_add_metadata(torc_pending *p, const char *name, const void *value, size_t value_len)
{
    return p ? header_add(&p->metadata, name, value, value_len) : TORC_EINVAL;
}

int torc_pending_set_message(torc_pending *p, torc_message *message)
{
    if (!p || !message) {
        torc_message_unref(message);
        return TORC_EINVAL;
    }
    torc_message_unref((torc_message *)p->message);
    p->message = (struct tc_rstr *)message;
    return 0;
}

void torc_rpc_resume(torc_pending *p, int verdict, const char *text)
{
    if (p && tc_runtime_check(p->rt) != TORC_EFORK)
        tc_pending_resume(p, verdict, text ? tc_rstr_str(text) : NULL);
}

/* --- picks and events --- */

int torc_pick_outcome(const torc_pick *pick)
{
    return pick ? pick->outcome : 0;
}

uint32_t torc_pick_attempt(const torc_pick *pick)
{
    return pick ? pick->attempt : 0;
}

const char *torc_pick_endpoint(const torc_pick *pick)
{
    return pick ? pick->endpoint : "";
}

const char *torc_pick_policy(const torc_pick *pick)
{
    return pick ? pick->policy : "";
}

const char *torc_pick_cluster(const torc_pick *pick)
{
    return pick ? pick->cluster : "";
}

int torc_pick_code(const torc_pick *pick)
{
    return pick ? pick->code : TORC_STATUS_OK;
}

const char *torc_pick_text(const torc_pick *pick)
{
    return pick ? pick->text : "";
}

int torc_wire_event(const torc_wire *wire)
{
    return wire ? wire->event : 0;
}

uint32_t torc_wire_attempt(const torc_wire *wire)
{
    return wire ? wire->attempt : 0;
}

const char *torc_wire_peer(const torc_wire *wire)
{
    return wire ? wire->peer : "";
}

uint64_t torc_wire_bytes(const torc_wire *wire)
{
    return wire ? wire->bytes : 0;
}

int torc_wire_code(const torc_wire *wire)
{
    return wire ? wire->code : TORC_STATUS_OK;
}
