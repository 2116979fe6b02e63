"""examples/otlp against the OpenTelemetry collector's receiver. The receiver is built by `make interop`, as that takes minutes; with
--peers the suite is skipped where the receiver is not built."""
import subprocess

import build_peers
from programs import HERE, WAIT, Program

WANTED = ["span example work Internal 32 16 true", "metric example jobs 1 Cumulative true 1 true"]


def version():
    for line in (HERE / "otlp" / "go.mod").read_text(encoding="ascii").splitlines():
        if "collector/receiver/otlpreceiver v" in line:
            return line.rsplit(" v", 1)[1]
    return ""


def run(paths, options):
    if options.peers and "otlp" not in options.peers:
        return
    row = {"peer": "collector", "version": version()}
    try:
        receiver = paths.large_peer("otlp", options) / "otlp"
    except build_peers.Missing as missing:
        yield {**row, "skipped": 1, "why": [str(missing)]}
        return
    with Program([receiver]) as collector:
        address = collector.word_after("listening")
        done = subprocess.run([paths.own("interop_otlp"), address], capture_output=True, text=True, timeout=WAIT, check=False)
        lines = [collector.line() for _ in WANTED] if done.returncode == 0 else []
        collector.finish()
    passed = sum(a == b for a, b in zip(lines, WANTED))
    why = [] if passed == len(WANTED) else [f"exit {done.returncode}: {lines} {done.stderr}"]
    yield {**row, "cases": len(WANTED), "passed": passed, "failed": len(WANTED) - passed, "why": why}
