"""The server of gRPC's interop suite on grpcio (C-core), with generic handlers over the suite's messages.

C-core does not show whether a request came compressed, so `expect_compressed` goes unchecked here; answers are
compressed message by message as asked."""
import argparse
import time
from concurrent import futures

import grpc

import empty_pb2
import messages_pb2 as pb

ECHO_INITIAL = "x-grpc-test-echo-initial"
ECHO_TRAILING = "x-grpc-test-echo-trailing-bin"
SERVICE = "grpc.testing.TestService"


def echo_metadata(context):
    for key, value in context.invocation_metadata():
        if key == ECHO_INITIAL:
            context.send_initial_metadata(((key, value),))
        elif key == ECHO_TRAILING:
            context.set_trailing_metadata(((key, value),))


def end_as_asked(request, context):
    if request.HasField("response_status"):
        codes = {code.value[0]: code for code in grpc.StatusCode}
        context.abort(codes[request.response_status.code], request.response_status.message)


def compress(wanted, context):
    if not wanted:
        context.disable_next_message_compression()


def empty_call(_request, context):
    echo_metadata(context)
    return empty_pb2.Empty()


def unary_call(request, context):
    if request.HasField("response_compressed"):
        context.set_compression(grpc.Compression.Gzip)
        compress(request.response_compressed.value, context)
    echo_metadata(context)
    end_as_asked(request, context)
    return pb.SimpleResponse(payload=pb.Payload(body=bytes(request.response_size)))


def outputs(request, context):
    for wish in request.response_parameters:
        if wish.interval_us:
            time.sleep(wish.interval_us / 1e6)
        if wish.HasField("compressed"):
            compress(wish.compressed.value, context)
        yield pb.StreamingOutputCallResponse(payload=pb.Payload(body=bytes(wish.size)))


def streaming_output_call(request, context):
    if any(wish.HasField("compressed") for wish in request.response_parameters):
        context.set_compression(grpc.Compression.Gzip)
    echo_metadata(context)
    end_as_asked(request, context)
    yield from outputs(request, context)


def streaming_input_call(requests, context):
    echo_metadata(context)
    return pb.StreamingInputCallResponse(aggregated_payload_size=sum(len(r.payload.body) for r in requests))


def full_duplex_call(requests, context):
    echo_metadata(context)
    for request in requests:
        end_as_asked(request, context)
        yield from outputs(request, context)


def handlers():
    def made(kind, function, request, response):
        return getattr(grpc, kind + "_rpc_method_handler")(
            function, request_deserializer=request.FromString, response_serializer=response.SerializeToString)

    output, answer = pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse
    return grpc.method_handlers_generic_handler(SERVICE, {
        "EmptyCall": made("unary_unary", empty_call, empty_pb2.Empty, empty_pb2.Empty),
        "UnaryCall": made("unary_unary", unary_call, pb.SimpleRequest, pb.SimpleResponse),
        "StreamingOutputCall": made("unary_stream", streaming_output_call, output, answer),
        "StreamingInputCall": made("stream_unary", streaming_input_call, pb.StreamingInputCallRequest,
                                   pb.StreamingInputCallResponse),
        "FullDuplexCall": made("stream_stream", full_duplex_call, output, answer),
    })


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tls-cert")
    parser.add_argument("--tls-key")
    args = parser.parse_args()
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=32))
    server.add_generic_rpc_handlers((handlers(),))
    if args.tls_cert:
        with open(args.tls_key, "rb") as key, open(args.tls_cert, "rb") as cert:
            credentials = grpc.ssl_server_credentials([(key.read(), cert.read())])
        port = server.add_secure_port("127.0.0.1:0", credentials)
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print("version", grpc.__version__, flush=True)
    print(f"listening 127.0.0.1:{port}", flush=True)
    server.wait_for_termination()


main()
