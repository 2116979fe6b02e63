#!/usr/bin/env python3
"""The ratchet: instructions of a ring's construction, its update, picks, and a unary RPC, counted by valgrind's callgrind, must not
grow by more than 5 % over figures.json. Of the RPC there are two figures: Torc's own share, what libtorc.so executes without
nghttp2, libc and the kernel, and the whole process in user space. Each figure is the difference of a long and a short run
over the rounds between them, so that neither start nor end counts.

usage: check.py --build DIR [--write]      --write: the figures measured become the committed ones

Exit 0, 1 when a figure grew, 77 with the reason when valgrind is not there."""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FIGURES = pathlib.Path(__file__).resolve().parent / "figures.json"
ALLOWED = 1.05
TRIES = 8
# The number of the loop's turns for an RPC depends on the machine's load: the response and the server's PINGs come together or
# apart. Figures are brought to this many turns for an RPC, by what one more turn costs (by whose instructions count).
TURNS_OF_AN_RPC = 1
TURN = {"libtorc.so": 575, "": 1150}
# name: (program, arguments before the number of rounds, rounds of the short and of the long run, whose instructions)
SUBJECTS = {
    "ring build, 5,000 entries": ("ratchet_ring", ["build", "5000"], 2, 6, "ratchet_ring"),
    "ring build, 66,000 entries": ("ratchet_ring", ["build", "66000"], 1, 3, "ratchet_ring"),
    "ring update, at its maximum": ("ratchet_ring", ["update", "65536"], 4, 12, "ratchet_ring"),
    "ring pick, 5,000 entries": ("ratchet_ring", ["pick", "5000"], 10000, 60000, ""),
    "weighted round robin pick": ("ratchet_stride", ["1000"], 10000, 60000, ""),
    "least_request pick, two choices": ("bench_state", ["pick:least_request", "1000"], 10000, 60000, ""),
    "least_request pick, full scan": ("bench_state", ["pick:full_scan", "1000"], 10000, 60000, ""),
    "Maglev table, 65,537 slots": ("ratchet_ring", ["table", "65537"], 1, 3, "ratchet_ring"),
    "Maglev pick, 65,537 slots": ("ratchet_ring", ["slot", "65537"], 10000, 60000, ""),
    "unary RPC, Torc's share": ("ratchet_rpc", ["TARGET"], 200, 800, "libtorc.so"),
    "unary RPC, whole process": ("ratchet_rpc", ["TARGET"], 200, 800, ""),
}


def executed(profile):
    """{object file: instructions} of a callgrind profile. A line after calls= holds what the callee took, and is the
    callee's own already."""
    totals, current, inclusive = {}, "", False
    for line in profile.splitlines():
        if line.startswith("ob="):
            current = line[3:]
        elif line.startswith("calls="):
            inclusive = True
        elif re.match(r"[+\-*0-9]", line):
            if not inclusive and len(line.split()) > 1:
                totals[current] = totals.get(current, 0) + int(line.split()[1])
            inclusive = False
    return totals


def run(program, arguments, folder):
    out = folder / "callgrind.out"
    done = subprocess.run(["valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no",
                           f"--callgrind-out-file={out}", program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench-check: {program} {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    turns = int(done.stdout) if program.name == "ratchet_rpc" else 0
    return executed(out.read_text(encoding="utf-8", errors="replace")), turns


class Backend:
    """`torc backend`, not counted."""

    def __init__(self, build):
        self.process = subprocess.Popen([build / "torc", "backend"], stdout=subprocess.PIPE, text=True)
        self.target = "ipv4:" + self.process.stdout.readline().split()[1]

    def stop(self):
        self.process.terminate()
        self.process.wait()


def measure_once(build, target, subjects):
    figures, seen = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name in subjects:
            program, arguments, short, long, whose = SUBJECTS[name]
            key = (program, *arguments)
            if key not in seen:
                arguments = [target if a == "TARGET" else a for a in arguments]
                path = build / "bench" / program
                seen[key] = [run(path, [*arguments, str(rounds)], pathlib.Path(folder)) for rounds in (short, long)]
            less, more = (sum(n for ob, n in totals.items() if whose in ob) for totals, _ in seen[key])
            figures[name] = (more - less) / (long - short)
            if program == "ratchet_rpc":
                turns = (seen[key][1][1] - seen[key][0][1]) / (long - short)
                figures[name] += (TURNS_OF_AN_RPC - turns) * TURN[whose]
    return figures


def measure(build, wanted):
    """Returns the least figure of several tries, since the machine's load only adds. Tries those again that are above `wanted`."""
    backend = Backend(build)
    figures, subjects = {}, list(SUBJECTS)
    try:
        for _ in range(TRIES):
            for name, n in measure_once(build, backend.target, subjects).items():
                figures[name] = min(n, figures.get(name, n))
            subjects = [name for name in SUBJECTS if figures[name] > wanted.get(name, 0)]
            if not subjects:
                break
    finally:
        backend.stop()
    return figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(os.environ.get("TORC_BINARY_DIR", "build")))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("bench-check: skipped: valgrind is not installed (scripts/install-deps check)")
        sys.exit(77)
    committed = {} if options.write else json.loads(FIGURES.read_text(encoding="utf-8"))
    figures = measure(options.build.resolve(), {name: n * ALLOWED for name, n in committed.items()})
    if options.write:
        FIGURES.write_text(json.dumps({name: round(n, 1) for name, n in figures.items()}, indent=1) + "\n", encoding="utf-8")
        committed = figures
    grown = False
    print(f"{'instructions of one':28} {'committed':>12} {'now':>12} {'change':>8}")
    for name, now in figures.items():
        change = now / committed[name] - 1
        verdict = ""
        if now > committed[name] * ALLOWED:
            grown, verdict = True, "  grew by more than 5 %"
        print(f"{name:28} {committed[name]:12.1f} {now:12.1f} {change:+8.1%}{verdict}")
    if grown:
        print("bench-check: FAILED: find what costs it, or, when it is worth its price, commit new figures "
              "(bench/ratchet/check.py --write)")
        sys.exit(1)


main()
