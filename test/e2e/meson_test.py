"""Projects of meson that use the installed Torc: the lines of docs/guide/building.md with the shared and with the static library, and
examples/helloworld, whose code protoc-gen-torc writes again when the .proto changed."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import BUILD, SOURCE, WAIT, blocks, check, main, bytes_program, running


def sh(*args, **kwargs):
    done = subprocess.run(args, capture_output=True, text=True, timeout=WAIT * 4, check=False, **kwargs)
    check(done.returncode == 0, f"{args}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def installed(folder):
    """Installs below the folder. The environment in which meson finds Torc, and programs its library."""
    prefix = os.path.join(folder, "prefix")
    sh("cmake", "--install", BUILD, "--prefix", prefix)
    pkgconfig = next(root for root, _, files in os.walk(prefix) if "torc-stubs.pc" in files)
    return {**os.environ, "PKG_CONFIG_PATH": pkgconfig, "LD_LIBRARY_PATH": os.path.dirname(pkgconfig)}


def built(project, env, *options):
    tree = tempfile.mkdtemp(dir=project)
    sh("meson", "setup", tree, project, *options, env=env)
    sh("meson", "compile", "-C", tree, env=env)
    return tree


def shown_lines():
    """The two lines that docs/guide/building.md shows."""
    (text,) = blocks("docs/guide/building.md", "meson")
    check(text.count("\n") == 2, f"docs/guide/building.md: {text}")
    return text.splitlines()


def test_library():
    dependency, executable = shown_lines()
    static = dependency.replace(")", ", static: true)", 1)
    with tempfile.TemporaryDirectory() as folder, running("backend", "--name", "b1") as backend:
        address, env = backend.listening(), installed(folder)
        for name, line, shared in (("shared", dependency, True), ("static", static, False)):
            project = os.path.join(folder, name)
            os.mkdir(project)
            with open(os.path.join(project, "app.c"), "w", encoding="utf-8") as out:
                out.write(bytes_program())
            with open(os.path.join(project, "meson.build"), "w", encoding="utf-8") as out:
                out.write(f"project('app', 'c')\n{line}\n{executable}\n")
            app = os.path.join(built(project, env), "app")
            check(("libtorc.so" in sh("readelf", "-d", app)) == shared, f"{name}: {sh('readelf', '-d', app)}")
            check(sh(app, address, env=env).strip() == f"OK from {address}: hello", name)


def greeting(tree, env):
    """What the example's server and its client say to one another."""
    with subprocess.Popen([f"{tree}/server", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            address = process.stdout.readline().removeprefix("listening ").strip()
            return sh(f"{tree}/helloworld", address, "you", env=env)
        finally:
            process.kill()


def test_stubs():
    with tempfile.TemporaryDirectory() as folder:
        env = installed(folder)
        project = shutil.copytree(os.path.join(SOURCE, "examples", "helloworld"), os.path.join(folder, "helloworld"))
        tree = built(project, env)
        check(greeting(tree, env) == "Hello, you\n", "by meson")
        proto = os.path.join(project, "helloworld.proto")
        with open(proto, encoding="utf-8") as source:
            text = source.read()
        with open(proto, "w", encoding="utf-8") as out:
            out.write(text.replace("string message = 1;", "string message = 1;\n  string again = 2;"))
        sh("meson", "compile", "-C", tree, env=env)
        with open(os.path.join(tree, "helloworld.pb-c.h"), encoding="utf-8") as header:
            check("char *again;" in header.read(), "the .proto changed, and the code did not")
        check(greeting(tree, env) == "Hello, you\n", "by meson, again")


for tool in ("meson", "protoc", "protoc-gen-c", "pkg-config"):
    if not shutil.which(tool):
        print(f"{tool} is not installed")
        sys.exit(77)
if os.environ.get("TORC_SANITIZE"):
    print("an application is not linked with the sanitizers' runtime")
    sys.exit(77)
main(test_library, test_stubs)
