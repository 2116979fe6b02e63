/* A call on its way through the interceptors of its server. Loop thread only. */
#ifndef TC_API_SERVER_CALL_RPC_H
#define TC_API_SERVER_CALL_RPC_H

#include "api/server/call_object.h"

struct tc_call_rpc;

/* For servers with interceptors. Sets c->rpc, and has the request pass on_start. The method's handler is called after
 * it, a unary one once the request is complete. */
void tc_call_rpc_begin(torc_server_call *c, const struct tc_method *m);
/* Returns how many messages the core may be asked for at a time, at present. */
unsigned tc_call_rpc_reads(const struct tc_call_rpc *r);
/* A message came from the client. Takes over the reference. */
void tc_call_rpc_received(struct tc_call_rpc *r, struct tc_rstr *message);
/* The client has sent its last message. Returns false if the handler is to hear of it. */
bool tc_call_rpc_half_closed(struct tc_call_rpc *r);
/* Takes the messages and, if the call `ends`, c->ending: they leave when they have passed the interceptors. Drops them
 * if the RPC has an outcome already. */
void tc_call_rpc_send(struct tc_call_rpc *r, struct tc_message_queue *messages, bool ends);
/* Returns the initial metadata of the response: what interceptors added, then `headers` (NULL: none). Borrowed until
 * tc_call_rpc_end. Called once. */
const struct tc_headers *tc_call_rpc_headers(struct tc_call_rpc *r, const struct tc_headers *headers);
/* The core's call is over: tells the interceptors, and frees `r`. Returns whether the handler was called. */
bool tc_call_rpc_end(struct tc_call_rpc *r, const struct tc_status *why);

#endif
