// bench/memory's client on gRPC C++.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>

#include "memory.h"

namespace {
std::shared_ptr<grpc::Channel> open(const std::string &port, unsigned i)
{
    grpc::ChannelArguments args;
    args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1); // a separate connection for each channel
    std::string address = "ipv4:127." + std::to_string((i + 1) >> 16) + "." + std::to_string((i + 1) >> 8 & 255) + "." +
                          std::to_string((i + 1) & 255) + ":" + port;
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), args);
}

void one_rpc(grpc::Channel *channel)
{
    grpc::internal::RpcMethod method("/bench.Echo/Echo", grpc::internal::RpcMethod::NORMAL_RPC);
    grpc::ClientContext context;
    grpc::Slice slice("", 0);
    grpc::ByteBuffer request(&slice, 1), response;
    grpc::Status status = grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
        channel, method, &context, request, &response);
    if (!status.ok()) {
        fprintf(stderr, "grpc_memory: %s\n", status.error_message().c_str());
        exit(1);
    }
}

struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
    grpc::ByteBuffer response;
    grpc::Status status;
};
} // namespace

int main(int argc, char **argv)
{
    unsigned n = argc == 4 ? static_cast<unsigned>(strtoul(argv[3], nullptr, 10)) : 0;
    if (n == 0)
        return 2;
    auto first = open(argv[2], 0);
    one_rpc(first.get());
    double before = memory_own();
    if (strcmp(argv[1], "idle") == 0) {
        printf("%.1f\n", memory_resident());
    } else if (strcmp(argv[1], "connections") == 0) {
        std::vector<std::shared_ptr<grpc::Channel>> all;
        for (unsigned i = 0; i < n; i++) {
            all.push_back(open(argv[2], i));
            one_rpc(all.back().get());
        }
        printf("%.1f\n", (memory_own() - before) / n);
        fflush(stdout);
        _Exit(0);
    } else if (strcmp(argv[1], "calls") == 0) {
        grpc::GenericStub stub(first);
        grpc::CompletionQueue queue;
        grpc::Slice slice("", 0);
        grpc::ByteBuffer request(&slice, 1);
        auto *calls = new std::vector<std::unique_ptr<Call>>;
        for (unsigned i = 0; i < n; i++) {
            calls->push_back(std::make_unique<Call>());
            Call *call = calls->back().get();
            call->reader = stub.PrepareUnaryCall(&call->context, MEMORY_HANG, request, &queue);
            call->reader->StartCall();
            call->reader->Finish(&call->response, &call->status, call);
        }
        one_rpc(first.get());
        printf("%.1f\n", (memory_own() - before) / n);
        fflush(stdout);
        _Exit(0);
    } else {
        return 2;
    }
    fflush(stdout);
    _Exit(0);
}
