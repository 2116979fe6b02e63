/* A client of etcd by generated code: puts and gets a key. bench/client.py compares what this program and
 * peers/grpc_etcd.cc cost to build and to carry. */
#include <stdio.h>

#include "etcd.torc.h"

/* Prints why the RPC failed, and frees its result. Returns the exit status. */
static int fail(torc_result *result)
{
    fprintf(stderr, "%s\n", torc_error_text(torc_result_error(result)));
    torc_result_free(result);
    return 1;
}

int main(int argc, char **argv)
{
    torc_error *error = NULL;
    torc_channel *channel = torc_channel_new(NULL, argc > 1 ? argv[1] : "localhost:2379", NULL, &error);
    if (!channel)
        return fprintf(stderr, "%s\n", torc_error_text(error)), 1;
    Etcdserverpb__PutRequest put = ETCDSERVERPB__PUT_REQUEST__INIT;
    Etcdserverpb__RangeRequest get = ETCDSERVERPB__RANGE_REQUEST__INIT;
    put.key = get.key = (ProtobufCBinaryData){4, (uint8_t *)"jobs"};
    put.value = (ProtobufCBinaryData){3, (uint8_t *)"one"};
    torc_result *result = etcd__kv__put__call(channel, &put, NULL);
    if (!etcd__kv__put__response(result))
        return fail(result);
    torc_result_free(result);
    result = etcd__kv__range__call(channel, &get, NULL);
    const Etcdserverpb__RangeResponse *got = etcd__kv__range__response(result);
    if (!got)
        return fail(result);
    for (size_t i = 0; i < got->n_kvs; i++)
        printf("%.*s\n", (int)got->kvs[i]->value.len, (const char *)got->kvs[i]->value.data);
    torc_result_free(result);
    torc_channel_free(channel);
    return 0;
}
