#!/usr/bin/env python3
"""Blocks of code in README, CONTRIBUTING and docs: each says what it is (```c), none is merely indented, and above each block of commands
(sh, console) stands who runs it, a test that reads the page, or why nobody does: <!-- run by e2e/install -->, <!-- not run: why -->.
Blocks of C are compiled by test/e2e/docs_code_test.py. Each row of a table belongs to a table: an empty line within a table ends it, and
shows the rows below as text."""
import argparse
import pathlib
import re
import sys

KINDS = {"c", "cmake", "console", "json", "meson", "proto", "sh", "text", "yaml"}
RULE = re.compile(r"\|(?: *:?-+:? *\|)+")  # between a table's header and its rows
MARK = re.compile(r"<!-- (?:run by ((?:e2e|interop)/\w+)|not run: (.+)) -->")


def check(root, path):
    page = path.relative_to(root).as_posix()
    lines = ["", *path.read_text(encoding="utf-8").splitlines()]
    inside = False
    for number, line in enumerate(lines):
        if line.startswith("```"):
            inside = not inside
            kind = line[3:]
            if not inside:
                continue
            if kind not in KINDS:
                yield f"{page}:{number}: a block of kind '{kind}'; known are {' '.join(sorted(KINDS))}"
            elif kind in ("sh", "console"):
                mark = MARK.fullmatch(lines[number - 1])
                test = mark and mark[1] and root / "test" / f"{mark[1]}_test.py"
                if not mark:
                    yield f"{page}:{number}: commands without <!-- run by e2e/NAME --> or <!-- not run: why --> above them"
                elif test and (not test.exists() or path.name not in test.read_text(encoding="utf-8")):
                    yield f"{page}:{number}: there is no {test.relative_to(root)} that reads {path.name}"
        elif not inside and line.startswith("    ") and not lines[number - 1]:
            yield f"{page}:{number}: an indented block: say of which kind it is"
        elif not inside and line.startswith("|") and not lines[number - 1].startswith("|") and not RULE.fullmatch("".join(lines[number + 1:number + 2])):
            yield f"{page}:{number}: a row without a table's header above it"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    root = pathlib.Path(parser.parse_args().source).resolve()
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    findings = [finding for page in pages for finding in check(root, page)]
    print("\n".join([*findings, f"{len(pages)} pages, {len(findings)} findings"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
