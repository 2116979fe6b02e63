#!/usr/bin/env python3
"""The ABI is the committed one: abi/libtorc-MAJOR.MINOR.abi, a dump of what include/torc declares (docs/decisions/0002-abi.md), and
abi/libtorc-json-MAJOR.MINOR.abi, one of torc/json.h.

A dump is made from a library of empty functions: the headers, with a body after each declaration. So it depends neither on a build
of Torc nor on its flags, and holds nothing of Torc's insides. Functions, structs, enumerators and constants (macros of a number) are
in it, and each function's version node. `abi.py --source DIR --renew` writes both; the difference is a change for CHANGELOG.md.
Exit 77 without abigail-tools."""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

DUMP = ("--no-show-locs", "--no-comp-dir-path", "--no-corpus-path", "--no-elf-needed", "--no-parameter-names", "--load-all-types",
        "--no-write-default-sizes", "--no-architecture", "--type-id-style", "hash")
COMPARE = ("--non-reachable-types", "--harmless", "--no-show-locs", "--no-architecture")
# Of each library: the headers, what stands before its functions, and the file of its versions. Users of libtorc-testing build their tests
# anew (docs/decisions/0009-testing.md).
LIBRARIES = {"libtorc": (lambda header: header not in ("testing.h", "json.h"), "TORC_API", "torc.map"),
             "libtorc-json": (lambda header: header == "json.h", "TORC_JSON_API", "torc-json.map")}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# Macros of a number, also by other constants and operators: programs have them compiled in. Versions are not ABI.
NUMBER = re.compile(r"^#define (TORC_(?!VERSION)\w+) ((?:[\s()|&~^+*<>?:-]|\b(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b"
                    r"|\bU?INT(?:8|16|32|64|PTR)?_(?:C|MAX|MIN)\b|\bTORC_\w+\b)+)$", re.M)


def run(*args):
    done = subprocess.run(list(map(str, args)), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, args))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def with_body(match):
    """A declaration as a definition: attributes behind the parameters go, as a definition has none there."""
    api, declaration, depth = match[1], match[2], 0
    for i in range(declaration.index("("), len(declaration)):
        depth += {"(": 1, ")": -1}.get(declaration[i], 0)
        if depth == 0:
            return f"{api}{declaration[:i + 1]} {{ __builtin_trap(); }}"
    sys.exit(f"not a function: {api}{declaration}")


def constants(folder, source):
    """The macros that stand for numbers, as enumerators."""
    for name, value in NUMBER.findall(run("gcc", "-dM", "-E", "-I", folder, source)):
        if value.strip():
            yield f"    torc_macro_{name} = ({name}),\n"


def empty_library(stem, source, folder):
    """Builds the library of empty functions; its path, and that of its dump."""
    is_its, api, versions = LIBRARIES[stem]
    root = source / "include"
    includes = []
    for header in sorted(root.glob("torc/**/*.h")):
        name = header.relative_to(root)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        text = COMMENT.sub(" ", header.read_text())
        its = is_its(header.name)
        (folder / name).write_text(re.sub(rf"^({api})\b([^;{{]*);", with_body, text, flags=re.M) if its else text)
        includes += [f"#include <{name}>\n"] if its else []
    code, library = folder / f"{stem}.c", folder / f"{stem}.so"
    code.write_text("".join(includes))
    enumerators = "".join(sorted(constants(folder, code)))
    if enumerators:
        code.write_text("".join(includes) + "enum torc_macros {\n" + enumerators + "};\n")
    major, minor = re.search(r"project\(torc VERSION (\d+)\.(\d+)", (source / "CMakeLists.txt").read_text()).groups()
    soname = f"{stem}.so.0.{minor}" if major == "0" else f"{stem}.so.{major}"
    # Parameters without a name are C23's in definitions.
    run("gcc", "-std=gnu2x", "-w", "-g", "-gdwarf-4", "-O0", "-fno-eliminate-unused-debug-types", "-fPIC", "-shared",
        "-nostdlib", "-fuse-ld=bfd", f"-Wl,-soname,{soname},--version-script,{source / 'src' / versions}",
        f"-ffile-prefix-map={folder}=.", "-I", folder, code, "-o", library)
    return library, source / "abi" / f"{stem}-{major}.{minor}.abi"


def check(stem, source, renew):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        library, dump = empty_library(stem, source, folder)
        current = folder / dump.name
        run("abidw", *DUMP, "--out-file", current, library)
        if renew:
            dump.parent.mkdir(exist_ok=True)
            shutil.copy(current, dump)
            print(f"{dump}: {dump.stat().st_size} bytes")
            return 0
        if not dump.exists():
            print(f"{dump} does not exist: run `make abi-dump`")
            return 1
        compared = subprocess.run(["abidiff", *COMPARE, dump, current], capture_output=True, text=True, check=False)
    if compared.returncode:
        print(compared.stdout + compared.stderr)
        print(f"The ABI is not that of abi/{dump.name} (abidiff: {compared.returncode}). If the change is meant: "
              "`make abi-dump`, and a line in CHANGELOG.md.")
    return 1 if compared.returncode else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    parser.add_argument("--renew", action="store_true", help="write the dump")
    args = parser.parse_args()
    if not shutil.which("abidw"):
        print("abigail-tools is not installed (scripts/install-deps check)")
        return 2 if args.renew else 77
    return max(check(stem, pathlib.Path(args.source).resolve(), args.renew) for stem in LIBRARIES)


if __name__ == "__main__":
    sys.exit(main())
