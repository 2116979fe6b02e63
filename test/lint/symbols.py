#!/usr/bin/env python3
"""What the libraries show: libtorc.so exports and libtorc.a has as global names what include/torc declares, all of it and nothing
else. Each symbol of libtorc.so has a version node of src/torc.map, whose newest node is of this minor release and alone may have a
pattern; the soname is the ABI's. With TORC_LATE_LOADING libtorc-regex.so exports its one function, and libtorc.so does not
need what it loads when it is first used. libtorc-testing has the same names and those of torc/testing.h, libtorc-json those of
torc/json.h."""
import argparse
import pathlib
import re
import subprocess
import sys


LOADED = ("libssl", "libcrypto", "libre2", "libstdc++", "libcurl", "libtorc-regex")


def names(library, *options):
    """The names that nm lists as defined; the absolute ones are the version nodes themselves."""
    out = subprocess.run(["nm", "--defined-only", *options, str(library)], capture_output=True, text=True, check=True).stdout
    return {line.split()[2] for line in out.splitlines() if re.match(r"[0-9a-f]+ [^A] \S", line)}


def dynamic(library, tag):
    out = subprocess.run(["readelf", "-dW", str(library)], capture_output=True, text=True, check=True).stdout
    return re.findall(rf"\({tag}\).*\[(.*)\]", out)


def version_findings(map_file, cache, library, versioned):
    """What is wrong with the nodes of the version script, with the versions of the exported symbols, and with the soname."""
    nodes = re.findall(r"^(TORC_[\w.]+) \{(.*?)\}", re.sub(r"/\*.*?\*/", "", map_file.read_text(), flags=re.S), re.S | re.M)
    major, minor = re.search(r"^CMAKE_PROJECT_VERSION:\w+=(\d+)\.(\d+)", cache, re.M).groups()
    if not nodes or nodes[-1][0] != f"TORC_{major}.{minor}":
        yield f"src/torc.map: the newest node is not TORC_{major}.{minor}"
    for node, body in nodes[:-1]:
        if "torc_*" in body:
            yield f"src/torc.map: {node} is released and has a pattern: name its symbols"
    for name in sorted(versioned):
        if name.partition("@@")[2] not in {node for node, _ in nodes}:
            yield f"libtorc.so exports {name} without a version node of src/torc.map"
    soname = f"libtorc.so.{f'0.{minor}' if major == '0' else major}"
    if dynamic(library, "SONAME") != [soname]:
        yield f"libtorc.so has the soname {dynamic(library, 'SONAME')}, expected {soname}"


def testing_findings(source, folder, declared, cache):
    """libtorc-testing has the names of libtorc and those of torc/testing.h, the latter with a version node of their own."""
    if "TORC_TESTING:BOOL=ON" not in cache:
        return
    own = set(re.findall(r"^TORC_TESTING_API [^;]*?\b(torc_\w+)\(", (source / "include/torc/testing.h").read_text(), re.M))
    versioned = names(folder / "libtorc-testing.so", "-D")
    of_testing = {name.partition("@@")[0] for name in versioned if name.endswith("@@TORC_TESTING")}
    if not own or own != of_testing:
        yield f"torc/testing.h declares and libtorc-testing.so exports as TORC_TESTING: {sorted(own ^ of_testing)} differ"
    for shown, where in (({name.partition("@")[0] for name in versioned}, "libtorc-testing.so"),
                         (names(folder / "libtorc-testing.a", "--extern-only"), "libtorc-testing.a")):
        if shown != declared | own:
            yield f"{where} and what include/torc declares differ: {sorted(shown ^ (declared | own))}"


def json_findings(source, folder, cache):
    """libtorc-json has the names of torc/json.h, with a version node of their own."""
    declared = set(re.findall(r"^TORC_JSON_API [^;]*?\b(torc_\w+)\(", (source / "include/torc/json.h").read_text(), re.M))
    major, minor = re.search(r"^CMAKE_PROJECT_VERSION:\w+=(\d+)\.(\d+)", cache, re.M).groups()
    exported = names(folder / "libtorc-json.so", "-D")
    if not declared or exported != {f"{name}@@TORC_JSON_{major}.{minor}" for name in declared}:
        yield f"torc/json.h declares and libtorc-json.so exports: {sorted(exported)} and {sorted(declared)}"
    archived = names(folder / "libtorc-json.a", "--extern-only")
    if archived != declared:
        yield f"torc/json.h declares and libtorc-json.a has: {sorted(archived ^ declared)} differ"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build", required=True)
    args = parser.parse_args()
    folder = pathlib.Path(args.build) / "src"
    library = folder / "libtorc.so"
    cache = (pathlib.Path(args.build) / "CMakeCache.txt").read_text()
    versioned = names(library, "-D")
    exported = {name.partition("@")[0] for name in versioned}
    archived = names(folder / "libtorc.a", "--extern-only")
    declared = set()
    for header in (pathlib.Path(args.source) / "include" / "torc").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for statement in re.findall(r"TORC_API\b([^;]*);", text):
            declared.add(re.search(r"\b(torc_\w+)\s*(\(|$)", statement)[1])
    findings = list(version_findings(pathlib.Path(args.source) / "src" / "torc.map", cache, library, versioned))
    findings += testing_findings(pathlib.Path(args.source), folder, declared, cache)
    findings += json_findings(pathlib.Path(args.source), folder, cache)
    for shown, where in ((exported, "libtorc.so"), (archived, "libtorc.a")):
        findings += [f"in {where} and not declared in include/torc: {n}" for n in sorted(shown - declared)]
        findings += [f"declared and not in {where}: {n}" for n in sorted(declared - shown)]
    late = "TORC_LATE_LOADING:BOOL=ON" in cache
    if late:
        findings += [f"libtorc-regex.so exports {n}" for n in names(folder / "libtorc-regex.so", "-D") - {"torc_regex_engine"}]
    if late and not re.search(r"^TORC_SANITIZE:\w+=.", cache, re.M):  # a sanitizer's runtime brings libstdc++
        findings += [f"libtorc.so needs {n}" for n in dynamic(library, "NEEDED") if n.startswith(LOADED)]
    print("\n".join(findings))
    print(f"{len(exported)} exported, {len(archived)} in the archive, {len(declared)} declared, {len(findings)} findings")
    sys.exit(1 if findings or not exported or not archived else 0)


main()
