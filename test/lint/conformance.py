#!/usr/bin/env python3
"""docs/evidence/conformance.md: a row for each gRFC that the sources or the pages name, and for those that nothing else
names because nothing of them is built; the tests that a row names are there."""
import argparse
import pathlib
import re
import sys

GRFC = re.compile(r"\bA\d{1,3}\b")
NOT_NAMED_ELSEWHERE = {"A9", "A14", "A16", "A66", "A69", "A72", "A78", "A79"}


def named(root):
    """gRFC -> a file that names it."""
    found = {}
    for folder, suffixes in (("src", {".c", ".h"}), ("include", {".h"}), ("cmd", {".c", ".h"}), ("docs", {".md"})):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and path.name != "conformance.md":
                for grfc in GRFC.findall(path.read_text(encoding="utf-8")):
                    found.setdefault(grfc, path.relative_to(root))
    return found


def test_is_there(root, name):
    """name: "unit/http2", which is a folder, "unit/lb/orca" or "unit/lb/ring_hash/policy*"."""
    if name.endswith("*"):
        return any((root / "test").glob(name))
    return (root / "test" / name).is_dir() or any((root / "test").glob(f"{name}_test.*"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    root = pathlib.Path(parser.parse_args().source)
    page = root / "docs" / "evidence" / "conformance.md"
    rows, findings, have = 0, [], set()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" |")] if line.startswith("| ") else []
        if len(cells) < 4 or cells[0] == "gRFC":
            continue
        rows += 1
        have.update(GRFC.findall(cells[0]))
        for name in re.findall(r"\b(?:unit|e2e|model)/[a-z0-9_/]+\*?", cells[2]):
            if not test_is_there(root, name):
                findings.append(f"{page.relative_to(root)}:{number}: no test {name}")
    for grfc, path in sorted(named(root).items()):
        if grfc not in have:
            findings.append(f"{page.relative_to(root)}: no row for {grfc}, which {path} names")
    findings += [f"{page.relative_to(root)}: no row for {grfc}" for grfc in sorted(NOT_NAMED_ELSEWHERE - have)]
    print("\n".join(findings + [f"{rows} rows, {len(findings)} findings"]))
    sys.exit(1 if findings or not rows else 0)


main()
