#!/usr/bin/env python3
"""The ABI is the committed one: abi/libtorc-MAJOR.MINOR.abi, a dump of what include/torc declares (docs/decisions/0002-abi.md).

The dump is made from a library of empty functions: the headers, with a body after each declaration. So it depends neither on a build
of Torc nor on its flags, and holds nothing of Torc's insides. Functions, structs, enumerators and constants (macros of a number) are
in it, and each function's version node. `abi.py --source DIR --renew` writes it; the difference is a change for CHANGELOG.md.
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
    declaration, depth = match[1], 0
    for i in range(declaration.index("("), len(declaration)):
        depth += {"(": 1, ")": -1}.get(declaration[i], 0)
        if depth == 0:
            return f"TORC_API{declaration[:i + 1]} {{ __builtin_trap(); }}"
    sys.exit(f"not a function: TORC_API{declaration}")


def constants(folder, source):
    """The macros that stand for numbers, as enumerators."""
    for name, value in NUMBER.findall(run("gcc", "-dM", "-E", "-I", folder, source)):
        if value.strip():
            yield f"    torc_macro_{name} = ({name}),\n"


def empty_library(source, folder):
    """Builds the library of empty functions; its path."""
    root = source / "include"
    includes = []
    for header in sorted(root.glob("torc/**/*.h")):
        if header.name in ("testing.h", "json.h"):
            continue  # of libtorc-testing, whose users build their tests anew (docs/decisions/0009-testing.md), and of libtorc-json
        name = header.relative_to(root)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        text = COMMENT.sub(" ", header.read_text())
        (folder / name).write_text(re.sub(r"^TORC_API\b([^;{]*);", with_body, text, flags=re.M))
        includes.append(f"#include <{name}>\n")
    code, library = folder / "libtorc.c", folder / "libtorc.so"
    code.write_text("".join(includes))
    enumerators = "".join(sorted(constants(folder, code)))
    if enumerators:
        code.write_text("".join(includes) + "enum torc_macros {\n" + enumerators + "};\n")
    major, minor = re.search(r"project\(torc VERSION (\d+)\.(\d+)", (source / "CMakeLists.txt").read_text()).groups()
    soname = f"libtorc.so.0.{minor}" if major == "0" else f"libtorc.so.{major}"
    # Parameters without a name are C23's in definitions.
    run("gcc", "-std=gnu2x", "-w", "-g", "-gdwarf-4", "-O0", "-fno-eliminate-unused-debug-types", "-fPIC", "-shared",
        "-nostdlib", "-fuse-ld=bfd", f"-Wl,-soname,{soname},--version-script,{source / 'src' / 'torc.map'}",
        f"-ffile-prefix-map={folder}=.", "-I", folder, code, "-o", library)
    return library, source / "abi" / f"libtorc-{major}.{minor}.abi"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    parser.add_argument("--renew", action="store_true", help="write the dump")
    args = parser.parse_args()
    if not shutil.which("abidw"):
        print("abigail-tools is not installed (scripts/install-deps check)")
        return 2 if args.renew else 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        library, dump = empty_library(pathlib.Path(args.source).resolve(), folder)
        current = folder / dump.name
        run("abidw", *DUMP, "--out-file", current, library)
        if args.renew:
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


if __name__ == "__main__":
    sys.exit(main())
