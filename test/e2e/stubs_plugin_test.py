"""protoc-gen-torc: what it refuses, by name; what it writes compiles without a warning; the installed plugin builds
examples/helloworld by CMake and by make (by meson: meson_test.py; by buf: test/interop/suite_buf.py)."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import BUILD, SOURCE, WAIT, check, main, running

STUBS, PROTO = os.path.join(SOURCE, "test", "stubs"), os.path.join(SOURCE, "proto")
PLUGIN = os.path.join(BUILD, "protoc-gen-torc")
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
WELL_KNOWN = [f"google/protobuf/{name}.proto" for name in ("any", "duration", "empty", "struct", "timestamp", "wrappers")]


def run(*args, **kwargs):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=WAIT * 4, check=False, **kwargs)


def sh(*args, **kwargs):
    done = run(*args, **kwargs)
    check(done.returncode == 0, f"{args}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def write(path, text):
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def protoc(folder, options, *files, imports=(STUBS, PROTO)):
    return run("protoc", f"--plugin=protoc-gen-torc={PLUGIN}", f"--torc_out={options}:{folder}", *(f"-I{i}" for i in imports), *files)


def refused(options, text, proto='message M {}'):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "a.proto"), "w", encoding="utf-8") as out:
            out.write(proto if proto.startswith("syntax") else f'syntax = "proto3"; package p; {proto}')
        done = protoc(folder, options, "a.proto", imports=[folder])
        check(done.returncode == 1 and text in done.stderr, f"{options} {proto}: exit {done.returncode}, {done.stderr}")
        check(os.listdir(folder) == ["a.proto"], f"{options} {proto}: files were written")


def test_options():
    refused("side=peer", "side=peer: expected client, server or both")
    refused("codec=nanopb", "codec=nanopb: this version generates code for protobuf-c only")
    refused("codec=upb", "codec=upb: expected protobuf-c")
    refused("prefix=1a", "prefix=1a: expected a C identifier")
    refused("messages=no", "unknown option 'messages=no'")
    refused("message", "unknown option 'message': expected codec=")
    refused("messages,protoc-gen-c=/nowhere", "messages: cannot run /nowhere: No such file or directory")
    refused("messages,protoc-gen-c=false", "messages: false ended with status 1")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program")
        write(program, "#!/bin/sh\nkill -9 $$\n")
        os.chmod(program, 0o755)
        refused(f"messages,protoc-gen-c={program}", f"messages: {program} ended with signal 9")


def test_files():
    proto2 = 'syntax = "proto2"; package p; message M { '
    refused("messages", "a.proto: M.g is a group: protobuf-c has no groups", proto2 + "optional group G = 1 { } }")
    refused("messages", "a.proto: more extends .p.M: protobuf-c has no extensions",
            proto2 + "extensions 5; } extend M { optional int32 more = 5; }")
    refused("messages", "a.proto: inner extends .p.M: protobuf-c has no extensions",
            proto2 + "extensions 5; } message N { extend M { optional int32 inner = 5; } }")
    refused("messages", "a.proto: the methods /p.S/GetIt and /p.S/get_it are one name in C, p__s__get_it",
            "message M {} service S { rpc GetIt(M) returns (M); rpc get_it(M) returns (M); }")
    refused("messages", "a.proto: the services Foo and foo are one name in C, p__foo",
            "message M {} service Foo { rpc A(M) returns (M); } service foo { rpc B(M) returns (M); }")
    refused("messages", "a.proto: p.a_b and p.AB are one name in C, P__AB", "message a_b {} message AB {}")
    refused("messages", "a.proto: p.A.B_c and p.A.BC are one name in C, P__A__BC", "message A { message B_c {} enum BC { X = 0; } }")
    refused("messages", "a.proto: M.d: protobuf-c has no default that is -inf", proto2 + "optional double d = 1 [default = -inf]; }")
    refused("messages", "a.proto: N.f: protobuf-c has no default that is nan", proto2 + "message N { optional float f = 1 [default = nan]; } }")


# Names that C, C++, their headers or the compiler have taken.
TAKEN = ("linux unix errno stdin stdout stderr assert bool true signed size_t int32_t uint64_t i386 static_assert thread_local alignas "
         "noreturn and or not new delete template this uint8_t base descriptor asm typeof inline restrict constexpr nullptr offsetof "
         "major export requires concept co_await char8_t decltype noexcept class int protobuf_c_boolean").split()


def test_taken_names():
    """Whatever a .proto calls its fields and methods, the code compiles, where the usual headers are included before."""
    def fields(kind):
        return " ".join(f"{kind} {name} = {i + 1};" for i, name in enumerate(TAKEN))
    text = ('syntax = "proto3"; package linux.errno; message M { ' + fields("int32") + ' } message R { ' + fields("repeated string") +
            ' } message O { ' + fields("optional M") + ' } message N { oneof linux { int32 unix = 1; string errno = 2; } }\n'
            'message Members { repeated int32 x = 1; int32 n_x = 2; int32 y = 3; bool has_y = 4; oneof a { int32 b = 5; } int32 a_case = 6; }\n'
            'service T { rpc Delete(M) returns (M); rpc Delete_(M) returns (M); rpc delete__(M) returns (M); }\n'
            'service S { ' + " ".join(f"rpc {name}(M) returns ({'stream' if i % 2 else ''} R);" for i, name in enumerate(TAKEN)) + ' }')
    old = ('syntax = "proto2"; package p; message M { optional int32 x = 1; optional bool has_x = 2; optional string y = 3; optional bool has_y = 4;'
           'repeated M m = 5; optional int32 N_M = 6; ' + " ".join(f"optional bytes {name} = {i + 10};" for i, name in enumerate(TAKEN)) + ' }\n'
           'message Near { optional int32 class = 1; optional int32 class_ = 2; oneof payBy { int32 cash = 3; } optional int32 pay_by_case = 4; '
           'optional int32 payby_case = 5; optional int32 base = 6; optional int32 protobuf_c_base = 7; repeated int32 for = 8; optional int32 n_for_ = 9; }\n'
           'message Beside { repeated int32 errno = 1; optional int32 n_errno_ = 2; optional bool has_linux_ = 3; optional bool linux = 4; }')
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("a.proto", text), ("b.proto", old)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write(content)
        done = protoc(folder, "messages", "a.proto", "b.proto", imports=[folder])
        check(done.returncode == 0, done.stderr)
        with open(os.path.join(folder, "before.h"), "w", encoding="utf-8") as out:
            out.write("".join(f"#include <{h}.h>\n" for h in ("assert", "errno", "signal", "stdio", "stdlib")))
        files = ["before.h", "a.torc.c", "b.torc.c"]
        check(compile_all(folder, files, {"c": ["c99", "gnu17"], "c++": ["c++11", "gnu++20"]}) >= 4, "calls")
        check(compile_all(folder, ["before.h", "a.pb-c.c", "b.pb-c.c"], {"c": ["c99", "gnu17"]}) >= 2, "messages")
        with open(os.path.join(folder, "a.pb-c.h"), encoding="utf-8") as header:
            members = header.read()
        for member in ("int32_t linux_;", "int32_t class_;", "int32_t n_x_;", "protobuf_c_boolean has_y;", "int32_t a_case_;"):
            check(member in members, member)
        with open(os.path.join(folder, "b.pb-c.h"), encoding="utf-8") as header:
            members = header.read()
        for member in ("class_", "class__", "pay_by_case_", "payby_case", "base", "protobuf_c_base_", "n_for__"):
            check(f"int32_t {member};" in members, member)


def compile_all(folder, files, languages):
    """Compiles the files together, as each standard, with those of gcc and clang that are installed. A count."""
    with open(os.path.join(folder, "all.c"), "w", encoding="utf-8") as out:
        out.write("".join(f'#include "{f}"\n' for f in files))
    compiled = 0
    for language, standards in languages.items():
        for compiler in ("gcc", "clang") if language == "c" else ("g++", "clang++"):
            for standard in standards if shutil.which(compiler) else ():
                sh(compiler, "-x", language, f"-std={standard}", *WARNINGS, "-fsyntax-only", "-I", folder, "-I",
                   os.path.join(SOURCE, "include"), os.path.join(folder, "all.c"))
                compiled += 1
    return compiled


def test_code_is_clean():
    files = ["kinds.proto", "other.proto", "unused.proto", "mirror.proto", *WELL_KNOWN]
    c, cxx = ("c99", "c11", "c17", "c2x"), ("c++11", "c++14", "c++17", "c++20")
    with tempfile.TemporaryDirectory() as folder:
        done = protoc(folder, "messages,reflection", *files)
        check(done.returncode == 0, done.stderr)
        calls = [f.replace(".proto", ".torc.c") for f in files]
        check(compile_all(folder, calls, {"c": c, "c++": cxx}) >= 8, "calls in C and C++")
        check(compile_all(folder, [f.replace(".proto", ".pb-c.c") for f in files], {"c": c}) >= 4, "messages in C")
        with open(os.path.join(folder, "kinds.pb-c.h"), encoding="utf-8") as header:
            check("unused" not in header.read(), "an import for options alone needs no header")


def test_versions():
    """Headers that are too old stop the compiler, and a library that does not serve the code's version stops the linker."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "a.proto"), "w", encoding="utf-8") as out:
            out.write('syntax = "proto3"; package p; message M {} service S { rpc Get(M) returns (M); rpc Watch(M) returns (stream M); }')
        done = protoc(folder, "messages", "a.proto", imports=[folder])
        check(done.returncode == 0, done.stderr)
        old, code = os.path.join(folder, "old"), os.path.join(folder, "a.torc.c")
        shutil.copytree(os.path.join(SOURCE, "include"), old)
        stub = os.path.join(old, "torc", "stub.h")
        with open(stub, encoding="utf-8") as header:
            text = header.read()
        for version in ("#define TORC_STUB_VERSION 0", ""):
            with open(stub, "w", encoding="utf-8") as out:
                out.write(text.replace("#define TORC_STUB_VERSION 1", version))
            done = run("cc", "-fsyntax-only", "-I", folder, "-I", old, code)
            check(done.returncode != 0 and "this file needs a newer Torc" in done.stderr, f"{version}: {done.stderr}")
        objects = [os.path.join(folder, f"{name}.o") for name in ("a.torc", "a.pb-c")]
        for path in objects:
            sh("cc", "-c", "-fPIC", "-I", folder, "-I", os.path.join(SOURCE, "include"), path.replace(".o", ".c"), "-o", path)
        wanted = set(re.findall(r" U (torc_\w+)", sh("nm", "-u", *objects)))
        check("torc_stub_v1" in wanted, wanted)
        flags = run("pkg-config", "--libs", "libprotobuf-c").stdout.split() or ["-lprotobuf-c"]
        for names, links in ((wanted, True), (wanted - {"torc_stub_v1"}, False)):
            with open(os.path.join(folder, "library.c"), "w", encoding="utf-8") as out:
                out.write("".join(f"void {name}(void) {{}}\n" for name in sorted(names)) + "int main(void) { return 0; }\n")
            done = run("cc", os.path.join(folder, "library.c"), *objects, *flags, "-o", os.path.join(folder, "app"))
            check((done.returncode == 0) == links and ("torc_stub_v1" in done.stderr) != links, f"{names}: {done.stderr}")


def test_prefix_and_comments():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "a.proto"), "w", encoding="utf-8") as out:
            out.write('syntax = "proto3"; package long.package;\nmessage M {}\n// Serves. */ int x; /* ??/\nservice HTTPServer {\n'
                      '  /* Gets \u202eit. */\n  rpc GetIt(M) returns (M);\n  rpc export(M) returns (M);\n}\n')
        done = protoc(folder, "messages,prefix=short", "a.proto", imports=[folder])
        check(done.returncode == 0, done.stderr)
        with open(os.path.join(folder, "a.torc.h"), encoding="utf-8") as header:
            text = header.read()
        check("torc_result *short__httpserver__get_it__call(" in text, text)
        check(" * Serves. * / int x; / * ? ?/\n" in text and " * Gets it.\n" in text, text)
        check(compile_all(folder, ["a.torc.c"], {"c": ["c99"], "c++": ["c++11"]}) >= 2, "compiles")


# As much of descriptor.proto as protobuf-c's options extend: not every protoc comes with the file.
DESCRIPTOR = 'syntax = "proto2"; package google.protobuf;\n' + "".join(
    f"message {name}Options {{ extensions 1000 to max; }}\n" for name in ("File", "Message", "Field"))


def test_c_package():
    """protobuf-c's option for the package's name in C: calls, messages and those of another file agree."""
    header = run("pkg-config", "--variable=includedir", "libprotobuf-c").stdout.strip() or "/usr/include"
    begin = 'syntax = "proto3"; import "protobuf-c/protobuf-c.proto"; '
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "google", "protobuf"))
        for name, text in {"google/protobuf/descriptor.proto": DESCRIPTOR, "own.proto": begin + 'package far.away; option (pb_c_file).c_package = "near"; message M {}\n'
                                                'service S { rpc GetIt(M) returns (M); }',
                           "none.proto": begin + 'package far.away; option (pb_c_file).c_package = ""; message N {} service V { rpc Go(N) returns (N); }',
                           "nothing.proto": begin + 'option (pb_c_file).c_package = ""; message Z {} service W { rpc Go(Z) returns (Z); }',
                           "bare.proto": begin + 'option (pb_c_file).c_package = "zed"; message B {} service U { rpc Go(B) returns (B); }',
                           "user.proto": 'syntax = "proto3"; package q; import "own.proto";\n'
                                         'service T { rpc GetIt(far.away.M) returns (far.away.M); }'}.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write(text)
        imports = [folder, header]
        done = protoc(folder, "messages", "own.proto", "user.proto", "bare.proto", "none.proto", "nothing.proto", imports=imports)
        check(done.returncode == 0, done.stderr)
        with open(os.path.join(folder, "own.torc.h"), encoding="utf-8") as written:
            text = written.read()
        check("torc_result *near__s__get_it__call(" in text and "const Near__M *request" in text, text)
        with open(os.path.join(folder, "own.torc.c"), encoding="utf-8") as written:
            check('"/far.away.S/GetIt"' in written.read(), "the path keeps the .proto's package")
        with open(os.path.join(folder, "none.torc.h"), encoding="utf-8") as written:
            check("torc_result *v__go__call(torc_channel *channel, const N *request" in written.read(), "the package is dropped")
        check(compile_all(folder, ["own.torc.c", "user.torc.c", "bare.torc.c", "none.torc.c", "nothing.torc.c"], {"c": ["c99"], "c++": ["c++11"]}) >= 2, "compiles")
        bad = begin + 'package far; option (pb_c_file).c_package = "1;"; message M {}'
        with open(os.path.join(folder, "bad.proto"), "w", encoding="utf-8") as out:
            out.write(bad)
        done = protoc(folder, "messages", "bad.proto", imports=imports)
        check(done.returncode == 1 and "bad.proto: c_package: '1;' is not a package" in done.stderr, done.stderr)


def test_not_a_request():
    done = subprocess.run([PLUGIN], input=b"\x0a\xff\xff", capture_output=True, timeout=WAIT, check=False)
    check(done.returncode == 1 and b"not a CodeGeneratorRequest: " in done.stderr, done.stderr)
    with open(os.path.join(SOURCE, "test", "fuzz", "corpus", "stub_plugin", "oneof_without_name.bin"), "rb") as request:
        done = subprocess.run([PLUGIN], input=request.read(), capture_output=True, timeout=WAIT, check=False)
    check(done.returncode == 0 and b"a.proto: '' is not a oneof's name" in done.stdout, done)
    check("--torc_out" in sh(PLUGIN, "--help") and sh(PLUGIN, "--version").startswith("protoc-gen-torc "), "help")


def test_etcd_is_short():
    """examples/etcd, which test/interop runs against etcd, shows what a client costs: at most 60 lines without comments."""
    with open(os.path.join(SOURCE, "examples", "etcd", "main.c"), encoding="utf-8") as source:
        code = re.sub(r"/\*.*?\*/", "", source.read(), flags=re.S)
    lines = [line for line in code.splitlines() if line.strip()]
    check(len(lines) <= 60, f"{len(lines)} lines")
    for call in ("put__call", "range__call", "txn__call", "watch__receive", "cancel_request", "keep_alive__receive"):
        check(call in code, f"{call} is shown")


def greets(server, client, env):
    """The example's server greets the example's client, and ends with SIGTERM."""
    with subprocess.Popen([server, "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            address = process.stdout.readline().removeprefix("listening ").strip()
            check(sh(client, address, "you", env=env) == "Hello, you\n", server)
            process.terminate()
            check(process.wait(timeout=WAIT) == 0, "a clean end")
        finally:
            process.kill()
    done = run(server, "nowhere", env=env)
    check(done.returncode == 1 and "nowhere" in done.stderr, f"{done}")


def test_sides():
    """Each side alone has its functions and compiles; strict is told to the library."""
    for options, has, lacks in (("side=client", "m__call(", "__handlers"), ("side=server", "NULL is UNIMPLEMENTED", "m__call("),
                                ("side=both", "m__call(", "STRICT"), ("side=server,strict", "TORC_PROTOBUF_C_STRICT", "NULL is")):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "a.proto"), "w", encoding="utf-8") as out:
                out.write('syntax = "proto3"; package p; message A {} service S { rpc M(A) returns (A); rpc Delete(stream A) returns (A);\n'
                          'rpc Size(A) returns (stream A); rpc Union(stream A) returns (stream A); } service None {}')
            done = protoc(folder, f"messages,{options}", "a.proto", imports=[folder])
            check(done.returncode == 0, done.stderr)
            text = ""
            for name in ("a.torc.h", "a.torc.c"):
                with open(os.path.join(folder, name), encoding="utf-8") as written:
                    text += written.read()
            check(has in text and lacks not in text, f"{options}: {text}")
            check("client" in options or "s__m__reply(" in text, f"{options}: {text}")
            check("client" in options or "(*delete_)(torc_server_call *call, void *arg);" in text, f"{options}: {text}")
            check("client" in options or "(*size_)(torc_server_call *call, const P__A *request, void *arg);" in text, f"{options}: {text}")
            check(compile_all(folder, ["a.torc.c"], {"c": ["c99"], "c++": ["c++11"]}) >= 2, "compiles")


def test_installed():
    if os.environ.get("TORC_SANITIZE"):
        return  # an application is not linked with the sanitizers' runtime
    with tempfile.TemporaryDirectory() as folder, running("backend") as backend:
        address, prefix = backend.listening(), os.path.join(folder, "prefix")
        sh("cmake", "--install", BUILD, "--prefix", prefix)
        project = shutil.copytree(os.path.join(SOURCE, "examples", "helloworld"), os.path.join(folder, "helloworld"))
        sh("cmake", "-S", project, "-B", f"{project}/b", f"-DCMAKE_PREFIX_PATH={prefix}")
        sh("cmake", "--build", f"{project}/b")
        check(sh(f"{project}/b/helloworld", address, "you") == "you\n", "by CMake; an echo server greets with the name")
        errors = shutil.copytree(os.path.join(SOURCE, "examples", "errors"), os.path.join(folder, "errors"))
        sh("cmake", "-S", errors, "-B", f"{errors}/b", f"-DCMAKE_PREFIX_PATH={prefix}")
        sh("cmake", "--build", f"{errors}/b")
        check("  again in 1.5 s" in sh(f"{errors}/b/errors"), "examples/errors by CMake")
        pkgconfig = next(root for root, _, files in os.walk(prefix) if "torc-stubs.pc" in files)
        env = {**os.environ, "PKG_CONFIG_PATH": pkgconfig, "LD_LIBRARY_PATH": os.path.dirname(pkgconfig)}
        sh("make", "-C", project, env=env)
        check(sh(f"{project}/helloworld", address, "us", env=env) == "us\n", "by make")
        for server, client in ((f"{project}/b/server", f"{project}/b/helloworld"), (f"{project}/server", f"{project}/helloworld")):
            greets(server, client, env)


def members_of(folder, syntax, field):
    """The members of a field of shop.Order, as the generator writes them."""
    numbers = iter(range(1, 9))
    declared = re.sub(r";", lambda _: f" = {next(numbers)};", field if field.endswith("}") else f"{field};")
    write(os.path.join(folder, "row.proto"), f'syntax = "{syntax}"; package shop; import "google/protobuf/timestamp.proto"; '
          'import "google/protobuf/any.proto"; enum Color { NONE = 0; } message Order { message Line {} message Used { '
          f"optional google.protobuf.Timestamp t = 1; optional google.protobuf.Any a = 2; }} {declared} }}")
    done = protoc(folder, "messages", "row.proto", imports=(folder, PROTO))
    check(done.returncode == 0, f"{field}: {done.stderr}")
    with open(os.path.join(folder, "row.pb-c.h"), encoding="utf-8") as header:
        body = re.search(r"struct  Shop__Order\n{\n  ProtobufCMessage base;\n(.*?)^};", header.read(), re.S | re.M)[1]
    return " ".join(re.sub(r"/\*.*?\*/", "", body, flags=re.S).split())


def in_any_order(members):
    """The members of a oneof's union by name: since 1.5 protobuf-c lists pointers first."""
    return re.sub(r"union { (.*?) };", lambda m: f"union {{ {' '.join(sorted(re.findall('[^ ][^;]*;', m[1])))} }};", members)


def test_guide_messages():
    """The guide's table of fields is what the generator writes, and its program of messages runs."""
    with open(os.path.join(SOURCE, "docs", "guide", "stubs.md"), encoding="utf-8") as guide:
        text = guide.read().split("\n## Messages\n")[1].split("\n## ")[0]
    rows = re.findall(r"(?m)^\| (proto2: )?((?:`[^`|]+`(?:, )?)+) \| `([^`]+)` \|", text.split("| field | members |")[1])
    check(len(rows) >= 22, f"{len(rows)} rows")
    with tempfile.TemporaryDirectory() as folder:
        for old, fields, members in rows:
            for field in re.findall(r"`([^`]+)`", fields):
                made = members_of(folder, "proto2" if old else "proto3", field)
                check(in_any_order(made) == in_any_order(members), f"{field}: the guide says {members}, and the generator {made}")
        proto, program = (re.search(rf"(?ms)^```{kind}\n(.*?)^```", text)[1] for kind in ("proto", "c"))
        write(os.path.join(folder, "order.proto"), proto)
        write(os.path.join(folder, "app.c"), program)
        done = protoc(folder, "messages", "order.proto", "google/protobuf/timestamp.proto", imports=(folder, PROTO))
        check(done.returncode == 0, done.stderr)
        with open(os.path.join(folder, "order.torc.h"), encoding="utf-8") as header:
            check(" *shop__order_book__get_httporder__call(" in header.read(), "the method's name")
        if os.environ.get("TORC_SANITIZE"):
            return  # an application is not linked with the sanitizers' runtime
        library = os.path.join(BUILD, "src")
        sh("cc", "-Wall", "-Wextra", "-Werror", "-I", folder, "-I", os.path.join(SOURCE, "include"), f"{folder}/app.c", f"{folder}/order.pb-c.c",
           f"{folder}/order.torc.c", f"{folder}/google/protobuf/timestamp.pb-c.c", "-o", f"{folder}/app", "-L", library, "-ltorc", "-lprotobuf-c")
        check(sh(f"{folder}/app", env={**os.environ, "LD_LIBRARY_PATH": library}) == "Ann: tea for 3 on floor 0\n", "the guide's order")
        guide_lines = re.search(r"(?ms)^```sh\n(.*?)^```", text)[1]
    with tempfile.TemporaryDirectory() as folder:
        write(os.path.join(folder, "order.proto"), proto)
        write(os.path.join(folder, "app.c"), program)
        env = installed(os.path.join(folder, "prefix"), os.path.join(folder, "tool"))
        sh("sh", "-ec", guide_lines, cwd=folder, env=env)
        check(sh(f"{folder}/app", env=env) == "Ann: tea for 3 on floor 0\n", "by the guide's own lines")


def installed(prefix, tool):
    """Installs below the prefix. The environment in which tools find the installation, and a protoc that has its files beside it."""
    sh("cmake", "--install", BUILD, "--prefix", prefix)
    for name in ("bin", "include"):
        os.makedirs(os.path.join(tool, name))
    shutil.copy(os.path.realpath(shutil.which("protoc")), os.path.join(tool, "bin", "protoc"))
    shutil.copytree(os.path.join(PROTO, "google"), os.path.join(tool, "include", "google"))
    shutil.copy(os.path.join(STUBS, "google", "protobuf", "descriptor.proto"), os.path.join(tool, "include", "google", "protobuf"))
    pkgconfig = next(root for root, _, files in os.walk(prefix) if "torc-stubs.pc" in files)
    return {**os.environ, "PKG_CONFIG_PATH": pkgconfig, "LD_LIBRARY_PATH": os.path.dirname(pkgconfig),
            "PATH": f"{tool}/bin:{prefix}/bin:{os.environ['PATH']}"}


CLOCK_PROTO = """syntax = "proto3";
package clock;
import "google/protobuf/timestamp.proto";
message Now { google.protobuf.Timestamp time = 1; }
"""
CLOCK_MAIN = """#include <stdio.h>
#include "clock.torc.h"
int main(void)
{
    Clock__Now now = CLOCK__NOW__INIT;
    Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    torc_arena *arena = torc_arena_new(0);
    size_t n = 0;
    now.time = &time;
    time.seconds = 1;
    printf("%d\\n", torc_protobuf_c_pack(&now.base, arena, &n, NULL) && n == 4);
    torc_arena_free(arena);
    return 0;
}
"""


def test_well_known_types():
    """The files that come with protoc, and files by absolute paths: torc_generate, and the Makefile's rules."""
    if os.environ.get("TORC_SANITIZE"):
        return  # an application is not linked with the sanitizers' runtime
    with tempfile.TemporaryDirectory() as folder:
        tool, prefix, app = (os.path.join(folder, name) for name in ("tool", "prefix", "app"))
        env = installed(prefix, tool)
        compiler = os.path.join(tool, "bin", "protoc")
        os.makedirs(os.path.join(app, "proto"))
        write(os.path.join(app, "proto", "clock.proto"), CLOCK_PROTO)
        write(os.path.join(app, "main.c"), CLOCK_MAIN)
        cmake = ["cmake", "-S", app, "-B", f"{app}/b", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DTORC_PROTOC={compiler}"]
        head = "cmake_minimum_required(VERSION 3.18)\nproject(clock C)\nfind_package(torc REQUIRED)\nadd_executable(clock main.c)\n"
        tail = "\ntarget_link_libraries(clock PRIVATE torc::stubs)\n"
        for protos in ("${CMAKE_CURRENT_SOURCE_DIR}/proto/clock.proto", "clock.proto", "./clock.proto"):
            write(os.path.join(app, "CMakeLists.txt"),
                  f"{head}torc_generate(clock PROTOS {protos} google/protobuf/timestamp.proto IMPORT_DIRS proto){tail}")
            shutil.rmtree(f"{app}/b", ignore_errors=True)
            sh(*cmake)
            sh("cmake", "--build", f"{app}/b")
            check(sh(f"{app}/b/clock") == "1\n", f"by CMake: {protos}")
        for protos, text in (("${CMAKE_CURRENT_SOURCE_DIR}/proto/clock.proto", "clock.proto is not in"),
                             ("none.proto", "none.proto is not in"), ("proto/../../x.proto", "x.proto is not in")):
            write(os.path.join(app, "CMakeLists.txt"), f"{head}torc_generate(clock PROTOS {protos} IMPORT_DIRS b){tail}")
            done = run(*cmake)
            check(done.returncode != 0 and text in " ".join(done.stderr.split()), f"{protos}: {done.stderr}")
        make = os.path.join(folder, "make")
        shutil.copytree(app, make, ignore=lambda _, names: [n for n in names if n in ("b", "proto", "CMakeLists.txt")])
        write(os.path.join(make, "clock.proto"), CLOCK_PROTO)
        with open(os.path.join(SOURCE, "examples", "helloworld", "Makefile"), encoding="utf-8") as rules:
            text = rules.read()
        # What the guide tells a user to change, and the program's name.
        for old, new in (("PROTOS := helloworld.proto\n", "PROTOS := clock.proto google/protobuf/timestamp.proto\n"),
                         ("all: helloworld server\n", "all: clock\n"), ("helloworld: main.o", "clock: main.o")):
            check(old in text, f"the example's Makefile has no {old}")
            text = text.replace(old, new)
        write(os.path.join(make, "Makefile"), text)
        for jobs in ("-j1", "-j8"):
            tree = shutil.copytree(make, make + jobs)
            sh("make", "-C", tree, jobs, env=env)
            check(sh(f"{tree}/clock", env=env) == "1\n", f"by make {jobs}")


if not shutil.which("protoc"):
    print("protoc is not installed")
    sys.exit(77)
main(test_options, test_files, test_taken_names, test_code_is_clean, test_versions, test_prefix_and_comments, test_c_package, test_not_a_request, test_sides, test_etcd_is_short, test_installed, test_well_known_types, test_guide_messages)
