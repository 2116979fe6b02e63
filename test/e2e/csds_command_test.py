"""torc call --csds: a process that makes calls and is asked for its resources meanwhile, by a client of another process; the lines of
docs/operations/xds.md that ask."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import (BUILD, LONG, SOURCE, WAIT, blocks, bootstrap, calls, check, cluster, endpoints, listener, main, routes, run,
                         running, write_resources)

FETCH = "envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus"


def mesh(address, **fields):
    return [listener("orders", "r"), routes("r", {"match": {"prefix": ""}, "route": {"cluster": "orders"}}),
            cluster("orders", **fields), endpoints("orders", address)]


def ask(address):
    """The answer's bytes, in which names and texts can be found as they are."""
    listed, _ = calls("--wait-for-ready", address, FETCH)
    return bytes.fromhex(listed[0]["response_hex"])


def ask_as_the_page(address):
    """The command of the page, in a folder as the page has it: status.proto beside Torc's proto."""
    (proto,) = blocks("docs/operations/xds.md", "proto")
    (command,) = [text for text in blocks("docs/operations/xds.md", "sh") if "FetchClientStatus" in text]
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(SOURCE, "proto"), os.path.join(folder, "proto"))
        with open(os.path.join(folder, "status.proto"), "w", encoding="ascii") as out:
            out.write(proto)
        done = subprocess.run(["sh", "-c", command.replace("127.0.0.1:50052", address)], cwd=folder, capture_output=True, text=True, timeout=WAIT,
                              env={**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"}, check=False)
    check(done.returncode == 0, str(done))
    config = json.loads(done.stdout[done.stdout.index("{"):])["config"][0]
    check(config["clientScope"] == "xds:///orders" and len(config["genericXdsConfigs"]) == 4 and
          all(resource["clientStatus"] == "ACKED" and "xdsConfig" not in resource for resource in config["genericXdsConfigs"]), str(config))


def calls_and_answers(where, path, at):
    with running("call", "-o", "json", "--wait-for-ready", "--duration", LONG, "--rps", "50", "--csds",
                 "127.0.0.1:0", "xds:///orders", "shop.Orders/Get", env=bootstrap(where), log=True) as caller:
        said = caller.wait_log("torc call: CSDS at ")
        caller.wait_line(lambda line: '"OK"' in line)
        csds = said.split()[-1]
        answer = ask(csds)
        for wanted in (b"xds:///orders", b"test-node", b"version-seven", b"envoy.config.listener.v3.Listener",
                       b"envoy.config.endpoint.v3.ClusterLoadAssignment"):
            check(wanted in answer, f"{wanted} in {answer}")
        if shutil.which("protoc"):
            ask_as_the_page(csds)
        write_resources(path, "version-eight", *mesh(at, lrs_server={"ads": {}}))
        until = time.monotonic() + WAIT
        while b"version-eight" not in answer or b"lrs_server" not in answer:  # what is wrong with the new one
            check(time.monotonic() < until, f"no word of the refused one: {answer}")
            answer = ask(csds)
        check(b"version-seven" in answer, "the last good one is in use")
        caller.wait_line(lambda line: '"OK"' in line)


def test_a_process_that_calls():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "mesh.json")
        with running("backend", "--listen", "127.0.0.1:0") as backend:
            at = backend.listening()
            write_resources(path, "version-seven", *mesh(at))
            with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as plane:
                calls_and_answers(plane.listening(), path, at)


def test_addresses():
    with tempfile.TemporaryDirectory() as directory, running("backend", "--listen", "127.0.0.1:0") as backend:
        at = backend.listening()
        path = "unix:" + os.path.join(directory, "socket")
        with running("call", "--hold", LONG, "--csds", path, at, "a.B/C", log=True) as caller:
            caller.wait_log("CSDS at " + path)
            check(ask(path) == b"", "no xDS, no clients")
        done = run("call", "--csds", at, at, "a.B/C", status=1)
        check("--csds" in done.stderr and at in done.stderr, f"an address in use: {done.stderr}")
        done = run("call", "--csds", "nonsense", at, "a.B/C", status=2)
        check("--csds" in done.stderr and "nonsense" in done.stderr, done.stderr)


main(test_a_process_that_calls, test_addresses)
