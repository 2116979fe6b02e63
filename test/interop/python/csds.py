"""Asks a CSDS server by grpcio and Envoy's own definitions (xds-protos). A line of the input is {"at": address,
"stream": bool, "request": ClientStatusRequest as JSON}; with "stream", the request is sent twice on one stream. For
each line prints {"code", "details", "answers": [ClientStatusResponse as JSON]}."""
import json
import sys

import grpc
from google.protobuf import json_format

# What resources are made of must be known before they can be shown.
from envoy.config.cluster.v3 import cluster_pb2  # noqa: F401
from envoy.config.endpoint.v3 import endpoint_pb2  # noqa: F401
from envoy.config.listener.v3 import listener_pb2  # noqa: F401
from envoy.config.route.v3 import route_pb2  # noqa: F401
from envoy.extensions.filters.http.router.v3 import router_pb2  # noqa: F401
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2  # noqa: F401
from envoy.service.status.v3 import csds_pb2, csds_pb2_grpc

WAIT = 30


def ask(order):
    request = json_format.ParseDict(order["request"], csds_pb2.ClientStatusRequest())
    code, details, answers = grpc.StatusCode.OK, "", []
    with grpc.insecure_channel(order["at"]) as channel:
        stub = csds_pb2_grpc.ClientStatusDiscoveryServiceStub(channel)
        try:
            if order["stream"]:
                answers.extend(stub.StreamClientStatus(iter([request, request]), timeout=WAIT, wait_for_ready=True))
            else:
                answers.append(stub.FetchClientStatus(request, timeout=WAIT, wait_for_ready=True))
        except grpc.RpcError as error:
            code, details = error.code(), error.details()
    return {"code": code.name, "details": details, "answers": [json_format.MessageToDict(a) for a in answers]}


for line in sys.stdin:
    print(json.dumps(ask(json.loads(line))), flush=True)
