#!/usr/bin/env python3
"""Checks that the built files keep what TORC_HARDEN promises. libtorc.so, libtorc-regex.so and the command have RELRO with BIND_NOW,
no executable stack and the stack protector. Optimised builds without a sanitizer have FORTIFY. The files have the marks of CET
or BTI where the toolchain sets them. The command is a PIE. Exit 77 in a build without TORC_HARDEN."""
import argparse
import pathlib
import re
import subprocess
import sys


def readelf(options, path):
    # For a note of a type that it does not know (.note.dlopen) readelf exits 1.
    return subprocess.run(["readelf", "-W", options, str(path)], capture_output=True, text=True, check=options != "-nW").stdout


def faults(path, cache, is_command):
    head, dynamic = readelf("-hlW", path), readelf("-dW", path)
    symbols, notes = readelf("--dyn-syms", path), readelf("-nW", path)
    stack = re.search(r"GNU_STACK\s+(?:0x\w+\s+)+([RWE ]+?)\s+0x", head)
    optimised = cache.get("CMAKE_BUILD_TYPE") in ("Release", "RelWithDebInfo", "MinSizeRel")
    if "GNU_RELRO" not in head:
        yield "no RELRO"
    if not re.search(r"\(BIND_NOW\)|FLAGS.*\bBIND_NOW\b|FLAGS_1.*\bNOW\b", dynamic):
        yield "no BIND_NOW"
    if not stack or "E" in stack[1]:
        yield "an executable stack"
    if "__stack_chk_fail" not in symbols:
        yield "no stack protector"
    # libtorc-regex.so is C++ that calls none of the functions that are checked.
    if optimised and not cache.get("TORC_SANITIZE") and "regex" not in path.name and not re.search(r"\b__\w+_chk\b(?<!__stack_chk)", symbols):
        yield "no FORTIFY"
    for mark, names in (("TORC_MARKS_fcf_protection_full", ("IBT", "SHSTK")), ("TORC_MARKS_mbranch_protection_standard", ("BTI",))):
        for name in names:
            if cache.get(mark) == "ON" and name not in notes:
                yield f"no mark of {name}"
    if is_command and not ("DYN" in head and re.search(r"FLAGS_1.*\bPIE\b", dynamic)):
        yield "not a PIE"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build", required=True)
    build = pathlib.Path(parser.parse_args().build)
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(), flags=re.M))
    if cache.get("TORC_HARDEN") != "ON":
        print("built without TORC_HARDEN")
        return 77
    files = [(build / "src" / "libtorc.so", False), (build / "torc", True)]
    if cache.get("TORC_LATE_LOADING") == "ON":
        files.append((build / "src" / "libtorc-regex.so", False))
    findings = [f"{path}: {fault}" for path, is_command in files for fault in faults(path, cache, is_command)]
    print("\n".join([*findings, f"{len(files)} files, {len(findings)} findings"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
