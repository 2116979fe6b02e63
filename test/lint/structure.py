#!/usr/bin/env python3
"""The shape of src/ (docs/internals/architecture.md): circles of files, large structs, long functions and files, tags that stand
for two structs, who writes create_subchannel, and test/unit that mirrors the folders."""
import argparse
import collections
import pathlib
import re
import sys

# A circle is a set of files that include one another; a file is X.c with X.h and X_internal.h.
MOST_CIRCLES = 2
MOST_IN_A_CIRCLE = 4
MOST_MEMBERS = 40  # of a struct, those of anonymous structs inside included
MOST_FUNCTION_LINES = 60
MOST_FILE_LINES = 700
MOST_SUBCHANNEL_FILES = 4
# Opaque structs of src that a world has its own form of (src/testing): one program has one of the two.
OF_A_WORLD = {"tc_connect", "tc_dns", "tc_file_watch", "tc_listen_socket", "torc_pool"}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
STRUCT = re.compile(r"\bstruct\s+(\w+)\s*(?:__attribute__\s*\(\(.*?\)\)\s*)?\{")


def without_comments(text):
    """The text with comments and the contents of strings blanked, lines kept."""
    def blank(match):
        token = match[0]
        return '""' if token[0] in "\"'" else "\n" * token.count("\n") or " "

    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text, flags=re.S)


def unit_of(name):
    return re.sub(r"(_internal)?\.\w+$", "", name)


def include_graph(texts):
    graph = collections.defaultdict(set)
    for name, text in texts.items():
        for other in INCLUDE.findall(text):
            if other in texts and unit_of(other) != unit_of(name):
                graph[unit_of(name)].add(unit_of(other))
    return graph


def reachable(graph, start):
    seen, waiting = set(), [start]
    while waiting:
        for other in graph.get(waiting.pop(), ()):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


def circles(graph):
    """The strongly connected sets of more than one file: a file is in a circle with each one that it reaches and that reaches it."""
    reach = {unit: reachable(graph, unit) for unit in graph}
    found = set()
    for unit, others in reach.items():
        if unit in others:
            found.add(frozenset(o for o in others if unit in reach.get(o, ())))
    return sorted(sorted(circle) for circle in found)


def check_circles(texts, found):
    all_circles = circles(include_graph(texts))
    for circle in all_circles:
        if len(circle) > MOST_IN_A_CIRCLE or len(all_circles) > MOST_CIRCLES:
            found.append(f"src/{circle[0]}.c:1: a circle of {len(circle)} files: {' '.join(circle)}")
    if len(all_circles) > MOST_CIRCLES:
        found.append(f"src: {len(all_circles)} circles of files, {MOST_CIRCLES} at most")


def body_at(text, start):
    """What stands between the brace before `start` and the brace that closes it."""
    depth, at = 1, start
    while depth and at < len(text):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return text[start:at - 1]


def members(body):
    count = 0
    for statement in re.sub(r"\b(struct|union|enum)\b[^;{}()]*\{", "", body).split(";"):
        statement = statement.strip().lstrip("}").strip()
        if statement:
            flat = re.sub(r"\([^()]*\)|\[[^\]]*\]", "", statement)
            count += 1 + flat.count(",")
    return count


def check_structs(texts, found):
    places = {}
    for name, text in texts.items():
        for match in STRUCT.finditer(text):
            place = f"src/{name}:{text.count(chr(10), 0, match.start()) + 1}"
            count = members(body_at(text, match.end()))
            if count > MOST_MEMBERS:
                found.append(f"{place}: struct {match[1]} has {count} members, {MOST_MEMBERS} at most")
            if name.startswith("testing/") and match[1] in OF_A_WORLD:
                continue
            if match[1] in places:
                found.append(f"{place}: struct {match[1]} is defined at {places[match[1]]} too")
            places[match[1]] = place


def check_lengths(texts, found):
    for name, text in texts.items():
        lines = text.splitlines()
        if not name.endswith(".h") and len(lines) > MOST_FILE_LINES:
            found.append(f"src/{name}:1: {len(lines)} lines, {MOST_FILE_LINES} at most")
        begin = None
        for number, line in enumerate(lines, 1):
            if line == "{":
                begin = number
            elif line == "}" and begin is not None:
                if number - begin + 1 > MOST_FUNCTION_LINES:
                    found.append(f"src/{name}:{begin}: a function of {number - begin + 1} lines, {MOST_FUNCTION_LINES} at most")
                begin = None


def check_subchannels(texts, found):
    """An address goes down through the policies and comes back up through create_subchannel: few may stand on that way."""
    makers = [name for name, text in texts.items() if re.search(r"\.create_subchannel\s*=", text)]
    if len(makers) > MOST_SUBCHANNEL_FILES:
        found.append(f"src: create_subchannel is written in {len(makers)} files, {MOST_SUBCHANNEL_FILES} at most: {' '.join(makers)}")


def check_mirror(root, found):
    """A test lies in the folder that bears the name of what it tests; every folder of src that has code has tests."""
    code = {p.parent.relative_to(root / "src") for p in (root / "src").rglob("*.c")}
    tests = {p.parent.relative_to(root / "test" / "unit") for p in (root / "test" / "unit").rglob("*_test.c")}
    command = {pathlib.Path("cmd") / p.parent.relative_to(root / "cmd" / "torc") for p in (root / "cmd" / "torc").rglob("*.c")}
    found += [f"test/unit/{folder}: no such folder in src, or in cmd/torc" for folder in sorted(tests - code - command)]
    found += [f"test/unit/{folder}: src/{folder} has no unit tests" for folder in sorted(code - tests)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    root = pathlib.Path(parser.parse_args().source)
    src = root / "src"
    raw = {p.relative_to(src).as_posix(): p.read_text() for p in sorted(src.rglob("*")) if p.suffix in (".c", ".h", ".cc")}
    texts = {name: without_comments(text) for name, text in raw.items()}
    found = []
    check_circles(raw, found)
    check_structs(texts, found)
    check_lengths(texts, found)
    check_subchannels(texts, found)
    check_mirror(root, found)
    for line in found:
        print(line)
    print(f"{len(texts)} files, {len(found)} findings")
    sys.exit(1 if found or not texts else 0)


main()
