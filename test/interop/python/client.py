"""The client side of gRPC's interop suite on grpcio (C-core), with generic calls over the suite's messages.

C-core does not show whether an answer came compressed: the suite counts bytes on the wire instead. Requests are
compressed by call, so that client_compressed_streaming uses one stream for each way.

usage: client.py --list | --target ADDR --case NAME [--ca FILE --authority NAME]"""
import argparse
import queue

import grpc

import empty_pb2
import messages_pb2 as pb

WAIT = 60
REQUESTS, RESPONSES = [27182, 8, 1828, 45904], [31415, 9, 2653, 58979]
ECHO_INITIAL, ECHO_TRAILING = "x-grpc-test-echo-initial", "x-grpc-test-echo-trailing-bin"
GZIP, PLAIN = grpc.Compression.Gzip, grpc.Compression.NoCompression
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Service:
    """The methods of TestService on a channel."""

    def __init__(self, channel):
        def made(kind, name, request, response, service="TestService"):
            return getattr(channel, kind)(f"/grpc.testing.{service}/{name}", request_serializer=request.SerializeToString,
                                          response_deserializer=response.FromString)

        output, answer = pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse
        self.empty = made("unary_unary", "EmptyCall", empty_pb2.Empty, empty_pb2.Empty)
        self.unary = made("unary_unary", "UnaryCall", pb.SimpleRequest, pb.SimpleResponse)
        self.output = made("unary_stream", "StreamingOutputCall", output, answer)
        self.input = made("stream_unary", "StreamingInputCall", pb.StreamingInputCallRequest, pb.StreamingInputCallResponse)
        self.duplex = made("stream_stream", "FullDuplexCall", output, answer)
        self.no_method = made("unary_unary", "UnimplementedCall", empty_pb2.Empty, empty_pb2.Empty)
        self.no_service = made("unary_unary", "UnimplementedCall", empty_pb2.Empty, empty_pb2.Empty, "UnimplementedService")


class Pipe:
    """Requests of a stream, sent one by one."""

    def __init__(self):
        self.queue = queue.Queue()

    def send(self, request):
        self.queue.put(request)

    def close(self):
        self.queue.put(None)

    def __iter__(self):
        return iter(self.queue.get, None)


def zeros(n):
    return pb.Payload(body=bytes(n))


def output_request(request_size, response_size):
    return pb.StreamingOutputCallRequest(response_parameters=[pb.ResponseParameters(size=response_size)],
                                         payload=zeros(request_size))


def equal(got, want, what):
    if got != want:
        raise SystemExit(f"{what}: {got!r}, wanted {want!r}")


def fails(code, call, text=None):
    try:
        call()
    except grpc.RpcError as error:
        equal(error.code(), code, f"status ({error.details()})")
        if text is not None:
            equal(error.details(), text, "message")
    else:
        raise SystemExit(f"the RPC was OK, wanted {code}")


def large(service, compression=PLAIN, **fields):
    response = service.unary(pb.SimpleRequest(response_size=314159, payload=zeros(271828), **fields), timeout=WAIT,
                             compression=compression)
    equal(response.payload.body, bytes(314159), "payload")


@case
def empty_unary(service):
    equal(service.empty(empty_pb2.Empty(), timeout=WAIT), empty_pb2.Empty(), "response")


@case
def large_unary(service):
    large(service)


@case
def client_compressed_unary(service):
    yes, no = pb.BoolValue(value=True), pb.BoolValue(value=False)
    fails(grpc.StatusCode.INVALID_ARGUMENT, lambda: large(service, expect_compressed=yes))
    large(service, GZIP, expect_compressed=yes)
    large(service, PLAIN, expect_compressed=no)


@case
def server_compressed_unary(service):
    large(service, response_compressed=pb.BoolValue(value=True))
    large(service, response_compressed=pb.BoolValue(value=False))


def sum_of(service, sizes, compression=PLAIN, **fields):
    requests = (pb.StreamingInputCallRequest(payload=zeros(n), **fields) for n in sizes)
    return service.input(requests, timeout=WAIT, compression=compression).aggregated_payload_size


@case
def client_streaming(service):
    equal(sum_of(service, REQUESTS), 74922, "sum")


@case
def client_compressed_streaming(service):
    yes, no = pb.BoolValue(value=True), pb.BoolValue(value=False)
    fails(grpc.StatusCode.INVALID_ARGUMENT, lambda: sum_of(service, [27182], expect_compressed=yes))
    equal(sum_of(service, [27182, 45904], GZIP, expect_compressed=yes), 73086, "sum")
    equal(sum_of(service, [45904], PLAIN, expect_compressed=no), 45904, "sum")


def sizes_of(service, wishes):
    responses = service.output(pb.StreamingOutputCallRequest(response_parameters=wishes), timeout=WAIT)
    return [len(r.payload.body) for r in responses]


@case
def server_streaming(service):
    equal(sizes_of(service, [pb.ResponseParameters(size=n) for n in RESPONSES]), RESPONSES, "sizes")


@case
def server_compressed_streaming(service):
    wishes = [pb.ResponseParameters(size=31415, compressed=pb.BoolValue(value=True)),
              pb.ResponseParameters(size=92653, compressed=pb.BoolValue(value=False))]
    equal(sizes_of(service, wishes), [31415, 92653], "sizes")


@case
def ping_pong(service):
    pipe = Pipe()
    responses = service.duplex(iter(pipe), timeout=WAIT)
    for sent, wanted in zip(REQUESTS, RESPONSES):
        pipe.send(output_request(sent, wanted))
        equal(len(next(responses).payload.body), wanted, "size")
    pipe.close()
    equal(list(responses), [], "further messages")


@case
def empty_stream(service):
    equal(list(service.duplex(iter([]), timeout=WAIT)), [], "messages")


@case
def custom_metadata(service):
    metadata = ((ECHO_INITIAL, "test_initial_metadata_value"), (ECHO_TRAILING, b"\xab\xab\xab"))

    def echoed(call):
        equal(dict(call.initial_metadata()).get(ECHO_INITIAL), "test_initial_metadata_value", ECHO_INITIAL)
        equal(dict(call.trailing_metadata()).get(ECHO_TRAILING), b"\xab\xab\xab", ECHO_TRAILING)

    _, call = service.unary.with_call(pb.SimpleRequest(response_size=314159, payload=zeros(271828)), metadata=metadata,
                                      timeout=WAIT)
    echoed(call)
    call = service.duplex(iter([output_request(271828, 314159)]), metadata=metadata, timeout=WAIT)
    equal([len(r.payload.body) for r in call], [314159], "sizes")
    echoed(call)


def expect_status(service, text):
    status = pb.EchoStatus(code=grpc.StatusCode.UNKNOWN.value[0], message=text)
    fails(grpc.StatusCode.UNKNOWN, lambda: service.unary(pb.SimpleRequest(response_status=status), timeout=WAIT), text)
    return status


@case
def status_code_and_message(service):
    status = expect_status(service, "test status message")
    request = pb.StreamingOutputCallRequest(response_status=status)
    fails(grpc.StatusCode.UNKNOWN, lambda: list(service.duplex(iter([request]), timeout=WAIT)), "test status message")


@case
def special_status_message(service):
    expect_status(service, "\t\ntest with whitespace\r\nand Unicode BMP \u263a and non-BMP \U0001f608\t\n")


@case
def unimplemented_method(service):
    fails(grpc.StatusCode.UNIMPLEMENTED, lambda: service.no_method(empty_pb2.Empty(), timeout=WAIT))


@case
def unimplemented_service(service):
    fails(grpc.StatusCode.UNIMPLEMENTED, lambda: service.no_service(empty_pb2.Empty(), timeout=WAIT))


@case
def cancel_after_begin(service):
    pipe = Pipe()
    future = service.input.future(iter(pipe), timeout=WAIT)
    future.cancel()
    equal(future.cancelled(), True, "cancelled")
    equal(future.code(), grpc.StatusCode.CANCELLED, "status")
    pipe.close()


@case
def cancel_after_first_response(service):
    pipe = Pipe()
    responses = service.duplex(iter(pipe), timeout=WAIT)
    pipe.send(output_request(REQUESTS[0], RESPONSES[0]))
    next(responses)
    responses.cancel()
    fails(grpc.StatusCode.CANCELLED, lambda: next(responses))
    pipe.close()


@case
def timeout_on_sleeping_server(service):
    pipe = Pipe()
    responses = service.duplex(iter(pipe), timeout=0.001)
    pipe.send(pb.StreamingOutputCallRequest(payload=zeros(27182)))
    fails(grpc.StatusCode.DEADLINE_EXCEEDED, lambda: next(responses))
    pipe.close()


def main():
    parser = argparse.ArgumentParser()
    for flag in ("--target", "--case", "--ca", "--authority"):
        parser.add_argument(flag)
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    if args.list:
        print(f"version {grpc.__version__}", *CASES, sep="\n")
        return
    if args.ca:
        with open(args.ca, "rb") as roots:
            credentials = grpc.ssl_channel_credentials(roots.read())
        channel = grpc.secure_channel(args.target, credentials, options=[("grpc.default_authority", args.authority),
                                                                         ("grpc.ssl_target_name_override", args.authority)])
    else:
        channel = grpc.insecure_channel(args.target)
    with channel:
        CASES[args.case](Service(channel))


main()
