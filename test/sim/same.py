#!/usr/bin/env python3
"""Holds that programs, of several builds or one twice, make the same trace of every seed: `same.py --count N SIM SIM...`."""
import argparse
import subprocess
import sys


def digests(program, args):
    command = [program, "--from", str(args.first), "--count", str(args.count), "--jobs", str(args.jobs), "--digests"]
    out = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = [line.split() for line in out.splitlines()]
    return {line[0]: line[1] for line in lines if len(line) == 2 and len(line[1]) == 16}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--from", dest="first", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("programs", nargs="+")
    args = parser.parse_args()
    found = [digests(program, args) for program in args.programs]
    for seed in sorted(set().union(*found), key=int):
        of_seed = [one.get(seed) for one in found]
        if len(set(of_seed)) > 1:
            print(f"seed {seed}: {of_seed}")
    same = all(one == found[0] and len(one) == args.count for one in found)
    print(f"{[len(one) for one in found]} of {args.count} seeds, {'the same' if same else 'not the same'}")
    sys.exit(0 if same else 1)


main()
