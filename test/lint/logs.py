#!/usr/bin/env python3
"""docs/operations/logs.md has a row for every line that the library logs at level INFO, WARN or ERROR, with the text of the source,
and no other rows. For a place of printf the table has <name>, or a text that stands there."""
import argparse
import pathlib
import re
import sys

LEVELS = ("error", "warn", "info")
ROW = re.compile(r"\|\s*([\w/]+)\s*\|\s*([\w/, ]+?)\s*\|\s*`(.+)`\s*\|\s*(.*?)\s*\|\s*$")
WRAPPER = re.compile(r"#\s*define\s+(TC_\w*LOG\w*)\(level, \.\.\.\)\s*TC_LOG\(TC_LOG_(\w+), TORC_LOG_##level, __VA_ARGS__\)")
PLACE = re.compile(r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?(?:hh|h|ll|l|j|z|t)?[a-zA-Z]")


def arguments(text, start):
    """The arguments of the call whose parenthesis ends before `start`."""
    depth, at, begin, found, quoted = 1, start, start, [], False
    while depth:
        char = text[at]
        if quoted:
            at += char == "\\"
            quoted = char != '"'
        elif char == '"':
            quoted = True
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        if not quoted and (depth == 0 or depth == 1 and char == ","):
            found.append(text[begin:at].strip())
            begin = at + 1
        at += 1
    return found


def pattern(text):
    """What a row of the table matches that stands for a line of this format."""
    parts = PLACE.split(text.replace("%%", "\0"))
    return re.compile(".*".join(re.escape(part.replace("\0", "%")) for part in parts))


def format_of(argument):
    """The literal that the argument is made of; a macro between literals is a place (TC_SHOWN), or the end of one (PRIu64). None when
    it is not a literal."""
    parts = re.findall(r'"((?:\\.|[^"\\])*)"|([A-Za-z_]\w*)|(\S)', argument)
    if not any(literal for literal, _, _ in parts) or any(other for _, _, other in parts):
        return None
    text = "".join(literal if not macro else "u" if macro.startswith("PRI") else "%s" for literal, macro, _ in parts)
    return re.sub(r"\\(.)", lambda m: {"n": " ", "t": " "}.get(m[1], m[1]), text)


def without_comments(text):
    """The text with its comments blanked, lines kept."""
    def blank(match):
        return match[0] if match[0][0] in "\"'" else "\n" * match[0].count("\n")

    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text, flags=re.S)


def lines_of(path, wrappers, found):
    """(place, module, levels, format) of each line that the file logs."""
    text = without_comments(path.read_text())
    for match in re.finditer(r"\b(TC_\w*LOG\w*|tc_log_write)\(", text):
        if match[1] not in ("TC_LOG", "tc_log_write", *wrappers):
            continue
        if "#define" in text[text.rfind("\n", 0, match.start()) + 1:match.start()]:
            continue  # the macro itself
        given = arguments(text, match.end())
        place = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
        module = given.pop(0).removeprefix("TC_LOG_").lower() if match[1] not in wrappers else wrappers[match[1]]
        named = {name.lower() for name in re.findall(r"\b(?:TORC_LOG_)?(NONE|ERROR|WARN|INFO|DEBUG|TRACE)\b", given[0])}
        levels = named & set(LEVELS)
        if named and not levels:
            continue
        text_of_line = format_of(given[1])
        if text_of_line is None:
            found.append(f"{place}: the text is not a literal")
        else:
            yield place, module, levels, text_of_line


def rows_of(path, found):
    """(place, module, levels, text) of each row of the table."""
    rows, previous, in_table = [], "", False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("| module |"):
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and not line.startswith("|---"):
            match = ROW.match(line)
            if not match or not match[4]:
                found.append(f"{path}:{number}: not a row: | module | level | `text` | what it means, what to do |")
                continue
            if re.search(r"%[-+#0]*[\d.*]*(?:hh|h|ll|l|j|z|t)?[a-zA-Z]", match[3]):
                found.append(f"{path}:{number}: the text has a place of printf: write <name>")
            if match[1] < previous:
                found.append(f"{path}:{number}: rows are sorted by module")
            previous = match[1]
            rows.append((f"{path}:{number}", match[1], set(re.findall(r"\w+", match[2])), match[3].replace("\\|", "|")))
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    root = pathlib.Path(parser.parse_args().source)
    found = []
    files = sorted(p for p in (root / "src").rglob("*") if p.suffix in (".c", ".h", ".cc"))
    files = [p for p in files if p.relative_to(root).as_posix() not in ("src/base/log.c", "src/base/log.h")]
    wrappers = {m[1]: m[2].lower() for p in files for m in WRAPPER.finditer(p.read_text())}
    rows = rows_of(root / "docs" / "operations" / "logs.md", found)
    used, count = set(), 0
    for path in files:
        for place, module, levels, text in lines_of(path, wrappers, found):
            count += 1
            matching = [row for row in rows if row[1] == module and pattern(text).fullmatch(row[3])]
            used |= {row[0] for row in matching}
            level = ", ".join(sorted(levels, key=LEVELS.index))
            if not matching:
                found.append(f"{place}: no row in docs/operations/logs.md: | {module} | {level} | `{text}` |")
            elif not any(levels <= row[2] for row in matching):
                found.append(f"{place}: level {level}, in the table {', '.join(sorted(matching[0][2]))}")
    found += [f"{place}: no line of the source has this text" for place, *_ in rows if place not in used]
    print("\n".join([*found, f"{count} lines, {len(rows)} rows, {len(found)} findings"]))
    sys.exit(1 if found or not count else 0)


main()
