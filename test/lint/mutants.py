#!/usr/bin/env python3
"""Every mutant of test/sim/mutants.txt still applies: its line is in its file, once, and the file compiles with the replacement."""
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
    found, names = 0, set()
    listed = mutants.read_mutants(root / "test/sim/mutants.txt")
    for mutant in listed:
        path = (root / mutant["file"]).resolve()
        text = mutants.apply(mutant, path.read_text()) if path.is_file() else None
        command = by_file.get(path) or by_file.get(path.with_suffix(".c"))  # a header compiles as its .c file does
        complaint = "its line is not in the file once" if text is None else compile_with(command, path, text)
        if mutant["name"] in names:
            complaint = "the name is there twice"
        names.add(mutant["name"])
        if complaint:
            print(f"test/sim/mutants.txt: {mutant['name']}: {complaint}")
            found += 1
    print(f"{len(listed)} mutants, {found} findings")
    sys.exit(1 if found or not listed else 0)


main()
