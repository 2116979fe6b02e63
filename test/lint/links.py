#!/usr/bin/env python3
"""Pages (*.md): each relative link leads to a file of the repository, and its anchor to a heading of that page; each path docs/... that a
tracked file mentions is there; and each page of docs/ is reachable from docs/README.md by links."""
import argparse
import pathlib
import re
import subprocess
import sys

FENCE = re.compile(r"^ {0,3}(`{3,})[^\n]*\n.*?^ {0,3}\1`*[ \t]*$", re.S | re.M)
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)|^\[[^\]]+\]:\s+(\S+)", re.M)
MENTION = re.compile(r"(?<![\w/.-])docs/[\w/.-]+\.(?:md|1|svg|py)\b")
BUILT = ("build/", "build-")


def blank(found):
    """As many lines as what was found."""
    return "\n" * found[0].count("\n")


def prose(text):
    """The page without its blocks of code and code spans. No line moves."""
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", FENCE.sub(blank, text))


def anchors(text):
    """What GitHub makes of the page's headings; a heading that comes again gets a number."""
    seen = {}
    for heading in re.findall(r"^#{1,6} +(.*?) *#*$", FENCE.sub(blank, text), re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        seen[slug] = seen.get(slug, -1) + 1
        yield f"{slug}-{seen[slug]}" if seen[slug] else slug


def links(page):
    """(line, target) of each link that does not leave the repository."""
    text = prose(page.read_text(encoding="utf-8"))
    for found in LINK.finditer(text):
        target = found[1] or found[2]
        if not re.match(r"[a-z]+:", target):
            yield text.count("\n", 0, found.start()) + 1, target


def check_links(root, pages):
    """Yields findings; fills pages[page] with the pages that a page leads to."""
    slugs = {}
    for page in pages:
        for line, target in links(page):
            path, _, anchor = target.partition("#")
            where = (page.parent / path).resolve() if path else page
            place = f"{page.relative_to(root)}:{line}"
            if not where.exists() or root not in (where, *where.parents):
                yield f"{place}: {target} leads to nothing in the repository"
                continue
            if anchor and where.suffix == ".md":
                slugs.setdefault(where, set(anchors(where.read_text(encoding="utf-8"))))
                if anchor not in slugs[where]:
                    yield f"{place}: {target}: the page has no heading #{anchor}"
            pages[page].add(where)


def check_mentions(root, files):
    """The headers of earlier releases (test/abi) do not change and may name pages that have moved."""
    for path in files:
        if path.relative_to(root).as_posix().startswith(("test/abi/0", "build")) or not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for found in MENTION.finditer(text):
            if not (root / found[0]).exists():
                yield f"{path.relative_to(root)}:{text.count(chr(10), 0, found.start()) + 1}: there is no {found[0]}"


def check_reachable(root, pages):
    reached, new = set(), {root / "docs" / "README.md"}
    while new:
        reached |= new
        new = {target for page in new for target in pages.get(page, ()) if target in pages} - reached
    yield from (f"{page.relative_to(root)}: no way by links from docs/README.md" for page in sorted(pages)
                if page not in reached and root / "docs" in page.parents)


def tracked(root):
    """The files that git has or would add, or all of them in a source release."""
    done = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=False)
    if done.returncode == 0 and done.stdout:
        return [root / name for name in done.stdout.splitlines()]
    return [path for path in root.rglob("*") if not str(path.relative_to(root)).startswith(BUILT)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    root = pathlib.Path(parser.parse_args().source).resolve()
    files = tracked(root)
    pages = {path: set() for path in files if path.suffix == ".md" and path.is_file()}
    findings = [*check_links(root, pages), *check_mentions(root, files), *check_reachable(root, pages)]
    print("\n".join([*findings, f"{len(pages)} pages, {sum(map(len, pages.values()))} links, {len(findings)} findings"]))
    return 1 if findings or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
