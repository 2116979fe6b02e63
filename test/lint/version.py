#!/usr/bin/env python3
"""Every place that has the version of the release has the one of CMakeLists.txt (docs/internals/release.md lists the places)."""
import argparse
import pathlib
import re
import sys

PLACES = [  # file, pattern of the version there
    ("include/torc/version.h", r'^#define TORC_VERSION "(.*)"$'),
    ("docs/reference/*.1", r'^\.TH \S+ 1 "\d{4}-\d\d-\d\d" "torc (.*?)"'),
    ("CHANGELOG.md", r"^## (\S+)"),
    ("debian/changelog", r"^torc \((\S+)\)"),
    ("packaging/torc.spec", r"^Version: +(\S+)"),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    args = parser.parse_args()
    source = pathlib.Path(args.source)
    version = re.search(r"^project\(torc VERSION (\S+)", (source / "CMakeLists.txt").read_text(), re.M)[1]
    findings = []
    for pattern, where in PLACES:
        files = sorted(source.glob(pattern))
        if not files:
            findings.append(f"{pattern}: no such file")
        for path in files:
            found = re.search(where, path.read_text(encoding="utf-8"), re.M)
            if not found or found[1] != version:
                findings.append(f"{path.relative_to(source)}: version {found and found[1]}, expected {version}")
    header = (source / "include/torc/version.h").read_text()
    numbers = ".".join(re.findall(r"^#define TORC_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.M))
    if numbers != version:
        findings.append(f"include/torc/version.h: numbers {numbers}, expected {version}")
    print("\n".join(findings))
    return bool(findings)


sys.exit(main())
