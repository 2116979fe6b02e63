"""Projects that use Torc build and run the quickstart's program of bytes: by pkg-config with the shared and with the static library (-static too), by
find_package with both, by FetchContent and by add_subdirectory, there with a typed client too; make uninstall leaves no file. Projects that have
Torc in them compile the library, which takes more than a minute: `make check-more PARTS=consumers` runs them (TORC_SUBPROJECTS=1)."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import BUILD, SOURCE, WAIT, blocks, check, main, bytes_program, running

SANITIZED = bool(os.environ.get("TORC_SANITIZE"))
GREETER_TEST = r"""#include <stdio.h>
#include <torc/testing.h>
#include <torc/time.h>
#include "helloworld.torc.h"

static void say_hello(torc_server_call *call, const Helloworld__HelloRequest *request, void *world)
{
    Helloworld__HelloReply reply = HELLOWORLD__HELLO_REPLY__INIT;
    reply.message = request->name;
    torc_testing_advance(world, 2000); /* on a thread of the pool */
    helloworld__greeter__say_hello__reply(call, &reply);
}

int main(void)
{
    struct helloworld__greeter__handlers handlers = {TORC_SIZE(helloworld__greeter__handlers), .say_hello = say_hello};
    struct torc_method_options pooled = {TORC_SIZE(torc_method_options)};
    torc_error *error = NULL;
    torc_testing *world = torc_testing_new(1, &error);
    pooled.pool = torc_pool_new(1, 1, &error);
    torc_server *server = torc_server_new(NULL, &error);
    helloworld__greeter__add(server, &handlers, world, &error);
    torc_server_limit(server, "helloworld.Greeter", &pooled, &error);
    torc_server_listen(server, "10.0.0.1:443", torc_credentials_insecure(), NULL, &error);
    torc_server_start(server, &error);
    torc_channel *channel = torc_channel_new(NULL, "10.0.0.1:443", NULL, &error);
    if (!channel)
        return fprintf(stderr, "%s\n", torc_error_text(error)), 1;
    Helloworld__HelloRequest request = HELLOWORLD__HELLO_REQUEST__INIT;
    int64_t before = torc_time_ms();
    torc_result *result = helloworld__greeter__say_hello__call(channel, &request, NULL);
    if (helloworld__greeter__say_hello__response(result))
        printf("%lld ms\n", (long long)(torc_time_ms() - before));
    torc_result_free(result);
    torc_channel_free(channel);
    torc_server_free(server);
    torc_pool_free(pooled.pool);
    return torc_testing_free(world);
}
"""
FIND = "find_package(torc REQUIRED{})\n"
FETCH = 'include(FetchContent)\nFetchContent_Declare(torc SOURCE_DIR "{0}")\nFetchContent_MakeAvailable(torc)\n'
SUBDIRECTORY = 'add_subdirectory("{0}" torc)\n'


def sh(args, **kwargs):
    done = subprocess.run(args, capture_output=True, text=True, timeout=3600, check=False, **kwargs)
    check(done.returncode == 0, f"{args}: exit {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


@contextlib.contextmanager
def installed(*options):
    """A folder with app.c, and an installation below prefix/; yields the folder, the prefix and the folder of torc.pc."""
    with tempfile.TemporaryDirectory() as folder:
        write_app(folder)
        prefix = os.path.join(folder, "prefix")
        sh(["cmake", "--install", BUILD, "--prefix", prefix, *options])
        yield folder, prefix, next(root for root, _, files in os.walk(prefix) if "torc.pc" in files)


def write(path, text):
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def write_app(folder):
    write(os.path.join(folder, "app.c"), bytes_program())


def calls(app, library=None):
    """Runs the program against a backend."""
    with running("backend", "--name", "b1") as backend:
        address = backend.listening()
        env = {**os.environ, "LD_LIBRARY_PATH": library} if library else os.environ
        done = subprocess.run([app, address], capture_output=True, text=True, timeout=WAIT, check=False, env=env)
        check(done.stdout.strip() == f"OK from {address}: hello", f"{app}: {done.returncode} {done.stdout}{done.stderr}")


def write_project(folder, find, target):
    write(os.path.join(folder, "CMakeLists.txt"), f"cmake_minimum_required(VERSION 3.18)\nproject(app C)\n{find}add_executable(app app.c)\n"
          f"target_link_libraries(app PRIVATE {target})\n")


def project(folder, find, target, *options):
    """Configures and builds a project of C alone, and returns its program."""
    write_project(folder, find, target)
    tree = os.path.join(folder, re.sub(r"\W", "_", target))
    sh(["cmake", "-S", folder, "-B", tree, "-DCMAKE_BUILD_TYPE=RelWithDebInfo", *options])
    sh(["cmake", "--build", tree, "-j", str(os.cpu_count())])
    return os.path.join(tree, "app")


def test_pkg_config():
    if SANITIZED:
        return  # an application is not linked with the sanitizers' runtime
    with installed() as (folder, _, pc):
        app, env = os.path.join(folder, "app"), {**os.environ, "PKG_CONFIG_PATH": pc}
        flags = sh(["pkg-config", "--cflags", "--libs", "torc"], env=env).split()
        check(not [f for f in flags if f.startswith("-l") and f != "-ltorc"], f"the shared library alone: {flags}")
        (lines,) = [text for text in blocks("docs/guide/building.md", "sh") if "pkg-config" in text]
        shared, static = lines.splitlines()
        sh(["sh", "-ec", shared], cwd=folder, env=env)
        calls(app, os.path.dirname(pc))
        sh(["sh", "-ec", static], cwd=folder, env=env)  # no library of the system is shared either
        check("no version information" not in sh(["readelf", "-d", app]), "static")
        check("NEEDED" not in sh(["readelf", "-d", app]), "a static program needs no library")
        calls(app)


def test_find_package():
    if SANITIZED:
        return
    with installed() as (folder, prefix, _):
        found = f"-DCMAKE_PREFIX_PATH={prefix}"
        for components, target in (("", "torc::torc"), (" COMPONENTS shared", "torc::shared"), (" COMPONENTS static", "torc::static")):
            app = project(folder, FIND.format(components), target, found)
            needed = sh(["readelf", "-d", app])
            check(("libtorc.so" in needed) == (target != "torc::static"), f"{target}: {needed}")
            calls(app)


def test_json():
    """examples/json.c, built by the lines of docs/guide/json.md: with pkg-config (shared, static) and with CMake."""
    if SANITIZED:
        return
    example = os.path.join(SOURCE, "examples", "json.c")
    descriptors = os.path.join(BUILD, "test", "json.pb")
    with installed() as (folder, prefix, pc):
        library, env = os.path.dirname(pc), {**os.environ, "PKG_CONFIG_PATH": pc}
        app = os.path.join(folder, "json")

        def play(how, **settings):
            done = subprocess.run([app, descriptors, "torc.test.json.Old"], input='{"oInt32": 5}', capture_output=True, text=True,
                                  timeout=WAIT, check=False, **settings)
            check(done.stdout == '2 bytes\n{\n  "oInt32": 5\n}\n', f"{how}: {done}")

        there = {**env, "LD_LIBRARY_PATH": library}
        shutil.copy(example, folder)
        (shop,) = blocks("docs/guide/json.md", "proto")
        write(os.path.join(folder, "shop.proto"), shop)
        (lines,) = blocks("docs/guide/json.md", "sh")
        if not shutil.which("protoc"):
            lines = lines.partition("\n")[0]
        printed = sh(["sh", "-ec", lines], cwd=folder, env=there)
        check(not shutil.which("protoc") or json.loads(printed.partition("\n")[2]) == {"id": "7", "price": {"units": "12"}}, printed)
        play("shared", env=there)
        done = subprocess.run([app, "/nonexistent", "a.B"], capture_output=True, text=True, timeout=WAIT, check=False, env=there)
        check((done.returncode, done.stderr) == (1, "/nonexistent: No such file or directory\n"), f"the file is named: {done}")
        static = sh(["pkg-config", "--static", "--cflags", "--libs", "torc-json"], env=env).split()
        archives = {f"-l{name}": os.path.join(library, f"lib{name}.a") for name in ("torc-json", "torc")}
        sh(["cc", example, "-o", app, *[archives.get(f, f) for f in static]])
        play("static")
        with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as out:
            (project_lines,) = blocks("docs/guide/json.md", "cmake")
            out.write(f"cmake_minimum_required(VERSION 3.18)\nproject(json C)\n{project_lines}")
        sh(["cmake", "-S", folder, "-B", os.path.join(folder, "b"), f"-DCMAKE_PREFIX_PATH={prefix}"])
        sh(["cmake", "--build", os.path.join(folder, "b")])
        app = os.path.join(folder, "b", "json")
        play("CMake")


def test_testing():
    """examples/testing, built by the guide's lines: with pkg-config (shared, static), with CMake, and for code that is a library
    linked with libtorc."""
    if SANITIZED:
        return
    example = os.path.join(SOURCE, "examples", "testing")
    with installed() as (folder, prefix, pc):
        library, env = os.path.dirname(pc), {**os.environ, "PKG_CONFIG_PATH": pc}
        there = {**os.environ, "LD_LIBRARY_PATH": library}
        flags = sh(["pkg-config", "--cflags", "--libs", "torc-testing"], env=env).split()
        check([f for f in flags if f.startswith("-l")] == ["-ltorc-testing"], f"one library: {flags}")
        line, project_lines, _ = blocks("docs/guide/testing.md", "sh", "cmake")
        app = os.path.join(folder, "orders_test")
        sh(["sh", "-ec", line.replace("-o orders_test", f"-o {app}")], cwd=example, env=env)
        check(sh([app], env=there) == "OK\n", "shared")
        static = sh(["pkg-config", "--static", "--cflags", "--libs", "torc-testing"], env=env).split()
        sources = [os.path.join(example, name) for name in ("orders.c", "orders_test.c")]
        sh(["cc", *sources, "-o", app, *[f if f != "-ltorc-testing" else os.path.join(library, "libtorc-testing.a") for f in static]])
        check(sh([app]) == "OK\n", "static")
        with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as out:
            out.write(f"cmake_minimum_required(VERSION 3.18)\nproject(orders C)\n{project_lines}")
        for name in ("orders.c", "orders.h", "orders_test.c"):
            shutil.copy(os.path.join(example, name), folder)
        sh(["cmake", "-S", folder, "-B", os.path.join(folder, "b"), f"-DCMAKE_PREFIX_PATH={prefix}"])
        sh(["cmake", "--build", os.path.join(folder, "b")])
        check(sh([os.path.join(folder, "b", "orders_test")]) == "OK\n", "CMake")

        torc = sh(["pkg-config", "--cflags", "--libs", "torc"], env=env).split()
        orders = os.path.join(folder, "liborders.so")
        sh(["cc", "-shared", "-fPIC", sources[0], "-o", orders, *torc])
        sh(["cc", sources[1], "-o", app, *flags, orders, *torc])
        check(sh([app], env=there) == "OK\n", "a library that is linked with libtorc")
        sh(["cc", sources[1], "-o", app, "-Wl,--no-as-needed", *torc, orders, *flags])
        done = subprocess.run([app], capture_output=True, text=True, timeout=WAIT, check=False, env=there)
        check(done.returncode == 1 and "libtorc before libtorc-testing" in done.stderr, f"libtorc first: {done}")


def test_testing_of_stubs():
    """Generated code over libtorc-testing, built by the guide's lines with pkg-config, and with CMake in both orders."""
    if SANITIZED:
        return
    with installed() as (folder, prefix, pc):
        write(os.path.join(folder, "greeter_test.c"), GREETER_TEST)
        shutil.copy(os.path.join(SOURCE, "examples", "helloworld", "helloworld.proto"), folder)
        path = os.path.join(prefix, "bin") + os.pathsep + os.environ["PATH"]
        lines = blocks("docs/guide/testing.md", "sh")[1]
        sh(["sh", "-ec", lines], cwd=folder, env={**os.environ, "PKG_CONFIG_PATH": pc, "PATH": path})
        test = os.path.join(folder, "greeter_test")
        check(sh([test], env={**os.environ, "LD_LIBRARY_PATH": os.path.dirname(pc)}) == "2000 ms\n", "pkg-config")
        for libraries in ("torc::testing torc::stubs", "torc::stubs torc::testing"):
            write(os.path.join(folder, "CMakeLists.txt"),
                  "cmake_minimum_required(VERSION 3.18)\nproject(greeter C)\nfind_package(torc REQUIRED)\nadd_executable(greeter_test greeter_test.c)\n"
                  f"torc_generate(greeter_test PROTOS helloworld.proto)\ntarget_link_libraries(greeter_test PRIVATE {libraries})\n")
            sh(["cmake", "-S", folder, "-B", os.path.join(folder, "b"), f"-DCMAKE_PREFIX_PATH={prefix}"])
            sh(["cmake", "--build", os.path.join(folder, "b")])
            check(sh([os.path.join(folder, "b", "greeter_test")]) == "2000 ms\n", libraries)


def test_uninstall():
    """make uninstall removes what make install wrote. The list is the tree's own, so a tree of this test's is made up."""
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("one", "two", "kept")]
        for path in files:
            with open(path, "w", encoding="utf-8"):
                pass
        manifest = os.path.join(folder, "install_manifest.txt")
        with open(manifest, "w", encoding="utf-8") as out:
            out.write("/one\n/two\n/gone\n")
        sh(["cmake", f"-DMANIFEST={manifest}", "-P", os.path.join(SOURCE, "cmake", "uninstall.cmake")], env={**os.environ, "DESTDIR": folder})
        check([os.path.exists(path) for path in files] == [False, False, True], "what was installed is gone, and nothing else")


TYPED = ("add_executable(typed typed.c)\ntorc_generate(typed PROTOS helloworld.proto)\ntarget_link_libraries(typed PRIVATE torc::stubs)\n")


def test_typed_part_is_configured():
    """FetchContent and add_subdirectory bring torc_generate and torc::stubs, and no target of the project pulls in the plugin unasked."""
    if not shutil.which("ninja") or not shutil.which("protoc") or not shutil.which("protoc-gen-c"):
        print("ninja, protoc or protoc-gen-c is not installed", flush=True)
        return
    for find in (FETCH, SUBDIRECTORY):
        with tempfile.TemporaryDirectory() as folder:
            write_app(folder)
            shutil.copy(os.path.join(SOURCE, "examples", "helloworld", "helloworld.proto"), folder)
            shutil.copy(os.path.join(SOURCE, "examples", "helloworld", "main.c"), os.path.join(folder, "typed.c"))
            write_project(folder, find.format(SOURCE) + TYPED, "torc::torc")
            sh(["cmake", "-S", folder, "-B", os.path.join(folder, "b"), "-G", "Ninja"])
            for target, wanted in (("typed", True), ("app", False)):
                steps = sh(["ninja", "-C", os.path.join(folder, "b"), "-t", "commands", target])
                check(("helloworld.proto" in steps) == wanted and ("protoc-gen-torc/main.c" in steps) == wanted, f"{target}: {steps}")


def test_make_builds_objects_first():
    """Makefiles have no rule for an object of another target: each target of which the one object of a static library is linked comes before it, also
    with `make -j`."""
    with tempfile.TemporaryDirectory() as folder:
        sh(["cmake", "-S", SOURCE, "-B", folder, "-G", "Unix Makefiles", "-DTORC_TESTS=OFF"])
        with open(os.path.join(folder, "CMakeFiles", "Makefile2"), encoding="utf-8") as file:
            order = file.read()
        for library in ("torc_static", "torc_testing_static", "torc_json_static"):
            with open(os.path.join(folder, "src", "CMakeFiles", f"{library}.dir", "build.make"), encoding="utf-8") as file:
                modules = set(re.findall(r"^src/lib[-a-z]*\.o: src/CMakeFiles/(\w+)\.dir/", file.read(), re.M))
            late = [name for name in modules if f"src/CMakeFiles/{library}.dir/all: src/CMakeFiles/{name}.dir/all\n" not in order]
            check(modules and not late, f"{library} may be made before {late}")


def test_build_without_cmocka():
    """What a plain `cmake --build` makes has a rule, also where cmocka is not installed and the tests are left out."""
    if not shutil.which("ninja"):
        print("ninja is not installed", flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        finder = os.path.join(folder, "pkg-config")
        write(finder, '#!/bin/sh\ncase "$*" in *cmocka*) exit 1 ;; esac\nexec pkg-config "$@"\n')
        os.chmod(finder, 0o755)
        said = sh(["cmake", "-S", SOURCE, "-B", os.path.join(folder, "b"), "-G", "Ninja", f"-DPKG_CONFIG_EXECUTABLE={finder}"])
        check("cmocka is not installed" in said, said)
        built = os.path.join(folder, "b")
        graph = sh(["ninja", "-C", built, "-t", "graph", "all"])
        made = set(re.findall(r'-> "(\w+)"', graph))
        leaves = [name for node, name in re.findall(r'^"(\w+)" \[label="([^"]*)"\]$', graph, re.M) if node not in made]
        missing = [name for name in leaves if not os.path.exists(os.path.join(built, name))]
        check(len(leaves) > 100 and not missing, f"no rule makes {missing}")


def test_as_a_part_of_a_project():
    if not os.environ.get("TORC_SUBPROJECTS"):
        print("TORC_SUBPROJECTS is not set: FetchContent and add_subdirectory are not tried", flush=True)
        return
    for find, target in ((FETCH, "torc::torc"), (SUBDIRECTORY, "torc::static")):
        with tempfile.TemporaryDirectory() as folder:
            write_app(folder)
            app = project(folder, find.format(SOURCE), target, "-G", "Ninja")
            check(not [f for f in os.listdir(os.path.join(folder, re.sub(r"\W", "_", target))) if f == "torc.pc"], "nothing to install")
            calls(app)
            check(not [root for root, _, names in os.walk(folder) if "torc_command" in str(names)], "no command, no tests")
            check(not [root for root, _, names in os.walk(folder) if "protoc-gen-torc" in names], "no plugin that nothing asked for")


def test_typed_part_of_a_project():
    """A typed client out of a project that has Torc as a part, by make, which knows no order but that of the targets."""
    if not os.environ.get("TORC_SUBPROJECTS") or not shutil.which("protoc") or not shutil.which("protoc-gen-c"):
        return
    with tempfile.TemporaryDirectory() as folder, running("backend") as backend:
        write_app(folder)
        shutil.copy(os.path.join(SOURCE, "examples", "helloworld", "helloworld.proto"), folder)
        shutil.copy(os.path.join(SOURCE, "examples", "helloworld", "main.c"), os.path.join(folder, "typed.c"))
        app = project(folder, FETCH.format(SOURCE) + TYPED, "torc::torc", "-G", "Unix Makefiles")
        check(sh([os.path.join(os.path.dirname(app), "typed"), backend.listening(), "you"]) == "you\n", "the backend's echo greets with the name")


main(test_pkg_config, test_find_package, test_testing, test_testing_of_stubs, test_json, test_uninstall, test_typed_part_is_configured,
     test_make_builds_objects_first, test_build_without_cmocka, test_as_a_part_of_a_project, test_typed_part_of_a_project)
