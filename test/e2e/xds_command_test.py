"""torc xds, and what serve-xds does beside serving: --strict, a set for one node, files that change, load reports."""
import json
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import (WAIT, bootstrap, calls, check, cluster, endpoints, free_address, listener, main, routes, run, running,
                         with_time, write_resources)
from support.proxy import proxy_to

TYPES = ["Listener", "RouteConfiguration", "Cluster", "ClusterLoadAssignment"]
ROUTE = {"match": {"prefix": ""}, "route": {"cluster": "orders"}}
WRAPPER = "type.googleapis.com/envoy.service.discovery.v3.Resource"


def mesh(*addresses, **fields):
    return [listener("orders", "orders-routes"), routes("orders-routes", ROUTE), cluster("orders", **fields),
            endpoints("orders", *addresses)]


def short(config):
    return config["typeUrl"].rsplit(".", 1)[1]


def xds_json(control_plane, *args, status=0):
    done = run("xds", "xds:///orders", "-o", "json", *args, env=bootstrap(control_plane), status=status)
    lines = done.stdout.splitlines()
    check(len(lines) == 1, f"one line: {lines}")
    return json.loads(lines[0]), done.stderr


def serve(*args, listen="127.0.0.1:0", **options):
    return running("serve-xds", "--listen", listen, "--log", "json", *args, **options)


def test_every_resource_with_its_state():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "mesh.json")
        write_resources(path, "7", *mesh("127.0.0.1:10001"))
        with serve("--resources", path) as server:
            at = server.listening()
            config, _ = xds_json(at)
            check(config["clientScope"] == "xds:///orders", "client_scope is the target")
            check(config["node"]["id"] == "test-node", "the node of the bootstrap")
            listed = config["genericXdsConfigs"]
            check([short(c) for c in listed] == TYPES, f"in the order in which they lead on: {listed}")
            check(all(c["clientStatus"] == "ACKED" and c["versionInfo"] == "7" and "lastUpdated" in c for c in listed),
                  f"all ACKED: {listed}")
            check(listed[3]["xdsConfig"]["endpoints"][0]["lbEndpoints"][0]["endpoint"]["address"]["socketAddress"] ==
                  {"address": "127.0.0.1", "portValue": 10001}, "content as received")
            text = run("xds", "xds:///orders", env=bootstrap(at)).stdout
            table = text.split("\n\n")[0].splitlines()
            check([line.split()[:2] for line in table[1:]] == [["ACKED", t] for t in TYPES], text)
            check('"portValue": 10001' in text, "content below the table")
            check("\033" not in text, "no colour into a pipe")


def test_an_authority_whose_client_is_shared():
    """The top level has two servers, so that its resources are of this target alone; the authority has one server."""
    def name(kind, last):
        return f"xdstp://other/envoy.config.{kind}/{last}"
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "mesh.json")
        route = {"match": {"prefix": ""}, "route": {"cluster": name("cluster.v3.Cluster", "c")}}
        write_resources(path, "7", listener(name("listener.v3.Listener", "orders"), name("route.v3.RouteConfiguration", "r")),
                        routes(name("route.v3.RouteConfiguration", "r"), route),
                        cluster(name("cluster.v3.Cluster", "c"), eds_cluster_config={
                            "eds_config": {"ads": {}}, "service_name": name("endpoint.v3.ClusterLoadAssignment", "e")}),
                        endpoints(name("endpoint.v3.ClusterLoadAssignment", "e"), "127.0.0.1:10001"))
        with serve("--resources", path) as server:
            at = {"server_uri": server.listening(), "channel_creds": [{"type": "insecure"}]}
            env = {"GRPC_XDS_BOOTSTRAP": "", "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps({
                "xds_servers": [at, {**at, "server_uri": free_address()}], "authorities": {"other": {"xds_servers": [at]}}, "node": {"id": "n"}})}
            listed = json.loads(run("xds", "xds://other/orders", "-o", "json", env=env).stdout)["genericXdsConfigs"]
            check([short(c) for c in listed] == TYPES and all(c["clientStatus"] == "ACKED" for c in listed), f"{listed}")


def test_what_does_not_resolve():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "mesh.json")
        write_resources(path, "1", *mesh("127.0.0.1:10001")[1:])
        with serve("--resources", path) as server:
            at = server.listening()
            config, errors = xds_json(at, status=1)
            check([c["clientStatus"] for c in config["genericXdsConfigs"]] == ["DOES_NOT_EXIST"], str(config))
            check("does not exist" in errors and len(errors.splitlines()) == 1, errors)
            resources = mesh("127.0.0.1:10001")
            resources[0]["api_listener"]["api_listener"]["http_filters"] = []
            write_resources(path, "2", *resources)
            deadline = time.monotonic() + WAIT
            while config["genericXdsConfigs"][0]["clientStatus"] == "DOES_NOT_EXIST":  # the file was not read again yet
                check(time.monotonic() < deadline, "the change arrives")
                config, errors = xds_json(at, status=1)
            state = config["genericXdsConfigs"][0]
            check(state["clientStatus"] == "NACKED" and state["errorState"]["versionInfo"] == "2", str(state))
            check(state["errorState"]["details"] in errors or "http_filters" in errors, errors)
            check("http_filters" in state["errorState"]["details"], str(state))
    def unanswered(at, seconds):
        return run("xds", "--timeout", f"{seconds}s", "xds:///orders", env=bootstrap(at), status=1)

    done = with_time(lambda seconds: unanswered("127.0.0.1:1", seconds), lambda done: "127.0.0.1:1" in done.stderr)
    check(done.stdout.splitlines()[1].startswith("REQUESTED"), f"the server is named: {done}")
    with proxy_to("127.0.0.1:1") as proxy:
        proxy.silence()
        seconds, done = with_time(lambda seconds: (seconds, unanswered(proxy.address, seconds)),
                                  lambda got: "waiting for" in got[1].stderr)
        check(f'did not resolve within {seconds:.1f} s, waiting for Listener "orders"' in done.stderr,
              f"what did not come is named: {done.stderr}")


def test_wrong_usage():
    for args in ([], ["orders"], ["dns:///a:1"], ["xds:///a", "xds:///b"], ["xds:///a", "--timeout", "x"],
                 ["xds:///a", "-o", "xml"], ["xds:///a", "--nonsense"]):
        done = run("xds", *args, status=2)
        check(len(done.stderr.strip().splitlines()) == 1, f"one line for {args}: {done.stderr}")
    for target in ("xds:///a%ff", os.fsdecode(b"xds:///a\xff"), os.fsdecode(b"xds://\xff/a")):
        done = run("xds", target, "-o", "json", status=2)
        check('": it is not UTF-8' in done.stderr and done.stdout == "", f"{target!r}: {done}")
    done = run("xds", "xds:///a", env={"GRPC_XDS_BOOTSTRAP": "", "GRPC_XDS_BOOTSTRAP_CONFIG": ""}, status=1)
    check("GRPC_XDS_BOOTSTRAP" in done.stderr, done.stderr)
    check("xds" in run("--help").stdout and "--watch" in run("xds", "--help").stdout, "help")


class Watch:
    """torc xds --watch, and what it last said of each resource."""

    def __init__(self, process):
        self.process = process
        self.seen = {}

    def until(self, type_name, name, **wanted):
        """Waits until these fields of the resource are so; clientStatus=None: it is gone."""
        def look(line):
            for config in json.loads(line)["genericXdsConfigs"]:
                self.seen[short(config), config["name"]] = config
            found = self.seen.get((type_name, name))
            return found is not None and all(found.get(key) == value for key, value in wanted.items())

        found = self.seen.get((type_name, name))
        if found is None or any(found.get(key) != value for key, value in wanted.items()):
            self.process.wait_line(look)
        return self.seen[type_name, name]


def watching(at, node="test-node"):
    env = bootstrap(at)
    env["GRPC_XDS_BOOTSTRAP_CONFIG"] = env["GRPC_XDS_BOOTSTRAP_CONFIG"].replace("test-node", node)
    return running("xds", "--watch", "-o", "json", "xds:///orders", env=env)


def test_watch_and_files_that_change():
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as other_directory:
        path, other = os.path.join(directory, "mesh.json"), os.path.join(other_directory, "probe.json")
        write_resources(path, "1", *mesh("127.0.0.1:10001"))
        write_resources(other, "p1", *mesh("127.0.0.1:10009"))
        with serve("--resources", directory, "--node-id", f"probe={other}") as server:
            at = server.listening()
            with watching(at) as process, watching(at, "probe") as probe_process:
                watch, probe = Watch(process), Watch(probe_process)
                watch.until(TYPES[3], "orders", clientStatus="ACKED")
                write_resources(path, "2", *mesh("127.0.0.1:10001", "127.0.0.1:10002"))
                changed = watch.until(TYPES[3], "orders", versionInfo="2")
                check(len(changed["xdsConfig"]["endpoints"][0]["lbEndpoints"]) == 2, "the new endpoint")
                # A file that does not parse; that it was read is known by a change that comes after it.
                with open(path + ".new", "w", encoding="utf-8") as out:
                    out.write("resources: [{")
                os.replace(path + ".new", path)
                write_resources(other, "p2", *mesh("127.0.0.1:10008"))
                probe.until(TYPES[3], "orders", versionInfo="p2")
                config, _ = xds_json(at)
                check(config["genericXdsConfigs"][3]["versionInfo"] == "2", "the last good content stays in use")
                write_resources(path, "3", *mesh("127.0.0.1:10003", lb_policy="RANDOM"))
                nacked = watch.until("Cluster", "orders", clientStatus="NACKED")
                check(nacked["errorState"]["versionInfo"] == "3", str(nacked))
                check(nacked["versionInfo"] == "1" and "xdsConfig" in nacked, "the last good value stays in use")
                users = routes("orders-routes", {"match": {"prefix": ""}, "route": {"cluster": "users"}})
                write_resources(path, "4", mesh("127.0.0.1:1")[0], users, cluster("users"),
                                endpoints("users", "127.0.0.1:10004"))
                watch.until(TYPES[3], "users", clientStatus="ACKED")
                watch.until(TYPES[3], "orders", clientStatus=None)
                check(process.stop() == 0, "interrupted is done")


def test_watch_tells_of_a_control_plane_that_goes():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "mesh.json")
        write_resources(path, "1", *mesh("127.0.0.1:10001"))
        with serve("--resources", path, listen=free_address()) as server:
            at = server.listening()
            with running("xds", "--watch", "xds:///orders", env=bootstrap(at)) as watch:
                watch.wait_line(lambda line: line.endswith("xds:///orders resolved"))
                check(any(" ACKED Cluster orders version 1" in line for line in watch.seen), str(watch.seen))
                server.stop()
                gone = watch.wait_line(lambda line: "control plane trouble" in line)
                check(at in gone, f"the server is named: {gone}")
                with running("serve-xds", "--listen", at, "--resources", path) as again:
                    again.listening()
                    watch.wait_line(lambda line: "control plane is there again" in line)
                    write_resources(path, "2", *mesh("127.0.0.1:10002"))
                    changed = watch.wait_line(lambda line: " ACKED " in line)
                    check(" ACKED ClusterLoadAssignment orders version 2" in changed, "what did not change is not told")
                    check(watch.stop() == 0, "interrupted is done")


def test_strict():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "mesh.json")
        bad = mesh("127.0.0.1:10001", lb_policy="RANDOM")
        write_resources(path, "1", *bad)
        done = run("serve-xds", "--strict", "--listen", "127.0.0.1:0", "--resources", path, status=1)
        for part in (path, "resources[2]", 'Cluster "orders"', "lb_policy"):
            check(part in done.stderr, f"{part} is named: {done.stderr}")
        write_resources(path, "1", {"@type": "type.googleapis.com/google.protobuf.Duration", "name": "x", "value": "1s"})
        run("serve-xds", "--strict", "--listen", "127.0.0.1:0", "--resources", path, status=1)
        other = os.path.join(directory, "probe.json")
        write_resources(path, "1", *mesh("127.0.0.1:10001"))
        for env in ({"GRPC_XDS_BOOTSTRAP": "no/such.json"}, {"GRPC_XDS_BOOTSTRAP": "", "GRPC_XDS_BOOTSTRAP_CONFIG": "{"}):
            variable = list(env)[-1]
            done = run("serve-xds", "--strict", "--listen", "127.0.0.1:0", "--resources", path, status=1, env=env)
            check(f"(--strict reads certificate providers from it; unset {variable} if the resources name none)\n" in done.stderr, done.stderr)
        provider = {"instance_name": "mesh"}
        context = {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "common_tls_context": {
            "validation_context": {"ca_certificate_provider_instance": provider}}}
        write_resources(other, "1", *mesh("127.0.0.1:10001", transport_socket={"name": "envoy.transport_sockets.tls", "typed_config": context}))
        done = run("serve-xds", "--strict", "--listen", "127.0.0.1:0", "--resources", other, status=1)
        check('unrecognized certificate provider instance name "mesh"' in done.stderr and
              "(--strict reads certificate providers from the bootstrap that GRPC_XDS_BOOTSTRAP names)" in done.stderr, done.stderr)
        providers = {"mesh": {"plugin_name": "file_watcher", "config": {"ca_certificate_file": "/roots.pem"}}}
        env = {"GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps({"xds_servers": [{"server_uri": "x:1", "channel_creds": [{"type": "insecure"}]}],
                                                        "node": {"id": "n"}, "certificate_providers": providers})}
        with serve("--strict", "--resources", other, env=env) as server:
            server.listening()
        write_resources(other, "p1", *mesh("127.0.0.1:10009"))
        with serve("--strict", "--resources", path, "--node-id", f"probe={other}", log=True) as server:
            at = server.listening()
            with watching(at, "probe") as process:
                probe = Watch(process)
                probe.until(TYPES[3], "orders", versionInfo="p1")
                write_resources(path, "2", *bad)
                write_resources(other, "p2", *mesh("127.0.0.1:10008"))
                probe.until(TYPES[3], "orders", versionInfo="p2")
                config, _ = xds_json(at)
                check([c["versionInfo"] for c in config["genericXdsConfigs"]] == ["1"] * 4, "the last good content")
                write_resources(path, "3", *mesh("127.0.0.1:10002"))
                write_resources(other, "p3", *mesh("127.0.0.1:10007"))
                probe.until(TYPES[3], "orders", versionInfo="p3")
                config, _ = xds_json(at)
                check(config["genericXdsConfigs"][3]["versionInfo"] == "3", "and then the next good one")
        server.stop()
        said = [line for line in server.seen_log + list(server.log_lines.queue) if line and line.startswith("torc serve-xds: the")]
        check(said == ["torc serve-xds: the last good content stays in use"] * (len(said) - 1) +
              ["torc serve-xds: the files are good again, and in use"] and len(said) > 1, str(said))


def test_names_that_no_file_has():
    """--strict warns once of each name of a resource that is not in the set, but for another authority's, and of localities that clients leave
    out; it serves the set."""
    def said(*resources):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "mesh.json")
            write_resources(path, "1", *resources)
            with serve("--strict", "--resources", path, log=True) as server:
                server.listening()
                server.stop()
                return server.seen_log + [line for line in server.log_lines.queue if line]

    def warning(of, missing):
        return f"torc serve-xds: warning: {of} names the {missing}, which is not in the files"

    def split(*names):
        clusters = [{"name": name, "weight": 1} for name in names]
        return routes("r", ROUTE, {"match": {"prefix": "/a"}, "route": {"weighted_clusters": {"clusters": clusters}}})

    def without_weight(assignment):
        (locality,) = assignment["endpoints"]
        return {**assignment, "endpoints": [locality, {"locality": {"region": "s"}, "lb_endpoints": locality["lb_endpoints"]}]}

    whole = mesh("127.0.0.1:1")
    for resources, warnings in (
            (whole, []),
            ([listener("orders", "r"), *whole[1:]], [warning('Listener "orders"', 'RouteConfiguration "r"')]),
            ([split("orders", "a"), split("a", "orders") | {"name": "s"}, *whole[2:]], [warning('RouteConfiguration "r"', 'Cluster "a"')]),
            (whole[:2], [warning('RouteConfiguration "orders-routes"', 'Cluster "orders"')]),
            (whole[:3], [warning('Cluster "orders"', 'ClusterLoadAssignment "orders"')]),
            ([*whole[:3], without_weight(whole[3])],
             ['torc serve-xds: warning: ClusterLoadAssignment "orders": clients leave out 1 of its localities, for want of load_balancing_weight']),
            ([listener("orders", "xdstp://other/envoy.config.route.v3.RouteConfiguration/r"), *whole[2:]], [])):
        got = said(*resources)
        check(got == warnings, f"{got}, wanted {warnings}")


def test_a_set_for_one_node():
    with tempfile.TemporaryDirectory() as directory:
        paths = [os.path.join(directory, name) for name in ("all.json", "canary.json")]
        write_resources(paths[0], "a", *mesh("127.0.0.1:10001"))
        write_resources(paths[1], "c", *mesh("127.0.0.1:10002"))
        with serve("--resources", paths[0], "--node-id", f"canary={paths[1]}") as server:
            at = server.listening()
            env = bootstrap(at)
            config, _ = xds_json(at)
            check(config["genericXdsConfigs"][0]["versionInfo"] == "a", "any node")
            env["GRPC_XDS_BOOTSTRAP_CONFIG"] = env["GRPC_XDS_BOOTSTRAP_CONFIG"].replace("test-node", "canary")
            config = json.loads(run("xds", "-o", "json", "xds:///orders", env=env).stdout)
            check([c["versionInfo"] for c in config["genericXdsConfigs"]] == ["c"] * 4, "the node with a set of its own")


def test_wrapped_resources():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "mesh.json")
        wrapped = [{"@type": WRAPPER, "name": r.get("name", r.get("cluster_name")), "resource": r}
                   for r in mesh("127.0.0.1:10001")]
        write_resources(path, "9", *wrapped)
        with serve("--resources", path, "--strict") as server:
            config, _ = xds_json(server.listening())
            check([c["versionInfo"] for c in config["genericXdsConfigs"]] == ["9"] * 4, str(config))


def field(number, content):
    """A length-delimited field of a protobuf message that is shorter than 128 bytes."""
    content = content.encode() if isinstance(content, str) else content
    check(len(content) < 128, "one byte of length")
    return bytes([number << 3 | 2, len(content)]) + content


def ask(at, method, message):
    """One request and one answer of any service; half-closing ends a stream."""
    done, _ = calls(at, method, "--data-hex", message.hex())
    return bytes.fromhex(done[0]["response_hex"])


def test_incremental_load_reports_and_client_status():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "mesh.json")
        write_resources(path, "1", *mesh("127.0.0.1:10001"))
        with serve("--resources", path, "--lrs-interval", "3s", "--lrs-cluster", "orders") as server:
            at = server.listening()
            node = field(1, field(1, "d1"))
            url = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
            answer = ask(at, "envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
                         node + field(2, url) + field(3, "orders") + field(3, "nix"))
            check(answer.startswith(field(1, "1")) and field(6, "nix") in answer and url.encode() in answer,
                  "orders is sent, nix is removed")
            line = json.loads(server.wait_line(lambda line: '"d1"' in line))
            check(line == {"ads": {"node": "d1", "type": url, "version": "", "nonce": "", "names": ["orders", "nix"],
                                   "error": None, "delta": True, "unsubscribed": [], "initial_versions": 0,
                                   "stream": 1}}, str(line))
            answer = ask(at, "envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats",
                         node + field(2, field(1, "orders") + b"\x18\x05"))
            check(answer == field(1, "orders") + field(2, b"\x08\x03"), f"what to report, every 3 s: {answer}")
            line = json.loads(server.wait_line(lambda line: '"lrs"' in line))
            check(line == {"lrs": {"node": "d1", "stream": 1, "cluster_stats": [
                {"cluster_name": "orders", "total_dropped_requests": "5"}]}}, str(line))
            fetch = "envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus"
            check(ask(at, fetch, b"") == b"", "nobody is connected")
            with watching(at) as process:
                Watch(process).until(TYPES[3], "orders", clientStatus="ACKED")
                acked = set()
                while len(acked) < len(TYPES):
                    ads = json.loads(server.wait_line(lambda line: '"ads"' in line and '"version":"1"' in line))["ads"]
                    acked.add(ads["type"])
                answer = ask(at, fetch, b"")
                check(b"test-node" in answer and b"orders-routes" in answer, "what the client has")
                acked = field(2, "orders") + field(3, "1")
                check(acked in answer and answer.count(b"\x30\x01\x38\x03") == 4, "four are SYNCED and ACKED")


main(test_every_resource_with_its_state, test_an_authority_whose_client_is_shared, test_what_does_not_resolve, test_wrong_usage,
     test_watch_and_files_that_change, test_watch_tells_of_a_control_plane_that_goes, test_strict,
     test_names_that_no_file_has, test_a_set_for_one_node, test_wrapped_resources, test_incremental_load_reports_and_client_status)
