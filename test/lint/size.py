#!/usr/bin/env python3
"""libtorc.so, stripped, has 1,200,000 bytes at most in a release build by gcc on x86-64, or --limit bytes. Where the linker does not pack relative
relocations (cmake/size.cmake), the section of relocations is not counted, since it is a tenth of the library there. Exit 77 in other
builds."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile


def output(*command):
    # For a note of a type that it does not know (.note.dlopen) readelf exits 1.
    return subprocess.run(command, capture_output=True, text=True, check=command[0] != "readelf").stdout


def another_build(cache, library):
    """Returns why the limit is not for this build, or None."""
    if cache.get("CMAKE_BUILD_TYPE") not in ("Release", "RelWithDebInfo", "MinSizeRel"):
        return f"a {cache.get('CMAKE_BUILD_TYPE')} build"
    if cache.get("TORC_SANITIZE") or "--coverage" in cache.get("CMAKE_C_FLAGS", ""):
        return "sanitizers or coverage"
    if "X86-64" not in output("readelf", "-hW", str(library)):
        return "not x86-64"
    return None if "GCC: " in output("readelf", "-p.comment", str(library)) else "not by gcc"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source")
    parser.add_argument("--build", required=True)
    parser.add_argument("--limit", type=int, default=1_200_000)
    args = parser.parse_args()
    build = pathlib.Path(args.build)
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(), flags=re.M))
    library = build / "src" / "libtorc.so"
    why = another_build(cache, library)
    if why:
        print(f"skipped: {why}")
        return 77
    with tempfile.NamedTemporaryFile() as stripped:
        output("strip", "-o", stripped.name, str(library))
        size = pathlib.Path(stripped.name).stat().st_size
    counted, rest = size, ""
    if cache.get("TORC_PACKS_RELOCATIONS") != "ON":
        counted -= int(re.search(r"^\.rela\.dyn +(\d+)", output("size", "-A", str(library)), re.M)[1])
        rest = f" ({size} with its relocations, which are not packed)"
    print(f"libtorc.so, stripped: {counted} bytes{rest}; the limit is {args.limit}")
    return counted > args.limit


if __name__ == "__main__":
    sys.exit(main())
