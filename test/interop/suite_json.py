"""proto3 JSON of libtorc-json against Python's protobuf, by random messages of every kind of field, both ways; and the cases that the tests
of Go's protojson have."""
import re
import subprocess

import build_peers
from programs import HERE, Failure
from suite_stubs import random_messages

JSON = HERE.parent / "json"


def run(paths, options):
    if not options.peers or "python" in options.peers:
        yield random_messages(paths, options, "json_kinds.py", "interop_json", JSON, ["all.proto", "old.proto"], "--include_imports",
                              "--descriptor_set_out={folder}/set.pb")
    if not options.peers or "protojson" in options.peers:
        yield from run_cases(paths)


def run_cases(paths):
    row = {"peer": "protojson (Go)", "version": ""}
    try:
        folder, (command, _) = paths.peer("protojson"), paths.python("json_cases.py")
    except build_peers.Missing as missing:
        yield {**row, "skipped": 1, "why": [str(missing)]}
        return
    done = subprocess.run([*command, paths.own("interop_json"), folder], capture_output=True, text=True, check=False)
    last = re.search(r"^cases (\d+) unequal (\d+) expected (\d+)$", done.stdout, re.M)
    if not last or int(last[1]) < 300:
        raise Failure(f"json_cases.py: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    count, unequal = int(last[1]), int(last[2])
    yield {**row, "version": (folder / "version").read_text(encoding="ascii"), "cases": count, "passed": count - unequal, "failed": unequal,
           "notes": [f"{last[3]} cases differ where Go differs from others (EXPECTED in json_cases.py)"],
           "why": [line for line in done.stdout.splitlines() if line.startswith("unequal")]}
