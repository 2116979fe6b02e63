#!/usr/bin/env python3
"""Words: comments, and texts that users see, keep the rules of CONTRIBUTING.md ("Words").

Finds phrases that a reader has to decode, comments that lean on their neighbour, comments that have lost their declaration, words
that the glossary replaced, and files without a head. `prose.py --source DIR [PATH...]` looks at the FOLDERS, or at the paths.
With codespell installed, spelling too."""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

FOLDERS = ["bench", "cmd", "examples", "include", "src", "test"]
SUFFIXES = (".c", ".h", ".cc")
HEADS = ("src/", "cmd/", "test/support/")  # where a long .c file has a head
HEAD_FROM = 150  # lines
HEAD_LEAST = 5
SHORT_HEAD_FROM = 60  # lines from which any .c file has a head, however short

# In comments, and in texts that users see.
PHRASES = [
    (r"(?<![Tt]here )\b(?:is|are|was|were|be|been) no\b(?! (?:longer|more than|less than|fewer than|later than|larger than"
     r"|higher than|smaller than|matter|different|bigger than|one's)\b)", '"is not a", "has no"'),
    (r"\bin place of\b", '"instead of"'),
    (r"\bany more\b(?! \w+ than)", '"no longer", "again"'),
    (r"\bof its own\b[^.:;]*\bof its own\b", "say whose, once"),
    (r"\bwould not have (?:it|them)\b", '"rejected"'),
    (r"\bnot any longer\b", '"no longer"'),
    (r"\b[Ww]hoever\b", "name the thing: the thread, the caller, the client"),
    (r"\banew\b", '"again", or the thing that is made'),
]
# At the start of a comment.
LEANING = [
    (r"(?:The )?[Ss]ame\b(?:,| for\b| as\b| but\b|:)", "leans on its neighbour"),
    (r"(?:As above|Likewise|Ditto)\b", "leans on its neighbour"),
    (r"(?:Those|Them|These|Others|That one|The other one|They)\b", "begins with a pronoun"),
    (r"(?:True|False)\b(?!\.$)", '"Returns true if", "Returns false if"'),
    (r"Whether\b", '"Returns whether", "Decides whether"'),
    (r"Of (?:each|all|those|them)\b", "begins with its end"),
    (r"(?:What|Who|Whom)\b(?!.*\?)", "begins without its noun"),
    (r"--- (?:what|who|those)\b", "begins without its noun"),
]
# Words of the code that the glossary of CONTRIBUTING.md replaced.
GONE = [
    (r"\brealms?\b", "authority, xds_channel"),
    (r"\breplicas?\b", "remote client"),
    (r"\btc_lb_single", "tc_lb_wrapper"),
    (r"\btc_h2_flood", "tc_h2_glitches"),
    (r"\btc_faults\b", "tc_validation_errors"),
    (r"\btc_attempts_", "connect_queue"),
    (r"\bcds_tree\b", "eds_tree"),
    (r"\bcall_auth\b", "call_credentials"),
    (r"\bdependency_notes\b", "dependency_status"),
    (r"(?i)\bin the(?: |\n[ */]*)clear\b", "plaintext"),
]

TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
SECTION = re.compile(r"/\* --- .* --- \*/$")
FORMAT = re.compile(r"/\* clang-format (?:on|off) \*/$")


def words(comment):
    """The text of a comment, in one line."""
    text = re.sub(r"^/\*+|\*+/$|^//", "", comment)
    text = re.sub(r"\n\s*\* ?", " ", text)
    return " ".join(text.split())


class Report:
    def __init__(self):
        self.count = 0

    def add(self, name, number, text):
        print(f"{name}:{number}: {text}")
        self.count += 1


def check_words(report, name, number, text, in_comment):
    for pattern, advice in PHRASES:
        match = re.search(pattern, text)
        if match:
            report.add(name, number, f'"{match[0]}" in "{text[:90]}"  ({advice})')
    for pattern, advice in LEANING if in_comment else []:
        if re.match(pattern, text):
            report.add(name, number, f'"{text[:90]}"  ({advice})')


def check_tables(report, name, number, comment):
    """A table whose rows were filled into the text: clang-format does that to a block with a line over 120 columns."""
    lines = comment.split("\n")
    for i, line in enumerate(lines[1:-1], 1):
        next_line = lines[i + 1]
        run_in = re.match(r"\s* \* \S+ \S.*[.:;] \S+ {3,}\S", line)
        cut = len(line) > 95 and re.match(r"\s* \* {3,}\S", line) and re.match(r"\s* \* [a-z0-9(`]", next_line)
        if run_in or cut:
            report.add(name, number + i, f'"{line.strip()[-60:]}"  (a table\'s row has run into the text)')


def check_source(report, name, text):
    end = None  # of the comment before
    for match in TOKEN.finditer(text):
        token, number = match[0], text.count("\n", 0, match.start()) + 1
        if token[0] == "/":
            check_words(report, name, number, words(token), True)
            check_tables(report, name, number, token)
            line_start = text.rfind("\n", 0, match.start()) + 1
            stands_alone = not text[line_start:match.start()].strip() and not token.startswith("//")
            apart = SECTION.match(token) or FORMAT.match(token)
            if end is not None and stands_alone and not apart and not text[end:match.start()].strip():
                if text.count("\n", end, match.start()) == 1:
                    report.add(name, number, "a comment right after a comment: which declaration has it lost?")
            end = match.end() if stands_alone and not apart else None
        elif token[0] == '"' and not name.startswith("test/"):
            check_words(report, name, number, token[1:-1], False)
    for pattern, advice in GONE:
        for match in re.finditer(pattern, text):
            report.add(name, text.count("\n", 0, match.start()) + 1, f'"{match[0]}"  ({advice})')


def check_head(report, name, text):
    lines = text.count("\n")
    match = re.match(r"\s*/\*.*?\*/", text, re.S)
    head = match[0].strip().count("\n") + 1 if match else 0
    least = HEAD_LEAST if name.startswith(HEADS) and lines > HEAD_FROM else 1 if lines > SHORT_HEAD_FROM else 0
    if head < least:
        report.add(name, 1, f"{lines} lines with a head of {head}, {least} at least")


def check_spelling(report, root, names):
    if not names or not shutil.which("codespell"):
        print("codespell: skipped" if names else "")
        return
    ignored = root / "test" / "lint" / "codespell-ignore.txt"
    done = subprocess.run(["codespell", "--ignore-words", ignored, *names], cwd=root, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        print(line)
        report.count += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    parser.add_argument("paths", nargs="*")
    args = parser.parse_args()
    root = pathlib.Path(args.source)
    report, names = Report(), []
    for folder in args.paths or FOLDERS:
        at = root / folder
        for path in [at] if at.is_file() else sorted(at.rglob("*")):
            if path.suffix not in SUFFIXES or "node_modules" in path.parts or path.match("test/abi/*/include/torc/*"):
                continue  # the headers of a release stay as they were
            name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
            names.append(name)
            check_source(report, name, text)
            if path.suffix == ".c":
                check_head(report, name, text)
    check_spelling(report, root, names)
    print(f"{len(names)} files, {report.count} findings")
    sys.exit(1 if report.count or not names else 0)


main()
