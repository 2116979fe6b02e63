"""examples/etcd against etcd itself. The server is built by `make interop`, as that takes minutes; with --peers the suite is skipped
where the server is not built."""
import subprocess

import build_peers
from programs import HERE, Program

WANTED = ["txn 1", "watch one", "watch two", "watch canceled", "range two", "lease kept for 60 s"]


def version():
    for line in (HERE / "etcd" / "go.mod").read_text(encoding="ascii").splitlines():
        if "go.etcd.io/etcd/server/v3 v" in line:
            return line.rsplit(" v", 1)[1]
    return ""


def run(paths, options):
    if options.peers and "etcd" not in options.peers:
        return
    row = {"peer": "etcd", "version": version()}
    try:
        server = paths.large_peer("etcd", options) / "etcd"
    except build_peers.Missing as missing:
        yield {**row, "skipped": 1, "why": [str(missing)]}
        return
    with Program([server]) as etcd:
        address = etcd.word_after("listening")
        done = subprocess.run([paths.own("interop_etcd"), address], capture_output=True, text=True, timeout=120, check=False)
        etcd.finish()
    lines = done.stdout.splitlines()
    passed = sum(a == b for a, b in zip(lines, WANTED)) if done.returncode == 0 and len(lines) == len(WANTED) else 0
    why = [] if passed == len(WANTED) else [f"exit {done.returncode}: {lines} {done.stderr}"]
    yield {**row, "cases": len(WANTED), "passed": passed, "failed": len(WANTED) - passed, "why": why}
