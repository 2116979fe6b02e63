"""make dist: a release has the committed files and no others, the same bytes each time, and configures without git."""
import os
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import SOURCE, WAIT, check, main


def sh(args, **kwargs):
    done = subprocess.run(args, capture_output=True, text=True, timeout=WAIT * 2, check=False, **kwargs)
    check(done.returncode == 0, f"{args}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def test_release():
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for part in ("one", "two"):
            path = sh([os.path.join(SOURCE, "scripts", "dist"), os.path.join(folder, part)]).strip()
            with open(path, "rb") as archive:
                made.append(archive.read())
        check(made[0] == made[1], "two archives of one commit differ")
        with tarfile.open(path) as archive:
            members = archive.getmembers()
            archive.extractall(folder)
        top = members[0].name
        check(os.path.basename(path) == top + ".tar.gz", f"{path} has the folder {top}")
        names = [m.name for m in members if not m.isdir()]
        committed = sh(["git", "-C", SOURCE, "ls-tree", "-r", "--name-only", "HEAD"]).split()
        check(names == [f"{top}/{name}" for name in committed], "the committed files, in their order")
        check(len({m.mtime for m in members}) == 1 and {(m.uid, m.gid) for m in members} == {(0, 0)}, "one time, one owner")
        # A git that fails, in front of the machine's own.
        os.mkdir(os.path.join(folder, "bin"))
        with open(os.path.join(folder, "bin", "git"), "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o755)) as git:
            git.write("#!/bin/sh\necho git was called >&2\nexit 1\n")
        env = {**os.environ, "PATH": os.path.join(folder, "bin") + ":" + os.environ["PATH"]}
        tree = os.path.join(folder, top)
        sh(["cmake", "-S", tree, "-B", os.path.join(tree, "build"), "-DCMAKE_MESSAGE_LOG_LEVEL=WARNING"], env=env)


if os.environ.get("TORC_SANITIZE"):
    print("skipped: the release is a build of its own, without sanitizers", flush=True)
    sys.exit(77)
if subprocess.run(["git", "-C", SOURCE, "rev-parse", "HEAD"], capture_output=True, check=False).returncode != 0:
    print("skipped: not a clone", flush=True)
    sys.exit(77)
main(test_release)
