#!/usr/bin/env python3
"""The texts that docs/operations/troubleshooting.md quotes are those of the source. In its tables of statuses each quote of the second column,
cut at its places (<name>), has pieces that all stand in string literals of src/ or cmd/torc, between places of printf."""
import argparse
import pathlib
import re
import sys

PAGE = "docs/operations/troubleshooting.md"
LITERALS = re.compile(r'"(?:\\.|[^"\\\n])*"(?:\s+(?:(?:TC_|PRI)\w+\s+)?"(?:\\.|[^"\\\n])*")*')
PART = re.compile(r'"((?:\\.|[^"\\\n])*)"|([A-Za-z_]\w*)')
PLACE = re.compile(r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?(?:hh|h|ll|l|j|z|t)?[a-zA-Z]")
LEAST = 4  # characters that a piece must have to be looked for


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
                  lambda m: m[0] if m[0][0] == '"' else "' '" if m[0][0] == "'" else " ", text, flags=re.S)


def literals(text):
    """Each run of string literals as one text, its places as NUL."""
    for run in LITERALS.findall(without_comments(text)):
        joined = "".join(literal if not macro else "%s" for literal, macro in PART.findall(run))
        yield PLACE.sub("\0", re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), joined).replace("%%", "%"))


def quotes(page):
    """(line, quote) of the second column of each row of a table of statuses."""
    for number, line in enumerate(page.splitlines(), 1):
        cells = re.split(r"(?<!\\)\|", line)
        if len(cells) == 6 and not cells[1].strip().startswith(("status", "---")):
            for quote in re.findall(r"`([^`]+)`", cells[2]):
                yield number, quote


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    root = pathlib.Path(parser.parse_args().source)
    known = "\n\0\n".join(text for folder in ("src", "cmd/torc") for path in sorted((root / folder).rglob("*.[ch]"))
                          for text in literals(path.read_text(encoding="utf-8")))
    count, findings = 0, []
    for number, quote in quotes((root / PAGE).read_text(encoding="utf-8")):
        count += 1
        pieces = [piece.strip(" :") for piece in re.split(r"<[^>]*>|\.\.\.", quote)]
        findings += [f'{PAGE}:{number}: "{piece}" is in no text of the source' for piece in pieces if len(piece) >= LEAST and piece not in known]
    print("\n".join([*findings, f"{count} texts, {len(findings)} findings"]))
    return 1 if findings or not count else 0


if __name__ == "__main__":
    sys.exit(main())
