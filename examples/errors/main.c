/* Failures with typed details: a server that sends messages of google/rpc/error_details.proto with a status, and a
 * client that reads them. Both are in this process, over a socket: handlers run on the thread of the default runtime,
 * the client on that of main. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <torc/torc.h>

#include "google/rpc/error_details.torc.h"
#include "shop.torc.h"

/* --- the server --- */

static void place(torc_server_call *call, const Shop__Order *order, void *arg)
{
    Google__Rpc__BadRequest__FieldViolation wrong[2], *list[] = {&wrong[0], &wrong[1]};
    Google__Rpc__BadRequest bad = GOOGLE__RPC__BAD_REQUEST__INIT;
    Google__Rpc__ErrorInfo info = GOOGLE__RPC__ERROR_INFO__INIT;
    Google__Rpc__RetryInfo retry = GOOGLE__RPC__RETRY_INFO__INIT;
    Google__Protobuf__Duration delay = GOOGLE__PROTOBUF__DURATION__INIT;
    (void)arg;
    google__rpc__bad_request__field_violation__init(&wrong[0]);
    google__rpc__bad_request__field_violation__init(&wrong[1]);
    bad.field_violations = list;
    if (!*order->address) {
        list[bad.n_field_violations]->field = (char *)"address";
        list[bad.n_field_violations++]->description = (char *)"must not be empty";
    }
    if (order->quantity < 1) {
        list[bad.n_field_violations]->field = (char *)"quantity";
        list[bad.n_field_violations++]->description =
            (char *)torc_server_call_printf(call, "%d: expected 1 or more", order->quantity);
    }
    if (bad.n_field_violations) {
        info.reason = (char *)"ORDER_INVALID";
        info.domain = (char *)"shop.example";
        const ProtobufCMessage *details[] = {&bad.base, &info.base};
        torc_protobuf_c_finish(call, TORC_STATUS_INVALID_ARGUMENT, "the order is not valid", NULL, details, 2);
    } else {
        delay.seconds = 1;
        delay.nanos = 500000000;
        retry.retry_delay = &delay;
        const ProtobufCMessage *details[] = {&retry.base};
        torc_protobuf_c_finish(call, TORC_STATUS_RESOURCE_EXHAUSTED, "sold out", NULL, details, 1);
    }
}

/* --- the client --- */

/* Prints the details of the three types that this client knows. NULL: the failure has no detail of the type. */
static void explain(const torc_result *result)
{
    torc_arena *arena = torc_arena_new(0); /* the details live in it */
    const Google__Rpc__BadRequest *bad = (const Google__Rpc__BadRequest *)torc_protobuf_c_detail(
        result, &google__rpc__bad_request__descriptor, arena, NULL);
    const Google__Rpc__ErrorInfo *info = (const Google__Rpc__ErrorInfo *)torc_protobuf_c_detail(
        result, &google__rpc__error_info__descriptor, arena, NULL);
    const Google__Rpc__RetryInfo *retry = (const Google__Rpc__RetryInfo *)torc_protobuf_c_detail(
        result, &google__rpc__retry_info__descriptor, arena, NULL);
    for (size_t i = 0; bad && i < bad->n_field_violations; i++)
        printf("  %s: %s\n", bad->field_violations[i]->field, bad->field_violations[i]->description);
    if (info)
        printf("  reason %s of %s\n", info->reason, info->domain);
    if (retry && retry->retry_delay)
        printf("  again in %.1f s\n", (double)retry->retry_delay->seconds + retry->retry_delay->nanos / 1e9);
    torc_arena_free(arena);
}

/* Places an order and prints the status. Returns 1 if the server refused the order, as this example expects, else 0. */
static int order(torc_channel *channel, const char *address, int quantity)
{
    Shop__Order request = SHOP__ORDER__INIT;
    struct torc_call_options options = {TORC_SIZE(torc_call_options), .timeout_ms = 5000};
    request.address = (char *)address;
    request.quantity = quantity;
    torc_result *result = shop__orders__place__call(channel, &request, &options);
    int code = torc_result_code(result);
    printf("%s: %s\n", torc_status_code_name(code), torc_result_text(result));
    explain(result);
    torc_result_free(result);
    return code == TORC_STATUS_INVALID_ARGUMENT || code == TORC_STATUS_RESOURCE_EXHAUSTED;
}

int main(void)
{
    struct shop__orders__handlers handlers = {TORC_SIZE(shop__orders__handlers), .place = place};
    char *bound = NULL;
    int shown = 0;
    torc_error *error = NULL;
    torc_server *server = torc_server_new(NULL, &error);
    shop__orders__add(server, &handlers, NULL, &error);
    torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error);
    torc_server_start(server, &error);
    torc_channel *channel = error ? NULL : torc_channel_new(NULL, bound, NULL, &error);
    if (channel)
        shown = order(channel, "", 0) + order(channel, "Main Street 1", 2);
    else
        fprintf(stderr, "%s\n", torc_error_text(error));
    torc_channel_free(channel);
    torc_server_free(server);
    torc_error_free(error);
    torc_free(bound);
    return shown != 2;
}
