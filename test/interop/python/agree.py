"""grpcio (C-core) as one of the clients that must send the same key to the same backend: as agree/main.go reads its
orders and answers them."""
import collections
import json
import sys

import grpc

WIDTH = 32


def outcome(future):
    try:
        return future.result().decode()
    except grpc.RpcError as error:
        return f"!{error.code().name} {error.details()}"


def run(order):
    peers = []
    with grpc.insecure_channel(order["target"], options=(("grpc.use_local_subchannel_pool", 1),)) as channel:
        who = channel.unary_unary("/torc.test.Backend/Who")
        running = collections.deque()
        for headers in order["calls"]:
            if len(running) == WIDTH:
                peers.append(outcome(running.popleft()))
            running.append(who.future(b"", metadata=[tuple(h) for h in headers], timeout=20))
        peers.extend(outcome(future) for future in running)
    return peers


def main():
    print(json.dumps({"version": grpc.__version__}), flush=True)
    for line in sys.stdin:
        print(json.dumps({"peers": run(json.loads(line))}), flush=True)


main()
