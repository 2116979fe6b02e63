"""Fallback between control planes that are processes (A71, A95): all of them down, one whose name cannot be parsed, a
stream that ends after an answer, a resource that is not cached when the first is lost, and authorities that fall back
whatever is cached."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import (LONG, calls, case, check, cluster, ended, endpoints, free_address, listener, main, routes, running,
                         until_peer, write_resources)
from support.proxy import proxy_to


def bootstrap_of(*addresses, **more):
    return {"GRPC_XDS_BOOTSTRAP": "", "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps({
        "xds_servers": servers(*addresses), "node": {"id": "test-node"}, **more})}


def servers(*addresses):
    return [{"server_uri": a, "channel_creds": [{"type": "insecure"}]} for a in addresses]


def to(name):
    return {"match": {"prefix": ""}, "route": {"cluster": name}}


def write_mesh(path, version, backend):
    write_resources(path, version, listener("orders", "r"), routes("r", to("c")), cluster("c"), endpoints("c", backend))


def serving(path, address="127.0.0.1:0"):
    return running("serve-xds", "--listen", address, "--resources", path, "--log", "json")


def load_of(target, env, *args):
    return running("call", target, "a.B/C", "-o", "json", "--rps", "100", "--duration", LONG, *args, env=env)


def test_all_are_down():
    """The error is that of the last; the process goes on, and recovers when the first is there."""
    case("FB02")
    case("FB09")
    first, last = free_address(), free_address()
    env = bootstrap_of(first, last)
    done, _ = calls("xds:///orders", "a.B/C", env=env, status=1)
    check(done[0]["status"] == "UNAVAILABLE" and f"xDS channel for server {last}: " in done[0]["message"] and
          "(node ID:test-node)" in done[0]["message"] and first not in done[0]["message"], str(done))
    with tempfile.TemporaryDirectory() as directory, running("backend") as backend:
        path = os.path.join(directory, "mesh.json")
        write_mesh(path, "1", backend.listening())
        with running("call", "xds:///orders", "a.B/C", "-o", "json", "--wait-for-ready", "--deadline", LONG, "--events",
                     env=env) as waiting:
            waiting.wait_line(lambda line: "TRANSIENT_FAILURE" in line)
            with serving(path, first):
                check(ended(waiting) == backend.seen[0].split()[1], "the backend, by the server that came back")


def test_a_server_whose_address_is_none():
    """One that cannot be parsed counts as down: the next is used; with no good one the error names the last."""
    case("FB08")
    with tempfile.TemporaryDirectory() as directory, running("backend") as backend:
        live, path = backend.listening(), os.path.join(directory, "mesh.json")
        write_mesh(path, "1", live)
        with serving(path) as good:
            _, summary = calls("xds:///orders", "a.B/C", env=bootstrap_of("nowhere://x/y", good.listening()))
            check(summary["by_peer"] == {live: 1}, str(summary))
        done, _ = calls("xds:///orders", "a.B/C", env=bootstrap_of("nowhere://x/y", "nowhere://x/z"), status=1)
        check(done[0]["status"] == "UNAVAILABLE" and "nowhere://x/z" in done[0]["message"], str(done))


def test_a_stream_that_ends_after_an_answer():
    """The server does not count as lost: uncached resources are requested on its next stream, not from the fallback."""
    case("FB07")
    with tempfile.TemporaryDirectory() as directory, running("backend") as backend:
        live = backend.listening()
        paths = [os.path.join(directory, name) for name in ("main.json", "fallback.json")]
        write_resources(paths[0], "1", listener("orders", "r"), routes("r", to("c")))
        write_mesh(paths[1], "1", live)
        with serving(paths[0]) as primary, serving(paths[1]) as fallback, proxy_to(primary.listening()) as proxy:
            def asked():
                primary.wait_line(lambda line: "cluster.v3.Cluster" in line and '"nonce":""' in line)

            with running("call", "xds:///orders", "a.B/C", "-o", "json", "--wait-for-ready", "--deadline", LONG,
                         env=bootstrap_of(proxy.address, fallback.listening())) as waiting:
                asked()
                proxy.cut()
                asked()
                write_mesh(paths[0], "2", live)
                check(ended(waiting) == live, "the backend")
            check(not any('"ads"' in line for line in fallback.rest()), "the fallback was asked")


def test_what_is_not_cached_needs_the_fallback():
    """A route of the first server names a cluster that it does not have yet, and the server is lost. The client
    requests all resources that it watches from the fallback, without a version, and uses the fallback's resources from
    then on."""
    case("FB04")
    with tempfile.TemporaryDirectory() as directory, running("backend") as b1, running("backend") as b2:
        one, two = b1.listening(), b2.listening()
        paths = [os.path.join(directory, name) for name in ("main.json", "fallback.json")]
        write_mesh(paths[0], "1", one)
        write_resources(paths[1], "7", listener("orders", "r"), routes("r", to("new")), cluster("new"), endpoints("new", two))
        with serving(paths[0]) as primary, serving(paths[1]) as fallback:
            env = bootstrap_of(primary.listening(), fallback.listening())
            with load_of("xds:///orders", env) as load:
                until_peer(load, one)
                check(not any('"ads"' in line for line in fallback.rest()), "the fallback is not asked so far")
                both = {"match": {"prefix": ""}, "route": {"weighted_clusters": {"clusters": [
                    {"name": "c", "weight": 1}, {"name": "new", "weight": 1}]}}}
                write_resources(paths[0], "2", listener("orders", "r"), routes("r", both), cluster("c"), endpoints("c", one))
                primary.wait_line(lambda line: '"new"' in line and "Cluster" in line)
                primary.kill()
                asked = {}
                while len(asked) < 4:
                    ads = json.loads(fallback.wait_line(lambda line: line.startswith('{"ads"')))["ads"]
                    asked.setdefault(ads["type"].rsplit(".", 1)[-1], ads)
                until_peer(load, two)
            check(asked["Listener"]["names"] == ["orders"] and asked["RouteConfiguration"]["names"] == ["r"] and
                  set(asked["Cluster"]["names"]) == {"c", "new"}, str(asked))
            check(asked["ClusterLoadAssignment"]["names"] == ["c"], str(asked))
            check(all(ads["version"] == "" for ads in asked.values()), f"no version of another server's: {asked}")


def test_authorities_that_fall_back_whatever_is_cached():
    """A95: with fallback_on_reachability_only the loss of the first server suffices; without it cached resources stay in use."""
    prefix = "xdstp://east/envoy.config."
    name = prefix + "listener.v3.Listener/orders"
    with tempfile.TemporaryDirectory() as directory, running("backend") as b1, running("backend") as b2:
        one, two = b1.listening(), b2.listening()
        paths = [os.path.join(directory, name) for name in ("main.json", "fallback.json")]
        for path, backend in zip(paths, (one, two)):
            c, e = prefix + "cluster.v3.Cluster/c", prefix + "endpoint.v3.ClusterLoadAssignment/e"
            r = prefix + "route.v3.RouteConfiguration/r"
            ours = cluster(c)
            ours["eds_cluster_config"]["service_name"] = e
            write_resources(path, "1", listener(name, r), routes(r, to(c)), ours, endpoints(e, backend))
        with serving(paths[1]) as fallback:
            fallback_address = fallback.listening()
            for reachability_only in (True, False):
                with serving(paths[0]) as primary:
                    authority = {"xds_servers": servers(primary.listening(), fallback_address),
                                 "fallback_on_reachability_only": reachability_only}
                    with load_of("xds://east/orders", bootstrap_of(fallback_address, authorities={"east": authority}),
                                 "--events") as load:
                        until_peer(load, one)
                        primary.kill()
                        if reachability_only:
                            until_peer(load, two)
                        else:
                            for _ in range(100):
                                check(ended(load) == one, "what is cached stays in use")


main(test_all_are_down, test_a_server_whose_address_is_none, test_a_stream_that_ends_after_an_answer,
     test_what_is_not_cached_needs_the_fallback,
     test_authorities_that_fall_back_whatever_is_cached)
