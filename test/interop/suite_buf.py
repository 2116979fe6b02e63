"""protoc-gen-torc run by buf: the files that protoc's run of it writes, byte by byte; imports and the well-known types; what is
refused, by name."""
import os
import pathlib
import shutil
import subprocess
import tempfile

from programs import HERE, Failure

SOURCE = HERE.parent.parent
EXAMPLE, STUBS, PROTO = SOURCE / "examples" / "helloworld", HERE.parent / "stubs", SOURCE / "proto"
TEMPLATE = "version: v2\nplugins:\n  - {{local: protoc-gen-torc, out: gen, opt: [{0}], include_imports: {1}, include_wkt: {1}}}\n"
REFUSED = {
    "a group": ("messages", 'syntax = "proto2"; package p; message M { optional group G = 1 { } }', "a.proto: M.g is a group: protobuf-c has no groups"),
    "an edition": ("messages", 'edition = "2023"; package p; message M {}', "a.proto: syntax 'editions': protobuf-c knows proto2 and proto3"),
    "an option": ("nonsense", 'syntax = "proto3"; package p; message M {}', "unknown option 'nonsense': expected codec="),
}


class Buf:
    def __init__(self, paths, folder):
        self.folder, self.build = pathlib.Path(folder), paths.build
        self.program = str(paths.peer("buf") / "node_modules" / ".bin" / "buf")
        self.env = {**os.environ, "PATH": f"{paths.build}:{os.environ['PATH']}", "BUF_CACHE_DIR": f"{folder}/cache"}

    def run(self, *args, cwd=None):
        return subprocess.run([self.program, *args], cwd=cwd, env=self.env, capture_output=True, text=True, timeout=120, check=False)

    def generate(self, *args, cwd):
        done = self.run("generate", *args, cwd=cwd)
        if done.returncode:
            raise Failure(f"buf generate {args}: exit {done.returncode}: {done.stderr}")

    def protoc(self, options, out, imports, files):
        out.mkdir()
        subprocess.run(["protoc", f"--plugin=protoc-gen-torc={self.build}/protoc-gen-torc", f"--torc_out={options}:{out}",
                        *(f"-I{i}" for i in imports), *files], check=True, timeout=120)


def written(folder):
    """The files below the folder that the plugin writes, and their bytes."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.suffix in (".c", ".h")}


def expect_same(by_buf, by_protoc, names):
    for name in names:
        if name not in by_buf or name not in by_protoc or by_buf[name] != by_protoc[name]:
            raise Failure(f"{name} is not the same from buf ({sorted(by_buf)}) and from protoc ({sorted(by_protoc)})")


def example(buf):
    """examples/helloworld with its own template."""
    project = buf.folder / "helloworld"
    project.mkdir()
    for name in ("helloworld.proto", "buf.gen.yaml"):
        shutil.copy(EXAMPLE / name, project)
    buf.generate(cwd=project)
    by_buf = written(project)
    buf.protoc("messages", project / "protoc", [EXAMPLE], ["helloworld.proto"])
    expect_same(by_buf, written(project / "protoc"), [f"helloworld.{end}" for end in ("torc.c", "torc.h", "pb-c.c", "pb-c.h")])


def directories(buf):
    """Two folders, one of which imports the other: buf runs the plugin once for each folder."""
    project = buf.folder / "directories"
    for name, text in {"shop/v1/shop.proto": 'syntax = "proto3"; package shop.v1; import "item/v1/item.proto";\n'
                                             "// Sells.\nservice Shop { rpc Buy(item.v1.Item) returns (stream item.v1.Item); }",
                       "item/v1/item.proto": 'syntax = "proto3"; package item.v1; message Item { optional string name = 1; }'}.items():
        (project / name).parent.mkdir(parents=True)
        (project / name).write_text(text, encoding="ascii")
    (project / "buf.gen.yaml").write_text(TEMPLATE.format("messages", "false"), encoding="ascii")
    buf.generate(cwd=project)
    files = ["shop/v1/shop.proto", "item/v1/item.proto"]
    buf.protoc("messages", project / "protoc", [project], files)
    by_protoc = written(project / "protoc")
    expect_same(written(project / "gen"), by_protoc, by_protoc)


def imports(buf):
    """Every kind of field, with buf's own well-known types: it is asked for one file, and generates what that imports."""
    project = buf.folder / "imports"
    shutil.copytree(STUBS, project)
    shutil.rmtree(project / "google" / "protobuf", ignore_errors=True)
    (project / "buf.gen.yaml").write_text(TEMPLATE.format("messages,reflection", "true"), encoding="ascii")
    buf.generate("--path", "kinds.proto", cwd=project)
    by_buf = written(project / "gen")
    buf.protoc("messages,reflection", project / "protoc", [STUBS, PROTO], ["kinds.proto", "other.proto"])
    by_protoc = written(project / "protoc")
    expect_same(by_buf, by_protoc, by_protoc)
    for name in ("google/protobuf/any.pb-c.c", "google/protobuf/timestamp.torc.c"):
        if name not in by_buf:
            raise Failure(f"{name} is missing: {sorted(by_buf)}")
    sources = [str(project / "gen" / name) for name in by_buf if name.endswith(".c")]
    flags = subprocess.run(["pkg-config", "--cflags", "libprotobuf-c"], capture_output=True, text=True, check=True).stdout.split()
    subprocess.run(["cc", "-std=c99", "-Werror", "-fsyntax-only", f"-I{project}/gen", f"-I{SOURCE}/include", *flags, *sources], check=True, timeout=120)


def refuses(options, proto, text):
    def case(buf):
        project = buf.folder / "refused"
        shutil.rmtree(project, ignore_errors=True)
        project.mkdir()
        (project / "a.proto").write_text(proto, encoding="ascii")
        (project / "buf.gen.yaml").write_text(TEMPLATE.format(options, "false"), encoding="ascii")
        done = buf.run("generate", cwd=project)
        if done.returncode != 1 or text not in done.stderr or written(project):
            raise Failure(f"exit {done.returncode}, {done.stderr}, {sorted(written(project))}")
    return case


def run(paths, options):
    if options.peers and "buf" not in options.peers:
        return
    cases = {"examples/helloworld": example, "a folder that imports another": directories, "imports and well-known types": imports,
             **{f"refuses {name}": refuses(*parts) for name, parts in REFUSED.items()}}
    why = []
    with tempfile.TemporaryDirectory() as folder:
        buf = Buf(paths, folder)
        version = buf.run("--version").stdout.strip()
        for name, case in cases.items():
            try:
                case(buf)
            except (Failure, subprocess.SubprocessError) as error:
                why.append(f"{name}: {error}")
    yield {"peer": "buf", "version": version, "cases": len(cases), "passed": len(cases) - len(why), "failed": len(why), "why": why}
