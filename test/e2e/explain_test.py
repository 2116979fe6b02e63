"""torc call --explain and --dry-run: the tree of policies as it is, who was passed over and why, and that --dry-run sends nothing."""
import contextlib
import json
import os
import re
import socket
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import bootstrap, check, cluster, endpoints, free_address, listener, main, routes, run, running, write_resources

HASHED = {"match": {"prefix": "/a.B/"}, "name": "by-user",
          "route": {"cluster": "orders", "hash_policy": [{"header": {"header_name": "user"}}]}}


@contextlib.contextmanager
def full_backlog():
    """An address that answers no connection: its queue is full."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield f"127.0.0.1:{server.getsockname()[1]}"


def explain(control_plane, *args, status=0):
    lines = run("call", "-o", "json", "xds:///orders", *args, env=bootstrap(control_plane), status=status)
    objects = [json.loads(line) for line in lines.stdout.splitlines()]
    return ([o["call"] for o in objects if "call" in o], [o["channel"] for o in objects if "channel" in o],
            objects[-1]["summary"])


def down(node, *policies):
    """Follows the policies of those names downwards. Returns the last one's object."""
    for policy in policies:
        node = node["child"]
        check(node["policy"] == policy, f"{policy} was to come: {json.dumps(node)[:300]}")
    return node


def two_priorities(first, second):
    resource = endpoints("orders", first)
    resource["endpoints"].append({**endpoints("orders", second)["endpoints"][0], "priority": 1})
    return resource


def check_tree(channel, dead, live):
    check(channel["target"] == "xds:///orders" and channel["state"] == "READY", str(channel)[:300])
    manager = channel["child"]
    check(manager["policy"] == "xds_cluster_manager_experimental", str(manager)[:300])
    node = manager["clusters"][0]
    check(node["name"].endswith("orders") and node["state"] == "READY", str(node)[:300])
    node = down(node, "cds_experimental")
    check(node["cluster"] == "orders" and node["type"] == "EDS", str(node)[:300])
    while node["policy"] != "priority":
        if node["policy"] == "xds_cluster_impl_experimental":
            check(node["max_calls"] == 1024 and node["drops"] == [{"category": "tired", "per_million": 1}], str(node))
        node = node["child"]
    first, second = node["priorities"]
    check(first["state"] == "TRANSIENT_FAILURE" and "serves" not in first and dead in first["error"], str(first))
    check(second["state"] == "READY" and second["serves"], str(second))
    check(first["child"]["endpoints"][0]["endpoint"] == dead, str(first))
    ring = second["child"]
    check(ring["policy"] == "ring_hash" and ring["ring_size"] == 1024, str(ring))
    leaf = ring["endpoints"][0]
    check(leaf["endpoint"] == live and leaf["child"]["addresses"][0] == {"address": live, "state": "READY",
                                                                        "selected": True, "tried": True}, str(leaf))


def test_the_tree_of_a_call_that_went_to_the_second_priority():
    with tempfile.TemporaryDirectory() as directory, running("backend", "--name", "b1") as backend:
        live, dead = backend.listening(), free_address()
        eds = two_priorities(dead, live)
        eds["policy"] = {"drop_overloads": [{"category": "tired",
                                             "drop_percentage": {"numerator": 1, "denominator": "MILLION"}}]}
        path = os.path.join(directory, "mesh.json")
        write_resources(path, "1", listener("orders", "r"), routes("r", HASHED),
                        cluster("orders", lb_policy="RING_HASH"), eds)
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as server:
            at = server.listening()
            done, channels, _ = explain(at, "a.B/C", "-H", "user: u1", "--wait-for-ready", "--explain")
            check(done[0]["peer"] == live and done[0]["explain"]["endpoint"] == live, str(done))
            check(done[0]["explain"]["route"].startswith("by-user: "), str(done))
            check("outcome" not in done[0]["explain"] and "channel" not in done[0]["explain"], str(done))
            check(len(channels) == 1, "one channel, shown once")
            check_tree(channels[0], dead, live)
            text = run("call", "xds:///orders", "a.B/C", "--wait-for-ready", "--explain", env=bootstrap(at)).stdout
            check('"policy": "ring_hash"' in text, text)


def test_nothing_is_sent():
    with tempfile.TemporaryDirectory() as directory, running("backend", "--name", "b1", "--count-log") as backend:
        live = backend.listening()
        path = os.path.join(directory, "mesh.json")
        write_resources(path, "1", listener("orders", "r"), routes("r", HASHED),
                        cluster("orders", lb_policy="RING_HASH"), endpoints("orders", live))
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as server:
            at = server.listening()
            done, channels, summary = explain(at, "a.B/C", "-H", "user: u{i}", "-n", "20", "-c", "4", "--dry-run")
            check(len(done) == 20 and summary["ok"] == 20 and summary["by_peer"] == {}, str(summary))
            for call in done:
                e = call["explain"]
                check(call["code"] == 0 and call["attempts"] == 0 and e["outcome"] == "wait", str(call))
                check(e["cluster"] == "cluster:orders" or e["cluster"] == "orders", str(e))
                check(e["policy"] == "ring_hash" and e["hash"].startswith("0x") and "ring_index" in e, str(e))
                check(e["endpoint"] == live and e["walked"] == [], f"the one whose connection it would wait for: {e}")
            check(len({call["explain"]["hash"] for call in done}) == 20, "each by its own header")
            check(channels[0]["state"] == "IDLE" and channels[0]["pool"]["connections"] == 0,
                  f"idle; the connection to the control plane does not count: {channels}")
            text = run("call", "xds:///orders", "a.B/C", "-n", "3", "--dry-run", env=bootstrap(at)).stdout
            check(text.endswith("\n3 calls, none sent: 0 would fail\n"), text)
            # A call that no route is for.
            done, _, _ = explain(at, "other/C", "--dry-run", status=1)
            check(done[0]["explain"]["outcome"] == "fail" and "No matching route" in done[0]["message"], str(done))
        check(backend.stop() == 0, "the backend ends")
        log = [line for line in backend.seen + backend.rest() if "requests" in line]
        count = json.loads(log[-1])["backend"]
        check(count["requests"] == 0 and count["connections"] == 0, f"no connection came of it: {count}")


def test_which_leaf_of_an_aggregate():
    """A call to an aggregate names its leaf cluster too, sent or not; a call to a plain cluster does not."""
    with tempfile.TemporaryDirectory() as directory, running("backend", "--name", "b1") as backend:
        live = backend.listening()
        aggregate = {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "orders",
                     "lb_policy": "CLUSTER_PROVIDED", "cluster_type": {"typed_config": {
                         "@type": "type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig",
                         "clusters": ["empty", "full"]}}}
        empty = {**endpoints("empty"), "endpoints": []}
        alone = {"match": {"prefix": "/alone/"}, "route": {"cluster": "full"}}
        path = os.path.join(directory, "mesh.json")
        write_resources(path, "1", listener("orders", "r"), routes("r", HASHED, alone), aggregate, cluster("empty"), empty,
                        cluster("full", lb_policy="RING_HASH"), endpoints("full", live))
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as server:
            at = server.listening()
            for how in ("--explain", "--dry-run"):
                done, _, _ = explain(at, "a.B/C", "-H", "user: u1", how)
                e = done[0]["explain"]
                check(e["cluster"] == "orders" and e["leaf"] == "full" and e["endpoint"] == live, str(done))
            done, _, _ = explain(at, "alone/C", "--explain")
            check(done[0]["explain"]["cluster"] == "full" and "leaf" not in done[0]["explain"], str(done))


def test_what_was_passed_over():
    """Two endpoints, the one of the key is dead: it is named with its error."""
    with tempfile.TemporaryDirectory() as directory, running("backend", "--name", "b1") as backend:
        live, dead = backend.listening(), free_address()
        path = os.path.join(directory, "mesh.json")
        write_resources(path, "1", listener("orders", "r"), routes("r", HASHED),
                        cluster("orders", lb_policy="RING_HASH"), endpoints("orders", dead, live))
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as server:
            done, _, _ = explain(server.listening(), "a.B/C", "-H", f"user: {dead}_0", "--wait-for-ready", "--explain")
            walked = done[0]["explain"]["walked"]
            check(done[0]["explain"]["endpoint"] == live and len(walked) == 1, str(done))
            check(walked[0]["endpoint"] == dead and walked[0]["reason"] == "TRANSIENT_FAILURE" and
                  dead in walked[0]["error"] and "refused" in walked[0]["error"], str(walked))


def test_which_filter_failed_the_call():
    """An injected fault names its filter, in the status and in the explanation, sent or not; nothing reaches a backend."""
    fault = {"name": "chaos", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault",
        "delay": {"fixed_delay": "0.05s", "percentage": {"numerator": 100}},
        "abort": {"grpc_status": 7, "percentage": {"numerator": 100}}}}
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "mesh.json")
        ours = listener("orders", "r")
        ours["api_listener"]["api_listener"]["http_filters"].insert(0, fault)
        write_resources(path, "1", ours, routes("r", HASHED), cluster("orders", lb_policy="RING_HASH"),
                        endpoints("orders", free_address()))
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as server:
            at = server.listening()
            for how in ("--explain", "--dry-run"):
                done, _, _ = explain(at, "a.B/C", how, status=1)
                check(done[0]["code"] == 7 and '"chaos"' in done[0]["message"], str(done))
                check(done[0]["explain"]["filters"] == [{"filter": "chaos", "effect": "delayed by 0.050 s"},
                                                        {"filter": "chaos", "effect": "aborted with PERMISSION_DENIED"}],
                      str(done))


def test_what_a_call_without_a_ring_waits_for():
    """Two addresses that accept no connection: a call waits for the first with pick_first, for both with round_robin,
    and through a mesh for those of its cluster alone. The text names them, and says "wait" instead of a status."""
    with contextlib.ExitStack() as stack:
        one, two = (stack.enter_context(full_backlog()) for _ in range(2))
        for config, awaited in (("{}", [one]), ('{"loadBalancingConfig":[{"round_robin":{}}]}', [one, two])):
            args = ("--dry-run", "--service-config", config, f"ipv4:{one},{two}", "a.B/C")
            line = json.loads(run("call", "-o", "json", *args).stdout.splitlines()[0])
            e = line["call"]["explain"]
            check(e["outcome"] == "wait" and e["endpoint"] == "" and e["waits_for"] == awaited, str(e))
            text = run("call", *args).stdout
            check(re.search(r"^#0 +wait +- .*  for a connection to " + ", ".join(awaited) + "$", text, re.M), text)
            check("OK" not in text, text)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        path = os.path.join(folder, "mesh.json")
        other = {"match": {"prefix": "/other/"}, "route": {"cluster": "other"}}
        write_resources(path, "1", listener("orders", "r"), routes("r", {"match": {"prefix": "/a.B/"}, "route": {"cluster": "orders"}}, other),
                        cluster("orders"), endpoints("orders", one), cluster("other"), endpoints("other", two))
        server = stack.enter_context(running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path))
        at = server.listening()
        for method, awaited in (("a.B/C", one), ("other/C", two)):
            done, _, _ = explain(at, method, "--dry-run")
            check(done[0]["explain"]["waits_for"] == [awaited], str(done))


def test_attempts_are_told():
    """A backend that fails every call: with three attempts the text says so, with one it does not."""
    retries = json.dumps({"methodConfig": [{"name": [{}], "retryPolicy": {
        "maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
        "retryableStatusCodes": ["UNAVAILABLE"]}}]})
    with running("backend", "--fail", "UNAVAILABLE") as backend:
        at = backend.listening()
        text = run("call", "--service-config", retries, at, "a.B/C", status=1).stdout
        check(re.search("UNAVAILABLE .*  3 attempts  ", text), text)
        check("attempts" not in run("call", at, "a.B/C", status=1).stdout, "one is not said")


main(test_what_a_call_without_a_ring_waits_for, test_attempts_are_told, test_which_filter_failed_the_call, test_the_tree_of_a_call_that_went_to_the_second_priority, test_nothing_is_sent,
     test_which_leaf_of_an_aggregate, test_what_was_passed_over)
