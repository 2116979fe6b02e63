"""A server of grpcio with its reflection: torc.test.json.Store of test/json, whose Watch sends what its request holds, and Get one part.

usage: command_server.py - FOLDER-OF-PB2-AND-SET COUNT SEED. Prints a line of JSON for each of COUNT random messages, then "listening ADDR"."""
import concurrent.futures
import json
import sys

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format
from grpc_reflection.v1alpha import reflection

from json_kinds import COUNT, FOLDER, SEED, Json, all_pb2, old_pb2

SERVICE = "torc.test.json.Store"


def requests():
    messages = Json(SEED)
    rng = messages.rng
    for i in range(COUNT):
        if rng.randrange(4):
            request = all_pb2.All.Inner()
            message, method = request.back.add(), "Watch"
        else:
            request, method = all_pb2.All(), "Get"
            request.old.SetInParent()
            message = request.old
        messages.fill(message, rng.choice((0, 1, 1, 2)))
        defaults = rng.randrange(4) == 0
        yield {"i": i, "method": f"{SERVICE}/{method}", "defaults": defaults,
               "request": json_format.MessageToJson(request, indent=None, ensure_ascii=True),
               "response": json_format.MessageToDict(message, always_print_fields_with_no_presence=defaults)}


def pool():
    """The types as protoc describes them: generated code leaves the JSON names of fields out, without which grpcurl writes other JSON."""
    found = descriptor_pool.DescriptorPool()
    with open(f"{FOLDER}/set.pb", "rb") as source:
        for file in descriptor_pb2.FileDescriptorSet.FromString(source.read()).file:
            found.AddSerializedFile(file.SerializeToString())
    return found


def main():
    for request in requests():
        print(json.dumps(request))
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
    handlers = {
        "Get": grpc.unary_unary_rpc_method_handler(lambda request, _: request.old, all_pb2.All.FromString, old_pb2.Old.SerializeToString),
        "Watch": grpc.unary_stream_rpc_method_handler(lambda request, _: iter(request.back), all_pb2.All.Inner.FromString,
                                                      all_pb2.All.SerializeToString)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    reflection.enable_server_reflection((SERVICE, reflection.SERVICE_NAME), server, pool=pool())
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"listening 127.0.0.1:{port}", flush=True)
    sys.stdin.read()
    server.stop(None)


main()
