"""bench/update's client on gRPC's C-core, by grpcio: orders and answers as update_client.h has them. Per RPC the
interpreter adds its own time to C-core's ("each" measures both); what an update costs is C-core's."""
import statistics
import sys
import time

import grpc

TARGET = "xds:///svc"
TIMEOUT = 30
GIVE_UP_NS = 180 * 10**9
OPTIONS = [("grpc.lb.ring_hash.ring_size_cap", 8388608)]


def memory_kb(what):
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(what):
                return int(line.split()[1])
    raise LookupError(what)


class Client:
    def __init__(self):
        self.channel = None
        self.methods = {}
        self.failure = ""  # of the last RPC that failed

    def call(self, method, metadata):
        """Who answered; "-" when it failed."""
        rpc = self.methods.get(method)
        if rpc is None:
            rpc = self.methods[method] = self.channel.unary_unary(method)
        try:
            _, ended = rpc.with_call(b"x", timeout=TIMEOUT, metadata=metadata)
        except grpc.RpcError as error:
            self.failure = error.details()
            return "-"
        for name, value in ended.initial_metadata():
            if name == "x-backend":
                return value
        return "-"

    def first(self, method, key):
        before = memory_kb("VmRSS:")
        began = time.monotonic_ns()
        self.channel = grpc.insecure_channel(TARGET, options=OPTIONS)
        if self.call(method, (("k", key),)) != "old":
            raise SystemExit("grpcio_update: the first RPC went elsewhere")
        print("first", time.monotonic_ns() - began, before, memory_kb("VmHWM:"), flush=True)

    def each(self, method, key):
        took = []
        for _ in range(64):
            began = time.monotonic_ns()
            self.call(method, (("k", key),))
            took.append(time.monotonic_ns() - began)
        print("each", int(statistics.median(took)), flush=True)

    def until(self, method, key, backend, _address):
        metadata = (("k", key),)
        if self.call(method, metadata) == backend:
            raise SystemExit(f"grpcio_update: {backend} answers already")
        print("going", flush=True)
        began = time.monotonic_ns()
        while self.call(method, metadata) != backend:
            if time.monotonic_ns() - began > GIVE_UP_NS:
                raise SystemExit(f"grpcio_update: {backend} does not answer; last failure: {self.failure}")
        print("reached", time.monotonic_ns(), flush=True)


def main():
    client = Client()
    for line in sys.stdin:
        order, *words = line.split()
        {"first": client.first, "each": client.each, "until": client.until}[order](*words)
    if client.channel:
        client.channel.close()


main()
