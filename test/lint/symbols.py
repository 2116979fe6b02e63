#!/usr/bin/env python3
"""What libtorc.so exports: names that start with torc_ and nothing else, and each of them declared in include/torc; and
every function that the headers declare is there. With TORC_LATE_LOADING libtorc-regex.so exports its one function, and
libtorc.so does not need what it loads when it is first used."""
import argparse
import pathlib
import re
import subprocess
import sys


LOADED = ("libssl", "libcrypto", "libre2", "libstdc++", "libcurl", "libtorc-regex")


def exports(library):
    out = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}


def needs(library):
    out = subprocess.run(["readelf", "-dW", str(library)], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build", required=True)
    args = parser.parse_args()
    folder = pathlib.Path(args.build) / "src"
    library = folder / "libtorc.so"
    exported = exports(library)
    declared = set()
    for header in (pathlib.Path(args.source) / "include" / "torc").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for statement in re.findall(r"TORC_API\b([^;]*);", text):
            declared.add(re.search(r"\b(torc_\w+)\s*(\(|$)", statement)[1])
    findings = [f"exported and not declared in include/torc: {n}" for n in sorted(exported - declared)]
    findings += [f"declared and not exported: {n}" for n in sorted(declared - exported)]
    cache = (pathlib.Path(args.build) / "CMakeCache.txt").read_text()
    late = "TORC_LATE_LOADING:BOOL=ON" in cache
    if late:
        findings += [f"libtorc-regex.so exports {n}" for n in exports(folder / "libtorc-regex.so.0") - {"torc_regex_engine"}]
    if late and not re.search(r"^TORC_SANITIZE:\w+=.", cache, re.M):  # a sanitizer's runtime brings libstdc++
        findings += [f"libtorc.so needs {n}" for n in needs(library) if n.startswith(LOADED)]
    print("\n".join(findings))
    print(f"{len(exported)} exported, {len(declared)} declared, {len(findings)} findings")
    sys.exit(1 if findings or not exported else 0)


main()
