#!/usr/bin/env python3
"""Runs the benchmarks one after the other, shows what they print, and ends with a table of all targets: what was measured for
each, and whether it was met. The reports as JSON, with the machine's description, go to BUILD/bench/results.json.

usage: run.py --build DIR [NAME ...]      names: ring, pick, rpc, ... (without any: all)

A peer that is not there is named by its benchmark and left out; so is a benchmark that was not built. Exit 0 when those that are
there ran to their end, 1 when one failed: a missed target is a result, not a failure."""
import argparse
import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

BENCHES = ["ring", "pick", "state", "size", "memory", "start", "runtimes", "rpc", "server", "stubs", "update"]
LIMIT_S = 900  # of one benchmark; a fault's bound, far above what each takes

# (what is to be reached, the benchmark, its rows that belong to it, how many there are at least). A row is one that states a
# target.
TARGETS = [
    ("ring pick, warm, at 2,000 / 5,000 / 66,000 / 8.4 M entries: 5 / 5 / 4 / 3 times faster than C-core's search; never slower cold",
     "ring", r"^pick, ", 8),
    ("ring build at 5,000 / 66,000 / 8.4 M entries: 5 / 5 / 3 times faster than C-core's", "ring", r"^build, ", 3),
    ("one endpoint added to or removed from 10,000 (70,000 entries): 5 times faster than a full build", "ring", r"^(add|remove) one.*70,000", 2),
    ("the same where the ring is as large as it may be (65,536 entries): 1.5 times faster than a full build", "ring", r"^(add|remove) one.*maximum", 4),
    ("one endpoint's state change among 10,000, to the next pick: independent of the number of endpoints", "state", r"", 1),
    ("client CPU per unary RPC at 64 outstanding: at most 1/4 of gRPC C++'s, at most 2 times bare nghttp2's",
     "rpc", r"^client CPU per RPC, (?!xds)", 2),
    ("the same through an xds:/// channel with ring_hash: at most 1.3 times the plain channel's", "rpc", r"^client CPU per RPC, xds", 1),
    ("p50 of a blocking unary RPC: at most bare nghttp2's plus 10 %, at most gRPC C++'s", "rpc", r"p50", 2),
    ("memory of an idle connected endpoint: at most bare nghttp2's session plus 5 kB", "memory", r"connected endpoint", 1),
    ("memory of an endpoint that is on the ring and not connected: at most 600 bytes", "memory", r"on a ring", 1),
    ("process start to first RPC over xDS: at most 1/4 of gRPC C++'s", "start", r"xDS", 1),
    ("EDS push to first RPC on a new endpoint, 1,000 endpoints, 1,024 / 8 M ring: at most 1/5 of gRPC C++'s", "update", r"", 2),
    ("libtorc.so, stripped: at most 1.2 MB", "size", r"", 1),
]


def stop(process):
    """Ends the benchmark and its children: it leads its own process group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(program):
    """Shows what the program prints but its JSON: (whether it ended well, its reports)."""
    reports = []
    process = subprocess.Popen([program], stdout=subprocess.PIPE, text=True, start_new_session=True)
    limit = threading.Timer(LIMIT_S, stop, [process])
    limit.start()
    try:
        for line in process.stdout:
            if line.startswith('{"bench":'):
                reports.append(json.loads(line))
            else:
                print(line, end="", flush=True)
        code = process.wait()
    finally:
        limit.cancel()
        stop(process)
    return code == 0, reports


def verdict(row):
    if row["met"]:
        return "met"
    return f"**missed** by a factor of {row['target'] / row['ratio']:.2f}" if row["ratio"] > 0 else "**missed**"


def figure(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def summary(reports, names):
    """Prints the table of targets of those benchmarks; [{target, rows, met}], met null where something was not measured."""
    results = []
    print("\nTargets: the ratio to the peer, at least\n\n| target | measured | Torc | peer | ratio | target | |\n|---|---|---|---|---|---|---|")
    for target, bench, pattern, least in TARGETS:
        if bench not in names:
            continue
        rows = [r for report in reports if report["bench"] == bench for r in report["rows"]
                if "target" in r and re.search(pattern, r["what"])]
        for i, r in enumerate(rows):
            print(f"| {target if i == 0 else ''} | {r['what']} | {figure(r['torc'])} {r['unit']} | {figure(r['peer'])} ({r['peer_name']}) | "
                  f"{r['ratio']:.2f} | {r['target']:.3g} | {verdict(r)} |")
        if len(rows) < least:
            print(f"| {target if not rows else ''} | {least - len(rows)} of {least} not measured (see above) | | | | | **not measured** |")
        met = all(r["met"] for r in rows) if len(rows) >= least else None
        results.append({"target": target, "bench": bench, "rows": [r["what"] for r in rows], "met": met})
    told = {True: "met", False: "missed", None: "not or not all measured"}
    print("\n" + ", ".join(f"{sum(r['met'] is k for r in results)} {name}" for k, name in told.items()) + f" of {len(results)} targets")
    return results


def main():
    parser = argparse.ArgumentParser(description="runs the benchmarks and compares them with the targets")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*", choices=[[], *BENCHES], metavar="NAME", help=", ".join(BENCHES))
    options = parser.parse_args()
    folder = options.build.resolve() / "bench"
    reports, failed, skipped = [], [], []
    began = datetime.datetime.now(datetime.timezone.utc)
    for name in options.names or BENCHES:
        program = folder / f"bench_{name}"
        if not program.exists():
            print(f"\nskipped: bench_{name} was not built (scripts/install-deps build check bench)")
            skipped.append(name)
            continue
        good, some = run(program)
        reports += some
        if not good:
            print(f"\nbench_{name} FAILED")
            failed.append(name)
    targets = summary(reports, options.names or BENCHES)
    results = folder / "results.json"
    results.write_text(json.dumps({
        "date": began.strftime("%Y-%m-%dT%H:%M:%SZ"), "machine": reports[0]["machine"] if reports else None,
        "reports": reports, "targets": targets, "failed": failed, "skipped": skipped}, indent=1) + "\n", encoding="utf-8")
    took = (datetime.datetime.now(datetime.timezone.utc) - began).total_seconds()
    print(f"took {took / 60:.1f} minutes; {results}")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


sys.exit(main())
