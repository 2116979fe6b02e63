"""torc bootstrap: what it writes passes its own check and serves torc call; --check finds each fault by its path, and what is ignored."""
import json
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import calls, check, cluster, endpoints, listener, main, routes, run, running, write_resources

POD = {"INSTANCE_IP": "10.1.2.3", "POD_NAME": "shop-7", "POD_NAMESPACE": "prod"}
GOOD = {"xds_servers": [{"server_uri": "127.0.0.1:1", "channel_creds": [{"type": "insecure"}]}], "node": {"id": "n1"}}


def written(*args, env=None):
    text = run("bootstrap", *args, env=env).stdout
    checked = checked_text(text)
    check(checked["ok"] and not checked["faults"], f"{args}: {checked}")
    check(all("cannot be read here" in warning["text"] for warning in checked["warnings"]), f"{args}: {checked}")
    return json.loads(text)


def checked_text(text, status=0):
    return json.loads(run("bootstrap", "--check", "-", "-o", "json", stdin=text, status=status).stdout)["bootstrap"]


def findings(value, status=1):
    text = value if isinstance(value, str) else json.dumps(value)
    found = checked_text(text, status)
    check(found["ok"] == (status == 0) == (not found["faults"]), str(found))
    return [{one["path"]: one["text"] for one in found[kind]} for kind in ("faults", "warnings")]


def test_what_is_written():
    own = written("--server", "127.0.0.1:18000", "--server", "unix:/run/second", "--node-id", "n1", "--node-cluster", "shop", "--locality", "eu/a/7",
                  "--metadata", "app=shop", "--metadata", "x=a=b", "--feature", "fail_on_data_errors", "--ca", "/etc/ca.pem")
    creds = [{"type": "tls", "config": {"ca_certificate_file": "/etc/ca.pem"}}]
    check(own == {"xds_servers": [{"server_uri": uri, "channel_creds": creds, "server_features": ["fail_on_data_errors"]}
                                  for uri in ("127.0.0.1:18000", "unix:/run/second")],
                  "node": {"id": "n1", "cluster": "shop", "locality": {"region": "eu", "zone": "a", "sub_zone": "7"},
                           "metadata": {"app": "shop", "x": "a=b"}}}, str(own))
    check(written("--server", "a:1")["node"]["id"] == os.uname().nodename, "the machine's name")
    istio = written("--istio", env=POD)
    check(istio["node"] == {"id": "sidecar~10.1.2.3~shop-7.prod~prod.svc.cluster.local", "metadata": {"GENERATOR": "grpc"}}, str(istio))
    check(istio["xds_servers"][0]["server_uri"] == "unix:///etc/istio/proxy/XDS" and "default" in istio["certificate_providers"], str(istio))
    gke = [written("--gke", "--project", "12345", "--network", network)["node"] for network in ("default", "mesh:shop")]
    check(gke[1]["id"].startswith("projects/12345/networks/mesh:shop/nodes/") and gke[0]["id"] != gke[1]["id"], str(gke))
    check(gke[0]["metadata"] == {"TRAFFICDIRECTOR_GCP_PROJECT_NUMBER": "12345", "TRAFFICDIRECTOR_NETWORK_NAME": "default"}, str(gke))


def test_what_cannot_be_written():
    for args, says in (((), "give --server, --istio or --gke, or --check FILE"), (("--server", ""), "no channel would take it: xds_servers[0].server_uri: must not"),
                       (("--server", "xds:///a"), "a control plane is not found by xDS itself"), (("--server", "x:y:z://"), "server_uri"),
                       (("--server", "a:1\n"), "control character"), (("--server", "a:1", "--creds", "xds"), "--creds: unknown type 'xds'"),
                       (("--server", "a:1", "--cert", "/c"), "--cert and --key go together"), (("--server", "a:1", "--ca", ""), "'--ca' has an empty value"),
                       (("--server", "a:1", "--creds", "insecure", "--ca", "/c"), "--creds tls"), (("--server", "a:1", "--metadata", "x"), "NAME=VALUE"),
                       (("--server", "a:1", "--locality", "a/b/c/d"), "REGION[/ZONE[/SUB_ZONE]]"),
                       (("--istio",), "the environment has no INSTANCE_IP"), (("--gke",), "--gke needs --project"),
                       (("--gke", "--project", "shop"), "--project: 'shop' is not a number"), (("--gke", "--istio", "--project", "1"), "contradict"),
                       (("--server", "a:1", "--project", "1"), "go with --gke"), (("--server", "a:1", "-o", "json"), "-o goes with --check"),
                       (("--server", "a:1", "more"), "unexpected argument 'more'"), (("--check", "x", "--istio"), "--check goes with -o alone"),
                       (("--server", "a:1", "--node-id", "\udcff"), "not UTF-8"), (["--server", "a:1"] + ["--server", "a:1"] * 32, "has 33 entries"),
                       (("--nope",), "unknown option '--nope'"), (("--check",), "needs a value")):
        done = run("bootstrap", *args, env={name: "" for name in POD}, status=2)
        check(says in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, f"{args}: {done}")
    for name in POD:
        done = run("bootstrap", "--istio", env={**POD, name: "a\udcff"}, status=2)
        check(f"--istio: {name} is not UTF-8" in done.stderr and not done.stdout, str(done))
    warned = run("bootstrap", "--server", "a:1", "--feature", "fail_on_data_error")
    check('"fail_on_data_error" is not a server feature' in warned.stderr and json.loads(warned.stdout), str(warned))


def test_every_fault():
    faults, warnings = findings({
        "xds_servers": [{"server_uri": "nix://a/b", "channel_creds": [{"type": "tls", "config": {"certificate_file": "/none", "refresh_interval": "y"}}],
                         "server_features": ["xds_v3", "foo"]},
                        {"server_url": "a", "channel_creds": []}, {"server_uri": 5, "channel_creds": [{"type": "nix"}, {"config": {}}]}],
        "node": {"idd": "x", "locality": {"zonne": "z"}, "id": 5},
        "authorities": {"a": {"xds_servers": [{"server_uri": "xds:///x"}], "client_listener_resource_name_template": "x"}, "b": 3},
        "certificate_providers": {"default": {"plugin_name": "file_watcher", "config": {"certificate_file": "/none"}}, "b": {}, "c": []},
        "torc.limits": {"foo": 1, "routes": -1}, "client_default_listener_resource_name_template": {}, "more": 1})
    wanted = {"xds_servers[0].server_uri": "nix://", "xds_servers[0].channel_creds[0].config.refresh_interval": "not a duration",
              "xds_servers[0].channel_creds[0].config": "both be set", "xds_servers[1].server_uri": "missing",
              "xds_servers[1].channel_creds": "must not be empty", "xds_servers[2].server_uri": "must be a string",
              "xds_servers[2].channel_creds[1].type": "missing", "node.id": "must be a string",
              'authorities["a"].xds_servers[0].server_uri': "not found by xDS itself",
              'authorities["a"].client_listener_resource_name_template': 'must start with "xdstp://a/"', 'authorities["b"]': "must be an object",
              'certificate_providers["default"].config': "both be set", 'certificate_providers["b"].plugin_name': "not present",
              'certificate_providers["c"]': "must be an object", 'torc.limits["foo"]': "unknown limit", "torc.limits.routes": "1..",
              "client_default_listener_resource_name_template": "must be a string"}
    check(set(faults) == set(wanted) and all(text in faults[path] for path, text in wanted.items()), f"{faults}")
    wanted = {"xds_servers[0].channel_creds[0].config.certificate_file": "cannot be read here", "xds_servers[0].server_features[1]": '"foo" is not',
              "xds_servers[1].server_url": "ignored", "node.idd": "ignored", "node.locality.zonne": "ignored",
              'certificate_providers["default"].config.certificate_file': "cannot be read here", "more": "ignored"}
    check(set(warnings) == set(wanted) and all(text in warnings[path] for path, text in wanted.items()), f"{warnings}")


def test_texts():
    for text, says in (("", "not JSON"), ("{", "not JSON: line 1"), ("[]", "must be a JSON object"), ("{}", "must have at least one entry"), ("\0", "NUL"),
                       ('{"node":1,"node":2}', "duplicate"), ("[" * 100000, "not JSON"), ('{"xds_servers":null}', "must have at least one entry"),
                       (json.dumps({"xds_servers": [{}] * 5000}), "has 5000 entries, at most 32")):
        faults, _ = findings(text)
        check(any(says in text for text in faults.values()), f"{text[:50]!r}: {faults}")
    done = run("bootstrap", "--check", "-", stdin=json.dumps({**GOOD, **{f"member{i}{'x' * 50}": i for i in range(50000)}}))
    check(done.stdout.count("\n") == 50001, f"{done.stdout.count(chr(10))} lines")
    faults, _ = findings({**GOOD, "authorities": {f"a{i}": 1 for i in range(5000)}})
    check(len(faults) == 5000, f"{len(faults)} faults")
    done = run("bootstrap", "--check", "-", stdin=json.dumps({**GOOD, **{f"m{i}{'x' * 1000}": i for i in range(20000)}}))
    lines = done.stdout.splitlines()
    more = int(lines[-2].split()[4])
    check(lines[-2].endswith(" more, beyond 16 MiB of text") and len(lines) - 2 + more == 20000 and len(done.stdout) < 18 << 20, lines[-2])
    text = run("bootstrap", "--check", "-", stdin=json.dumps(GOOD)).stdout
    check(text == 'standard input: good: 1 server, the first 127.0.0.1:1 (insecure), node "n1"\n', text)
    node = {"id": "n", "userAgentName": "a", "userAgentVersion": "b", "clientFeatures": [], "locality": {"subZone": "c"}}
    check(findings({**GOOD, "node": node}, 0) == [{}, {}], "names in camel case")
    _, warnings = findings({"xds_servers": [{"server_uri": "xds:a"}, {"server_uri": "a:1"}]}, 0)
    check(warnings["xds_servers[0].server_uri"].endswith("the server counts as down"), str(warnings))
    shown = run("bootstrap", "--check", "-", stdin=json.dumps({**GOOD, "a\x1b[2J\n": 1})).stdout
    check('["a\\u001b[2J\\u000a"]: not known' in shown and "\x1b" not in shown, shown)
    with tempfile.TemporaryDirectory() as folder:
        for path, says in ((folder, "it is a directory"), (os.path.join(folder, "none"), "No such file"), ("/dev/zero", "not a regular file"), ("", "empty")):
            done = run("bootstrap", "--check", path, status=None)
            check(done.returncode in (1, 2) and says in done.stderr and done.stderr.count("\n") == 1, str(done))


def test_names_that_look_like_findings():
    """Whatever a member is called, it is one finding at one path, on one line."""
    names = ("a: b", "x; field node.id: missing", 'a"].node["id', "a\nstandard input: fault: node.id: missing", "\\", "a.b", "")
    wanted = {f"[{json.dumps(name)}]".replace("\\n", "\\u000a") for name in names}
    _, warnings = findings({**GOOD, **{name: 1 for name in names}}, 0)
    check(set(warnings) == wanted, f"{set(warnings)}, wanted {wanted}")
    faults, warnings = findings({**GOOD, "authorities": {name: 1 for name in names}, "certificate_providers": {name: 1 for name in names},
                                 "torc.limits": {name: 1 for name in names}})
    check(set(faults) == {f"{map_}{path}" for map_ in ("authorities", "certificate_providers", "torc.limits") for path in wanted}, str(faults))
    done = run("bootstrap", "--check", "-", stdin=json.dumps({**GOOD, **{name: 1 for name in names}}))
    check(sorted(done.stdout.splitlines()[:-1]) == sorted(f"standard input: warning: {path}: not known, and ignored" for path in wanted), done.stdout)


def mutated(chance, value):
    """A copy with some members of another type, or gone."""
    if chance.random() < 0.1:
        return chance.choice([None, True, -1, 1e300, "", "x", [], {}, ["x"], {"x": 1}, [[]], [{}]])
    if isinstance(value, dict):
        return {key if chance.random() < 0.95 else key + "x": mutated(chance, inner) for key, inner in value.items() if chance.random() < 0.95}
    return [mutated(chance, inner) for inner in value] if isinstance(value, list) else value


def test_mutated():
    """Whatever is in the file, there is an answer; and it is that of a channel."""
    chance = random.Random(7)
    start = {**GOOD, "authorities": {"a": {"xds_servers": GOOD["xds_servers"], "client_listener_resource_name_template": "xdstp://a/%s"}},
             "certificate_providers": {"d": {"plugin_name": "file_watcher", "config": {"ca_certificate_file": "/none"}}}, "torc.limits": {"routes": 5}}
    good = 0
    for _ in range(100):
        value = json.dumps(mutated(chance, start))
        checked = json.loads(run("bootstrap", "--check", "-", "-o", "json", stdin=value, status=None).stdout)["bootstrap"]
        good += checked["ok"]
        said = run("xds", "--timeout", "1ms", "xds:///a", env={"GRPC_XDS_BOOTSTRAP": "", "GRPC_XDS_BOOTSTRAP_CONFIG": value}, status=1).stderr
        check(("GRPC_XDS_BOOTSTRAP_CONFIG" in said) == (not checked["ok"]), f"{value}: {checked}, torc xds: {said}")
    check(0 < good < 100, f"{good} were good")


def test_round_trip():
    """A bootstrap that was written serves torc call on a mesh."""
    with running("backend") as backend, tempfile.TemporaryDirectory() as folder:
        mesh, file = os.path.join(folder, "mesh.json"), os.path.join(folder, "bootstrap.json")
        write_resources(mesh, "1", listener("shop", "routes"), routes("routes", {"match": {"prefix": ""}, "route": {"cluster": "orders"}}),
                        cluster("orders"), endpoints("orders", backend.listening()))
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", mesh, "--log", "json") as control:
            server = ("--server", control.listening())
            for args in (("--node-id", "n1"), ("--istio", "--node-id", "n2"), ("--gke", "--project", "1", "--node-id", "n3", "--creds", "insecure")):
                with open(file, "w", encoding="utf-8") as out:
                    out.write(run("bootstrap", *server, *args).stdout)
                run("bootstrap", "--check", file)
                env = {"GRPC_XDS_BOOTSTRAP": file, "GRPC_XDS_BOOTSTRAP_CONFIG": ""}
                (call,), _ = calls("xds:///shop", "a.B/C", env=env)
                check(call["code"] == 0, str(call))
                node = args[args.index("--node-id") + 1]
                control.wait_line(lambda line, node=node: '"ads"' in line and f'"node":"{node}"' in line)


main(test_what_is_written, test_what_cannot_be_written, test_every_fault, test_texts, test_names_that_look_like_findings, test_mutated, test_round_trip)
