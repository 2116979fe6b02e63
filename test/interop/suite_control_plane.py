"""Torc's xDS client and mesh against go-control-plane, which is scripted from here."""
import contextlib
import json
import pathlib
import tempfile

import build_peers
import meshes
import ring_model
from programs import Backends, ControlPlane, Failure, Program, bootstrap

CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
KEYS = [[["x-key-0", f"user-{i}"]] for i in range(100)]
NAME = "shop"


def check(held, what):
    if not held:
        raise Failure(what)


def endpoint(address):
    host, port = address.rsplit(":", 1)
    return {"host": host, "port": int(port), "weight": 1}


def assignment(cluster, *priorities):
    """EDS: a list of addresses for each priority."""
    return {"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": cluster,
            "endpoints": [{"locality": {"region": "earth"}, "priority": i, "load_balancing_weight": 1, "lb_endpoints": [
                meshes.lb_endpoint(endpoint(a)) for a in addresses]} for i, addresses in enumerate(priorities)]}


def eds_cluster(name, **fields):
    return {"@type": CLUSTER, "name": name, "type": "EDS", "eds_cluster_config": {"eds_config": {"ads": {}}},
            "lb_policy": "RING_HASH", **fields}


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


def model(addresses):
    """Where the keys have to go."""
    mesh = {"kind": "plain", "policies": [{"header": "x-key-0"}], "serving_priority": 0, "dead": [], "min_ring_size": 1024,
            "max_ring_size": 4096, "localities": [{"region": "", "zone": "", "sub_zone": "", "priority": 0, "weight": 1,
                                                   "endpoints": [endpoint(a) for a in addresses]}]}
    return ring_model.predict(mesh, KEYS, ring_model.TORC)


class World:
    """go-control-plane, backends, and a Torc channel to xds:///shop that stays."""

    def __init__(self, plane, pool, client):
        self.plane, self.pool, self.client = plane, pool, client
        self.places = json.loads(pool.line())
        self.version = 0

    def serve(self, *resources):
        self.version += 1
        self.plane.order("set", version=str(self.version), resources=list(resources))
        return str(self.version)

    def await_ack(self, kind, version):
        self.plane.await_told(lambda told: told["request"]["type"].endswith("." + kind) and
                              told["request"]["version"] == version and not told["request"]["error"])

    def await_nack(self, kind):
        return self.plane.await_told(lambda told: told["request"]["type"].endswith("." + kind) and
                                     told["request"]["error"])["request"]

    def peers(self):
        return self.client.ask({"target": f"xds:///{NAME}", "calls": KEYS})["peers"]

    def await_peers(self, wanted, what):
        """Calls until wanted(peers); the client applies what it acknowledged at once, its policies a moment later."""
        for _ in range(200):
            peers = self.peers()
            if wanted(peers):
                return peers
        raise Failure(f"{what}: {sorted(set(peers))}")


def starts(world):
    alive = world.places["alive"]
    version = world.serve(*listener_and_route("a"), eds_cluster("a"), assignment("a", alive[:5]))
    peers = world.peers()
    check(set(peers) == set(alive[:5]), f"100 keys went to {sorted(set(peers))}")
    check(world.peers() == peers, "the same keys went elsewhere the second time")
    world.await_ack("ClusterLoadAssignment", version)


def endpoints_change(world):
    alive = world.places["alive"]
    world.serve(*listener_and_route("a"), eds_cluster("a"), assignment("a", alive[:5]))
    before = world.await_peers(lambda peers: set(peers) == set(alive[:5]), "five endpoints")
    world.serve(*listener_and_route("a"), eds_cluster("a"), assignment("a", alive[:4]))
    after = world.await_peers(lambda peers: alive[4] not in peers, "an endpoint that is gone")
    for peers, listed in ((before, alive[:5]), (after, alive[:4])):
        wrong = [(a, b) for a, b in zip(peers, model(listed)) if a != b]
        check(not wrong, f"{len(wrong)} keys are not where the ring says, the first: {wrong[:1]}")
    world.serve(*listener_and_route("a"), eds_cluster("a"), assignment("a", alive[:5]))
    world.await_peers(lambda peers: peers == before, "the endpoint came back, and its keys did not")


def route_changes(world):
    alive = world.places["alive"]
    both = [eds_cluster("a"), eds_cluster("b"), assignment("a", alive[:2]), assignment("b", alive[2:4])]
    world.serve(*listener_and_route("a"), *both)
    world.await_peers(lambda peers: set(peers) == set(alive[:2]), "route to a")
    world.serve(*listener_and_route("b"), *both)
    world.await_peers(lambda peers: set(peers) == set(alive[2:4]), "route to b")


def invalid_is_refused(world):
    alive = world.places["alive"]
    good = [*listener_and_route("a"), assignment("a", alive[:3])]
    world.serve(*good, eds_cluster("a"))
    before = world.await_peers(lambda peers: set(peers) == set(alive[:3]), "before")
    world.serve(*good, eds_cluster("a", ring_hash_lb_config={"hash_function": "MURMUR_HASH_2"}))
    nack = world.await_nack("Cluster")
    check('"a"' in nack["error"] and "hash_function" in nack["error"], f"the refusal says: {nack['error']}")
    check(nack["version"] != str(world.version), "a refused version counts as taken")
    check(world.peers() == before, "calls changed by a refused resource")
    version = world.serve(*good, eds_cluster("a"))
    world.await_ack("Cluster", version)
    check(world.peers() == before, "calls changed after the repair")


def restart(world):
    alive = world.places["alive"]
    world.serve(*listener_and_route("a"), eds_cluster("a"), assignment("a", alive[:3]))
    before = world.await_peers(lambda peers: set(peers) == set(alive[:3]), "before")
    world.plane.order("stop")
    check(world.peers() == before, "calls changed while the control plane was away")
    world.serve(*listener_and_route("a"), eds_cluster("a"), assignment("a", alive[3:6]))
    world.plane.told.clear()
    world.plane.order("start")
    world.await_ack("ClusterLoadAssignment", str(world.version))
    world.await_peers(lambda peers: set(peers) == set(alive[3:6]), "the new endpoints did not come after the restart")


def aggregate_fails_over(world):
    """A75: the leaves' own policies under one priority policy."""
    alive, dead = world.places["alive"], world.places["dead"]
    clusters = [aggregate("both", "near", "far"), eds_cluster("near"), eds_cluster("far")]
    world.serve(*listener_and_route("both"), *clusters, assignment("near", dead[:2]), assignment("far", alive[:3]))
    world.await_peers(lambda peers: set(peers) == set(alive[:3]), "the second leaf")
    world.serve(*listener_and_route("both"), *clusters, assignment("near", alive[3:5]), assignment("far", alive[:3]))
    world.await_peers(lambda peers: set(peers) == set(alive[3:5]), "back to the first leaf")


def priorities_fail_over(world):
    alive = world.places["alive"]
    world.serve(*listener_and_route("a"), eds_cluster("a"), assignment("a", alive[:2], alive[2:5]))
    world.await_peers(lambda peers: set(peers) == set(alive[:2]), "priority 0")
    world.pool.ask_ok({"stop": alive[:2]})
    world.await_peers(lambda peers: set(peers) == set(alive[2:5]), "priority 1")
    world.pool.ask_ok({"start": alive[:2]})


def deleted_and_made_again(world):
    """A88: what is deleted stays in use; a listener made anew is taken."""
    alive = world.places["alive"]
    world.serve(*listener_and_route("a"), eds_cluster("a"), assignment("a", alive[5:7]))
    before = world.await_peers(lambda peers: set(peers) == set(alive[5:7]), "before")
    version = world.serve({**listener_and_route("a")[0], "name": "another"})
    world.await_ack("Listener", version)
    check(world.peers() == before, "a deleted listener took the calls with it")
    world.serve(*listener_and_route("a"), eds_cluster("a"), assignment("a", alive[7:9]))
    world.await_peers(lambda peers: set(peers) == set(alive[7:9]), "made again")


FLOWS = [starts, endpoints_change, route_changes, invalid_is_refused, restart, aggregate_fails_over,
         priorities_fail_over, deleted_and_made_again]


@contextlib.contextmanager
def world_of(paths):
    with tempfile.TemporaryDirectory() as folder, Backends(paths) as pool, ControlPlane(paths, quiet=False) as plane:
        path = pathlib.Path(folder) / "bootstrap.json"
        path.write_text(bootstrap(plane.address), encoding="utf-8")
        with Program([paths.own("interop_agree")], {"GRPC_XDS_BOOTSTRAP": str(path)}) as client:
            client.line()
            yield World(plane, pool, client)
            client.finish()


def run(paths, options):
    if options.peers and "go" not in options.peers:
        return
    try:
        version = paths.go_module("github.com/envoyproxy/go-control-plane")
    except build_peers.Missing as missing:
        yield {"peer": "go-control-plane", "version": "", "skipped": len(FLOWS), "why": [str(missing)]}
        return
    faults = []
    for flow in FLOWS:  # each in a world of its own
        try:
            with world_of(paths) as world:
                flow(world)
        except Failure as failure:
            faults.append(f"{flow.__name__}: {failure}")
    yield {"peer": "go-control-plane", "version": version, "cases": len(FLOWS), "passed": len(FLOWS) - len(faults),
           "failed": len(faults), "why": faults}
