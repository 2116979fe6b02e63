// The server of bench/server on gRPC C++, by its callback API: echoes unary requests as they are. Prints its port.
#include <cstdio>
#include <memory>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

namespace {
using grpc::ByteBuffer;

class Echo final : public grpc::ServerGenericBidiReactor {
  public:
    Echo() { StartRead(&message_); }
    void OnReadDone(bool ok) override
    {
        if (ok)
            StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
        else
            Finish(grpc::Status(grpc::StatusCode::INTERNAL, "no message"));
    }
    void OnDone() override { delete this; }

  private:
    ByteBuffer message_;
};

class Service final : public grpc::CallbackGenericService {
    grpc::ServerGenericBidiReactor *CreateReactor(grpc::GenericCallbackServerContext *) override { return new Echo; }
};
} // namespace

int main()
{
    Service service;
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterCallbackGenericService(&service);
    std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (!server)
        return 1;
    printf("%d\n", port);
    fflush(stdout);
    server->Wait();
}
