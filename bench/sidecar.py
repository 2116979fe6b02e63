#!/usr/bin/env python3
"""What a sidecar costs an RPC: `torc bench` through an xDS channel with ring_hash straight to four backends, and in plaintext through Envoy on
the loopback, which has the same cluster and ring, in turns.

usage: sidecar.py --build DIR [--pairs N] [--seconds S]

Envoy is the one of the interoperability suite (a package that pins it, built by `make interop`); exits 77 without it."""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "test" / "interop"))
import build_peers  # noqa: E402
import meshes  # noqa: E402
import suite_envoy  # noqa: E402
from programs import Paths, Program, bootstrap  # noqa: E402

BACKENDS = 4
TICK = os.sysconf("SC_CLK_TCK")


def mesh_of(addresses):
    endpoints = [dict(zip(("host", "port"), address.split(":")), weight=1) for address in addresses]
    for endpoint in endpoints:
        endpoint["port"] = int(endpoint["port"])
    return {"name": "shop", "policies": [{"header": "user"}], "min_ring_size": 1024, "max_ring_size": 4096,
            "localities": [{"region": "", "zone": "", "sub_zone": "", "priority": 0, "weight": 1, "endpoints": endpoints}]}


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def bench(paths, target, at_a_time, seconds, env):
    """The JSON of `torc bench`."""
    done = subprocess.run([paths.command(), "bench", target, "a.B/C", "-H", "user: u{i}", "-H", "x-mesh: shop", "-c", str(at_a_time), "--payload", "64", "--warmup",
                           "0.2s", "--duration", f"{seconds}s", "-o", "json"], capture_output=True, text=True, check=True, env={**os.environ, **env})
    return json.loads(done.stdout.splitlines()[-1])["bench"]


def main():
    parser = argparse.ArgumentParser(description="RPCs with and without a sidecar")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    paths = Paths(options.build)
    try:
        _, version = paths.envoy()
    except build_peers.Missing as missing:
        print(f"skipped: {missing}")
        return 77
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        backends = [stack.enter_context(Program([paths.command(), "backend"])) for _ in range(BACKENDS)]
        mesh = mesh_of([backend.word_after("listening") for backend in backends])
        cluster = {"lb_policy": "RING_HASH", "ring_hash_lb_config": {"minimum_ring_size": 1024, "maximum_ring_size": 4096}}
        file = pathlib.Path(folder, "mesh.json")
        file.write_text(json.dumps({"version_info": "1", "resources": meshes.resources(mesh)}), encoding="utf-8")
        plane = stack.enter_context(Program([paths.command(), "serve-xds", "--listen", "127.0.0.1:0", "--resources", str(file)]))
        env = {"GRPC_XDS_BOOTSTRAP_CONFIG": bootstrap(plane.word_after("listening"))}
        sidecar = stack.enter_context(suite_envoy.envoy_of(paths, suite_envoy.envoy_config([(mesh, cluster)]), folder))
        pid = int(subprocess.run(["pgrep", "-f", f"{folder}/envoy.json"], capture_output=True, text=True, check=True).stdout.split()[0])
        print(f"Envoy {version}, one worker; {options.pairs} pairs of {options.seconds} s\n\n| what | straight | through the sidecar | ratio (range) |\n|---|---|---|---|")
        for at_a_time in (1, 64):
            rows = {"p50": [], "CPU of client and sidecar per RPC": []}
            for _ in range(options.pairs):
                straight = bench(paths, "xds:///shop", at_a_time, options.seconds, env)
                before = cpu_seconds(pid)
                through = bench(paths, sidecar, at_a_time, options.seconds, env)
                # The sidecar's CPU time counts the warm-up, the RPCs of which are counted with those of the duration.
                share = (cpu_seconds(pid) - before) / (through["calls"] * (1 + 0.2 / options.seconds)) * 1e6
                rows["p50"].append((straight["latency_us"]["p50"], through["latency_us"]["p50"]))
                rows["CPU of client and sidecar per RPC"].append((straight["cpu_us_per_call"], through["cpu_us_per_call"] + share))
            for what, pairs in rows.items():
                ratios = sorted(b / a for a, b in pairs)
                left, right = (statistics.median(side) for side in zip(*pairs))
                print(f"| {what}, {at_a_time} at a time | {left:.1f} us | {right:.1f} us | {statistics.median(ratios):.1f} ({ratios[0]:.1f}-{ratios[-1]:.1f}) |")
    return 0


sys.exit(main())
