"""Messages of generated code against Python's protobuf: random ones of every kind of field, there and back."""
import re
import subprocess
import tempfile

import build_peers
from programs import HERE, Failure

STUBS, PROTO = HERE.parent / "stubs", HERE.parent.parent / "proto"


def random_messages(paths, options, script, program, protos, files, *more):
    """The row of a script that sends random messages through a program of Torc's; more: options of protoc, with {folder}."""
    row = {"peer": "protobuf (Python)", "version": ""}
    try:
        command, _ = paths.python(script)
    except build_peers.Missing as missing:
        return {**row, "skipped": 1, "why": [str(missing)]}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([command[0], "-m", "grpc_tools.protoc", f"-I{protos}", f"-I{PROTO}", f"--python_out={folder}",
                        *(option.format(folder=folder) for option in more), *files], check=True)
        done = subprocess.run([*command, paths.own(program), folder, str(options.messages), options.seed],
                              capture_output=True, text=True, check=False)
    last = re.search(r"^protobuf (\S+)\nmessages (\d+) bytes \d+ unequal (\d+)$", done.stdout, re.M)
    if not last:
        raise Failure(f"{script}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    count, unequal = int(last[2]), int(last[3])
    return {**row, "version": last[1], "cases": count, "passed": count - unequal, "failed": unequal,
            "why": [line for line in done.stdout.splitlines() if line.startswith("unequal")]}


def run(paths, options):
    if not options.peers or "python" in options.peers:
        yield random_messages(paths, options, "kinds.py", "interop_stubs", STUBS, ["kinds.proto", "other.proto", "unused.proto"])
