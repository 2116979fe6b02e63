#!/usr/bin/env python3
"""Every row of docs/operations/limits.md's tables of limits names tests that are there: "unit/xds/client/lrs: limits_of_a_server", or
"e2e/hostile_backend "a case of its table"". A row that names none, or a folder, is a finding. In
tables whose last column is "rows" a case without a test before it is one of test/support/hostile."""
import argparse
import pathlib
import re
import sys


def hostile_cases(root):
    return "\n".join(f.read_text(encoding="utf-8") for f in sorted((root / "test" / "support" / "hostile").glob("*")))


def sources(root, name):
    """The text of a test, with that of the tables of cases which it plays."""
    files = [root / "test" / f"{name}_test{suffix}" for suffix in (".c", ".py")]
    files = [f for f in files if f.exists()]
    if files and "hostile" in name:
        return "\n".join([f.read_text(encoding="utf-8") for f in files] + [hostile_cases(root)])
    return "\n".join(f.read_text(encoding="utf-8") for f in files) if files else None


def check(root, cell, text):
    """Returns what is wrong with a cell. Tests are separated by commas or semicolons; a name that follows a test without a
    file belongs to that test. `text`: what has the cases that stand before the first test; None: nothing has."""
    if not cell:
        return "no test"
    for part in re.findall(r'(?:[^,;"]|"[^"]*")+', cell):
        part = part.strip()
        if part == "..." and text is not None:  # and more of that kind
            continue
        match = re.fullmatch(r'(?:((?:unit|e2e|model)/[a-z0-9_/]+)(:| |$))?\s*(?:([a-z0-9_]+)|"(?:\.\.\. )?([^"]+?)(?: \.\.\.)?")?',
                             part)
        if not match:
            return f"unreadable: {part}"
        if match[1]:
            text = sources(root, match[1])
            if text is None:
                return f"no such test: {match[1]}"
            if not match[3] and not match[4]:
                return f"no case of {match[1]} is named"
        if text is None:
            return f"no test before: {part}"
        if match[3] and not re.search(rf"\b{match[3]}\(", text):
            return f"no {match[3]} in {part}"
        if match[4] and match[4] not in text:
            return f"no case \"{match[4]}\""
    return None if text else "no test"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    root = pathlib.Path(parser.parse_args().source)
    lines = (root / "docs" / "operations" / "limits.md").read_text(encoding="utf-8").splitlines()
    rows = findings = 0
    in_table = False
    for number, line in enumerate(lines, 1):
        cells = [c.strip() for c in line.strip().strip("|").split(" |")] if line.startswith("|") else None
        if not cells:
            in_table = False
        elif cells[-1].strip() in ("test", "rows"):
            in_table = True
            text = hostile_cases(root) if cells[-1].strip() == "rows" else None
        elif in_table and not line.startswith("|---"):
            rows += 1
            fault = check(root, cells[-1], text)
            if fault:
                findings += 1
                print(f"docs/operations/limits.md:{number}: {fault}")
    print(f"{rows} limits, {findings} findings")
    sys.exit(1 if findings or not rows else 0)


main()
