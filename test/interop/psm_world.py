"""What the cases of gRPC's xDS interop tests share: go-control-plane, backends that say their names, Torc's test
client, and a driver (grpc-go) that asks the client for its counts."""
import contextlib
import json
import os
import pathlib
import tempfile
import time

from plane_world import check
from programs import WAIT, ControlPlane, Failure, Program, bootstrap
import meshes

NAME = "psm.test"
QPS = 400  # the descriptions' 100 and 10 would only take longer


def listener(name=NAME, route=NAME):
    return {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": name, "api_listener": {
        "api_listener": {"@type": meshes.HCM, "rds": {"route_config_name": route, "config_source": {"ads": {}}},
                         "http_filters": [{"name": "router", "typed_config": {"@type": meshes.ROUTER}}]}}}


def to(cluster, **match):
    return {"match": match or {"prefix": ""}, "route": {"cluster": cluster}}


def route_config(*routes, name=NAME):
    return {"@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "name": name,
            "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": list(routes)}]}


def cluster(name, **fields):
    return {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": name, "type": "EDS",
            "eds_cluster_config": {"eds_config": {"ads": {}}}, "lb_policy": "ROUND_ROBIN", **fields}


def check_even(peers, each):
    """Each host got `each` RPCs, or up to two more or fewer: RPCs that end out of turn at the first or the last of the
    counted ones shift that many."""
    check(all(abs(n - each) <= 2 for n in peers.values()), f"RPCs went {peers}, wanted {each} each")


class World:
    def __init__(self, plane, pool, places):
        self.plane, self.pool, self.places = plane, pool, places
        self.client = self.driver = None
        self.version = 0

    def serve(self, *resources):
        self.version += 1
        self.plane.order("set", version=str(self.version), resources=list(resources))

    def assignment(self, name, *groups):
        """Each group is (priority, weight, hosts): a locality of its own."""
        return {"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": name, "endpoints": [
            {"locality": {"region": "earth", "zone": f"z{i}"}, "priority": priority, "load_balancing_weight": weight,
             "lb_endpoints": [self.endpoint(host) for host in hosts]} for i, (priority, weight, hosts) in enumerate(groups)]}

    def endpoint(self, host):
        address, port = self.places[host].rsplit(":", 1)
        return {"endpoint": {"address": {"socket_address": {"address": address, "port_value": int(port)}}}}

    def serve_simply(self, *groups, cluster_fields=None):
        """One route to one cluster."""
        self.serve(listener(), route_config(to("one")), cluster("one", **(cluster_fields or {})),
                   self.assignment("one", *groups))

    def stop(self, *hosts):
        self.order({"stop": hosts})

    def start(self, *hosts):
        self.order({"start": hosts})

    def order(self, order):
        self.pool.send(order)
        check(self.pool.line() == "ok", "the backends do not obey")

    def ask(self, method, **request):
        answer = self.driver.ask({"method": method, "request": request})
        if "error" in answer:
            raise Failure(f"{method}: {answer['error']}")
        return answer

    def distribution(self, rpcs=100, timeout=int(WAIT / 2)):
        """Of the next RPCs: {host: count}, failures, {method: {host: count}}."""
        answer = self.ask("GetClientStats", numRpcs=rpcs, timeoutSec=timeout)
        by_method = {method: peers.get("rpcsByPeer", {}) for method, peers in answer.get("rpcsByMethod", {}).items()}
        return answer.get("rpcsByPeer", {}), answer.get("numFailures", 0), by_method

    def until(self, wanted, what, rpcs=100):
        """Distributions until wanted(peers, failures, by_method)."""
        end = time.monotonic() + WAIT
        seen = None
        while time.monotonic() < end:
            seen = self.distribution(rpcs)
            if wanted(*seen):
                return seen
        raise Failure(f"{what}: the last {rpcs} RPCs went {seen}")

    def until_counted(self, held, what):
        """Waits until held(), which asks for accumulated counts, is true."""
        end = time.monotonic() + WAIT
        while not held():
            check(time.monotonic() < end, what)

    def settle(self, hosts, what):
        """Each of these hosts gets RPCs, no other host does, and no RPC fails."""
        return self.until(lambda peers, failures, _: set(peers) == set(hosts) and not failures, what)[0]

    def settle_methods(self, wanted, what):
        """wanted: {"EmptyCall": host, "UnaryCall": host}."""
        self.until(lambda _, failures, by_method: not failures and
                   {method: set(by_method.get(method, {})) for method in wanted} == {m: {h} for m, h in wanted.items()}, what)

    def counts(self, method):
        """The accumulated counts of a method: how many RPCs started, and {code: count} of those that ended."""
        stats = self.ask("GetClientAccumulatedStats")["statsPerMethod"][method]
        return stats.get("rpcsStarted", 0), {int(code): n for code, n in stats.get("result", {}).items()}

    def codes_over(self, method, rpcs):
        """{code: count} of at least so many RPCs that end from now on."""
        _, before = self.counts(method)
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            _, after = self.counts(method)
            delta = {code: n - before.get(code, 0) for code, n in after.items() if n != before.get(code, 0)}
            if sum(delta.values()) >= rpcs:
                return delta
        raise Failure(f"{method}: of {rpcs} RPCs only {delta} ended")

    def in_flight(self, method):
        started, results = self.counts(method)
        return started - sum(results.values())


@contextlib.contextmanager
def world_of(paths, *flags, server=f"xds:///{NAME}", env=None):
    """Nothing is served yet when the client starts."""
    backends, _ = paths.go("psmbackends")
    driver, _ = paths.go("psmdriver")
    with tempfile.TemporaryDirectory() as folder, Program(backends) as pool, ControlPlane(paths, quiet=True) as plane:
        path = pathlib.Path(folder) / "bootstrap.json"
        path.write_text(bootstrap(plane.address), encoding="utf-8")
        world = World(plane, pool, json.loads(pool.line()))
        command = [paths.own("interop_psm"), f"--server={server}", "--stats_port=0", "--num_channels=1", f"--qps={QPS}", *flags]
        with Program(command, {"GRPC_XDS_BOOTSTRAP": str(path), **(env or {})}) as client:
            port = client.word_after("listening").rsplit(":", 1)[1]
            with Program([*driver, "-client", f"127.0.0.1:{port}"]) as asked:
                world.client, world.driver = client, asked
                yield world
            client.process.terminate()
            status = client.process.wait(timeout=WAIT)
            check(status == 0, f"the client ended with {status}")
