"""Torc against the numbers that Envoy and grpc-go publish in their unit tests (data/published.json): rings by `torc ring`, hash
policies by `torc call --explain` over an xDS channel. The Maglev tables hold XXH64 of ring_model.py to account, by which the
agreement suite judges every client; Torc's own tables are held against them by test/unit/ring/maglev_test.c."""
import json
import os
import pathlib
import subprocess
import tempfile

import meshes
import ring_model
from plane_world import assignment, check, eds_cluster
from programs import HERE, Failure, Program, bootstrap

PUBLISHED = json.loads((HERE / "data" / "published.json").read_text(encoding="utf-8"))


def torc(paths, *arguments, env=None):
    done = subprocess.run([paths.command(), *arguments], capture_output=True, text=True, check=False, timeout=60,
                          env={**os.environ, **(env or {})})
    check(done.returncode == 0, f"torc {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def ring(paths, vector):
    endpoints = [part for key, weight in vector["endpoints"] for part in ("-e", f"{key}={weight}")]
    dump = torc(paths, "ring", "--min", str(vector["min"]), "--max", str(vector["max"]), *endpoints, "--dump")
    entries = [line.split() for line in dump.splitlines()]
    check(entries == vector["entries"], f"the ring is {entries}")


def maglev(_, vector):
    table = ring_model.maglev_table(vector["hosts"], vector["size"])
    check(table == vector["table"], f"the table is {table}")


def hash_of_call(paths, policies, headers):
    """The hash that a real call got from an xDS route, as text."""
    mesh = {"name": "shop", "policies": policies, "localities": [], "min_ring_size": 1, "max_ring_size": 1}
    with tempfile.TemporaryDirectory() as folder, Program([paths.command(), "backend"]) as backend:
        address = backend.word_after("listening")
        resources = meshes.resources(mesh)[:2] + [eds_cluster("shop"), assignment("shop", [address])]
        mesh_file = pathlib.Path(folder) / "mesh.json"
        mesh_file.write_text(json.dumps({"version_info": "1", "resources": resources}), encoding="utf-8")
        with Program([paths.command(), "serve-xds", "--listen", "127.0.0.1:0", "--resources", str(mesh_file)]) as plane:
            env = {"GRPC_XDS_BOOTSTRAP_CONFIG": bootstrap(plane.word_after("listening"))}
            named = [part for name, value in headers for part in ("-H", f"{name}: {value}")]
            call = torc(paths, "call", "-o", "json", "--explain", "xds:///shop", "a.B/C", *named, env=env)
    return json.loads(call.splitlines()[0])["call"]["explain"]["hash"]


def hash_policy(paths, vector):
    got = int(hash_of_call(paths, [vector["policy"]], vector["headers"]), 16)
    wanted = ring_model.xxh64(vector["hashes_as"].encode())
    check(got == wanted, f"the hash is {got:#x}, of {vector['hashes_as']!r} it is {wanted:#x}")


def run(paths, options):
    if options.peers and "published" not in options.peers:
        return
    for kind, judge in (("rings", ring), ("maglev", maglev), ("hash_policies", hash_policy)):
        faults = []
        for vector in PUBLISHED[kind]:
            try:
                judge(paths, vector)
            except Failure as failure:
                faults.append(f"{vector['name']}: {failure}")
        notes = [f"{vector['name']}: {vector['differs']}" for vector in PUBLISHED[kind] if "differs" in vector]
        yield {"peer": f"{kind.replace('_', ' ')} of unit tests", "version": PUBLISHED["versions"][kind], "notes": notes,
               "cases": len(PUBLISHED[kind]), "passed": len(PUBLISHED[kind]) - len(faults), "failed": len(faults), "why": faults}
