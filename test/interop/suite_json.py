"""proto3 JSON of libtorc-json against Python's protobuf: random messages of every kind of field, both ways."""
import re
import subprocess
import tempfile

import build_peers
from programs import HERE, Failure

JSON, PROTO = HERE.parent / "json", HERE.parent.parent / "proto"


def run(paths, options):
    if options.peers and "python" not in options.peers:
        return
    row = {"peer": "protobuf (Python)", "version": ""}
    try:
        command, _ = paths.python("json_kinds.py")
    except build_peers.Missing as missing:
        yield {**row, "skipped": 1, "why": [str(missing)]}
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([command[0], "-m", "grpc_tools.protoc", f"-I{JSON}", f"-I{PROTO}", f"--python_out={folder}",
                        "--include_imports", f"--descriptor_set_out={folder}/set.pb", "all.proto", "old.proto"], check=True)
        done = subprocess.run([*command, paths.own("interop_json"), folder, str(options.messages), options.seed],
                              capture_output=True, text=True, check=False)
    last = re.search(r"^protobuf (\S+)\nmessages (\d+) bytes \d+ unequal (\d+)$", done.stdout, re.M)
    if not last:
        raise Failure(f"json_kinds.py: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    count, unequal = int(last[2]), int(last[3])
    yield {**row, "version": last[1], "cases": count, "passed": count - unequal, "failed": unequal,
           "why": [line for line in done.stdout.splitlines() if line.startswith("unequal")]}
