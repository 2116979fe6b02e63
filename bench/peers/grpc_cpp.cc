// bench/rpc's client on gRPC C++: one RPC at a time blocking, more of them on a completion queue.
#include <cstdio>
#include <memory>
#include <string>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>

#include "client.h"
#include "measure.h"

namespace {
struct Call {
    std::unique_ptr<grpc::ClientContext> context;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
    grpc::ByteBuffer response;
    grpc::Status status;
    uint64_t started_ns;
};

void start(grpc::GenericStub *stub, grpc::CompletionQueue *queue, const grpc::ByteBuffer &request, Call *call)
{
    call->started_ns = measure_wall_ns();
    call->context = std::make_unique<grpc::ClientContext>();
    call->response.Clear();
    call->reader = stub->PrepareUnaryCall(call->context.get(), CLIENT_METHOD, request, queue);
    call->reader->StartCall();
    call->reader->Finish(&call->response, &call->status, call);
}

bool good(const grpc::Status &status, const grpc::ByteBuffer &response)
{
    if (status.ok() && response.Length() == CLIENT_PAYLOAD)
        return true;
    fprintf(stderr, "bench/grpc_cpp: status %d %s\n", status.error_code(), status.error_message().c_str());
    return false;
}

bool run_blocking(client *c, grpc::Channel *channel, const grpc::ByteBuffer &request)
{
    grpc::internal::RpcMethod method(CLIENT_METHOD, grpc::internal::RpcMethod::NORMAL_RPC);
    for (uint64_t now = measure_wall_ns(); !client_over(c, now);) {
        uint64_t started = measure_wall_ns();
        grpc::ClientContext context;
        grpc::ByteBuffer response;
        grpc::Status status = grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
            channel, method, &context, request, &response);
        if (!good(status, response))
            return false;
        now = client_done(c, started);
    }
    return true;
}

bool run_queue(client *c, const std::shared_ptr<grpc::Channel> &channel, const grpc::ByteBuffer &request)
{
    grpc::GenericStub stub(channel);
    grpc::CompletionQueue queue;
    auto calls = std::make_unique<Call[]>(c->outstanding);
    bool ok = true;
    unsigned under_way = 0;
    for (; under_way < c->outstanding; under_way++)
        start(&stub, &queue, request, &calls[under_way]);
    void *tag;
    bool event_ok;
    while (under_way > 0 && queue.Next(&tag, &event_ok)) {
        auto *call = static_cast<Call *>(tag);
        under_way--;
        ok = ok && event_ok && good(call->status, call->response);
        if (ok && !client_over(c, client_done(c, call->started_ns))) {
            start(&stub, &queue, request, call);
            under_way++;
        }
    }
    queue.Shutdown();
    while (queue.Next(&tag, &event_ok))
        ;
    return ok;
}
} // namespace

int main(int argc, char **argv)
{
    client c;
    if (!client_init(&c, argc, argv))
        return 2;
    auto channel =
        grpc::CreateChannel(std::string("ipv4:") + c.host + ":" + c.port, grpc::InsecureChannelCredentials());
    grpc::Slice slice(std::string(CLIENT_PAYLOAD, '\0'));
    grpc::ByteBuffer request(&slice, 1);
    bool ok = c.outstanding == 1 ? run_blocking(&c, channel.get(), request) : run_queue(&c, channel, request);
    int rc = client_report(&c);
    return ok ? rc : 1;
}
