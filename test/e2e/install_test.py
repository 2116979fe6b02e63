"""The installed library: README's program and the quickstart's compile with pkg-config and run; the examples run; the CMake package is found."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import BUILD, SOURCE, WAIT, blocks, check, free_address, main, bytes_program, readme_program, running

SANITIZED = bool(os.environ.get("TORC_SANITIZE"))


def sh(args, **kwargs):
    done = subprocess.run(args, capture_output=True, text=True, timeout=WAIT * 2, check=False, **kwargs)
    check(done.returncode == 0, f"{args}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def installed(prefix):
    """Installs below the prefix. The environment in which tools find the installation."""
    sh(["cmake", "--install", BUILD, "--prefix", prefix])
    pc_dir = next(root for root, _, files in os.walk(prefix) if "torc-stubs.pc" in files)
    return {**os.environ, "PKG_CONFIG_PATH": pc_dir, "LD_LIBRARY_PATH": os.path.dirname(pc_dir),
            "PATH": f"{prefix}/bin:{os.environ['PATH']}"}


def test_readme_program():
    if SANITIZED:
        return  # an application is not linked with the sanitizers' runtime
    with tempfile.TemporaryDirectory() as folder, running("backend", "--name", "b1") as backend:
        address = backend.listening()
        sh(["cmake", "--install", BUILD, "--prefix", folder])
        source = os.path.join(folder, "app.c")
        with open(source, "w", encoding="utf-8") as out:
            out.write(bytes_program())
        pc_dir = next(root for root, _, files in os.walk(folder) if "torc.pc" in files)
        env = {**os.environ, "PKG_CONFIG_PATH": pc_dir}
        flags = sh(["pkg-config", "--cflags", "--libs", "torc"], env=env).split()
        app = os.path.join(folder, "app")
        sh(["cc", "-Wall", "-Werror", source, "-o", app, *flags])
        library = os.path.dirname(pc_dir)
        out = sh([app, address], env={**os.environ, "LD_LIBRARY_PATH": library})
        check(out.strip() == f"OK from {address}: hello", out)
        static = sh(["pkg-config", "--static", "--cflags", "--libs", "torc"], env=env).split()
        sh(["cc", source, "-o", app, *[f if f != "-ltorc" else os.path.join(library, "libtorc.a") for f in static]])
        check(sh([app, address]).strip() == f"OK from {address}: hello", "the static library")
        with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as cache:
            late = "TORC_LATE_LOADING:BOOL=ON" in cache.read()
        check(os.path.exists(os.path.join(library, "libtorc-regex.so.0.2")) == late, "the library of regexes is installed")
        for page in ("share/man/man1/torc.1", "share/man/man3/torc_unary.3", "share/man/man7/torc.7", "bin/torc",
                     "share/bash-completion/completions/torc", "include/torc/torc.h"):
            check(os.path.exists(os.path.join(folder, page)), f"{page} is installed")
        with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as out_file:
            out_file.write("cmake_minimum_required(VERSION 3.25)\nproject(app C)\nfind_package(torc REQUIRED)\n"
                           "add_executable(app app.c)\ntarget_link_libraries(app PRIVATE torc::torc)\n")
        sh(["cmake", "-S", folder, "-B", os.path.join(folder, "b"), f"-DCMAKE_PREFIX_PATH={folder}"])
        sh(["cmake", "--build", os.path.join(folder, "b")])
        check(sh([os.path.join(folder, "b", "app"), address]).strip() == f"OK from {address}: hello", "the CMake package")


def test_readme_typed_program():
    """README's first program, built by README's own lines; its code has at most 20."""
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as readme:
        text = readme.read()
    program = readme_program("helloworld.torc.h")
    check(text.index(program) == text.index("```c\n") + 5, "the typed program is the first")
    lines = program.strip().splitlines()
    check(len(lines) <= 20, f"{len(lines)} lines")
    (target,) = re.findall(r'"xds:///(\w+)"', program)
    with open(os.path.join(SOURCE, "examples", "mesh.yaml"), encoding="utf-8") as mesh:
        check(f"Listener\n  name: {target}\n" in mesh.read(), f"examples/mesh.yaml has the program's target, {target}")
    for sample in (program, bytes_program()):
        check(".timeout_ms = " in sample, f"an RPC has a deadline: {sample}")
    built = "".join(f"{line}\n" for line in re.findall(r"(?m)^((?:protoc|cc) .*)$", text) if "torc" in line)
    check(built.count("\n") == 2, f"two lines build it: {built}")
    if SANITIZED:
        return  # an application is not linked with the sanitizers' runtime
    with tempfile.TemporaryDirectory() as folder, running("backend") as backend:
        address, app, env = backend.listening(), os.path.join(folder, "app"), installed(os.path.join(folder, "prefix"))
        shutil.copy(os.path.join(SOURCE, "examples", "helloworld", "helloworld.proto"), folder)
        with open(f"{app}.c", "w", encoding="utf-8") as out:
            out.write(program)
        sh(["sh", "-ec", built], cwd=folder, env=env)
        check(sh([app, address], env=env) == "world\n", "the backend's echo greets with the name")
        server = os.path.join(SOURCE, "examples", "helloworld", "server.c")
        sh(["sh", "-ec", built.replace("app.c", server).replace("-o app", "-o server")], cwd=folder, env=env)
        with subprocess.Popen([os.path.join(folder, "server"), "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, env=env) as process:
            try:
                greeter = process.stdout.readline().removeprefix("listening ").strip()
                check(sh([app, greeter], env=env) == "Hello, world\n", "the server's greeting")
            finally:
                process.kill()
        for target, why in ((free_address(), "Connection refused"), ("foo://x", "foo")):
            done = subprocess.run([app, target], capture_output=True, text=True, timeout=WAIT, check=False, env=env)
            check(done.returncode == 1 and why in done.stderr and not done.stdout, f"{target}: {done}")


def test_guide():
    """The guide's steps as they stand, but for the port, which is free."""
    if SANITIZED:
        return  # an application is not linked with the sanitizers' runtime
    with open(os.path.join(SOURCE, "docs", "guide", "stubs.md"), encoding="utf-8") as guide:
        steps = re.findall(r"^```(\w+)\n(.*?)^```", guide.read(), re.S | re.M)[:3]
    check([kind for kind, _ in steps] == ["proto", "c", "sh"], f"three steps: {steps}")
    with tempfile.TemporaryDirectory() as folder, running("backend") as backend:
        address, env = backend.listening(), installed(os.path.join(folder, "prefix"))
        for (_, text), name in zip(steps, ("helloworld.proto", "app.c")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write(text.replace("localhost:50051", address))
        sh(["sh", "-ec", steps[2][1]], cwd=folder, env=env)
        check(sh(["./app"], cwd=folder, env=env) == "world\n", "the backend's echo greets with the name")


def test_quickstart():
    """The commands of docs/guide/quickstart.md behind the installation, with ports that are free."""
    if SANITIZED:
        return  # an application is not linked with the sanitizers' runtime
    plain, typed = (text for text in blocks("docs/guide/quickstart.md", "sh") if "git clone" not in text)
    for text in (plain, typed):
        check(text.count(" &\n") == 1 and text.endswith("\nkill $!\n"), f"a block ends what it starts: {text}")
    with tempfile.TemporaryDirectory() as folder:
        work = shutil.copytree(os.path.join(SOURCE, "examples", "helloworld"), os.path.join(folder, "helloworld"))
        env = installed(os.path.join(folder, "prefix"))
        with open(os.path.join(work, "app.c"), "w", encoding="utf-8") as out:
            out.write(bytes_program())
        for text, says in ((plain, "hello"), (typed, "Hello, you")):
            lines = "trap 'kill $! || :' EXIT\n" + re.sub(r"127\.0\.0\.1:\d+", free_address(), text)
            printed = sh(["sh", "-ec", lines], cwd=work, env=env)
            check(says in printed, f"{lines}: {printed}")


KEEPS_ITS_CHANNEL = r"""
#include <torc/torc.h>

static torc_channel *channel;

int main(int argc, char **argv)
{
    channel = torc_channel_new(NULL, argc > 1 ? argv[1] : "", NULL, NULL);
    torc_result *result = torc_unary(channel, "echo.Echo/Say", "hello", 5, NULL);
    int code = torc_result_code(result);
    torc_result_free(result);
    return code;
}
"""


def test_a_kept_channel_is_no_leak():
    """To the leak checker of an application that is built with it, while the library is not."""
    if SANITIZED:
        return  # the library has other memory then
    with tempfile.TemporaryDirectory() as folder, running("backend") as backend:
        address = backend.listening()
        source, app = os.path.join(folder, "app.c"), os.path.join(folder, "app")
        with open(source, "w", encoding="utf-8") as out:
            out.write(KEEPS_ITS_CHANNEL)
        for sanitizer in ("address", "leak"):
            compiled = subprocess.run(["cc", f"-fsanitize={sanitizer}", "-I", os.path.join(SOURCE, "include"), source,
                                       os.path.join(BUILD, "src", "libtorc.so"), "-o", app],
                                      capture_output=True, text=True, timeout=WAIT * 2, check=False)
            if compiled.returncode and "cannot find" in compiled.stderr:
                print(f"no runtime of -fsanitize={sanitizer} on this machine", flush=True)
                continue
            check(compiled.returncode == 0, compiled.stderr)
            sh([app, address], env={**os.environ, "LD_LIBRARY_PATH": os.path.join(BUILD, "src")})


def test_examples():
    with running("backend", "--name", "b1") as one, running("backend", "--name", "b2") as two:
        first, second = one.listening(), two.listening()
        example = os.path.join(BUILD, "examples")
        check("OK from" in sh([f"{example}/unary", first, "hi"]), "unary")
        check("OK after 10 messages" in sh([f"{example}/streaming", first]), "streaming")
        check("100 of 100 calls OK" in sh([f"{example}/async", first]), "async")
        check(sh([f"{example}/epoll_loop", first]).count("OK from") == 3, "epoll_loop")
        check("/echo.Echo/Say to " + first + ": OK" in sh([f"{example}/interceptor", first]), "interceptor")
        lines = sh([f"{example}/ring_hash", first, second]).splitlines()
        check(len(lines) == 8 and lines[:4] == lines[4:], f"the same session, the same backend: {lines}")
        lines = sh([f"{example}/lb_policy", f"ipv4:{first},{second}"]).splitlines()
        check(len(lines) == 8 and set(lines) <= {f"{first} ", f"{second} "}, f"lb_policy: {lines}")


def test_examples_say_why():
    closed = free_address()
    for name in ("unary", "streaming", "async", "epoll_loop", "ring_hash", "interceptor", "lb_policy"):
        for target in ("foo://x", "dns:", closed):
            done = subprocess.run([os.path.join(BUILD, "examples", name), target], capture_output=True, text=True,
                                  timeout=WAIT * 2, check=False)
            said = done.stdout + done.stderr
            check(done.returncode > 0, f"{name} {target}: exit {done.returncode}\n{said}")
            check(target in said and ("Connection refused" in said) == (target == closed), f"{name} {target}: {said}")
            check("DEADLINE_EXCEEDED" not in said and "success" not in said, f"{name} {target}: {said}")


main(test_readme_program, test_readme_typed_program, test_guide, test_quickstart, test_a_kept_channel_is_no_leak, test_examples, test_examples_say_why)
