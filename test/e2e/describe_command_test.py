"""torc list and torc describe: by reflection, by descriptors, by .proto files; and reflection that lies."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import BUILD, SOURCE, TORC, WAIT, check, free_address, main, run, running

SERVER, SET = os.path.join(BUILD, "test", "command_server"), os.path.join(BUILD, "test", "command_server.pb")
PROTOS = os.path.join(SOURCE, "test", "e2e", "command_server")
METHODS = [f"shop.Orders/{name}" for name in ("Get", "Watch", "Load", "Chat", "Fail")]


@contextlib.contextmanager
def server(mode):
    with running(mode, SET, program=SERVER) as process:
        yield process.listening()


def same(got, wanted):
    check(got == wanted, f"{got!r}, wanted {wanted!r}")


def refused(*args, says, status=1, **options):
    said = run(*args, status=status, **options).stderr
    check(says in said and "\x1b" not in said, f"torc {args}: {said!r} and not {says!r}")
    return said


def test_list():
    with server("good") as address:
        services = run("list", address).stdout.splitlines()
        check("shop.Orders" in services and services == sorted(services), services)
        same(run("list", address, "shop.Orders").stdout.splitlines(), METHODS)
        same(json.loads(run("list", "-o", "json", address).stdout)["services"], services)
        methods = json.loads(run("list", address, "shop.Orders", "-o", "json").stdout)
        same(methods["methods"][1], {"name": "Watch", "path": "shop.Orders/Watch", "request": "shop.Order", "response": "shop.Order",
                                     "client_streaming": False, "server_streaming": True})
        refused("list", address, "shop.Nothing", says="list: the server has no service shop.Nothing; it has grpc.reflection.v1.ServerReflection, ")
        refused("list", address, "shop.Order", says="'shop.Order' is not a service")
    for mode in ("alpha",):
        with server(mode) as address:
            same(run("list", address).stdout, "shop.Orders\n")
            same(run("list", address, "shop.Orders").stdout.splitlines(), METHODS)
    with server("undescribed") as address:
        check("shop.Orders" in run("list", address).stdout.splitlines(), "a service without a description is listed")
        refused("list", address, "shop.Orders", says="list: the server lists the service shop.Orders, but has no description of it: give one with "
                                                     "--proto or --protoset\n")
        refused("list", address, "shop.Nothing", says="list: the server has no service shop.Nothing; it has ")
    with server("none") as address:
        refused("list", address, says="the server has neither grpc.reflection.v1 nor grpc.reflection.v1alpha")
    refused("list", free_address(), says="UNAVAILABLE")


def test_describe():
    with server("good") as address:
        text = run("describe", address, "shop.Orders").stdout
        check("rpc Watch (.shop.Order) returns (stream .shop.Order);" in text, text)
        everything = run("describe", address).stdout
        check(text.strip() in everything and "// grpc.reflection.v1.ServerReflection" in everything, everything)
        check("map<string, double> prices = 4;" in run("describe", address, "shop.Order").stdout, "a message")
        check("rpc Get" in run("describe", address, "shop.Orders/Get").stdout, "a method")
        template = json.loads(run("describe", address, "shop.Orders.Get", "--template").stdout)
        same(template["prices"], {"": 0})
        same(json.loads(run("describe", address, "shop.Order", "-template", "-o", "json").stdout)["template"], template)
        refused("describe", address, "shop.Colour", "--template", says="'shop.Colour' is neither a message nor a method", status=2)
        refused("describe", address, "shop.Nothing", says='symbol "shop.Nothing": NOT_FOUND')


def test_offline():
    same(run("list", "--protoset", SET).stdout, "shop.Orders\n")
    same(run("list", "-protoset", SET, "shop.Orders").stdout.splitlines(), METHODS)
    check("string text = 1;" in run("describe", "--protoset", SET, "shop.extra.Note").stdout, "a message of a set")
    check("message Note" in run("describe", "--protoset", SET, "extra.proto").stdout, "a file of a set")
    refused("list", "--protoset", SET, "shop.Orders", "more", says="a TARGET goes with --reflect", status=2)
    refused("describe", "--protoset", SET, "shop.Nothing", says="nothing has the name 'shop.Nothing'")
    refused("list", "--protoset", os.path.join(PROTOS, "shop.proto"), says="not a file of descriptors")
    with tempfile.TemporaryDirectory() as folder:  # cut off behind the last field's tag
        cut = os.path.join(folder, "cut.pb")
        with open(SET, "rb") as whole, open(cut, "wb") as file:
            file.write(whole.read() + b"\x0a")
        refused("list", "--protoset", cut, says="not a file of descriptors")
    refused("list", "--protoset", "/nonexistent", says="--protoset: cannot read /nonexistent")
    refused("list", "--protoset", "", says="--protoset: the path is empty", status=2)
    refused("list", says="give a TARGET", status=2)
    refused("list", "--import-path", ".", "--protoset", SET, says="--import-path goes with --proto", status=2)


def test_files_named_like_symbols():
    """With --reflect, a name that is both a file's and a service's shows the service."""
    with server("good") as address, tempfile.NamedTemporaryFile() as file:
        file.write(b"\x0a\x0d\x0a\x0bshop.Orders")
        file.flush()
        said = run("describe", "--protoset", file.name, "--reflect", address, "shop.Orders").stdout
        check("service Orders {" in said, said)
        check('syntax = "proto2"' in run("describe", "--protoset", file.name, "shop.Orders").stdout, "the file")


def test_files_of_a_server():
    """A file is shown by its name, from a server and from a file of descriptors; so is a file that it imports."""
    for mode in ("good", "alpha"):
        with server(mode) as address, tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.pb")
            same(run("describe", "--protoset-out", out, address, "shop.proto").stdout, run("describe", "--protoset", SET, "shop.proto").stdout)
            check("message Order {" in run("describe", "--protoset", out, "shop.Order").stdout, "what was written")
    with server("good") as address:
        check("message Any {" in run("describe", address, "google/protobuf/any.proto").stdout, "an import")
        refused("describe", address, "none.proto", says='"none.proto": NOT_FOUND')
        refused("describe", "--template", address, "shop.proto", says="'shop.proto' is neither a message nor a method", status=2)
    with server("none") as address:
        refused("describe", address, "shop.proto", says="the server has neither grpc.reflection.v1 nor grpc.reflection.v1alpha")
    refused("describe", "--protoset", SET, "none.proto", says="nothing has the name 'none.proto'")


def test_protoc():
    refused("list", "--proto", "shop.proto", says="protoc cannot be run (it is not in PATH)", env={"PATH": "/nonexistent"})
    with tempfile.TemporaryDirectory() as folder:
        for script, says in (("echo no library >&2; exit 127", "--proto: no library\n"), ("exit 127", "(it is not in PATH)"), ("exit 3", "protoc ended with status 3")):
            with open(os.path.join(folder, "protoc"), "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o755)) as out:
                out.write(f"#!/bin/sh\n{script}\n")
            refused("list", "--proto", "shop.proto", says=says, env={"PATH": f"{folder}:{os.environ['PATH']}"})
        done = subprocess.run([TORC, "list", "--proto", "shop.proto"], capture_output=True, text=True, timeout=WAIT, check=False,
                              env={**os.environ, "PATH": folder}, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        check("protoc ended with status 3" in done.stderr, f"SIGCHLD is ignored: {done}")
    if not shutil.which("protoc"):
        print("protoc is not installed: --proto is tried without it alone")
        return
    paths = ("--import-path", PROTOS, "--import-path", os.path.join(SOURCE, "proto"))
    same(run("list", "--proto", "shop.proto", *paths, "shop.Orders").stdout.splitlines(), METHODS)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bad.proto")
        with open(path, "w", encoding="ascii") as out:
            out.write('syntax = "proto3";\nmessage X {\n  strin a = 1;\n}\n')
        refused("list", "--proto", path, says='--proto: bad.proto:3:3: "strin" is not defined.')
        with open(path, "w", encoding="ascii") as out:
            out.write('syntax = "proto3";\nmessage X {}\nservice S { rpc M(X) returns (X); }\n')
        for name in (path, os.path.relpath(path), os.path.join(".", os.path.relpath(path))):
            same(run("list", "--proto", name).stdout, "S\n")


def test_written():
    with server("good") as address, tempfile.TemporaryDirectory() as folder:
        out, protos = os.path.join(folder, "out.pb"), os.path.join(folder, "protos")
        run("describe", address, "shop.Orders", "--protoset-out", out, "--proto-out-dir", protos)
        same(run("describe", "--protoset", out, "shop.Order").stdout, run("describe", address, "shop.Order").stdout)
        found = sorted(os.path.relpath(os.path.join(at, name), protos) for at, _, names in os.walk(protos) for name in names)
        same(found, ["google/protobuf/any.proto", "google/protobuf/timestamp.proto", "legacy.proto", "rank.proto", "shop.proto"])
        if shutil.which("protoc"):
            same(run("list", "--proto", "shop.proto", "--import-path", protos, "shop.Orders").stdout.splitlines(), METHODS)
        refused("list", "--protoset", SET, "--protoset-out", os.path.join(folder, "no", "out"), says="--protoset-out: cannot write")
    with server("evil_name") as address, tempfile.TemporaryDirectory() as folder:
        inner = os.path.join(folder, "a", "b")
        os.makedirs(inner)
        refused("describe", address, "shop.Orders", "--proto-out-dir", inner,
                says='the name of the file "../../evil.proto" is not the path of a .proto file inside of the folder')
        same(os.listdir(folder), ["a"])


# Mode of the server, what is said of it.
HOSTILE = [
    ("other", 'asked for the file that defines "shop.Orders", the server sent "other.proto", which does not'),
    ("same", 'asked for the file "c.proto", the server sent "a.proto"'),
    ("chain", 'imports are more than 128 deep, at "129.proto"'),
    ("wide", "the server has more than 4096 files"),
    ("huge", "RESOURCE_EXHAUSTED: received message larger than max (67108"),
    ("heavy", "the server sent more than 64 MiB"),
    ("long_names", "file a.proto: with it the descriptors take more than 256 MiB of memory"),
    ("garbage", 'the answer to symbol "shop.Orders" is not a ServerReflectionResponse'),
    ("garbage_file", "a file of the answer: malformed"),
    ("other_kind", 'the answer to symbol "shop.Orders" is of another kind'),
    ("no_file", 'asked for the file that defines "shop.Orders", the server sent none'),
    ("refuses", 'symbol "shop.Orders": INTERNAL: no\\u001b[2J luck'),
    ("conflict", "shop.M"),
    ("lacking", "shop.Lost"),
    ("extended", "shop.M has more than 1024 extensions"),
    ("ends", "the server ended the stream without an answer"),
    ("denied", "PERMISSION_DENIED: not\\u001b[2J for you"),
    ("unauthenticated", "UNAUTHENTICATED: not\\u001b[2J for you"),
    ("unavailable", "UNAVAILABLE: not\\u001b[2J for you"),
    ("overdue", "DEADLINE_EXCEEDED: not\\u001b[2J for you"),
    ("broken", "INTERNAL: not\\u001b[2J for you"),
]


def test_hostile_servers():
    for mode, says in HOSTILE:
        with server(mode) as address:
            said = refused("describe", "--deadline", "60", address, "shop.Orders", says=says)
            check(len(said.splitlines()) == 1, f"{mode}: {said}")
            refused("call", "--reflect", "--deadline", "60", address, "shop.Orders/Get", says=says)
            done = run("call", "--deadline", "60", "-d", "{}", address, "shop.Orders/Get", status=1)
            check(says in done.stderr and not done.stdout, f"{mode}: only UNIMPLEMENTED is no reflection: {done}")
    for mode, says in (("garbage", "is not a ServerReflectionResponse"), ("other_kind", "is malformed")):
        with server(mode) as address:
            refused("list", address, says=f'the answer to services "*" {says}')
    with server("silent") as address:
        refused("describe", "--deadline", "0.2", address, "shop.Orders", says=f"reflection of {address}: DEADLINE_EXCEEDED")
    with server("good") as address:  # 0: no limit; of torc call a deadline that has passed
        same(run("list", "--deadline", "0", address, "shop.Orders").stdout.splitlines(), METHODS)
        check("service Orders {" in run("describe", "--deadline", "0", address, "shop.Orders").stdout, "describe without a limit")
        done = run("call", "--deadline", "0", "-d", "{}", address, "shop.Orders/Get", status=1)
        check("DEADLINE_EXCEEDED" in done.stderr, done)
    with server("extensible") as address:
        run("describe", address, "shop.Orders")
    with server("evil_json") as address:
        for form in ((), ("-o", "json")):
            shown = run("describe", address, "shop.M", "--template", *form).stdout
            check("\x9b" not in shown and '"\\u009b2J"' in shown, repr(shown))
    with server("refuses") as address:
        check(1024 < len(refused("describe", address, "shop.Orders", says="luck")) < 1300, "the text of a server's error is cut")
    with server("circle") as address:
        check("rpc Get (.shop.A) returns (.shop.A);" in run("describe", address, "shop.Orders").stdout, "files that import each other")
    with server("owners") as address:
        for symbol in ("shop.Orders/Get", "shop.Orders.Get"):
            same(run("describe", address, symbol).stdout, "// shop.Orders.Get\nrpc Get (.shop.A) returns (.shop.A);\n")
        refused("describe", address, "shop.Orders.None", says="nothing is defined as shop.Orders.None")
        refused("describe", address, "none.Such", says='symbol "none.Such": NOT_FOUND: not found')
        refused("call", "--reflect", address, "none.Such/Get", says='symbol "none.Such": NOT_FOUND: not found')


main(test_list, test_describe, test_offline, test_files_named_like_symbols, test_files_of_a_server, test_protoc, test_written, test_hostile_servers)
