/* Requests of ADS and LRS streams. A request lives in an arena that tc_request_unpack frees before it returns: code
 * that needs a part of the request for longer copies it, as tc_request_node_take does. */
#include "controlplane/request.h"

#include "proto/pack.h"
#include "proto/unpack.h"

struct tc_status tc_request_unpack(const ProtobufCMessageDescriptor *type, struct tc_slice bytes,
                                   struct tc_status (*fn)(void *arg, const ProtobufCMessage *request), void *arg)
{
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *request = NULL;
    tc_arena_init(&arena, 4096, tc_unpack_budget(bytes.len));
    struct tc_status status = tc_unpack(type, bytes, NULL, &arena, &request, &errors) == 0
                                  ? fn(arg, request)
                                  : tc_status_make(TORC_STATUS_INVALID_ARGUMENT, TORC_LAYER_HTTP2, "malformed %s: %s",
                                                   type->short_name, tc_validation_text(&errors));
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
    return status;
}

void tc_request_node_take(struct tc_request_node *n, const Envoy__Config__Core__V3__Node *node)
{
    if (n->id || !node)
        return;
    struct tc_buf bytes = {0};
    tc_pack(&node->base, &bytes);
    n->message = tc_rstr_new(bytes.data, bytes.len);
    n->id = tc_rstr_str(node->id);
    tc_buf_fini(&bytes);
}

void tc_request_node_fini(struct tc_request_node *n)
{
    tc_rstr_unref(n->id);
    tc_rstr_unref(n->message);
}
