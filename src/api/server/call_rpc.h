/* A call on its way through the interceptors of its server. Loop thread only. */
#ifndef TC_API_SERVER_CALL_RPC_H
#define TC_API_SERVER_CALL_RPC_H

#include "api/server/call_object.h"

struct tc_call_rpc;

/* For servers with interceptors. Makes c->rpc, which tc_call_rpc_end frees, and has the request pass on_start, now or
 * later. Then the method's handler is called, a unary one once the request is complete. No handler is called if an
 * interceptor refuses, or the RPC ends, before that. `m` is borrowed until tc_call_rpc_end. */
void tc_call_rpc_begin(torc_server_call *c, const struct tc_method *m);
/* Returns how many messages the core may be asked for at a time, at present; 0 while a received message waits for an
 * interceptor. */
unsigned tc_call_rpc_reads(const struct tc_call_rpc *r);
/* A message came from the client. Takes over the reference. Drops the message if the RPC has an outcome already. */
void tc_call_rpc_received(struct tc_call_rpc *r, struct tc_rstr *message);
/* The client has sent its last message. Returns false if the handler has the call and is to hear of the half-close.
 * Returns true for a unary handler that was not called before: it is called now, unless the RPC has an outcome. Without
 * a message the RPC ends with INTERNAL. */
bool tc_call_rpc_half_closed(struct tc_call_rpc *r);
/* Takes all of `messages` and, if the call `ends`, copies c->ending: messages and status leave when they have passed
 * the interceptors. Drops them if the RPC has an outcome already. */
void tc_call_rpc_send(struct tc_call_rpc *r, struct tc_message_queue *messages, bool ends);
/* Returns the initial metadata of the response: what interceptors added, then `headers` (NULL: none). Borrowed until
 * tc_call_rpc_end. Called once. */
const struct tc_headers *tc_call_rpc_headers(struct tc_call_rpc *r, const struct tc_headers *headers);
/* The core's call is over: tells the interceptors the reason `why`, which is borrowed, and frees `r`. Returns whether
 * the handler, or its pool, was given the call. If not, the caller must finish the call. */
bool tc_call_rpc_end(struct tc_call_rpc *r, const struct tc_status *why);

#endif
