"""A process that makes calls with Torc shows its xDS resources (A40) to a client that knows Envoy's definitions alone."""
import contextlib
import json
import os
import pathlib
import tempfile
import time

from build_peers import Missing
from programs import WAIT, Failure, Program, bootstrap

ROUTER = {"name": "router", "typed_config": {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}
MANAGER = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"


def check(held, what):
    if not held:
        raise Failure(what)


def resource(kind, **fields):
    return {"@type": f"type.googleapis.com/envoy.config.{kind}", **fields}


def mesh(address, also=(), **cluster_fields):
    """`also`: clusters that routes name and that do not exist."""
    host, port = address.rsplit(":", 1)
    at = {"socket_address": {"address": host, "port_value": int(port)}}
    return [
        resource("listener.v3.Listener", name="shop", api_listener={"api_listener": {
            "@type": MANAGER, "rds": {"route_config_name": "r", "config_source": {"ads": {}}}, "http_filters": [ROUTER]}}),
        resource("route.v3.RouteConfiguration", name="r", virtual_hosts=[{
            "name": "all", "domains": ["*"], "routes": [
                *({"match": {"prefix": f"/{name}"}, "route": {"cluster": name}} for name in also),
                {"match": {"prefix": ""}, "route": {"cluster": "shop"}}]}]),
        resource("cluster.v3.Cluster", name="shop", type="EDS", eds_cluster_config={"eds_config": {"ads": {}}},
                 **cluster_fields),
        resource("endpoint.v3.ClusterLoadAssignment", cluster_name="shop", endpoints=[{
            "locality": {"region": "r"}, "load_balancing_weight": 1, "lb_endpoints": [{"endpoint": {"address": at}}]}])]


class World:
    """A control plane, a backend, and `torc call`, which calls until the end and serves CSDS."""

    def __init__(self, asker, path, csds, backend):
        self.asker, self.path, self.csds, self.backend = asker, path, csds, backend

    def serve(self, version, resources):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"version_info": version, "resources": resources}), encoding="utf-8")
        os.replace(new, self.path)

    def ask(self, stream=False, **request):
        return self.asker.ask({"at": self.csds, "stream": stream, "request": request})

    def config(self):
        answer = self.ask()
        check(answer["code"] == "OK", f"{answer['code']}: {answer['details']}")
        configs = answer["answers"][0].get("config", [])
        return configs[0] if configs else {}

    def await_resource(self, kind, name, **wanted):
        """The resource, once these fields of it are so."""
        end = time.monotonic() + WAIT
        found = {}
        while time.monotonic() < end:
            for found in self.config().get("genericXdsConfigs", []):
                if (found["typeUrl"].rsplit(".", 1)[1] == kind and found["name"] == name and
                        all(found.get(k) == v for k, v in wanted.items())):
                    return found
        raise Failure(f"{kind} {name} never became {wanted}; the last seen: {found}")


def acknowledged(world):
    for kind, name in (("Listener", "shop"), ("RouteConfiguration", "r"), ("Cluster", "shop"),
                       ("ClusterLoadAssignment", "shop")):
        found = world.await_resource(kind, name, clientStatus="ACKED", versionInfo="1")
        check("errorState" not in found and "lastUpdated" in found, f"{found}")
    port = found["xdsConfig"]["endpoints"][0]["lbEndpoints"][0]["endpoint"]["address"]["socketAddress"]["portValue"]
    check(port == int(world.backend.rsplit(":", 1)[1]), f"content as it was sent: {found}")
    config = world.config()
    check(config["clientScope"] == "xds:///shop", f"scope {config['clientScope']}")
    check(config["node"]["id"] == "interop" and config["node"]["locality"] == {"region": "earth"}, f"{config['node']}")


def refused(world):
    world.serve("2", mesh(world.backend, lrs_server={"ads": {}}))
    found = world.await_resource("Cluster", "shop", clientStatus="NACKED")
    check(found["versionInfo"] == "1" and "lrsServer" not in found["xdsConfig"], f"the last good one is in use: {found}")
    error = found["errorState"]
    check(error["versionInfo"] == "2" and "lrs_server" in error["details"] and "lastUpdateAttempt" in error, f"{error}")
    world.serve("3", mesh(world.backend, connect_timeout="1s"))
    found = world.await_resource("Cluster", "shop", clientStatus="ACKED", versionInfo="3")
    check("errorState" not in found, f"{found}")


def absent(world):
    """A resource that the control plane never had is REQUESTED; one that it had and removed is DOES_NOT_EXIST."""
    world.serve("4", mesh(world.backend, also=["absent"]))
    world.await_resource("Cluster", "absent", clientStatus="REQUESTED")
    world.serve("4b", mesh(world.backend)[1:])
    found = world.await_resource("Listener", "shop", clientStatus="DOES_NOT_EXIST")
    check("xdsConfig" in found and "errorState" in found, f"it stays in use (A88), and there is a word of it: {found}")
    world.serve("5", mesh(world.backend))
    world.await_resource("Listener", "shop", clientStatus="ACKED", versionInfo="5")


def streamed(world):
    answer = world.ask(stream=True)
    check(answer["code"] == "OK" and len(answer["answers"]) == 2, f"an answer for each request: {answer}")
    check(all(a["config"][0]["clientScope"] == "xds:///shop" for a in answer["answers"]), f"{answer}")


def without_contents(world):
    listed = world.ask(exclude_resource_contents=True)["answers"][0]["config"][0]["genericXdsConfigs"]
    check(listed and not any("xdsConfig" in one for one in listed), f"{listed}")


def matchers_are_refused(world):
    for stream in (False, True):
        answer = world.ask(stream=stream, node_matchers=[{"node_id": {"exact": "interop"}}])
        check(answer["code"] == "INVALID_ARGUMENT" and "node_matchers" in answer["details"], f"{answer}")


CASES = [acknowledged, refused, absent, streamed, without_contents, matchers_are_refused]


@contextlib.contextmanager
def world_of(paths):
    command, env = paths.python("csds.py")
    with tempfile.TemporaryDirectory() as folder, Program(command, env) as asker, \
            Program([paths.command(), "backend", "--listen", "127.0.0.1:0"]) as backend:
        path, at = pathlib.Path(folder) / "mesh.json", backend.word_after("listening")
        world = World(asker, path, "unix:" + os.path.join(folder, "csds"), at)
        world.serve("1", mesh(at))
        with Program([paths.command(), "serve-xds", "--listen", "127.0.0.1:0", "--resources", str(path)]) as plane:
            variables = {"GRPC_XDS_BOOTSTRAP": "", "GRPC_XDS_BOOTSTRAP_CONFIG": bootstrap(plane.word_after("listening"))}
            with Program([paths.command(), "call", "--quiet", "--wait-for-ready", "--duration", "600s", "--rps", "20", "--csds",
                          world.csds, "xds:///shop", "shop.Shop/Get"], variables):
                yield world


def run(paths, options):
    if options.peers and "python" not in options.peers:
        return
    row = {"peer": "grpcio, xds-protos", "version": "1.85.1", "why": []}
    try:
        with world_of(paths) as world:
            for case in CASES:
                row["cases"] = row.get("cases", 0) + 1
                try:
                    case(world)
                    row["passed"] = row.get("passed", 0) + 1
                except Failure as failure:
                    row["failed"] = row.get("failed", 0) + 1
                    row["why"].append(f"{case.__name__}: {failure}")
    except Missing as missing:
        row["skipped"] = 1
        row["why"].append(str(missing))
    yield row
