#!/usr/bin/env python3
"""The public headers, each compiled alone.

Every header of include/torc compiles alone and without a warning as the oldest standard of C and of C++ that applications use, with gcc and,
where it is installed, with clang; all of them together as each later one. gcc also compiles them for 32 bits, where the compiler can (x86).

Structs that begin with their size have fields of few types, all of them in a table of src/base/options.c.

The structs have no implicit padding, on 64 and 32 bits, as a field that is added would change what a compiler puts there. PADDED lists the
structs that still have padding; the list may only shrink."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

STANDARDS = {"c": ("c99", "c11", "c17", "c2x"), "c++": ("c++11", "c++14", "c++17", "c++20")}
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wstrict-prototypes", "-Werror")
# Structs with padding, by width: a struct that has none any longer is to be taken off.
PADDED = {64: set(), 32: set()}
# Structs that base/options.c has no table of: their readers check what is required (json/convert.c does for libtorc-json), and generated code fills in those of torc/stub.h.
UNLISTED = {"torc_allocator", "torc_endpoint", "torc_handler", "torc_json_options", "torc_lb_factory", "torc_protobuf_c_handler", "torc_protobuf_c_method",
            "torc_resolver_factory", "torc_server_call_events", "torc_stream_events", "torc_stub_file"}
SIZED = re.compile(r"^struct (\w+) \{\n    uint64_t size;(.*?)^\};", re.M | re.S)
# Not of functions that a field points at: what they return is no part of the struct.
FOREIGN = re.compile(r"^    (?:bool|enum|(?:unsigned )?long|size_t|ssize_t|int|unsigned|u?int\d+_t \w+ :)\b(?! \(\*).*", re.M)
STRUCT = re.compile(r"^(?:typedef )?struct (\w+)?.*\{")


def compile_all(compiler, language, sources, *options):
    """Compiles without output; returns what the compiler printed when it failed or warned."""
    done = subprocess.run([compiler, "-x", language, "-fsyntax-only", *options, *map(str, sources)], capture_output=True,
                          text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    return done.stderr if done.returncode or done.stderr else ""


def struct_at(path, number):
    """The tag of the struct that the line belongs to."""
    for line in reversed(path.read_text().splitlines()[:number]):
        found = STRUCT.match(line)
        if found:
            return found[1] or "(without a tag)"
    return "(none)"


def padded(compiler, sources, *options):
    """The structs of include/torc that the compiler pads, each with the places."""
    places = {}
    text = compile_all(compiler, "c", sources, "-std=c17", "-Wpadded", *options)
    for name, number, what in re.findall(r"^(\S*include/torc/\S+?):(\d+):\d+: warning: (padding struct[^\n]*?)(?: \[-W|$)", text, re.M):
        path = pathlib.Path(name)
        places.setdefault(struct_at(path, int(number)), set()).add(f"{path.name}:{number}: {what}")
    return places


def padding_findings(width, places):
    for name in sorted(places.keys() - PADDED[width]):
        yield from sorted(f"struct {name}, {width} bits: {place}" for place in places[name])
    for name in sorted(PADDED[width] - places.keys()):
        yield f"struct {name} has no padding on {width} bits: take it off PADDED in test/lint/headers.py"


def sized_findings(root, table):
    """Structs that grow by their size: `table`, the text of base/options.c, has the fields of each, and their types are few."""
    found = {}
    for header in sorted(root.glob("torc/**/*.h")):
        for name, body in SIZED.findall(header.read_text()):
            found[name] = body
    listed = set(re.findall(r"= STRUCT\((\w+),", table))
    for name in sorted(found.keys() ^ (listed | UNLISTED)):
        yield f"struct {name}: {'has no table in src/base/options.c' if name in found else 'is no longer in include/torc'}"
    for name, body in found.items():
        yield from (f"struct {name}: the type of `{field.strip()}`" for field in FOREIGN.findall(body))


def thirty_two_bits(compiler, folder):
    """Options with which the compiler takes the headers for 32 bits, or None. Debian's libc headers serve both widths, without
    gcc-multilib too: what is missing is their place, and a list of stubs, for which an empty file stands in."""
    (folder / "gnu").mkdir()
    (folder / "gnu" / "stubs-32.h").touch()
    (folder / "probe.c").write_text("#include <stdint.h>\n#include <stddef.h>\ntypedef int probe[sizeof(void *) == 4 ? 1 : -1];\n")
    place = subprocess.run([compiler, "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
    options = ("-m32", "-idirafter", str(folder), "-idirafter", f"/usr/include/{place}")
    return None if compile_all(compiler, "c", [folder / "probe.c"], *options) else options


def runs(sources, together, include, narrow):
    """(what, arguments of compile_all) of each run of a compiler. In its oldest standard it compiles each header alone."""
    for c_compiler, cxx_compiler in (("gcc", "g++"), ("clang", "clang++")):
        if not shutil.which(c_compiler):
            print(f"{c_compiler} is not installed")
            continue
        for language, standards in STANDARDS.items():
            compiler = c_compiler if language == "c" else cxx_compiler
            warnings = [w for w in WARNINGS if language == "c" or w != "-Wstrict-prototypes"]
            for standard in standards:
                options = [f"-std={standard}", *warnings, *include]
                these = sources if standard == standards[0] else [together]
                yield f"{compiler} -std={standard}", (compiler, language, these, *options)
                if compiler in ("gcc", "g++") and narrow:
                    yield f"{compiler} -m32 -std={standard}", (compiler, language, [together], *options, *narrow)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build", required=True)
    root = pathlib.Path(parser.parse_args().source) / "include"
    headers = sorted(path.relative_to(root) for path in root.glob("torc/**/*.h"))
    findings = []
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = pathlib.Path(name)
        sources = []
        for header in headers:
            # A translation unit must declare something. A header included twice declares it once.
            sources.append(folder / (str(header).replace("/", "_") + ".c"))
            sources[-1].write_text(f"#include <{header}>\n#include <{header}>\ntypedef int torc_not_empty;\n")
        together = folder / "together.c"
        together.write_text("".join(f"#include <{header}>\n" for header in headers))
        narrow = thirty_two_bits("gcc", folder)
        if not narrow:
            print("gcc does not compile for 32 bits here: only 64 are looked at")
        jobs = list(runs(sources, together, ["-I", str(root)], narrow))
        for (what, _), text in zip(jobs, pool.map(lambda job: compile_all(*job[1]), jobs)):
            if text:
                findings.append(f"{what}:\n{text}")
        findings += sized_findings(root, (root.parent / "src" / "base" / "options.c").read_text())
        for width, options in ((64, ()), (32, narrow)):
            if options is not None:
                findings += padding_findings(width, padded("gcc", [together], "-I", str(root), *options))
    print("\n".join([*findings, f"{len(headers)} headers, {len(jobs)} compilers and standards, {len(findings)} findings"]))
    return 1 if findings or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
