#!/usr/bin/env python3
"""The house (docs/internals/architecture.md): every folder of src/ stands on a floor and includes only itself and what comes
before it in FLOORS. A header NOUN_internal.h opens the inside of NOUN to its own folder, its unit tests and GUESTS, and has at most 150 lines.
No folder has more than 24 .c files. Public functions are defined in PUBLIC folders alone."""
import argparse
import collections
import pathlib
import re
import sys

# From the ground up.
FLOORS = """base io proto json regex tls ring lb lb/policies lb/ring_hash lb/outlier_detection lb/weighted_round_robin http2 creds/call creds resolver
subchannel runtime channel server xds/bootstrap xds/load xds/client xds/resource xds/filter xds/domain xds/lb xds/resolver
api api/server stub controlplane testing""".split()
# Who may see the generated protobuf messages.
MESSAGES = ("proto", "server", "xds/", "api", "stub", "controlplane")
PUBLIC = ("api", "api/server", "stub", "runtime", "creds", "creds/call", "base", "testing", "json")
MOST_FILES = 24
MOST_INTERNAL_LINES = 150
# Who else may include an internal header, a folder or a file: torc_call embeds the loop's call, two files have the public
# functions of channels, and benchmarks and tests look inside.
GUESTS = {
    "channel/call_internal.h": ["src/api/call_object.h"],
    "channel/channel_internal.h": ["src/api/channel.c", "src/api/channel_watch.c"],
    "ring/ring_internal.h": ["bench/ring.c", "test/fuzz/ring_fuzz.c", "test/unit/lb/ring_hash"],
    "testing/net_internal.h": ["test/sim/faults.c"],
    "http2/connection_internal.h": ["test/sim/servers.c"],
    "server/server_internal.h": ["test/sim/servers.c"],
    "runtime/runtime_internal.h": ["test/e2e/process_moments_test.c"],
}

INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)/([^"/]+)"')


def sources(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in (".c", ".h", ".cc"))


def check_includes(root, found):
    for path in sources(root / "src"):
        folder = path.parent.relative_to(root / "src").as_posix()
        if folder not in FLOORS:
            found.append(f"{path}:1: the folder '{folder}' has no floor (FLOORS)")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            other = match[1]
            if other == "pb" or other.startswith("pb/"):
                if not folder.startswith(MESSAGES):
                    found.append(f"{path}:{number}: {folder} must not see protobuf messages")
            elif other not in FLOORS:
                found.append(f"{path}:{number}: include of an unknown folder '{other}'")
            elif FLOORS.index(other) > FLOORS.index(folder):
                found.append(f"{path}:{number}: {folder} must not include {other}, which stands on a higher floor")


def check_internal(root, found):
    for path in [p for place in ("src", "cmd", "test", "bench", "examples") for p in sources(root / place)]:
        lines = path.read_text().splitlines()
        if path.name.endswith("_internal.h") and len(lines) > MOST_INTERNAL_LINES:
            found.append(f"{path}:1: {len(lines)} lines, {MOST_INTERNAL_LINES} at most: what it opens is too much")
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            header = f"{match[1]}/{match[2]}" if match else ""
            if not header.endswith("_internal.h"):
                continue
            hosts = {f"src/{match[1]}", f"test/unit/{match[1]}", f"test/{match[1]}", *GUESTS.get(header, [])}
            place = path.relative_to(root)
            if not hosts & {place.as_posix(), place.parent.as_posix()}:
                found.append(f"{path}:{number}: {header} is for {match[1]} and its tests alone")


def check_folders(root, found):
    count = collections.Counter(p.parent for p in sources(root / "src") if p.suffix != ".h")
    found += [f"{folder}: {n} .c files, {MOST_FILES} at most" for folder, n in count.items() if n > MOST_FILES]


def check_public(root, found):
    api = set()
    for header in (root / "include" / "torc").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for statement in re.findall(r"TORC_(?:TESTING_|JSON_)?API\b([^;]*);", text):
            api |= set(re.findall(r"\b(torc_\w+)\s*\(", statement)[:1])
    for path in sources(root / "src"):
        folder = path.parent.relative_to(root / "src").as_posix()
        if path.suffix == ".h" or folder in PUBLIC:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r"[a-z][\w *]*?\b(torc_\w+)\(", line)
            if match and match[1] in api:
                found.append(f"{path}:{number}: {match[1]} is public: its place is {', '.join(PUBLIC)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    root = pathlib.Path(parser.parse_args().source)
    found = []
    check_includes(root, found)
    check_internal(root, found)
    check_folders(root, found)
    check_public(root, found)
    checked = len(sources(root / "src"))
    for line in found:
        print(line)
    print(f"{checked} files, {len(found)} findings")
    sys.exit(1 if found or not checked else 0)


main()
