/* etcd by generated code: Put, Txn, Range, Watch with cancel, a lease kept alive. usage: etcd [TARGET] */
#include "etcd.torc.h"
#include <stdio.h>
#include <string.h>

#define BYTES(text) ((ProtobufCBinaryData){strlen(text), (uint8_t *)(text)})

/* Returns whether the RPC failed, with the reason on standard error. */
static int failed(torc_result *result)
{
    int code = torc_result_code(result);
    if (code)
        fprintf(stderr, "%s\n", torc_error_text(torc_result_error(result)));
    torc_result_free(result);
    return code;
}

/* Watches the key from its first revision on, and cancels the watch after the first events. */
static int watch(torc_channel *channel, ProtobufCBinaryData key)
{
    Etcdserverpb__WatchCreateRequest create = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
    Etcdserverpb__WatchCancelRequest cancel = ETCDSERVERPB__WATCH_CANCEL_REQUEST__INIT;
    Etcdserverpb__WatchRequest request = ETCDSERVERPB__WATCH_REQUEST__INIT;
    const Etcdserverpb__WatchResponse *response = NULL;
    create.key = key, create.start_revision = 1;
    request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
    request.create_request = &create;
    torc_stream *stream = etcdserverpb__watch__watch__open(channel, NULL, NULL);
    int rc = etcdserverpb__watch__watch__send(stream, &request, 0, 5000);
    while (rc == 0 && (rc = etcdserverpb__watch__watch__receive(stream, 5000, &response)) == 1 && !response->canceled) {
        for (size_t i = 0; i < response->n_events; i++)
            printf("watch %.*s\n", (int)response->events[i]->kv->value.len,
                   (char *)response->events[i]->kv->value.data);
        request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CANCEL_REQUEST;
        cancel.watch_id = response->watch_id, request.cancel_request = &cancel;
        rc = response->n_events ? etcdserverpb__watch__watch__send(stream, &request, 0, 5000) : 0;
    }
    puts(rc == 1 ? "watch canceled" : torc_strerror(rc));
    torc_stream_free(stream);
    return rc != 1;
}

int main(int argc, char **argv)
{
    torc_channel *channel = torc_channel_new(NULL, argc > 1 ? argv[1] : "localhost:2379", NULL, NULL);
    Etcdserverpb__LeaseGrantRequest grant = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
    Etcdserverpb__LeaseKeepAliveRequest alive = ETCDSERVERPB__LEASE_KEEP_ALIVE_REQUEST__INIT;
    Etcdserverpb__PutRequest put = ETCDSERVERPB__PUT_REQUEST__INIT;
    Etcdserverpb__RangeRequest range = ETCDSERVERPB__RANGE_REQUEST__INIT;
    Etcdserverpb__Compare compare = ETCDSERVERPB__COMPARE__INIT, *compares = &compare;
    Etcdserverpb__RequestOp op = ETCDSERVERPB__REQUEST_OP__INIT, *ops = &op;
    Etcdserverpb__TxnRequest txn = ETCDSERVERPB__TXN_REQUEST__INIT;

    grant.ttl = 60;
    torc_result *result = etcdserverpb__lease__lease_grant__call(channel, &grant, NULL);
    const Etcdserverpb__LeaseGrantResponse *granted = etcdserverpb__lease__lease_grant__response(result);
    alive.id = put.lease = granted ? granted->id : 0;
    put.key = range.key = compare.key = BYTES("jobs"), put.value = compare.value = BYTES("one");
    if (failed(result) || failed(etcdserverpb__kv__put__call(channel, &put, NULL)))
        return 1;

    compare.target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__VALUE;
    compare.target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_VALUE;
    put.value = BYTES("two"), op.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT, op.request_put = &put;
    txn.n_compare = txn.n_success = 1, txn.compare = &compares, txn.success = &ops;
    result = etcdserverpb__kv__txn__call(channel, &txn, NULL);
    const Etcdserverpb__TxnResponse *changed = etcdserverpb__kv__txn__response(result);
    printf("txn %s\n", changed && changed->succeeded ? "succeeded" : "failed");
    if (failed(result) || watch(channel, range.key))
        return 1;

    result = etcdserverpb__kv__range__call(channel, &range, NULL);
    const Etcdserverpb__RangeResponse *found = etcdserverpb__kv__range__response(result);
    for (size_t i = 0; found && i < found->n_kvs; i++)
        printf("range %.*s\n", (int)found->kvs[i]->value.len, (char *)found->kvs[i]->value.data);
    const Etcdserverpb__LeaseKeepAliveResponse *kept;
    torc_stream *stream = etcdserverpb__lease__lease_keep_alive__open(channel, NULL, NULL);
    etcdserverpb__lease__lease_keep_alive__send(stream, &alive, TORC_SEND_LAST, 5000);
    while (etcdserverpb__lease__lease_keep_alive__receive(stream, 5000, &kept) == 1)
        printf("lease kept for %d s\n", (int)kept->ttl);
    int rc = failed(result) || failed(torc_stream_finish(stream));
    torc_stream_free(stream);
    torc_channel_free(channel);
    return rc;
}
