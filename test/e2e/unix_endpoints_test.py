"""Endpoints that are Unix sockets (a pipe address of an EDS resource), by path and by abstract name."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import (bootstrap, calls_to_all, check, cluster, endpoints, listener, main, routes, running,
                         write_resources)

ROUTE = {"match": {"prefix": ""}, "route": {"cluster": "orders"}}


def pipe(path):
    return {"endpoint": {"address": {"pipe": {"path": path}}}}


def test_unix_sockets_beside_others():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "socket")
        name = f"torc-test-{os.getpid()}"
        with running("backend", "--listen", "unix:" + path) as by_path, \
                running("backend", "--listen", "unix-abstract:" + name) as by_name, \
                running("backend", "--listen", "127.0.0.1:0") as by_port:
            peers = {by_path.listening(), by_name.listening(), by_port.listening()}
            assignment = endpoints("orders", *[peer for peer in peers if not peer.startswith("unix")])
            assignment["endpoints"][0]["lb_endpoints"] += [pipe(path), pipe("@" + name)]
            mesh = os.path.join(directory, "mesh.json")
            write_resources(mesh, "1", listener("orders", "r"), routes("r", ROUTE), cluster("orders"), assignment)
            with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", mesh) as plane:
                for done, summary in calls_to_all(peers, "xds:///orders", "a.B/C", "-n", "60", "--wait-for-ready",
                                                  env=bootstrap(plane.listening())):
                    check(len(done) == 60 and all(call["code"] == 0 for call in done), f"a call failed: {summary}")


main(test_unix_sockets_beside_others)
