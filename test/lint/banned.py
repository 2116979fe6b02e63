#!/usr/bin/env python3
"""Functions and habits that the project does not use, and files that grew too long."""
import argparse
import pathlib
import re
import sys

BANNED = {
    r"\bsprintf\s*\(": "use tc_buf_printf",
    r"\bvsprintf\s*\(": "use tc_buf_vprintf",
    r"\bstrcpy\s*\(": "use tc_strdup or tc_buf",
    r"\bstrncpy\s*\(": "use tc_strndup or tc_buf",
    r"\bstrcat\s*\(": "use tc_buf",
    r"\bstrncat\s*\(": "use tc_buf",
    r"\bstrtok(_r)?\s*\(": "use tc_slice_split",
    r"\bato[ifl]l?\s*\(": "use tc_parse_u64",
    r"\bgets\s*\(": "use fgets",
    r"\balloca\s*\(": "use an arena",
    r"(?<!tc_)\b(malloc|calloc|realloc|strdup|strndup|asprintf)\s*\(": "use base/mem.h",
    r"\b(sleep|usleep|nanosleep|uv_sleep)\s*\(": "wait for an event, not for a clock",
    r"#include\s*<uthash\.h>": "use base/table.h",
    r"\b(TODO|FIXME|XXX|HACK)\b": "finish it",
}
# Where a ban does not hold, and why.
EXCEPT = {
    ("src/base/mem.c", "use base/mem.h"): "the wrappers themselves",
    ("src/base/table.h", "use base/table.h"): "the tables themselves",
    ("src/base/buf.h", "use base/mem.h"): "declares tc_asprintf",
}
MAX_LINES = 700
MAX_COLUMNS = 120


def strip(text):
    """The text without comments and string contents, lines kept."""
    out = []
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    last = 0
    for match in pattern.finditer(text):
        out.append(text[last : match.start()])
        token = match[0]
        out.append("\n" * token.count("\n") if token[0] == "/" else '""')
        last = match.end()
    out.append(text[last:])
    return "".join(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    root = pathlib.Path(parser.parse_args().source)
    findings = checked = 0
    folders = ["src", "include", "cmd", "test", "bench", "examples"]
    for path in sorted(p for f in folders for p in (root / f).rglob("*") if p.suffix in (".c", ".h", ".cc")):
        if "node_modules" in path.parts or path.match("test/abi/*/include/torc/*"):
            continue  # the headers of a release stay as they were
        checked += 1
        name = str(path.relative_to(root))
        text = path.read_text()
        lines = text.count("\n")
        if lines > MAX_LINES:
            print(f"{name}: {lines} lines, {MAX_LINES} at most")
            findings += 1
        for number, line in enumerate(strip(text).splitlines(), 1):
            for pattern, advice in BANNED.items():
                if (name, advice) in EXCEPT:
                    continue
                # Tests and examples are programs of their own: the C library's allocator is theirs to use.
                if advice == "use base/mem.h" and not name.startswith(("src/", "include/")):
                    continue
                if re.search(pattern, line):
                    print(f"{name}:{number}: {line.strip()}  ({advice})")
                    findings += 1
        for number, line in enumerate(text.splitlines(), 1):
            # clang-format keeps the lines of comments, whose tables it would destroy; it may make string macros wider.
            if len(line) > MAX_COLUMNS and not re.match(r'\s*"|.*"\s*[);]*$', line) and "*" in line:
                print(f"{name}:{number}: {len(line)} columns, {MAX_COLUMNS} at most")
                findings += 1
            if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line) and "lint" not in name:
                print(f"{name}:{number}: {line.strip()}  (finish it)")
                findings += 1
    print(f"{checked} files, {findings} findings")
    sys.exit(1 if findings or not checked else 0)


main()
