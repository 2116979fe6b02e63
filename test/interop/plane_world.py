"""What the flows against go-control-plane share: resources, and a world of a control plane, backends and a channel."""
import contextlib
import json
import pathlib
import tempfile
import time

import meshes
import ring_model
from programs import WAIT, Backends, ControlPlane, Failure, Program, bootstrap

CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
ASSIGNMENT = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
PICK_FIRST = "type.googleapis.com/envoy.extensions.load_balancing_policies.pick_first.v3.PickFirst"
KEYS = [[["x-key-0", f"user-{i}"]] for i in range(100)]
NAME = "shop"


def check(held, what):
    if not held:
        raise Failure(what)


def endpoint(address, hash_key=""):
    host, port = address.rsplit(":", 1)
    return {"host": host, "port": int(port), "weight": 1, "hash_key": hash_key}


def assignment(cluster, *priorities):
    """EDS: for each priority a list of addresses, or of what endpoint() makes."""
    return {"@type": ASSIGNMENT, "cluster_name": cluster,
            "endpoints": [{"locality": {"region": "earth"}, "priority": i, "load_balancing_weight": 1, "lb_endpoints": [
                meshes.lb_endpoint(e if isinstance(e, dict) else endpoint(e)) for e in endpoints]}
                for i, endpoints in enumerate(priorities)]}


def eds_cluster(name, **fields):
    return {"@type": CLUSTER, "name": name, "type": "EDS", "eds_cluster_config": {"eds_config": {"ads": {}}},
            "lb_policy": "RING_HASH", **fields}


def dns_cluster(name, host, port):
    """LOGICAL_DNS with pick_first."""
    address = {"socket_address": {"address": host, "port_value": port}}
    return {"@type": CLUSTER, "name": name, "type": "LOGICAL_DNS",
            "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}]},
            "load_balancing_policy": {"policies": [{"typed_extension_config": {
                "name": "pick_first", "typed_config": {"@type": PICK_FIRST}}}]}}


def aggregate(name, *leaves):
    return {"@type": CLUSTER, "name": name, "lb_policy": "CLUSTER_PROVIDED", "cluster_type": {
        "name": "aggregate", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig",
            "clusters": list(leaves)}}}


def listener_and_route(cluster):
    mesh = {"name": NAME, "policies": [{"header": "x-key-0"}], "localities": [], "min_ring_size": 1,
            "max_ring_size": 1}
    listener, route = meshes.resources(mesh)[:2]
    route["virtual_hosts"][0]["routes"][0]["route"]["cluster"] = cluster
    return [listener, route]


def model(endpoints):
    """Where the keys have to go."""
    mesh = {"kind": "plain", "policies": [{"header": "x-key-0"}], "serving_priority": 0, "dead": [], "min_ring_size": 1024,
            "max_ring_size": 4096, "localities": [{"region": "", "zone": "", "sub_zone": "", "priority": 0, "weight": 1,
                                                   "endpoints": [e if isinstance(e, dict) else endpoint(e)
                                                                 for e in endpoints]}]}
    return ring_model.predict(mesh, KEYS, ring_model.TORC)


class World:
    """go-control-plane, backends, and a Torc channel to xds:///shop that stays."""

    def __init__(self, plane, pool, client, incremental):
        self.plane, self.pool, self.client, self.incremental = plane, pool, client, incremental
        self.places = json.loads(pool.line())
        self.version = 0
        self.calls = 0

    def serve(self, *resources):
        self.version += 1
        self.plane.order("set", version=str(self.version), resources=list(resources))
        return str(self.version)

    def await_ack(self, kind, version):
        """Incremental requests carry no version: the nonce says which response is acknowledged."""
        nonces = set()

        def acknowledged(told):
            response, request = told.get("response"), told.get("request")
            if response and response["type"].endswith("." + kind) and response["version"] == version:
                nonces.add(response["nonce"])
            if not request or not request["type"].endswith("." + kind) or request["error"]:
                return False
            return request["nonce"] in nonces if self.incremental else request["version"] == version
        self.plane.await_told(acknowledged)

    def await_nack(self, kind):
        return self.plane.await_told(lambda told: "request" in told and told["request"]["type"].endswith("." + kind) and
                                     told["request"]["error"])["request"]

    def peers(self):
        self.calls += len(KEYS)
        return self.client.ask({"target": f"xds:///{NAME}", "calls": KEYS})["peers"]

    def await_peers(self, wanted, what):
        """Calls until wanted(peers); the client applies what it acknowledged at once, its policies a moment later, and
        endpoints that came back when their backoff is over."""
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            peers = self.peers()
            if wanted(peers):
                return peers
        raise Failure(f"{what}: {sorted(set(peers))}")

    def settle(self, addresses, what):
        return self.await_peers(lambda peers: set(peers) == set(addresses), what)

    def settle_as(self, endpoints, what):
        """Each key where the endpoints' ring says; connections come one after the other."""
        wanted = model(endpoints)
        return self.await_peers(lambda peers: peers == wanted, what)


@contextlib.contextmanager
def world_of(paths, incremental):
    with tempfile.TemporaryDirectory() as folder, Backends(paths) as pool, ControlPlane(paths, quiet=False) as plane:
        path = pathlib.Path(folder) / "bootstrap.json"
        path.write_text(bootstrap(plane.address, ["torc.incremental_ads"] if incremental else []), encoding="utf-8")
        with Program([paths.own("interop_agree")], {"GRPC_XDS_BOOTSTRAP": str(path)}) as client:
            client.line()
            yield World(plane, pool, client, incremental)
            client.finish()
