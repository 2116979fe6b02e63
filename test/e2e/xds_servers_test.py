"""Several control planes, each a process of its own: fallback (A71) under load, and federation (A47), by the command."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import (LONG, calls, case, check, cluster, ended, endpoints, free_address, listener, main, routes, running,
                         until_peer, write_resources)

XDSTP = "xdstp://east/envoy.config."


def server(address):
    return {"server_uri": address, "channel_creds": [{"type": "insecure"}]}


def bootstrap_of(*addresses, **more):
    return {"GRPC_XDS_BOOTSTRAP": "", "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps({
        "xds_servers": [server(a) for a in addresses], "node": {"id": "test-node"}, **more})}


def to(name):
    return {"match": {"prefix": ""}, "route": {"cluster": name}}


def write_mesh(path, version, backend):
    write_resources(path, version, listener("orders", "r"), routes("r", to("orders")), cluster("orders"),
                    endpoints("orders", backend))


def test_fallback():
    case("FB01")
    case("FB03")
    case("FB05")
    with tempfile.TemporaryDirectory() as directory, running("backend") as b1, running("backend") as b2:
        first, second = b1.listening(), b2.listening()
        paths = [os.path.join(directory, name) for name in ("main.json", "fallback.json")]
        write_mesh(paths[0], "1", first)
        write_mesh(paths[1], "1", second)
        main_address = free_address()
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", paths[1]) as fallback, running(
                "call", "xds:///orders", "a.B/C", "-o", "json", "--rps", "100", "--duration", LONG,
                env=bootstrap_of(main_address, fallback.listening())) as load:
            check(ended(load) == second, "the fallback's, while the first server is down")
            with running("serve-xds", "--listen", main_address, "--resources", paths[0]) as primary:
                until_peer(load, first)
                for _ in range(20):
                    check(ended(load) == first, "the first server's, now that it is there")
                write_mesh(paths[0], "2", second)
                until_peer(load, second)
                write_mesh(paths[0], "3", first)
                until_peer(load, first)
                primary.kill()
            # All that is wanted is cached: what the fallback has, and what becomes of it, is not asked for.
            write_mesh(paths[1], "2", second)
            for _ in range(100):
                check(ended(load) == first, "what is cached stays in use")
            with running("serve-xds", "--listen", main_address, "--resources", paths[0]):
                write_mesh(paths[0], "4", second)
                until_peer(load, second)


def test_federation():
    case("AD10")
    case("AD30")
    with tempfile.TemporaryDirectory() as directory, running("backend") as backend:
        live = backend.listening()
        paths = [os.path.join(directory, name) for name in ("plain.json", "east.json")]
        route_name = XDSTP + "route.v3.RouteConfiguration/r"
        c, e = XDSTP + "cluster.v3.Cluster/c", XDSTP + "endpoint.v3.ClusterLoadAssignment/e"
        write_resources(paths[0], "1", listener("orders", route_name + "?b=2&a=1"),
                        listener("lost", "xdstp://nobody/envoy.config.route.v3.RouteConfiguration/r"))
        ours = cluster(c)
        ours["eds_cluster_config"]["service_name"] = e
        # A server has the canonical names: the parameters in order, the path percent-encoded.
        write_resources(paths[1], "1", routes(route_name + "?a=1&b=2", to(c)), ours, endpoints(e, live),
                        listener(XDSTP + "listener.v3.Listener/shop/my%20orders", route_name + "?a=1&b=2"))
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", paths[0]) as plain, running(
                "serve-xds", "--listen", "127.0.0.1:0", "--resources", paths[1]) as east:
            env = bootstrap_of(plain.listening(), authorities={"east": {"xds_servers": [server(east.listening())]}})
            for target in ("xds:///orders", "xds://east/shop/my orders"):
                _, summary = calls(target, "a.B/C", "-n", "5", env=env)
                check(summary["by_peer"] == {live: 5}, f"{target}: {summary}")
            done, _ = calls("xds:///lost", "a.B/C", env=env, status=1)
            check(done[0]["status"] == "UNAVAILABLE" and
                  'authority "nobody" is not in the xDS bootstrap' in done[0]["message"], str(done))
            done, _ = calls("xds://nobody/orders", "a.B/C", env=env, status=1)
            check(done[0]["status"] == "UNAVAILABLE" and '"nobody"' in done[0]["message"], str(done))


main(test_fallback, test_federation)
