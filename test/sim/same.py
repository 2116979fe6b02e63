#!/usr/bin/env python3
"""Holds that two programs, of two builds or one twice, make the same trace of every seed: `same.py --count N SIM SIM`."""
import argparse
import subprocess
import sys


def digests(program, first, count):
    command = [program, "--from", str(first), "--count", str(count), "--jobs", "2", "--digests"]
    out = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = [line.split() for line in out.splitlines()]
    return {line[0]: line[1] for line in lines if len(line) == 2 and len(line[1]) == 16}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--from", dest="first", type=int, default=1)
    parser.add_argument("programs", nargs=2)
    args = parser.parse_args()
    one, other = (digests(program, args.first, args.count) for program in args.programs)
    for seed in sorted(one.keys() | other.keys(), key=int):
        if one.get(seed) != other.get(seed):
            print(f"seed {seed}: {one.get(seed)} and {other.get(seed)}")
    same = one == other and len(one) == args.count
    print(f"{len(one)} and {len(other)} of {args.count} seeds, {'the same' if same else 'not the same'}")
    sys.exit(0 if same else 1)


main()
