#!/usr/bin/env python3
"""Does each mended defect have a test? For each entry of regressions.txt: undoes the mend in a copy of the sources, builds the tests that
the entry names, and runs them until one fails. Prints a table; exits 1 if the tests of an entry pass without the mend, or if a test
fails with it. `regressions.py --source DIR --work DIR [--jobs N] [PREFIX...]`: the entries whose names begin with a prefix, all by default."""
import argparse
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "sim"))
import mutants

MOST_SECONDS = 120  # a test that hangs has failed
OPTIONS = {
    "release": ["-DCMAKE_BUILD_TYPE=RelWithDebInfo"],
    "asan": ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-g -O1", "-DCMAKE_CXX_FLAGS_DEBUG=-g -O1", "-DTORC_SANITIZE=address,undefined"],
}


def tree_of(args, kind):
    """The build tree of the kind, configured."""
    tree = args.work / f"build-{kind}"
    if not (tree / "build.ninja").is_file():
        done = mutants.run(["cmake", "-S", str(args.work), "-B", str(tree), "-G", "Ninja", *OPTIONS[kind]])
        if done.returncode:
            sys.exit(f"cmake failed:\n{done.stderr}")
    return tree


def build(tree, entries, jobs):
    """Builds the programs of the tests, or, for lints and tests in Python, all products, unless an entry needs other targets, or
    "nothing". Returns whether it worked, and the output."""
    known = mutants.run(["ninja", "-C", str(tree), "-t", "targets", "all"]).stdout.splitlines()
    names = {line.split(":")[0] for line in known}
    targets = {test for entry in entries for test in entry["tests"] if test in names}
    for entry in entries:
        by_default = [] if all(test in names for test in entry["tests"]) else ["torc_products"]
        targets |= set(entry["needs"] or by_default) - {"nothing"}
    if not targets:
        return True, ""
    done = mutants.run(["cmake", "--build", str(tree), "-j", str(jobs), "--target", *sorted(targets)])
    return done.returncode == 0, done.stdout[-3000:]


def ctest(tree, test):
    """The output of the test, and whether it passed in time. The limit is not ctest's, which a test may have set higher."""
    command = ["ctest", "--test-dir", str(tree), "-R", f"^{test}$", "--no-tests=error"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True) as process:
        try:
            out, _ = process.communicate(timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the test with it
            return process.communicate()[0], False
    return out, process.returncode == 0


def first_failure(tree, tests):
    """The first of the tests that fails, or None. A test that ctest does not have, or skips, ends the program: it shows nothing."""
    for test in tests:
        out, passed = ctest(tree, test)
        if "No tests were found" in out or "(Skipped)" in out:
            sys.exit(f"{test}: not a test here, or skipped")
        if not passed:
            return test
    return None


def try_entry(entry, args):
    """What came of it: which test failed, or why the entry shows nothing."""
    texts = mutants.changed_files(entry, args.work)
    if texts is None:
        return False, "does not apply"
    tree = tree_of(args, entry["build"])
    with mutants.applied(texts):
        built, out = build(tree, [entry], args.jobs)
        failed = first_failure(tree, entry["tests"]) if built else None
    if not built:
        return False, f"does not compile: {out}"
    return failed is not None, f"{failed} fails" if failed else "ALL TESTS PASS without the mend"


def check_sound(entries, args):
    """The tests that fail with all mends in place."""
    unsound = []
    for kind in sorted({entry["build"] for entry in entries}):
        of_kind = [entry for entry in entries if entry["build"] == kind]
        tests = sorted({test for entry in of_kind for test in entry["tests"]})
        tree = tree_of(args, kind)
        built, out = build(tree, of_kind, args.jobs)
        if not built:
            sys.exit(f"the sources do not build:\n{out}")
        unsound += [f"{test} ({kind})" for test in tests if first_failure(tree, [test])]
    return unsound


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("prefixes", nargs="*")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    mutants.copy_sources(args.source, args.work)
    listed = mutants.read_mutants(args.source / "test/regressions/regressions.txt")
    entries = [e for e in listed if not args.prefixes or e["name"].startswith(tuple(args.prefixes))]
    begin, wrong = time.monotonic(), [f"{test}: fails with all mends in place" for test in check_sound(entries, args)]
    for entry in entries:
        shown, outcome = try_entry(entry, args)
        print(f"{'ok' if shown else 'NOT SHOWN':9}  {entry['name']}: {outcome}", flush=True)
        if not shown:
            wrong.append(f"{entry['name']}: {outcome.splitlines()[0]}")
    print("\n".join(wrong))
    print(f"{len(entries)} regressions, {len(wrong)} not shown, in {(time.monotonic() - begin) / 60:.0f} min with building")
    sys.exit(1 if wrong or not entries else 0)


if __name__ == "__main__":
    main()
