/* An etcd client by generated code: LeaseGrant, Txn, Put, Watch with cancel, Range, LeaseKeepAlive.
 * usage: etcd [TARGET] */
#include "etcd.torc.h"
#include <err.h>
#include <stdio.h>

#define BYTES(text) ((ProtobufCBinaryData){sizeof(text) - 1, (uint8_t *)(text)})
#define SHOW(bytes) (int)(bytes).len, (const char *)(bytes).data

/* Prints the error and exits if the RPC failed. The result and its response live until the next call of ok(); main
 * frees the last one. */
static torc_result *ok(torc_result *result)
{
    static torc_result *last;
    torc_result_free(last);
    if (torc_result_code(last = result) != 0)
        errx(1, "%s", torc_error_text(torc_result_error(result)));
    return result;
}

int main(int argc, char **argv)
{
    torc_channel *channel = torc_channel_new(NULL, argc > 1 ? argv[1] : "localhost:2379", NULL, NULL);
    Etcdserverpb__LeaseGrantRequest grant = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
    Etcdserverpb__LeaseKeepAliveRequest alive = ETCDSERVERPB__LEASE_KEEP_ALIVE_REQUEST__INIT;
    grant.ttl = 60;
    alive.id = etcd__lease__lease_grant__response(ok(etcd__lease__lease_grant__call(channel, &grant, NULL)))->id;

    /* Puts "one" if the key is absent (its version is 0), then "two" in any case. Both end with the lease. */
    Etcdserverpb__PutRequest put = ETCDSERVERPB__PUT_REQUEST__INIT;
    Etcdserverpb__Compare absent = ETCDSERVERPB__COMPARE__INIT, *compare = &absent;
    Etcdserverpb__RequestOp op = ETCDSERVERPB__REQUEST_OP__INIT, *success = &op;
    Etcdserverpb__TxnRequest txn = ETCDSERVERPB__TXN_REQUEST__INIT;
    Etcdserverpb__RangeRequest get = ETCDSERVERPB__RANGE_REQUEST__INIT;
    put.key = absent.key = get.key = BYTES("jobs"), put.value = BYTES("one"), put.lease = alive.id;
    op.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT, op.request_put = &put;
    txn.n_compare = txn.n_success = 1, txn.compare = &compare, txn.success = &success;
    printf("txn %d\n", etcd__kv__txn__response(ok(etcd__kv__txn__call(channel, &txn, NULL)))->succeeded);
    put.value = BYTES("two");
    ok(etcd__kv__put__call(channel, &put, NULL));

    /* Shows the events of the key since revision 1. Asks etcd at each event to cancel the watch, and waits until etcd
     * confirms that. */
    Etcdserverpb__WatchCreateRequest create = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
    Etcdserverpb__WatchCancelRequest cancel = ETCDSERVERPB__WATCH_CANCEL_REQUEST__INIT;
    Etcdserverpb__WatchRequest request = ETCDSERVERPB__WATCH_REQUEST__INIT;
    const Etcdserverpb__WatchResponse *seen = NULL;
    create.key = put.key, create.start_revision = 1, request.create_request = &create;
    request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
    torc_stream *watch = etcd__watch__watch__open(channel, NULL, NULL);
    etcd__watch__watch__send(watch, &request, 0, 5000);
    while (etcd__watch__watch__receive(watch, 5000, &seen) == 1 && !seen->canceled)
        for (size_t i = 0; i < seen->n_events; i++) {
            printf("watch %.*s\n", SHOW(seen->events[i]->kv->value));
            cancel.watch_id = seen->watch_id, request.cancel_request = &cancel;
            request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CANCEL_REQUEST;
            etcd__watch__watch__send(watch, &request, 0, 5000);
        }
    puts(seen && seen->canceled ? "watch canceled" : "watch failed");
    torc_stream_free(watch);

    const Etcdserverpb__RangeResponse *got = etcd__kv__range__response(ok(etcd__kv__range__call(channel, &get, NULL)));
    for (size_t i = 0; i < got->n_kvs; i++)
        printf("range %.*s\n", SHOW(got->kvs[i]->value));

    const Etcdserverpb__LeaseKeepAliveResponse *kept;
    torc_stream *stream = etcd__lease__lease_keep_alive__open(channel, NULL, NULL);
    etcd__lease__lease_keep_alive__send(stream, &alive, TORC_SEND_LAST, 5000);
    while (etcd__lease__lease_keep_alive__receive(stream, 5000, &kept) == 1)
        printf("lease kept for %d s\n", (int)kept->ttl);
    torc_result_free(ok(torc_stream_finish(stream)));
    torc_stream_free(stream);
    torc_channel_free(channel);
}
