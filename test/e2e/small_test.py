"""A client without the mesh, TLS and servers, as docs/guide/building.md has it: its size, what it links, what it leaves out, and the quickstart's program of
bytes with its shared and its static library."""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import BUILD, SOURCE, WAIT, blocks, check, main, bytes_program, running

TREE = os.path.join(BUILD, "small")
LIMIT = 350_000
NEEDED = ("libc.", "ld-linux", "libcares.", "libjansson.", "libm.", "libnghttp2.", "libuv.", "libz.")
# The size is that of the system's linker.
ENV = {name: value for name, value in os.environ.items() if name not in ("LDFLAGS", "CFLAGS")}


def sh(*args):
    done = subprocess.run(args, capture_output=True, text=True, timeout=900, check=False, env=ENV)
    check(done.returncode == 0, f"{args}: exit {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def library(kind):
    return os.path.join(TREE, "src", f"libtorc.{kind}")


def test_build():
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    (options,) = [text.split()[3:] for text in blocks("docs/guide/building.md", "sh") if text.startswith("cmake -B build -D")]
    check(len(options) == 4, f"docs/guide/building.md: {options}")
    sh("cmake", "-S", SOURCE, "-B", TREE, *generator, *options)
    sh("cmake", "--build", TREE, "-j", str(os.cpu_count()), "--target", "torc_shared", "torc_static")


def test_size():
    lint = os.path.join(SOURCE, "test", "lint", "size.py")
    done = subprocess.run([sys.executable, lint, "--build", TREE, "--limit", str(LIMIT)], capture_output=True, text=True, check=False)
    print(done.stdout, end="", flush=True)
    check(done.returncode in (0, 77), f"the small library: {done.stdout}{done.stderr}")


def test_what_it_has():
    dynamic = sh("readelf", "-dW", library("so"))
    needed = [line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "(NEEDED)" in line]
    check(not [name for name in needed if not name.startswith(NEEDED)], f"what it links: {needed}")
    for table in (["-D", library("so")], [library("a")]):
        names = {line.split()[-1].partition("@")[0] for line in sh("nm", "--defined-only", "--extern-only", *table).splitlines() if " T " in line}
        check({"torc_unary", "torc_stream_start", "torc_channel_new"} <= names, f"{table}: a client's functions")
        check(not [n for n in names if n.startswith(("torc_server_call_", "torc_server_new", "torc_health_", "torc_csds_"))], f"{table}: no servers")
        check(not [n for n in names if not n.startswith("torc_")], f"{table}: other names")


@contextlib.contextmanager
def source():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "app.c")
        with open(path, "w", encoding="utf-8") as out:
            out.write(bytes_program())
        yield path, os.path.join(folder, "app")


def test_program():
    libs = ["-luv", "-lcares", "-lnghttp2", "-ljansson", "-lz", "-lm", "-lpthread", "-ldl"]
    with source() as (path, app), running("backend", "--name", "b1") as backend:
        address = backend.listening()
        for kind, more in (("so", [f"-Wl,-rpath,{os.path.dirname(library('so'))}"]), ("a", libs)):
            sh("cc", path, "-o", app, f"-I{SOURCE}/include", library(kind), *more)
            done = subprocess.run([app, address], capture_output=True, text=True, timeout=WAIT, check=False)
            check(done.stdout.strip() == f"OK from {address}: hello", f"libtorc.{kind}: {done}")


if os.environ.get("TORC_SANITIZE"):
    print("skipped: the library is one of its own, without sanitizers")
    sys.exit(77)
main(test_build, test_size, test_what_it_has, test_program)
