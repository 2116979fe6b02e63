"""grpcio (C-core) as one of the clients that must send the same key to the same backend. Reads orders and writes
answers as test/interop/agree/main.c does."""
import collections
import json
import os
import sys

import grpc

WIDTH = 32


def outcome(future):
    try:
        return future.result().decode()
    except grpc.RpcError as error:
        return f"!{error.code().name} {error.details()}"


def run(channel, calls):
    peers = []
    who = channel.unary_unary("/torc.test.Backend/Who")
    running = collections.deque()
    for headers in calls:
        if len(running) == WIDTH:
            peers.append(outcome(running.popleft()))
        running.append(who.future(b"", metadata=[tuple(h) for h in headers], timeout=20))
    peers.extend(outcome(future) for future in running)
    return peers


def main():
    options = [("grpc.use_local_subchannel_pool", 1)]
    if "GRPC_RING_HASH_CAP" in os.environ:  # C-core has a channel argument for what others read here
        options.append(("grpc.lb.ring_hash.ring_size_cap", int(os.environ["GRPC_RING_HASH_CAP"])))
    print(json.dumps({"version": grpc.__version__}), flush=True)
    target = channel = None
    for line in sys.stdin:
        order = json.loads(line)
        if order["target"] != target:
            if channel:
                channel.close()
            target = order["target"]
            config = order.get("service_config")
            more = [("grpc.service_config", config)] if config else []
            channel = grpc.insecure_channel(target, options=options + more)
        print(json.dumps({"peers": run(channel, order["calls"])}), flush=True)


main()
