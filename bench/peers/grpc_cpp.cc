// bench/rpc's client on gRPC C++: one RPC or stream at a time blocking, several on a completion queue.
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/sync_stream.h>

#include "client.h"
#include "measure.h"

namespace {
using grpc::ByteBuffer;
using grpc::internal::RpcMethod;

struct Run {
    client c;
    std::shared_ptr<grpc::Channel> channel;
    ByteBuffer request;
};

struct Call {
    std::unique_ptr<grpc::ClientContext> context;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
    ByteBuffer response;
    grpc::Status status;
    uint64_t started_ns;
};

bool good(const grpc::Status &status)
{
    if (!status.ok())
        fprintf(stderr, "bench/grpc_cpp: status %d %s\n", status.error_code(), status.error_message().c_str());
    return status.ok();
}

bool good(const Run &run, const grpc::Status &status, const ByteBuffer &response)
{
    return good(status) && response.Length() == run.c.payload_size;
}

bool run_blocking(Run *run)
{
    RpcMethod method(CLIENT_METHOD, RpcMethod::NORMAL_RPC);
    for (uint64_t now = measure_wall_ns(); !client_over(&run->c, now);) {
        uint64_t started = measure_wall_ns();
        grpc::ClientContext context;
        ByteBuffer response;
        grpc::Status status = grpc::internal::BlockingUnaryCall<ByteBuffer, ByteBuffer>(
            run->channel.get(), method, &context, run->request, &response);
        if (!good(*run, status, response))
            return false;
        now = client_done(&run->c, started);
    }
    return true;
}

void start(Run *run, grpc::GenericStub *stub, grpc::CompletionQueue *queue, Call *call)
{
    call->started_ns = measure_wall_ns();
    call->context = std::make_unique<grpc::ClientContext>();
    call->response.Clear();
    call->reader = stub->PrepareUnaryCall(call->context.get(), CLIENT_METHOD, run->request, queue);
    call->reader->StartCall();
    call->reader->Finish(&call->response, &call->status, call);
}

bool run_queue(Run *run)
{
    grpc::GenericStub stub(run->channel);
    grpc::CompletionQueue queue;
    auto calls = std::make_unique<Call[]>(run->c.outstanding);
    bool ok = true;
    unsigned under_way = 0;
    for (; under_way < run->c.outstanding; under_way++)
        start(run, &stub, &queue, &calls[under_way]);
    void *tag;
    bool event_ok;
    while (under_way > 0 && queue.Next(&tag, &event_ok)) {
        auto *call = static_cast<Call *>(tag);
        under_way--;
        ok = ok && event_ok && good(*run, call->status, call->response);
        if (ok && !client_over(&run->c, client_done(&run->c, call->started_ns))) {
            start(run, &stub, &queue, call);
            under_way++;
        }
    }
    queue.Shutdown();
    while (queue.Next(&tag, &event_ok))
        ;
    return ok;
}

bool run_bidi(Run *run)
{
    RpcMethod method(CLIENT_METHOD, RpcMethod::BIDI_STREAMING);
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<ByteBuffer, ByteBuffer>> stream(
        grpc::internal::ClientReaderWriterFactory<ByteBuffer, ByteBuffer>::Create(run->channel.get(), method,
                                                                                  &context));
    ByteBuffer message;
    for (uint64_t now = measure_wall_ns(); !client_over(&run->c, now); now = client_done(&run->c, now))
        if (!stream->Write(run->request) || !stream->Read(&message) || message.Length() != run->c.payload_size)
            return false;
    stream->WritesDone();
    return good(stream->Finish());
}

bool run_repeat(Run *run)
{
    RpcMethod method(CLIENT_METHOD_REPEAT, RpcMethod::SERVER_STREAMING);
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<ByteBuffer>> stream(
        grpc::internal::ClientReaderFactory<ByteBuffer>::Create(run->channel.get(), method, &context, run->request));
    ByteBuffer message;
    for (uint64_t now = measure_wall_ns(); !client_over(&run->c, now); now = client_done(&run->c, now))
        if (!stream->Read(&message) || message.Length() != run->c.payload_size)
            return false;
    context.TryCancel();
    stream->Finish();
    return true;
}

// A stream on the queue; `due` counts its outstanding operations.
struct Stream {
    enum Step { STARTING, TALKING, CLOSING, OVER } step = STARTING;
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
    ByteBuffer message;
    grpc::Status status;
    uint64_t started_ns;
    int due;
};

// Takes the stream's next step once all outstanding operations are done. Returns false when the stream is over.
bool step(Run *run, Stream *s)
{
    if (s->step == Stream::TALKING && client_over(&run->c, client_done(&run->c, s->started_ns)))
        s->step = Stream::CLOSING;
    else if (s->step == Stream::CLOSING)
        s->step = Stream::OVER;
    else if (s->step == Stream::STARTING)
        s->step = Stream::TALKING;
    s->due = 2;
    if (s->step == Stream::TALKING) {
        s->started_ns = measure_wall_ns();
        s->stream->Write(run->request, s);
        s->stream->Read(&s->message, s);
    } else if (s->step == Stream::CLOSING) {
        s->stream->WritesDone(s);
        s->stream->Finish(&s->status, s);
    }
    return s->step != Stream::OVER;
}

bool run_streams(Run *run)
{
    grpc::GenericStub stub(run->channel);
    grpc::CompletionQueue queue;
    auto streams = std::make_unique<Stream[]>(run->c.outstanding);
    bool ok = true;
    unsigned under_way = 0;
    for (; under_way < run->c.outstanding; under_way++) {
        Stream *s = &streams[under_way];
        s->stream = stub.PrepareCall(&s->context, CLIENT_METHOD, &queue);
        s->due = 1;
        s->stream->StartCall(s);
    }
    void *tag;
    bool event_ok;
    while (under_way > 0 && queue.Next(&tag, &event_ok)) {
        auto *s = static_cast<Stream *>(tag);
        if (!event_ok) {
            fprintf(stderr, "bench/grpc_cpp: a stream broke\n");
            exit(1);
        }
        if (--s->due == 0 && !step(run, s)) {
            under_way--;
            ok = good(s->status) && ok;
        }
    }
    queue.Shutdown();
    while (queue.Next(&tag, &event_ok))
        ;
    return ok;
}

std::shared_ptr<grpc::ChannelCredentials> credentials(const client &c)
{
    if (!c.roots)
        return grpc::InsecureChannelCredentials();
    std::stringstream text;
    text << std::ifstream(c.roots).rdbuf();
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = text.str();
    return grpc::SslCredentials(options);
}

bool run_all(Run *run)
{
    bool one = run->c.outstanding == 1;
    if (run->c.kind == CLIENT_REPEAT)
        return run_repeat(run);
    if (run->c.kind == CLIENT_BIDI)
        return one ? run_bidi(run) : run_streams(run);
    return one ? run_blocking(run) : run_queue(run);
}
} // namespace

int main(int argc, char **argv)
{
    Run run;
    if (!client_init(&run.c, argc, argv))
        return 2;
    run.channel = grpc::CreateChannel(std::string("ipv4:") + run.c.host + ":" + run.c.port, credentials(run.c));
    grpc::Slice slice(run.c.payload, run.c.payload_size);
    run.request = ByteBuffer(&slice, 1);
    bool ok = run_all(&run);
    int rc = client_report(&run.c);
    return ok ? rc : 1;
}
