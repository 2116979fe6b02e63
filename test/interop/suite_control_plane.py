"""Torc's xDS client and mesh against go-control-plane, which is scripted from here: state of the world and incremental."""
import build_peers
from plane_world import (KEYS, aggregate, assignment, check, dns_cluster, eds_cluster, endpoint, listener_and_route, model,
                         world_of)
from programs import Failure


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
    check(world.incremental or nack["version"] != str(world.version), "a refused version counts as taken")
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
    """A88: a deleted resource stays in use; a new listener is accepted."""
    alive = world.places["alive"]
    world.serve(*listener_and_route("a"), eds_cluster("a"), assignment("a", alive[5:7]))
    before = world.await_peers(lambda peers: set(peers) == set(alive[5:7]), "before")
    version = world.serve({**listener_and_route("a")[0], "name": "another"})
    world.await_ack("Listener", version)
    check(world.peers() == before, "a deleted listener took the calls with it")
    world.serve(*listener_and_route("a"), eds_cluster("a"), assignment("a", alive[7:9]))
    world.await_peers(lambda peers: set(peers) == set(alive[7:9]), "made again")


def picture_of_a75(world):
    """An aggregate over EDS with ring_hash in two priorities and LOGICAL_DNS with pick_first: each gives way, and comes back."""
    alive = world.places["alive"]
    first, second, last = alive[:3], alive[3:6], alive[6]
    host, port = last.rsplit(":", 1)
    world.serve(*listener_and_route("both"), aggregate("both", "near", "far"), eds_cluster("near"),
                dns_cluster("far", host, int(port)), assignment("near", first, second))
    world.settle_as(first, "priority 0 of the first leaf")
    world.pool.ask_ok({"stop": first})
    world.settle_as(second, "priority 1 of the first leaf")
    world.pool.ask_ok({"stop": second})
    world.settle([last], "the second leaf, one endpoint by pick_first")
    world.pool.ask_ok({"start": second})
    world.settle_as(second, "back to priority 1")
    world.pool.ask_ok({"start": first})
    world.settle_as(first, "back to priority 0")


def keys_of_a76(world):
    """hash_key is the endpoint's place on the ring: a replaced address keeps its keys, a renamed one does not."""
    alive = world.places["alive"]
    names = ["ada", "barbara", "edsger", "grace"]
    old = [endpoint(a, name) for a, name in zip(alive[:4], names)]
    world.serve(*listener_and_route("a"), eds_cluster("a"), assignment("a", old))
    before = world.settle_as(old, "four named endpoints")
    new = [endpoint(a, name) for a, name in zip(alive[4:8], names)]
    world.serve(*listener_and_route("a"), eds_cluster("a"), assignment("a", new))
    moved = dict(zip(alive[:4], alive[4:8]))
    check(world.settle(alive[4:8], "the addresses replaced") == [moved[a] for a in before], "a name's keys went elsewhere")
    renamed = [endpoint(alive[4], "niklaus"), *new[1:]]
    world.serve(*listener_and_route("a"), eds_cluster("a"), assignment("a", renamed))
    world.settle_as(renamed, "one renamed")


def loads_are_reported(world):
    """Reports count every call once, over two clusters and a restart of the control plane."""
    alive = world.places["alive"]
    # The stream of load reports opens with the first cluster that asks for it: both do from the start.
    clusters = [eds_cluster("a", lrs_server={"self": {}}), eds_cluster("b", lrs_server={"self": {}})]
    both = [*clusters, assignment("a", alive[:3]), assignment("b", alive[3:6])]
    world.serve(*listener_and_route("a"), *both)
    world.settle(alive[:3], "cluster a")
    world.serve(*listener_and_route("b"), *both)
    world.settle(alive[3:6], "cluster b")
    world.plane.order("stop")
    world.peers()
    world.plane.order("start")
    world.peers()
    issued, ended, clusters_seen = 0, 0, set()

    def complete(told):
        nonlocal issued, ended
        for stats in told.get("load", {}).get("clusterStats", []):
            clusters_seen.add(stats["clusterName"])
            for locality in stats.get("upstreamLocalityStats", []):
                check(locality["locality"] == {"region": "earth"}, f"loads of {locality['locality']}")
                check("totalErrorRequests" not in locality, "errors where no call failed")
                issued += int(locality.get("totalIssuedRequests", 0))
                ended += int(locality.get("totalSuccessfulRequests", 0))
        return ended >= world.calls
    world.plane.await_told(complete)
    check(issued == ended == world.calls, f"{world.calls} calls, {issued} reported issued, {ended} ended")
    check(clusters_seen == {"a", "b"}, f"loads of the clusters {clusters_seen}")


def what_changed_alone_is_sent(world):
    """Incremental: the endpoints of one of fifteen clusters change, and are sent alone; the same holds when they change
    after a restart of the control plane, as the client says what it holds."""
    alive = world.places["alive"]
    leaves = [f"c{i}" for i in range(30)]

    def content(first):
        assignments = [assignment(leaf, [alive[1 + i % 5]]) for i, leaf in enumerate(leaves[1:])]
        return [*listener_and_route("all"), aggregate("all", *leaves[:15]), *[eds_cluster(leaf) for leaf in leaves],
                assignment("c0", [first]), *assignments]
    version = world.serve(*content(alive[0]))
    world.settle(alive[:1], "the first leaf")
    world.await_ack("ClusterLoadAssignment", version)
    world.plane.told.clear()
    version = world.serve(*content(alive[7]))
    world.settle(alive[7:8], "the first leaf's new endpoint")
    sent = world.plane.await_told(lambda told: told.get("response", {}).get("type", "").endswith("Assignment") and
                                  told["response"]["version"] == version)["response"]
    check(sent["names"] == ["c0"], f"one of 15 resources changed, and {sent['names']} were sent")
    world.plane.order("stop")
    world.plane.told.clear()
    world.plane.order("start")
    held = world.plane.await_told(lambda told: told.get("request", {}).get("type", "").endswith("Assignment"))["request"]
    check(sorted(held["held"]) == sorted(leaves[:15]), f"the client says that it holds {sorted(held['held'])}")
    version = world.serve(*content(alive[8]))
    sent = []

    def changed(told):
        if told.get("response", {}).get("type", "").endswith("Assignment"):
            sent.extend(told["response"]["names"])
        return "c0" in sent
    world.plane.await_told(changed)
    world.settle(alive[8:9], "changes after the restart")
    check(sent == ["c0"], f"after a restart {sent} were sent, and only c0 had changed")


ALWAYS = [starts, endpoints_change, route_changes, invalid_is_refused, restart, aggregate_fails_over, priorities_fail_over,
          deleted_and_made_again, picture_of_a75, keys_of_a76, loads_are_reported]
INCREMENTAL = [what_changed_alone_is_sent]


def faults_of(paths, flows, incremental):
    for flow in flows:  # each in a world of its own
        try:
            with world_of(paths, incremental) as world:
                flow(world)
        except Failure as failure:
            yield f"{flow.__name__}: {failure}"


def run(paths, options):
    if options.peers and "go" not in options.peers:
        return
    for incremental in (False, True):
        peer = f"go-control-plane, {'incremental' if incremental else 'state of the world'}"
        flows = ALWAYS + (INCREMENTAL if incremental else [])
        try:
            version = paths.go_module("github.com/envoyproxy/go-control-plane")
        except build_peers.Missing as missing:
            yield {"peer": peer, "version": "", "skipped": len(flows), "why": [str(missing)]}
            continue
        faults = list(faults_of(paths, flows, incremental))
        yield {"peer": peer, "version": version, "cases": len(flows), "passed": len(flows) - len(faults),
               "failed": len(faults), "why": faults}
