// bench/start's client on gRPC C++.
#include <cstdio>

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>

#include "start.h"

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    auto channel = grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials());
    grpc::internal::RpcMethod method(START_METHOD, grpc::internal::RpcMethod::NORMAL_RPC);
    grpc::ClientContext context;
    grpc::Slice slice("", 0);
    grpc::ByteBuffer request(&slice, 1), response;
    grpc::Status status = grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
        channel.get(), method, &context, request, &response);
    start_answered();
    if (!status.ok())
        fprintf(stderr, "grpc_start: %s\n", status.error_message().c_str());
    return status.ok() ? 0 : 1;
}
