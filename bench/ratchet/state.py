#!/usr/bin/env python3
"""One endpoint's change of state, to the next pick, takes as many instructions among 10,000 endpoints as among 100, or, with
least_request's full scan, some for the depth of its tree more.

Runs bench_state under callgrind with two numbers of changes for each; the difference is theirs alone."""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

CHANGES = (1000, 3000)
# What may be more, or less: malloc's share depends on what else lies on the heap, by up to 3 % of the whole. The tree of 10,000 has
# twice the levels of that of 100.
TOLERANCES = {"ring_hash": 0.05, "least_request": 0.1, "full_scan": 0.4}


def instructions(program, policy, endpoints, changes):
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, policy, str(endpoints), str(changes)],
        capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", run.stderr).group(1))


def cost(program, policy, endpoints):
    few, many = (instructions(program, policy, endpoints, n) for n in CHANGES)
    return (many - few) / (2 * (CHANGES[1] - CHANGES[0]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    program = parser.parse_args().build / "bench" / "bench_state"
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed (scripts/install-deps check)")
        return 77
    good = True
    for policy, tolerance in TOLERANCES.items():
        small, large = cost(program, policy, 100), cost(program, policy, 10000)
        print(f"{policy}: instructions a change of state and its pick: {small:.1f} among 100 endpoints, {large:.1f} among 10,000")
        good = good and abs(large - small) <= tolerance * small
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
