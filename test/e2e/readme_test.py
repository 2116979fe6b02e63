"""The shell blocks of README and of docs/guide/xds.md, pasted as they stand into a shell, in a network of their own: their ports are fixed."""
import contextlib
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import SOURCE, TORC, WAIT, check, main

# A namespace has no way to 127.0.0.1 before its lo is up.
IN_A_NETWORK = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-c", """
import fcntl, os, socket, struct
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 1))
os.execvp("bash", ["bash", "--norc"])
"""]
SLOW = """#!/bin/sh
case "$1" in
backend | serve-xds) sleep 1 ;; # a machine that is busy
esac
exec "{torc}" "$@"
"""


def blocks():
    """The blocks that run the command; the line before each."""
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as readme:
        found = re.findall(r"^([^\n]+)\n\n<!--[^\n]*\n```sh\n(.*?)^```", readme.read(), re.M | re.S)
    return {before: text for before, text in found if "build/torc" in text}


def paste(text, slow, files=None):
    """What the shell prints of a block, and the status of its last command; its jobs end with it. `files` are there by their names."""
    with tempfile.TemporaryDirectory() as directory:
        for name, content in (files or {}).items():
            with open(os.path.join(directory, name), "w", encoding="utf-8") as out:
                out.write(content)
        os.mkdir(os.path.join(directory, "build"))
        os.symlink(os.path.join(SOURCE, "examples"), os.path.join(directory, "examples"))
        command = os.path.join(directory, "build", "torc")
        if slow:
            with open(command, "w", encoding="utf-8") as out:
                out.write(SLOW.format(torc=TORC))
            os.chmod(command, stat.S_IRWXU)
        else:
            os.symlink(TORC, command)
        # A file, for the jobs in the background keep a pipe open.
        with open(os.path.join(directory, "out"), "w+", encoding="utf-8") as out:
            shell = subprocess.Popen(IN_A_NETWORK, cwd=directory, stdin=subprocess.PIPE, stdout=out,
                                     stderr=subprocess.STDOUT, text=True, start_new_session=True)
            try:
                shell.communicate(text, timeout=WAIT)
            finally:
                with contextlib.suppress(ProcessLookupError): # it left no jobs
                    os.killpg(shell.pid, signal.SIGKILL)
                shell.wait()
            out.seek(0)
            return shell.returncode, out.read()


def test_mesh():
    """Every time, however long backends and control plane take to come up."""
    (text,) = [block for before, block in blocks().items() if "mesh on one machine" in before]
    for slow in (True, False, False, False):
        status, out = paste(text, slow)
        check(status == 0, f"slow {slow}: exit {status}\n{out}")
        check(len(re.findall(r"\bOK\b", out)) >= 10, f"slow {slow}: ten calls\n{out}")
        check("127.0.0.1:10001" in out and "127.0.0.1:10002" in out, f"slow {slow}: both backends\n{out}")


def test_ring():
    (text,) = [block for before, block in blocks().items() if "if a backend were added" in before]
    status, out = paste(text, False)
    check(status == 0 and "127.0.0.1:10003" in out, f"exit {status}\n{out}")


def test_all_are_pasted():
    check(len(blocks()) == 2, f"{list(blocks())}: has each a test?")


def guide():
    """docs/guide/xds.md: its commands from the first to the last, and its files."""
    with open(os.path.join(SOURCE, "docs", "guide", "xds.md"), encoding="utf-8") as page:
        found = re.findall(r"(?m)^```(\w+)\n(.*?)^```", page.read(), re.S)
    files = [text for kind, text in found if kind == "yaml"]
    check(len(files) == 2, f"{len(files)} files")
    return "".join(text for kind, text in found if kind == "sh"), dict(zip(("mesh.yaml", "spare.yaml"), files))


def is_guide(status, out):
    check(status == 0, f"exit {status}\n{out}")
    check(out.count("10 calls, 10 OK") >= 4 and '"portValue": 10003' in out, out)
    check(out.count('"leaf":"spare"') == 10 and '"walked":[{"endpoint":"127.0.0.1:10003"' in out, out)
    moves = {float(share) for share in re.findall(r"([\d.]+)%  127.0.0.1:10003", out)}
    check(abs(sum(moves) - 34) < 0.5, f"what the page says of the ring: {moves}")


def test_xds_guide():
    commands, files = guide()
    is_guide(*paste("set -e\nPATH=$PWD/build:$PATH\n" + commands, False, files))


def test_xds_guide_after_readme():
    """In one shell, with what README's blocks have left in it: no job, and a bootstrap that is found from every folder."""
    commands, files = guide()
    before = "set -e\n" + "".join(blocks().values()) + "test -z \"$(jobs -rp)\"\n"
    elsewhere = "PATH=$PWD/build:$PATH\nmkdir elsewhere; mv mesh.yaml spare.yaml elsewhere; cd elsewhere\n"
    is_guide(*paste(before + elsewhere + commands + "wait\ntest -z \"$(jobs -rp)\"\n", False, files))


def test_xds_guide_gives_up():
    """Where another control plane has the port, the guide's loop ends."""
    commands, files = guide()
    commands, limited = re.subn(r"\btimeout 20\b", "timeout 1", commands)
    check(limited == 2, "each loop has a limit")
    other = "PATH=$PWD/build:$PATH\ntorc serve-xds --resources examples/mesh.yaml &\n" + commands.split("kill ")[0]
    _, out = paste(f"{other}\necho went on; kill $(jobs -rp)\n", False, files)
    check("went on" in out, out)


if subprocess.run([*IN_A_NETWORK[:4], "true"], stderr=subprocess.DEVNULL, check=False).returncode:
    print("skipped: no network namespace can be made here")
    sys.exit(77)
main(test_mesh, test_ring, test_all_are_pasted, test_xds_guide, test_xds_guide_after_readme, test_xds_guide_gives_up)
