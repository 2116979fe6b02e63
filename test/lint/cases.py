#!/usr/bin/env python3
"""test/cases.md and the marks of the tests agree: each TC_CASE(RH01), case("RH01") in Python, has a row and stands at the top of
its test, each row has a mark, rows stand in the section of their group, and ids ascend, so that none is twice."""
import argparse
import pathlib
import re
import sys

MARK = re.compile(r'\bTC_CASE\((\w+)\)|(?<![\w.])case\("(\w+)"\)')


def rows_of(text):
    """(line number, section, cells) of each row of a case; sections begin with "## RH: "."""
    section = None
    for number, line in enumerate(text.splitlines(), 1):
        heading = re.match(r"## (\w+):", line)
        if heading:
            section = heading[1]
        elif line.startswith("| ") and not line.startswith("| id |"):
            yield number, section, [cell.strip() for cell in line.strip().strip("|").split("|")]


def marks_of(root):
    """(path, line number, id, whether it stands at the top of its test) of each mark of the tests."""
    for path in sorted((root / "test").rglob("*")):
        if path.suffix in (".c", ".h", ".py") and path.parent.name != "lint" and path.name != "case.h":
            top = False  # all lines since the head of the function are marks
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                found = list(MARK.finditer(line))
                for match in found:
                    yield path.relative_to(root), number, match[1] or match[2], top
                if not found:
                    top = line == "{" if path.suffix != ".py" else line.startswith("def test_") or line.endswith('"""')


def check_rows(rows):
    last = ""
    for number, section, cells in rows:
        if not re.fullmatch(r"[A-Z]{2}\d{2}", cells[0]):
            yield f"test/cases.md:{number}: {cells[0]} is not an id"
        elif len(cells) != 3 or not all(cells):
            yield f"test/cases.md:{number}: {cells[0]} needs a sentence and a source"
        elif cells[0][:2] != section:
            yield f"test/cases.md:{number}: {cells[0]} stands in the section of {section}"
        elif cells[0] <= last:
            yield f"test/cases.md:{number}: {cells[0]} after {last}: ids must ascend"
        last = cells[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    root = pathlib.Path(parser.parse_args().source)
    rows = list(rows_of((root / "test" / "cases.md").read_text(encoding="utf-8")))
    marks = list(marks_of(root))
    findings = list(check_rows(rows))
    ids = {cells[0] for _, _, cells in rows}
    for path, number, case, top in marks:
        if case not in ids:
            findings.append(f"{path}:{number}: {case} has no row in test/cases.md")
        if not top:
            findings.append(f"{path}:{number}: {case} does not stand at the top of its test")
    marked = {case for _, _, case, _ in marks}
    findings += [f"test/cases.md:{number}: no test has the mark {cells[0]}" for number, _, cells in rows if cells[0] not in marked]
    for finding in findings:
        print(finding)
    print(f"{len(rows)} cases, {len(marks)} marks, {len(findings)} findings")
    sys.exit(1 if findings or not rows else 0)


main()
