#!/usr/bin/env python3
"""Every mutant of test/sim/mutants.txt and test/regressions/regressions.txt still applies: each line is in its file, once, and files of C
compile with the replacements. The tests that regressions name are tests of this build."""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys


def compile_with(command, path, text):
    """The compiler's complaint about the text in the file's place; empty: none."""
    words = [w for w in shlex.split(command["command"]) if w != "ccache"]
    words = words[: words.index("-o")] + ["-w", "-fsyntax-only", "-x", "c", f"-I{path.parent}", "-"]
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False, cwd=command["directory"])
    return done.stderr.strip().splitlines()[0] if done.returncode else ""


def complaints_of(mutant, texts, by_file):
    """What is wrong with one mutant; `texts` as mutants.changed_files returns them."""
    if texts is None:
        return ["a line is not in its file once"]
    found = []
    for path, text in texts.items():
        path = path.resolve()
        command = by_file.get(path) or by_file.get(path.with_suffix(".c"))  # a header compiles as its .c file does
        complaint = compile_with(command, path, text) if path.suffix in (".c", ".h") and command else ""
        if path.suffix == ".c" and not command:
            complaint = f"{path.name} is not compiled"
        found += [complaint] if complaint else []
    return found


def tests_of(build):
    """The names of the build's tests."""
    out = subprocess.run(["ctest", "--show-only=json-v1"], capture_output=True, text=True, check=True, cwd=build).stdout
    return {test["name"] for test in json.loads(out)["tests"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build", required=True)
    args = parser.parse_args()
    root = pathlib.Path(args.source)
    sys.path.insert(0, str(root / "test/sim"))
    import mutants

    commands = json.loads((pathlib.Path(args.build) / "compile_commands.json").read_text())
    by_file = {pathlib.Path(c["file"]).resolve(): c for c in commands}
    tests, listed, found = tests_of(args.build), 0, []
    for name in ("test/sim/mutants.txt", "test/regressions/regressions.txt"):
        names = set()
        for mutant in mutants.read_mutants(root / name):
            complaints = complaints_of(mutant, mutants.changed_files(mutant, root), by_file)
            complaints += ["the name is there twice"] if mutant["name"] in names else []
            complaints += [f"{test} is not a test" for test in mutant["tests"] if test not in tests]
            complaints += ["names no test"] if "regressions" in name and not mutant["tests"] else []
            names.add(mutant["name"])
            found += [f"{name}: {mutant['name']}: {complaint}" for complaint in complaints]
        listed += len(names)
    print("\n".join(found + [f"{listed} mutants, {len(found)} findings"]))
    sys.exit(1 if found or not listed else 0)


main()
