#!/usr/bin/env python3
"""Does the simulation find known faults? For each mutant of mutants.txt: builds `sim` with it in a copy of the sources, and searches
until a seed fails, SECONDS at most. Prints a table; exits 1 if too few are found. `mutants.py --source DIR --work DIR [NAME...]`."""
import argparse
import contextlib
import filecmp
import pathlib
import shutil
import subprocess
import sys
import time

FOLDERS = ["src", "include", "proto", "cmake", "cmd", "test", "examples", "bench", "abi", "docs", "scripts", "stub"]
LEAST_FOUND = 0.95


def read_mutants(path):
    """The mutants: name, changes (file, line, replacement), tests, what those need to be built, and the build that shows it ("release"
    unless said)."""
    found = []
    for text in path.read_text().splitlines():
        key, _, rest = text.partition(" ")
        if key == "file":
            found[-1]["changes"].append({"file": rest})
        elif key == "-":
            if "line" in found[-1]["changes"][-1]:  # one more line of the same file
                found[-1]["changes"].append({"file": found[-1]["changes"][-1]["file"]})
            found[-1]["changes"][-1]["line"] = rest
        elif key == "+":
            found[-1]["changes"][-1]["replacement"] = rest
        elif key == "test":
            found[-1]["tests"].append(rest)
        elif key == "needs":
            found[-1]["needs"].append(rest)
        elif key == "build":
            found[-1]["build"] = rest
        elif text and not text.startswith("#"):
            found.append({"name": text, "changes": [], "tests": [], "needs": [], "build": "release"})
    return found


def replace_line(change, text):
    """The text with the change's line replaced; None unless the line is there, once."""
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if line.strip() == change["line"]]
    if len(places) != 1:
        return None
    line = lines[places[0]]
    lines[places[0]] = line[: len(line) - len(line.lstrip())] + change["replacement"]
    return "\n".join(lines)


def changed_files(mutant, root):
    """The texts of the mutant's files with its changes, by path; None unless each line is in its file, once."""
    texts = {}
    for change in mutant["changes"]:
        path = root / change["file"]
        before = texts[path] if path in texts else path.read_text() if path.is_file() else ""
        texts[path] = replace_line(change, before)
        if texts[path] is None:
            return None
    return texts


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def copy_if_changed(source, target):
    """A copy has the present time: an earlier run has built its last mutant, and the file must be newer than that build."""
    if not pathlib.Path(target).is_file() or not filecmp.cmp(source, target, shallow=False):
        shutil.copy(source, target)
    return target


def copy_sources(source, work):
    for name in FOLDERS:
        if (source / name).is_dir():
            shutil.copytree(source / name, work / name, copy_function=copy_if_changed, dirs_exist_ok=True)
    for path in source.iterdir():
        if path.is_file():
            copy_if_changed(path, work / path.name)


def build(work, jobs):
    done = run(["cmake", "--build", str(work / "build"), "-j", str(jobs), "--target", "sim"])
    return done.returncode == 0, done.stdout[-2000:]


def search(work, seconds, jobs):
    """The violation that a search finds, or None."""
    command = [str(work / "build/test/sim/sim"), "--seconds", str(seconds), "--jobs", str(jobs), "--no-shortening"]
    try:
        out = run(command, timeout=seconds + 150).stdout
    except subprocess.TimeoutExpired:
        return "crash: the search hangs"
    lines = [line for line in out.splitlines() if "VIOLATION: " in line]
    return lines[0].split("VIOLATION: ")[1] if lines else None


@contextlib.contextmanager
def applied(texts):
    """The files have these texts until the end of the block."""
    originals = {path: path.read_text() for path in texts}
    for path, text in texts.items():
        path.write_text(text)
    try:
        yield
    finally:
        for path, text in originals.items():
            path.write_text(text)


def try_mutant(mutant, args):
    texts = changed_files(mutant, args.work)
    if texts is None:
        return "does not apply", 0
    with applied(texts):
        built, _ = build(args.work, args.jobs)
        begin = time.monotonic()
        violation = search(args.work, args.seconds, args.jobs) if built else None
        took = time.monotonic() - begin
    return (violation or "SURVIVES") if built else "does not compile", took


def print_summary(n, took_by_name, survivors, seconds):
    """Survivors, the searches that took longest, and how many were found."""
    for line in survivors:
        print(f"NOT FOUND  {line}")
    for name in sorted(took_by_name, key=took_by_name.get)[-3:]:
        print(f"longest    {took_by_name[name]:.1f} s  {name}")
    print(f"{len(took_by_name)} of {n} found, in {seconds / 60:.0f} min with building; wanted: {LEAST_FOUND:.0%}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    copy_sources(args.source, args.work)
    run(["cmake", "-S", str(args.work), "-B", str(args.work / "build"), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo"])
    built, out = build(args.work, args.jobs)
    if not built:
        sys.exit(f"the sources do not build:\n{out}")
    mutants = [m for m in read_mutants(args.source / "test/sim/mutants.txt") if not args.names or m["name"] in args.names]
    begin, took_by_name, survivors = time.monotonic(), {}, []
    for mutant in mutants:
        outcome, took = try_mutant(mutant, args)
        if ":" in outcome:
            took_by_name[mutant["name"]] = took
        else:
            survivors.append(f"{mutant['name']}: {outcome}")
        print(f"{took:6.1f} s  {mutant['name']}: {outcome[:110]}", flush=True)
    print_summary(len(mutants), took_by_name, survivors, time.monotonic() - begin)
    sys.exit(0 if len(took_by_name) >= LEAST_FOUND * len(mutants) else 1)


if __name__ == "__main__":
    main()
