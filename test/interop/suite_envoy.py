"""The same key to the same backend by a proxy and without one: Envoy, which sends what grpc-go gives it through clusters of maglev and of
ring_hash, and Torc, which has the same clusters by xDS."""
import contextlib
import dataclasses
import json
import pathlib
import tempfile
import time
import urllib.request

import build_peers
import meshes
import ring_model
from programs import WAIT, Backends, ControlPlane, Failure, Program, bootstrap

# Kinds of meshes.py whose requests hash alike. (Envoy sorts and chains a header's several values, and knows nothing of endpoints that
# refuse connections until it has tried.)
KINDS = ("plain", "weighted", "localities", "istio", "hash_key", "policies")
HTTP2 = {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
    "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions", "explicit_http_config": {"http2_protocol_options": {}}}}
TABLES = (251, 1021, 65537)


def cluster_of(mesh, number):
    """Half of the meshes are Maglev's, and half of these go by the localities' weights, as all rings of gRPC do."""
    fields = {"common_lb_config": {"locality_weighted_lb_config": {}}}
    if number % 2:
        if number % 4 == 3:
            fields = {}
        return {"lb_policy": "MAGLEV", "maglev_lb_config": {"table_size": TABLES[number % len(TABLES)]}, **fields}
    return {"lb_policy": "RING_HASH", "ring_hash_lb_config": {"minimum_ring_size": mesh["min_ring_size"], "maximum_ring_size": mesh["max_ring_size"]}, **fields}


def make(count, seed, places):
    made = []
    for number in range(count):
        mesh = meshes.make(number, seed, places, KINDS[number // 4 % len(KINDS)])
        # Torc's cap on rings.
        mesh["min_ring_size"], mesh["max_ring_size"] = min(mesh["min_ring_size"], 4096), min(mesh["max_ring_size"], 4096)
        made.append((mesh, cluster_of(mesh, number)))
    return made


def torc_resources(mesh, cluster):
    resources = meshes.resources(mesh)
    for resource in resources:
        if resource["@type"].endswith(".Cluster"):
            resource.pop("ring_hash_lb_config")
            resource.update(cluster)
    return resources


def envoy_config(made):
    """The clusters as they are for Torc, their endpoints in them; a route for each, by the header x-mesh."""
    clusters, routes = [], []
    for mesh, cluster in made:
        _, _, _, assignment = meshes.resources(mesh)
        clusters.append({"name": mesh["name"], "type": "STATIC", "typed_extension_protocol_options": HTTP2, **cluster,
                         "load_assignment": {k: v for k, v in assignment.items() if k != "@type"}})
        routes.append({"match": {"prefix": "/", "headers": [{"name": "x-mesh", "string_match": {"exact": mesh["name"]}}]},
                       "route": {"cluster": mesh["name"], "timeout": "0s", "hash_policy": [meshes.hash_policy(p) for p in mesh["policies"]]}})
    manager = {"@type": meshes.HCM, "stat_prefix": "in", "codec_type": "HTTP2",
               "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
               "http_filters": [{"name": "router", "typed_config": {"@type": meshes.ROUTER}}]}
    here = {"socket_address": {"address": "127.0.0.1", "port_value": 0}}
    return {"admin": {"address": here}, "static_resources": {"clusters": clusters, "listeners": [{
        "name": "in", "address": here, "filter_chains": [{"filters": [{"name": "manager", "typed_config": manager}]}]}]}}


@contextlib.contextmanager
def envoy_of(paths, config, folder):
    """Yields the address that Envoy listens on, all on the loopback."""
    files = {name: pathlib.Path(folder) / name for name in ("envoy.json", "admin")}
    files["envoy.json"].write_text(json.dumps(config), encoding="utf-8")
    with Program([paths.envoy()[0], "-c", files["envoy.json"], "--admin-address-path", files["admin"], "--concurrency", "1", "--disable-hot-restart",
                  "--log-level", "error"], errors=True) as process:
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            if process.process.poll() is not None:
                raise Failure(f"envoy ended: {process.line()}")
            try:
                with urllib.request.urlopen(f"http://{files['admin'].read_text(encoding='ascii')}/listeners?format=json", timeout=5) as answer:
                    [listening] = json.load(answer)["listener_statuses"]
                    break
            except (OSError, KeyError, ValueError):
                time.sleep(0.05)  # the admin interface tells when it is there, nobody else does
        else:
            raise Failure("envoy does not listen")
        address = listening["local_address"]["socket_address"]
        yield f"{address['address']}:{address['port_value']}"


def rounding_explains(mesh, cluster, calls, by_torc, by_envoy):
    """Both are as their texts say, and these differ in the rounding of weights."""
    return (cluster["lb_policy"] == "RING_HASH" and by_envoy == ring_model.predict(mesh, calls, ring_model.ENVOY) and
            by_torc == ring_model.predict(mesh, calls, dataclasses.replace(ring_model.TORC, normalised=True)))


def picks_of(client, order):
    return client.ask(order, wait=WAIT)["peers"]


def compare(paths, options):
    """(meshes, a note, faults): the first picks that differ without a reason, of each mesh where any do."""
    faults, picks, explained = [], 0, 0
    with Backends(paths) as pool, ControlPlane(paths) as plane, tempfile.TemporaryDirectory() as folder:
        made = make(max(options.meshes, 4 * len(KINDS)), options.seed, json.loads(pool.line()))
        plane.order("set", version="1", resources=[r for mesh, cluster in made for r in torc_resources(mesh, cluster)])
        path = pathlib.Path(folder) / "bootstrap.json"
        path.write_text(bootstrap(plane.address), encoding="utf-8")
        command, env = paths.go("agree")
        with envoy_of(paths, envoy_config(made), folder) as address, Program(command, env) as go, \
                Program([paths.own("interop_agree")], {"GRPC_XDS_BOOTSTRAP": str(path)}) as torc:
            go.line(), torc.line()  # their versions
            for mesh, cluster in made:
                calls = meshes.random_calls(mesh, options.keys)
                by_torc = picks_of(torc, {"target": f"xds:///{mesh['name']}", "calls": calls})
                by_envoy = picks_of(go, {"target": f"passthrough:///{address}", "calls": [[["x-mesh", mesh["name"]], *headers] for headers in calls]})
                different = [i for i, (a, b) in enumerate(zip(by_torc, by_envoy)) if a != b]
                picks += len(calls)
                if different and rounding_explains(mesh, cluster, calls, by_torc, by_envoy):
                    explained += len(different)
                elif different:
                    i = different[0]
                    faults.append(f"{mesh['name']}, {json.dumps(cluster)}: {len(different)} of {len(calls)}, the first: headers {calls[i]}: "
                                  f"Torc {by_torc[i]}, Envoy {by_envoy[i]}")
            torc.finish()
    note = f"{picks} picks, {picks - explained} as Torc's; {explained} of rings differ, as A113 rounds weights to 31 bits"
    return len(made), note, faults


def run(paths, options):
    if options.peers and "envoy" not in options.peers:
        return
    try:
        version = paths.envoy()[1]
    except build_peers.Missing as missing:
        yield {"peer": "Envoy", "version": "", "skipped": 1, "why": [str(missing)]}
        return
    cases, note, faults = compare(paths, options)
    yield {"peer": "Envoy", "version": version, "cases": cases, "passed": cases - len(faults), "failed": len(faults), "why": faults[:10], "notes": [note]}
