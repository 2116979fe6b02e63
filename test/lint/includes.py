#!/usr/bin/env python3
"""Which folder of src/ may include which: the layers of docs/architecture.md. Any other include is a finding."""
import argparse
import pathlib
import re
import sys

# Direct permissions; they are closed over below (who may include io may include what io may).
ALLOWED = {
    "base": [],
    "regex": ["base"],
    "io": ["base"],
    "tls": ["io"],
    "creds": ["tls"],
    "http2": ["tls"],
    "lb": ["io"],
    "resolver": ["lb", "io"],
    "proto": ["base"],
    "xds": ["io", "proto"],
    "resource": ["xds", "proto", "regex"],
    "channel": ["http2", "creds", "lb", "resolver"],
    "mesh": ["channel", "xds", "resource"],
    "server": ["http2", "proto"],
    "admin": ["mesh", "server"],
}


def closure():
    result = {}

    def visit(folder):
        if folder not in result:
            result[folder] = {folder}
            for below in ALLOWED[folder]:
                result[folder] |= visit(below)
        return result[folder]

    for folder in ALLOWED:
        visit(folder)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    source = pathlib.Path(parser.parse_args().source) / "src"
    may = closure()
    findings = 0
    checked = 0
    for path in sorted(source.glob("*/*")):
        if path.suffix not in (".c", ".h", ".cc"):
            continue
        folder = path.parent.name
        checked += 1
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"/]+)/', line)
            if not match or match[1] == "pb":
                if match and folder not in ("proto", "xds", "resource", "mesh", "server", "admin"):
                    print(f"{path}:{number}: {folder} must not see protobuf messages")
                    findings += 1
                continue
            if match[1] not in ALLOWED:
                print(f"{path}:{number}: include of an unknown folder '{match[1]}'")
                findings += 1
            elif match[1] not in may[folder]:
                print(f"{path}:{number}: {folder} must not include {match[1]}")
                findings += 1
    print(f"{checked} files, {findings} findings")
    sys.exit(1 if findings or not checked else 0)


main()
