// bench/client: the peer of client_etcd.c, by gRPC C++.
#include <iostream>

#include <grpcpp/grpcpp.h>

#include "etcd.grpc.pb.h"

static int fail(const grpc::Status &status)
{
    std::cerr << status.error_message() << "\n";
    return 1;
}

int main(int argc, char **argv)
{
    auto channel = grpc::CreateChannel(argc > 1 ? argv[1] : "localhost:2379", grpc::InsecureChannelCredentials());
    auto kv = etcdserverpb::KV::NewStub(channel);
    etcdserverpb::PutRequest put;
    put.set_key("jobs");
    put.set_value("one");
    etcdserverpb::PutResponse stored;
    grpc::ClientContext put_context, get_context;
    grpc::Status status = kv->Put(&put_context, put, &stored);
    if (!status.ok())
        return fail(status);
    etcdserverpb::RangeRequest get;
    get.set_key("jobs");
    etcdserverpb::RangeResponse got;
    status = kv->Range(&get_context, get, &got);
    if (!status.ok())
        return fail(status);
    for (const auto &pair : got.kvs())
        std::cout << pair.value() << "\n";
    return 0;
}
