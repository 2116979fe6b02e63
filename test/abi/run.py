"""Programs of a release on today's library: each RELEASE/*.c is compiled against RELEASE/include, run with today's libtorc.so, and
prints what RELEASE/*.out has. `run.py --release DIR --build DIR` runs a release's programs, each with the address of an echo backend;
`run.py --add 0.2 --source DIR` makes a release's folder of today's headers, for which programs are then written (poisoned.h)."""
import argparse
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def cached(build, name):
    found = re.search(rf"^{name}:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)
    return found[1] if found else ""


def program_findings(program, include, library, compiler, arguments):
    """What is wrong with one program of a release."""
    with tempfile.TemporaryDirectory() as folder:
        binary = pathlib.Path(folder) / program.stem
        compiled = subprocess.run([*compiler, "-I", include, "-I", HERE, program, "-o", binary, "-L", library, "-ltorc",
                                   f"-Wl,-rpath,{library}", "-lpthread"], capture_output=True, text=True, check=False)
        if compiled.returncode:
            return f"{program}: does not compile and link\n{compiled.stderr}"
        today = {**os.environ, "LD_LIBRARY_PATH": str(library)}  # the user may have another Torc in it
        ran = subprocess.run([binary, *arguments], capture_output=True, text=True, timeout=60, check=False, env=today)
    wanted = program.with_suffix(".out").read_text()
    difference = "\n".join(difflib.unified_diff(wanted.splitlines(), ran.stdout.splitlines(), "of the release", "today", lineterm=""))
    if ran.returncode or difference:
        return f"{program}: exit {ran.returncode}\n{difference}\n{ran.stderr[-2000:]}"
    return None


def release_findings(release, library, compiler, arguments=()):
    """What is wrong with a release's programs on the libtorc.so of the folder `library`."""
    programs = sorted(release.glob("*.c"))
    if not programs:
        return [f"{release}: no programs"]
    found = [program_findings(program, release / "include", library, compiler, arguments) for program in programs]
    return [finding for finding in found if finding]


def run(release, build):
    os.environ["TORC_BINARY_DIR"], os.environ["TORC_SOURCE_DIR"] = str(build), str(HERE.parents[1])
    sys.path.insert(0, str(HERE.parent))
    from support.kit import running  # finds the command by the environment
    sanitize = cached(build, "TORC_SANITIZE")
    compiler = [cached(build, "CMAKE_C_COMPILER"), *([f"-fsanitize={sanitize}"] if sanitize else [])]
    with running("backend", "--name", "b1") as backend:
        findings = release_findings(release, build / "src", compiler, [backend.listening()])
    print("\n".join([*findings, f"{release.name}: {len(findings)} findings"]))
    return 1 if findings else 0


def add(name, source):
    release = HERE / name
    shutil.copytree(source / "include", release / "include")
    (release / "include" / ".clang-format").write_text("DisableFormat: true\n")  # they stay as they were
    print(f"{release}: now write programs, and beside each PROGRAM.c the PROGRAM.out that it prints")
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--release", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--add")
    parser.add_argument("--source", type=pathlib.Path, default=HERE.parents[1])
    args = parser.parse_args()
    if args.add:
        return add(args.add, args.source)
    return run(args.release.resolve(), args.build.resolve())


if __name__ == "__main__":
    sys.exit(main())
