#!/usr/bin/env python3
"""What a client out of a .proto costs to build and to carry: Torc's (client_etcd.c) and gRPC C++'s (peers/grpc_etcd.cc), both from
examples/etcd/etcd.proto by generated code, compiled with -O2 one file after the other, in turns.

usage: client.py --build DIR [--pairs N]    DIR: a release build with libtorc.so, the CMake target all

Needs protoc, protoc-gen-c, g++, and Debian's libgrpc++-dev, libprotobuf-dev and protobuf-compiler-grpc; exits 77 and names what is missing."""
import argparse
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent
PROTO = SOURCE / "examples" / "etcd"


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **options).stdout


def flags(*packages):
    return shlex.split(run("pkg-config", "--cflags", *packages)), shlex.split(run("pkg-config", "--libs", *packages))


class Torc:
    name, own = "Torc", HERE / "client_etcd.c"

    def __init__(self, build):
        self.plugin = next(build.rglob("protoc-gen-torc"))
        self.library = next((build / "src").glob("libtorc.so"))
        compiler, linker = flags("libprotobuf-c")
        self.compiler = ["gcc", "-O2", f"-I{SOURCE / 'include'}", *compiler]
        self.linker = ["gcc"], [self.library, *linker, f"-Wl,-rpath,{self.library.parent}"]

    def generate(self, out):
        run("protoc", f"-I{PROTO}", f"--plugin=protoc-gen-torc={self.plugin}", f"--torc_out=messages,prefix=etcd:{out}", "etcd.proto")
        return [out / "etcd.torc.c", out / "etcd.pb-c.c"]


class Grpc:
    name, own = "gRPC C++", HERE / "peers" / "grpc_etcd.cc"

    def __init__(self, _):
        compiler, linker = flags("grpc++", "protobuf")
        self.compiler = ["g++", "-O2", *compiler]
        self.linker = ["g++"], linker

    def generate(self, out):
        run("protoc", f"-I{PROTO}", f"--plugin=protoc-gen-grpc={shutil.which('grpc_cpp_plugin')}", f"--cpp_out={out}", f"--grpc_out={out}", "etcd.proto")
        return [out / "etcd.pb.cc", out / "etcd.grpc.pb.cc"]


def make(side, out):
    """Builds the program: (seconds, bytes of the stripped program, lines generated)."""
    began = time.monotonic()
    sources = side.generate(out)
    objects = []
    for source in (*sources, side.own):
        objects.append(out / (source.name + ".o"))
        run(*side.compiler, f"-I{out}", "-c", source, "-o", objects[-1])
    program = out / "client"
    before, after = side.linker
    run(*before, *objects, "-o", program, *after)
    seconds = time.monotonic() - began
    run("strip", program)
    generated = [*sources, *(source.with_suffix(".h") for source in sources)]
    return seconds, program.stat().st_size, sum(len(file.read_text(encoding="utf-8").splitlines()) for file in generated)


def libraries(out):
    """The shared libraries that the program loads, and their bytes."""
    files = {pathlib.Path(path).resolve() for path in re.findall(r"=> (/\S+)", run("ldd", out / "client"))}
    return len(files), sum(file.stat().st_size for file in files)


def missing():
    tools = [tool for tool in ("protoc", "protoc-gen-c", "g++", "grpc_cpp_plugin", "pkg-config", "strip") if not shutil.which(tool)]
    if not tools and subprocess.run(["pkg-config", "--exists", "grpc++", "protobuf"], check=False).returncode:
        tools.append("libgrpc++-dev or libprotobuf-dev")
    return tools


def main():
    parser = argparse.ArgumentParser(description="builds a client of etcd with Torc and with gRPC C++")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    if missing():
        print(f"skipped: {', '.join(missing())} is not installed")
        return 77
    sides, rows = [Torc(options.build.resolve()), Grpc(None)], {}
    with tempfile.TemporaryDirectory() as folder:
        outs = {side.name: pathlib.Path(folder, str(i)) for i, side in enumerate(sides)}
        for out in outs.values():
            out.mkdir()
        seconds = {side.name: [] for side in sides}
        for _ in range(options.pairs):
            for side in sides:
                took, size, lines = make(side, outs[side.name])
                seconds[side.name].append(took)
                rows[side.name] = {"bytes of the program": size, "lines generated": lines}
        for side in sides:
            count, size = libraries(outs[side.name])
            rows[side.name].update({"libraries loaded at the start": count, "bytes of these": size,
                                    "lines of the program": len(side.own.read_text(encoding="utf-8").splitlines())})
    print(f"| what | {' | '.join(rows)} |\n|---|{'---|' * len(rows)}")
    spread = {name: f"{statistics.median(of):.2f} s ({min(of):.2f}-{max(of):.2f})" for name, of in seconds.items()}
    print(f"| protoc, compiler and linker, {options.pairs} times in turns | {' | '.join(spread[name] for name in rows)} |")
    for what in rows[sides[0].name]:
        print(f"| {what} | {' | '.join(f'{row[what]:,}' for row in rows.values())} |")
    return 0


sys.exit(main())
