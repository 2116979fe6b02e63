#!/usr/bin/env python3
"""One endpoint's change of state, to the next pick, takes as many instructions among 10,000 endpoints as among 100.

Runs bench_state under callgrind with two numbers of changes for each; the difference is theirs alone."""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

CHANGES = (1000, 3000)
TOLERANCE = 0.05  # malloc's share depends on what else lies on the heap, by up to 3 % of the whole


def instructions(program, endpoints, changes):
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, str(endpoints), str(changes)],
        capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", run.stderr).group(1))


def cost(program, endpoints):
    few, many = (instructions(program, endpoints, n) for n in CHANGES)
    return (many - few) / (2 * (CHANGES[1] - CHANGES[0]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    program = parser.parse_args().build / "bench" / "bench_state"
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed (scripts/install-deps check)")
        return 77
    small, large = cost(program, 100), cost(program, 10000)
    print(f"instructions a change of state and its pick: {small:.1f} among 100 endpoints, {large:.1f} among 10,000")
    return 0 if abs(large - small) <= TOLERANCE * small else 1


if __name__ == "__main__":
    sys.exit(main())
