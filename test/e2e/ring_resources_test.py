"""torc ring --resources: the ring of a cluster out of its resources is the one that a channel's calls follow."""
import contextlib
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import bootstrap, calls, check, cluster, endpoints, free_address, listener, main, routes, run, running, write_resources

BY_USER = {"match": {"prefix": ""}, "route": {"cluster": "orders", "hash_policy": [{"header": {"header_name": "user"}}]}}
KEYS = [f"u{i}" for i in range(150)]


def endpoint(address, weight=None, key=None, health=None):
    host, port = address.rsplit(":", 1)
    e = {"endpoint": {"address": {"socket_address": {"address": host, "port_value": int(port)}}}}
    if weight:
        e["load_balancing_weight"] = weight
    if key:
        e["metadata"] = {"filter_metadata": {"envoy.lb": {"hash_key": key}}}
    if health:
        e["health_status"] = health
    return e


def locality(zone, weight, priority, *listed):
    return {"locality": {"region": "r", "zone": zone}, "load_balancing_weight": weight, "priority": priority,
            "lb_endpoints": list(listed)}


def load(name, *localities):
    return {**endpoints(name), "endpoints": list(localities)}


def by_ring(path, *args, env=None):
    keys = [part for key in KEYS for part in ("--key", key)]
    lines = run("ring", "--resources", path, "--cluster", "orders", "-o", "json", *args, *keys, env=env).stdout.splitlines()
    return [json.loads(line)["address"] for line in lines]


def by_calls(control_plane, env=None):
    done, _ = calls("xds:///orders", "a.B/C", "-H", "user: u{i}", "-n", str(len(KEYS)), "--wait-for-ready",
                    env={**bootstrap(control_plane), **(env or {})})
    return [call["peer"] for call in sorted(done, key=lambda call: call["i"])]


def mesh(path, eds, **fields):
    write_resources(path, "1", listener("orders", "r"), routes("r", BY_USER),
                    cluster("orders", lb_policy="RING_HASH", **fields), eds)


@contextlib.contextmanager
def backends(n):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(running("backend", "--name", f"b{i}")).listening() for i in range(n)]


def test_weights_keys_and_health():
    with tempfile.TemporaryDirectory() as directory, backends(5) as at:
        path = os.path.join(directory, "mesh.json")
        mesh(path, load("orders", locality("b", 2, 0, endpoint(at[0], 3), endpoint(at[1], key="carol")),
                        locality("a", 5, 0, endpoint(at[2]), endpoint(at[3], health="UNHEALTHY"),
                                 endpoint(at[4], health="DRAINING"))),
             ring_hash_lb_config={"minimum_ring_size": 100, "maximum_ring_size": 900})
        raw = {"GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING": "false"}
        table = json.loads(run("ring", "--resources", path, "--cluster", "orders", "-o", "json", env=raw).stdout)
        check([(e["key"], e["address"], e["weight"]) for e in table["endpoints"]] ==
              [(at[2], at[2], 5), (at[0], at[0], 6), ("carol", at[1], 2)], f"localities in order, weights multiplied: {table}")
        check(table["endpoints"][0]["locality"] == '{region="r", zone="a", sub_zone=""}', str(table))
        check((table["min"], table["max"]) == (100, 900), str(table))
        normal = json.loads(run("ring", "--resources", path, "--cluster", "orders", "-o", "json").stdout)
        # A113: 5/7 of all, 3/4 and 1/4 of 2/7, in units of 2^-31, each step rounded down.
        check([e["weight"] for e in normal["endpoints"]] == [1533916891, 460175067, 153391689], f"shares: {normal}")
        text = run("ring", "--resources", path, "--cluster", "orders").stdout
        check(f"{at[1]} {{region=" in text, text)
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as server:
            control_plane = server.listening()
            for env in ({}, raw):
                want, got = by_ring(path, env=env), by_calls(control_plane, env)
                check(set(want) == set(at[:3]), f"those in use, and each of them: {set(want)}")
                check(want == got, f"ring and calls differ: {[x for x in zip(KEYS, want, got) if x[1] != x[2]]}")


def test_the_second_priority():
    with tempfile.TemporaryDirectory() as directory, backends(3) as at:
        path = os.path.join(directory, "mesh.json")
        mesh(path, load("orders", locality("a", 1, 0, endpoint(free_address())),
                        locality("b", 1, 1, endpoint(at[0]), endpoint(at[1], 2)), locality("c", 3, 1, endpoint(at[2]))))
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as server:
            want, got = by_ring(path, "--priority", "1"), by_calls(server.listening())
            check(want == got and set(want) == set(at), f"ring and calls differ: {list(zip(want, got))[:10]}")


def test_endpoints_of_one_key():
    """Endpoints with one hash_key have their entries at the same hashes, where the first of them gets everything."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "mesh.json")
        mesh(path, load("orders", locality("a", 1, 0, *(endpoint(f"127.0.0.1:{n}", key="carol") for n in (1, 2)))),
             ring_hash_lb_config={"minimum_ring_size": 2, "maximum_ring_size": 2})
        given = ("ring", "--resources", path, "--cluster", "orders", "-o", "json")
        table = json.loads(run(*given).stdout)
        check([e["hash_share"] for e in table["endpoints"]] == [1, 0], str(table))
        moved = json.loads(run(*given, "--remove", "carol").stdout)
        check(moved["moves"] == [{"from": "carol", "to": "carol", "share": 1}], f"the second one takes over: {moved}")
        check(moved["moved"] == 1 and moved["after"]["entries"] == 2, str(moved))


def test_what_cannot_be_shown():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "mesh.json")
        eds = load("orders", locality("a", 1, 0, endpoint("127.0.0.1:1")))
        mesh(path, eds)

        def refused(status, wanted, *args):
            done = run("ring", *args, status=status)
            check(wanted in done.stderr and len(done.stderr.splitlines()) == 1, f"{args}: {done.stderr}")

        given = ("--resources", path, "--cluster")
        refused(1, 'no Cluster "nope"', *given, "nope")
        refused(1, "no priority 1", *given, "orders", "--priority", "1")
        refused(1, "cannot", "--resources", path + ".gone", "--cluster", "orders")
        refused(2, "go together", "--resources", path)
        refused(2, "not both", *given, "orders", "-e", "x")
        refused(2, "go together", "-e", "x", "--cluster", "orders")
        write_resources(path, "2", cluster("orders", lb_policy="ROUND_ROBIN"), eds)
        refused(1, "has the LB policy xds_wrr_locality", *given, "orders")
        write_resources(path, "3", cluster("orders", lb_policy="MAGLEV"), eds)
        refused(2, 'Cluster "orders" has the LB policy maglev', *given, "orders", "--min", "12")
        mesh(path, eds, ring_hash_lb_config={"minimum_ring_size": 100, "maximum_ring_size": 900})
        table = json.loads(run("ring", *given, "orders", "--min", "5000", "-o", "json").stdout)
        check((table["min"], table["max"]) == (5000, 5000), str(table))
        table = json.loads(run("ring", *given, "orders", "--max", "50", "-o", "json").stdout)
        check((table["min"], table["max"]) == (50, 50), str(table))
        write_resources(path, "3", cluster("orders", lb_policy="RING_HASH"))
        refused(1, 'no ClusterLoadAssignment "orders"', *given, "orders")
        write_resources(path, "4", cluster("orders", lb_policy="RING_HASH"),
                        load("orders", locality("a", 1, 1, endpoint("127.0.0.1:1"))))
        refused(1, "priority 0 empty", *given, "orders")


main(test_weights_keys_and_health, test_the_second_priority, test_endpoints_of_one_key, test_what_cannot_be_shown)
