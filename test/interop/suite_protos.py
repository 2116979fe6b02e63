"""Torc's .proto files against the descriptors compiled into go-control-plane, cncf/xds and grpc-go, which have what the npm
package that test/lint uses lacks."""
import pathlib
import shutil
import subprocess
import tempfile

import build_peers
from programs import HERE, Failure

PROTO = HERE.parent.parent / "proto"


def run(paths, options):
    if options.peers and "go" not in options.peers:
        return
    row = {"peer": "descriptors", "version": ""}
    try:
        if not shutil.which("protoc"):
            raise build_peers.Missing("protoc is not installed")
        command, _ = paths.go("protofields")
        version = paths.go_module("github.com/envoyproxy/go-control-plane/envoy").split("-")[0]
    except build_peers.Missing as missing:
        yield {**row, "skipped": 1, "why": [str(missing)]}
        return
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "torc.pb"
        files = sorted(str(p.relative_to(PROTO)) for p in PROTO.rglob("*.proto"))
        subprocess.run(["protoc", "-I.", f"--descriptor_set_out={out}", *files], cwd=PROTO, check=True)
        done = subprocess.run([*command, str(out)], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if not lines or not lines[-1].startswith("compared "):
        raise Failure(f"protofields: {done.stderr}")
    count = int(lines[-1].split()[1])
    yield {**row, "version": version, "cases": count, "passed": count - len(lines) + 1, "failed": len(lines) - 1,
           "why": lines[:-1]}
