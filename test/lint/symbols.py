#!/usr/bin/env python3
"""What libtorc.so exports: names that start with torc_ and nothing else, and each of them declared in include/torc; and
every function that the headers declare is there."""
import argparse
import pathlib
import re
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build", required=True)
    args = parser.parse_args()
    library = pathlib.Path(args.build) / "src" / "libtorc.so"
    out = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in out.splitlines()}
    declared = set()
    for header in (pathlib.Path(args.source) / "include" / "torc").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for statement in re.findall(r"TORC_API\b([^;]*);", text):
            declared.add(re.search(r"\b(torc_\w+)\s*(\(|$)", statement)[1])
    findings = [f"exported and not declared in include/torc: {n}" for n in sorted(exported - declared)]
    findings += [f"declared and not exported: {n}" for n in sorted(declared - exported)]
    print("\n".join(findings))
    print(f"{len(exported)} exported, {len(declared)} declared, {len(findings)} findings")
    sys.exit(1 if findings or not exported else 0)


main()
