"""A control plane in trouble of four kinds while 500 RPCs a second run: none fails, and the log and `torc xds --watch`
tell what happened, in order."""
import contextlib
import json
import os
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import (LONG, WAIT, Process, bootstrap, case, check, cluster, endpoints, free_address, listener, main, routes, running,
                         write_resources)
from support.proxy import proxy_to

ROUTE = {"match": {"prefix": ""}, "route": {"cluster": "orders"}}
RPS = 500


class Load:
    """`torc call` at a rate; every call that ended is looked at."""

    def __init__(self, process):
        self.process = process
        self.ended = 0

    def _one(self, line):
        if line.startswith('{"call"'):
            call = json.loads(line)["call"]
            check(call["code"] == 0, f"an RPC failed: {line}")
            self.ended += 1
            return call
        return None

    def catch_up(self):
        """Takes what was printed until now."""
        while not self.process.lines.empty():
            self._one(self.process.lines.get() or "")

    def go_on(self, n):
        """Waits for n calls that end from now on; the addresses that answered them."""
        self.catch_up()
        peers = set()
        for _ in range(n):
            call = []
            self.process.wait_line(lambda line, call=call: call.append(self._one(line)) or call[-1] is not None)
            peers.add(call[-1]["peer"])
        return peers

    def until_peer(self, address):
        """Waits until calls go to this address alone."""
        deadline = time.monotonic() + WAIT
        while self.go_on(25) != {address}:
            check(time.monotonic() < deadline, f"calls do not get to {address}")


class Scene:
    """Two backends, a control plane process behind a proxy, the load, and a watching command."""

    def __init__(self, stack):
        self.stack = stack
        self.folder = stack.enter_context(tempfile.TemporaryDirectory())
        self.backends = [stack.enter_context(running("backend", "--name", f"b{i}")).listening() for i in range(2)]
        self.path = os.path.join(self.folder, "mesh.json")
        self.write("1", self.backends[0])
        self.server = None
        self.at = free_address()
        self.start_server()
        self.proxy = stack.enter_context(proxy_to(self.at))
        env = {**bootstrap(self.proxy.address), "TORC_LOG": "xds=info"}
        self.watch = stack.enter_context(running("xds", "--watch", "xds:///orders", env=env))
        self.watch.wait_line(lambda line: line.endswith("xds:///orders resolved"))
        self.process = stack.enter_context(running("call", "-o", "json", "xds:///orders", "a.B/C", "--rps", str(RPS),
                                                   "--duration", LONG, env=env, log=True))
        self.load = Load(self.process)
        self.load.until_peer(self.backends[0])

    def write(self, version, address, **cluster_fields):
        write_resources(self.path, version, listener("orders", "r"), routes("r", ROUTE),
                        cluster("orders", **cluster_fields), endpoints("orders", address))

    def start_server(self):
        self.server = Process("serve-xds", "--listen", self.at, "--resources", self.path, "--log", "json")
        self.stack.callback(self.server.kill)
        self.at = self.server.listening()

    def server_heard(self, part):
        self.server.wait_line(lambda line: part in line)

    def log(self, *parts):
        """The log says these, each in a line after the one before."""
        for part in parts:
            line = self.process.wait_log(part)
            check(self.proxy.address in line, f"the server is named: {line}")

    def watched(self, *parts):
        for part in parts:
            self.watch.wait_line(lambda line, part=part: part in line)


def stopped_and_restarted(s):
    s.proxy.refuse()
    s.server.kill()
    s.log("stream ended with UNAVAILABLE", "xDS channel for server ")
    s.watched("control plane trouble: ")
    check("(node ID:test-node)" in s.watch.seen[-1] and s.proxy.address in s.watch.seen[-1], s.watch.seen[-1])
    s.load.go_on(2 * RPS)
    s.start_server()
    s.proxy.forward()
    s.log("the server can be reached again", "stream answers")
    s.watched("control plane is there again")
    s.write("2", s.backends[1])
    s.load.until_peer(s.backends[1])
    s.watched(" ACKED ClusterLoadAssignment orders version 2")


def silenced(s):
    """The control plane's process stands still: the system accepts connections for it, and nothing is sent on them."""
    s.proxy.silence()
    s.log("stream ended with UNAVAILABLE")
    s.proxy.wait_heard(2)  # of the load and of who watches: both are back, and wait for a word
    s.load.go_on(RPS)
    s.server.process.send_signal(signal.SIGSTOP)
    s.proxy.forward()  # ends those connections; the next reach a process that stands still
    s.log("xDS channel for server ")
    s.proxy.wait_heard(2)
    s.load.go_on(2 * RPS)
    s.server.process.send_signal(signal.SIGCONT)
    s.log("the server can be reached again", "stream answers")
    s.watched("control plane trouble: ", "control plane is there again")
    s.write("3", s.backends[0])
    s.load.until_peer(s.backends[0])
    s.watched(" ACKED ClusterLoadAssignment orders version 3")


def stalled(s):
    """The proxy holds what both sides send: the config stays in use, and no RPC fails."""
    s.proxy.stall()
    s.write("4", s.backends[1])
    check(s.load.go_on(2 * RPS) == {s.backends[0]}, "what waits in the proxy is not known yet")
    s.proxy.forward()
    s.load.until_peer(s.backends[1])
    s.watched(" ACKED ClusterLoadAssignment orders version 4")


def bad_resources(s):
    s.write("5", s.backends[1], lb_policy="RANDOM")
    s.log('version "5" rejected: resource index 0: Cluster "orders": ')
    s.watched(" NACKED Cluster orders ")
    s.load.go_on(RPS)
    write_resources(s.path, "6", routes("r", ROUTE), cluster("orders"), endpoints("orders", s.backends[1]))
    s.log('Listener "orders" was deleted; the last value stays in use')
    s.watched(" DOES_NOT_EXIST Listener orders ")
    s.load.go_on(RPS)
    s.write("7", s.backends[0])
    s.load.until_peer(s.backends[0])
    s.watched(" ACKED Listener orders version 7")
    check(sum("rejected" in line for line in s.process.seen_log) == 1, "one refusal is told once")


def test_no_call_fails():
    case("AD24")
    with contextlib.ExitStack() as stack:
        s = Scene(stack)
        for part in (stopped_and_restarted, silenced, stalled, bad_resources):
            begin, before = time.monotonic(), s.load.ended
            part(s)
            print(f"{part.__name__}: {s.load.ended - before} RPCs in {time.monotonic() - begin:.1f} s, none failed",
                  flush=True)
        s.process.kill()
        s.process.reader.join()
        s.load.catch_up()


main(test_no_call_fails)
