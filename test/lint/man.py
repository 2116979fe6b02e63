#!/usr/bin/env python3
"""Man pages of section 3 (scripts/man): each function of include/torc has a page that shows its declaration, and what man(1) makes of
the pages has no warning, where it is installed."""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def declared(source):
    for header in sorted((source / "include" / "torc").glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
        yield from re.findall(r"^TORC_(?:TESTING_|JSON_)?API\s[^;]*?\b(torc_\w+)\s*\(", text, re.M)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    source = pathlib.Path(parser.parse_args().source)
    findings = []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, str(source / "scripts" / "man"), folder], check=True)
        for name in declared(source):
            link = pathlib.Path(folder) / "man3" / (name + ".3")
            page = pathlib.Path(folder) / link.read_text().split()[1] if link.exists() else None
            if not page or f"{name}(" not in page.read_text(encoding="utf-8"):
                findings.append(f"{name}: no page of section 3 shows its declaration")
        pages = [*pathlib.Path(folder).glob("man3/torc-*.3"), *pathlib.Path(folder).glob("man7/*"), *source.glob("docs/reference/*.1")]
        for page in pages if shutil.which("man") else []:
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", str(page)], capture_output=True, text=True, check=False)
            findings += [f"{page.name}: {line}" for line in done.stderr.splitlines()
                         if not re.search(r"cannot adjust|can.t break", line)]
    print("\n".join(findings))
    return bool(findings)


sys.exit(main())
