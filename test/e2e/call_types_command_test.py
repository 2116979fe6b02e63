"""torc call with types: JSON both ways, streams of all kinds, details of errors, and the options that go with them."""
import contextlib
import json
import os
import pty
import re
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import (BUILD, TORC, WAIT, blocks, bootstrap, calls, check, cluster, endpoints, free_address, listener, main, routes, run, running,
                         write_resources)
from support.pki import Pki

SERVER, SET = os.path.join(BUILD, "test", "command_server"), os.path.join(BUILD, "test", "command_server.pb")
ORDER = {"id": "7", "units": "12", "parts": [{"id": "8"}], "prices": {"eur": 1.5}, "at": "2026-01-02T03:04:05Z", "colour": "RED", "pickup": True}
NOTE = {"id": "9", "extra": {"@type": "type.googleapis.com/shop.extra.Note", "text": "unheard of"}}


@contextlib.contextmanager
def server(mode="good"):
    with running(mode, SET, program=SERVER) as process:
        yield process.listening()


def same(got, wanted):
    check(got == wanted, f"{got!r}, wanted {wanted!r}")


def refused(*args, says, status=1, **options):
    said = run("call", *args, status=status, **options).stderr
    check(says in said, f"torc call {args}: {said!r} and not {says!r}")


def lines(*args, **options):
    """What is printed with -o json: calls and messages in their order."""
    return [json.loads(line) for line in run("call", "-o", "json", *args, **options).stdout.splitlines()]


def messages(*args, **options):
    """The messages of a stream, and its call."""
    printed = lines(*args, **options)
    return [line["message"]["response"] for line in printed if "message" in line], [line["call"] for line in printed if "call" in line][-1]


def test_unary():
    with server() as address:
        text = json.dumps(ORDER)
        for types in ((), ("--reflect",), ("--protoset", SET), ("--format", "json")):
            (call,), _ = calls(address, "shop.Orders/Get", "-d", text, *types)
            same(call["response"], ORDER)
            check(call["response_hex"].startswith("0a0137"), call)
        for spelling in ("shop.Orders.Get", "/shop.Orders/Get"):
            same(calls(address, spelling, "-d", text)[0][0]["response"], ORDER)
        same(calls(address, "shop.Orders/Get", "--reflect")[0][0]["response"], {})
        same(calls(address, "shop.Orders/Get", "--reflect", "--emit-defaults")[0][0]["response"]["units"], "0")
        shown = run("call", address, "shop.Orders/Get", "-d", text).stdout
        check(shown.startswith("#0     OK ") and json.loads(shown.partition("\n")[2]) == ORDER, shown)
        (call,), _ = calls(address, "shop.Orders/Get", "--reflect", "--data-hex", "0a0137")
        same(call["response"], {"id": "7"})
        results, summary = calls(address, "shop.Orders/Get", "-n", "20", "-c", "4", "-d", text, "-H", "x-user: u{i}")
        same((summary["ok"], {r["headers"]["x-user"][0] for r in results}), (20, {f"u{i}" for i in range(20)}))


def test_bytes_as_before():
    with server("none") as address, running("backend") as backend:
        for target, note in ((address, True), (backend.listening(), True)):
            done = run("call", target, "shop.Orders/Get", "-d", "{not json", "-o", "json")
            same(json.loads(done.stdout.splitlines()[0])["call"]["response_hex"], b"{not json".hex())
            check(("has neither grpc.reflection.v1" in done.stderr) == note, done.stderr)
            done = run("call", target, "shop.Orders/Get", "-d", "{", "--raw", "-o", "json")
            same((json.loads(done.stdout.splitlines()[0])["call"]["response_hex"], done.stderr), ("7b", ""))
            done = run("call", target, "shop.Orders/Get", "-d", "plain", "-o", "json")
            same((json.loads(done.stdout.splitlines()[0])["call"]["response_hex"], done.stderr), (b"plain".hex(), ""))
            same(calls(target, "shop.Orders/Get", "-d", "@", "--raw")[0][0]["response_hex"], "40")
        refused(address, "shop.Orders/Get", "--reflect", says="the server has neither grpc.reflection.v1 nor grpc.reflection.v1alpha")
        same(json.loads(run("call", address, "shop.Orders/Get", "-d", "@", "-o", "json", stdin="whole").stdout.splitlines()[0])["call"]["response_hex"],
             b"whole".hex())
    refused(gone := free_address(), "shop.Orders/Get", "-d", "{}", says=f"reflection of {gone}: UNAVAILABLE: ")
    said = run("call", gone, "shop.Orders/Get", "-d", "{}", status=1).stderr
    check("--raw" not in said, f"bytes would not arrive either: {said}")
    (call,), _ = calls(gone, "shop.Orders/Get", "-d", "{}", "--raw", status=1)
    same(call["status"], "UNAVAILABLE")


def test_any():
    """The type of an Any is asked for when a message has one."""
    with server() as address:
        same(calls(address, "shop.Orders/Get", "-d", json.dumps(NOTE))[0][0]["response"], NOTE)
        (call,), _ = calls(address, "shop.Orders/Get", "--reflect", "--data-hex", "3a270a23" + b"type.googleapis.com/shop.extra.Note".hex() + "1200")
        same(call["response"], {"extra": {"@type": "type.googleapis.com/shop.extra.Note"}})
        unknown = {"extra": {"@type": "type.googleapis.com/shop.Unheard", "@value": "CAE="}}
        same(calls(address, "shop.Orders/Get", "-d", json.dumps(unknown))[0][0]["response"], unknown)
        same(calls(address, "shop.Orders/Get", "-d", json.dumps(NOTE), "--protoset", SET)[0][0]["response"], NOTE)
        for odd in ({"id": "a\0b"}, {"id": '\\"@type": "x"'}, {"prices": {"much": 1e20}}):
            same(calls(address, "shop.Orders/Get", "-d", json.dumps({**odd, "extra": NOTE["extra"]}))[0][0]["response"], {**odd, "extra": NOTE["extra"]})
        same(calls(address, "shop.Orders/Get", "-d", json.dumps(NOTE).replace('/', '\\/').replace(":", " :\n\t"))[0][0]["response"], NOTE)


def test_any_of_a_bad_type():
    """Types that come later and cannot be used leave the types that came before as they were."""
    with server("bad_any") as address:
        done = run("call", address, "shop.Orders/Get", "--reflect", "-n", "3", "-o", "json", "--data-hex",
                   "3a270a23" + b"type.googleapis.com/shop.extra.Note".hex() + "1200")
        got = [json.loads(line)["call"]["response"] for line in done.stdout.splitlines()[:3]]
        same(got, [{"extra": {"@type": "type.googleapis.com/shop.extra.Note", "@value": ""}}] * 3)
        check(done.stderr.count("shop.Lost") == 1, done.stderr)
        # Nothing of them is left: a later file may have the name of the one that could not be linked.
        note, card = ({"extra": {"@type": "type.googleapis.com/shop.extra." + name}} for name in ("Note", "Card"))
        note["extra"]["@value"] = ""
        got, _ = messages(address, "shop.Orders/Chat", "--reflect", "-d", json.dumps(note) + json.dumps(card))
        same(got, [note, card])


def test_time_of_all_questions():
    """The deadline is of all questions together, on however many streams."""
    with server("mute_any") as address:
        parts = [{"extra": {"@type": f"type.googleapis.com/shop.Unheard{i}", "@value": "CAE="}} for i in range(5)]
        done = run("call", "--deadline", "3", address, "shop.Orders/Get", "-d", json.dumps({"parts": parts}), "-o", "json", status=None)
        said = done.stderr.splitlines()
        check(len(said) >= 5 and all(f"reflection of {address}: DEADLINE_EXCEEDED" in line for line in said), done.stderr)
        # A timer's clock is that of its turn: the first may leave a millisecond for the second.
        check(all("DEADLINE_EXCEEDED: the 3000 ms for all questions are over" in line for line in said[2:]), done.stderr)


def test_extensions():
    """An extension in a file that no import leads to is asked for by its message and number."""
    ranked = {"item": {"name": "a", "[shop.rank.rank]": 3}}
    with server() as address:
        same(calls(address, "shop.Orders/Get", "-d", json.dumps(ranked))[0][0]["response"], ranked)
        same(calls(address, "shop.Orders/Get", "--reflect", "--data-hex", "52060a0161a00603")[0][0]["response"], ranked)
    with server("half_extended") as address:  # the server has no file for one of two
        same(calls(address, "shop.Orders/Get", "--reflect", "--data-hex", "a80605")[0][0]["response"], {"[shop.e]": 5})


def test_streams():
    with server() as address:
        text = "".join(json.dumps({"id": str(i)}) + "\n" for i in range(3))
        ids = [{"id": str(i)} for i in range(3)]
        got, call = messages(address, "shop.Orders/Watch", "-d", '{"id": "5"}')
        same((got, call["messages"], call["response_hex"]), ([{"id": "5"}] * 3, {"sent": 1, "received": 3}, ""))
        for given in (("-d", text), ("-d", "@"), ("--data-file", "-", "--reflect")):
            got, call = messages(address, "shop.Orders/Chat", *given, stdin=text)
            same((got, call["messages"]), (ids, {"sent": 3, "received": 3}))
            got, call = messages(address, "shop.Orders/Load", *given, stdin=text)
            same((got, call["response"], call["messages"]), ([], {"id": "2"}, {"sent": 3, "received": 1}))
        same(messages(address, "shop.Orders/Chat", "--reflect")[1]["messages"], {"sent": 0, "received": 0})
        same(messages(address, "shop.Orders/Get", "-d", "@", stdin=' {"id": "1"} ')[1]["response"], {"id": "1"})
        printed = lines(address, "shop.Orders/Chat", "-d", text, "-n", "4", "-c", "2")
        same(printed[-1]["summary"]["ok"], 4)
        same(sorted((m["i"], m["n"]) for m in (line.get("message") for line in printed) if m), [(i, n) for i in range(4) for n in range(3)])
        many = "".join(json.dumps({"id": "x" * 2000}) for _ in range(300))
        same(messages(address, "shop.Orders/Chat", "-d", "@", stdin=many)[1]["messages"], {"sent": 300, "received": 300})
        shown = run("call", address, "shop.Orders/Watch", "-d", '{"id": "5"}').stdout
        check(shown.startswith('#0     message 0\n{\n  "id": "5"\n}\n#0     message 1') and "1 sent, 3 received" in shown, shown)


def test_a_response_too_many():
    """A call of a method that has one response fails at the second response: a server could send them for ever."""
    says = "the server sent more than one response to shop.Orders/{}, which has one"
    with server("talkative") as address:
        for method, *more in (("Load", "--reflect"), ("Get", "--timing", "--reflect"), ("Get", "--timing")):
            (call,), _ = calls("--deadline", "60", address, f"shop.Orders/{method}", *more, "-d", "{}" if "--reflect" in more else "x", status=1)
            same((call["status"], call["message"]), ("INTERNAL", says.format(method)))
        figures = json.loads(run("bench", "-n", "2", "--deadline", "60", "-o", "json", address, "shop.Orders/Load", "-d", "{}", status=1).stdout)["bench"]
        same(figures["by_status"], {"INTERNAL": 2})
    with server("taciturn") as address:
        (call,), _ = calls(address, "shop.Orders/Load", "-d", "{}", status=1)
        same((call["status"], call["response_error"]), ("OK", "the method has one response, and the server sent none"))
    with server() as address:
        same(calls("--timing", address, "shop.Orders/Get", "-d", "x")[1]["ok"], 1)


def test_memory_of_a_stream():
    """What was sent is forgotten: many messages take no more memory than some."""
    def most(n):
        command = [TORC, "call", "-o", "json", address, "shop.Orders/Load", "-d", "@"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as talk:
            talk.stdin.write((b"{}" + b" " * 98) * n)
            with open(f"/proc/{talk.pid}/status", encoding="ascii") as status:
                used = int(next(line for line in status if line.startswith("VmHWM")).split()[1])
            talk.stdin.close()
            same(json.loads(talk.stdout.readline())["call"]["messages"], {"sent": n, "received": 1})
            return used

    with server() as address:
        some, many = most(10000), most(150000)
        check(os.environ.get("TORC_SANITIZE") or many - some < 2048, f"{some} and {many} KiB")


def cpu_of(act, *args):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    act(*args)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def many_values(n):
    refused("localhost:1", "shop.Orders/Get", "--protoset", SET, "--data-file", "-", stdin="{}" * n, says=f"takes one message, and {n} were given")


def test_long_input():
    """Four times as many values, or as long a value, take four times as long, not sixteen times."""
    with server() as address:
        def one_value(size):
            for odd in ('"} ', '\\"]'):  # brackets and ends within a string are none
                text = '{"id": "7",' + " " * size + '"address": ' + json.dumps(odd * 1000) + "}"
                got, call = messages(address, "shop.Orders/Chat", "--protoset", SET, "-d", "@", stdin=text + '{"id": "1"} ')
                same(([m["id"] for m in got], call["messages"]), (["7", "1"], {"sent": 2, "received": 2}))

        for act, small in ((many_values, 100000), (one_value, 5 << 20)):
            one, four = cpu_of(act, small), cpu_of(act, 4 * small)
            check(four < 8 * one + 0.2, f"{one} s of CPU, {four} s for four times as much")


def test_interactive():
    """Each message is sent when its value is complete, and answered before the next."""
    with server() as address:
        command = [TORC, "call", "-o", "json", address, "shop.Orders/Chat", "-d", "@"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as talk:
            for part, whole in (('{"id":', False), (' "1"}', True), ('{"id": "2"}\n', True)):
                talk.stdin.write(part)
                talk.stdin.flush()
                if whole:
                    check("message" in json.loads(talk.stdout.readline()), "an answer to each")
            talk.stdin.close()
            last = [json.loads(line) for line in talk.stdout.read().splitlines()]
            same((last[0]["call"]["messages"], talk.wait(WAIT)), ({"sent": 2, "received": 2}, 0))
        done = run("call", address, "shop.Orders/Chat", "-d", "@", stdin='{"id": "1"} {"id": 2', status=1)
        check("the request, a shop.Order: line 1" in done.stderr and "CANCELLED" in done.stdout, f"{done.stdout}{done.stderr}")


def test_terminal():
    """-d @ on a terminal: a message is sent by its line, and Ctrl-D ends the requests."""
    ours, terminal = pty.openpty()
    with server() as address, open(terminal, "rb") as stdin:
        with subprocess.Popen([TORC, "call", "-o", "json", address, "shop.Orders/Chat", "-d", "@"], stdin=stdin, stdout=subprocess.PIPE,
                              text=True) as talk:
            os.write(ours, b'{"id": "1"}\n')
            same(json.loads(talk.stdout.readline())["message"]["response"], {"id": "1"})
            os.write(ours, b"\x04")
            last = [json.loads(line) for line in talk.stdout.read().splitlines()]
            same((last[0]["call"]["messages"], talk.wait(WAIT)), ({"sent": 1, "received": 1}, 0))
    os.close(ours)


def test_progress():
    """A call that takes longer than two seconds says so on a terminal; a conversation (-d @) has no such line."""
    for data, wanted in (("x", True), ("@", False)):
        ours, terminal = pty.openpty()
        with running("backend") as backend, open(terminal, "wb") as stderr:
            command = [TORC, "call", "-d", data, "--deadline", "2.5", backend.listening(), "torc.test.Backend/Hang"]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True, timeout=WAIT, check=False)
            check(done.returncode == 1 and "DEADLINE_EXCEEDED" in done.stdout, done)
            os.write(terminal, b"end")
            said = os.read(ours, 65536)
            check((b"torc call: 2 s, 0 calls done, 0 OK" in said) == wanted, said)
        os.close(ours)


def test_text():
    """protobuf's text format, by protoc."""
    with server() as address:
        refused(address, "shop.Orders/Get", "--format", "text", "-d", "id: 1", says="protoc cannot be run (it is not in PATH)", env={"PATH": "/nonexistent"})
        if not shutil.which("protoc"):
            return
        call = lines(address, "shop.Orders/Get", "--format", "text", "-d", 'id: "7" colour: RED')[0]["call"]
        same((call["response_text"], call["response_hex"]), ('id: "7"\ncolour: RED', "0a01373001"))
        shown = run("call", address, "shop.Orders/Chat", "--format", "text", "-d", "@", stdin='id: "1"\x1eid: "2"\x1e\n').stdout
        check(shown.startswith('#0     message 0\nid: "1"\n#0     message 1\nid: "2"\n#0     OK'), shown)
        refused(address, "shop.Orders/Get", "--format", "text", "-d", "di: 1", says='the request, a shop.Order: input:1:3: Message type "shop.Order" has no field')
    with server("evil_name") as address:
        refused(address, "shop.Orders/Get", "--format", "text", "-d", "it: 1", says="has a name that protoc does not take")


def test_tls():
    """Files imply TLS; --skip-verify asks nothing of the server, and says so."""
    with tempfile.TemporaryDirectory() as folder:
        cert, key = (pki := Pki(folder)).make("server", "DNS:shop.test")
        with running("backend", "--tls-cert", cert, "--tls-key", key) as backend:
            address = backend.listening()
            for option in ("--ca", "--cacert", "-cacert"):
                same(calls(address, "a.B/C", option, pki.ca, "--authority", "shop.test")[1]["ok"], 1)
            same(calls(address, "a.B/C", "--cacert", pki.ca, "--authority", "other.test", status=1)[1]["ok"], 0)
            done = run("call", address, "a.B/C", "-skip-verify")
            check("--skip-verify: anybody in between" in done.stderr, done.stderr)
            same(calls(address, "a.B/C", "--creds", "tls", status=1)[1]["ok"], 0)
            same(calls(address, "a.B/C", status=1)[1]["ok"], 0)
            refused(address, "a.B/C", "--skip-verify", "--ca", pki.ca, says="--skip-verify goes with --creds tls, and without --ca", status=2)


def test_numbers_in_requests():
    """{i} of -d is the call's number, as in headers: unary and streams, JSON and bytes, by one call at a time or by several."""
    with server() as address, tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        def sent(*args):
            done, _ = calls(address, *args)
            return sorted(call["response"]["id"] if "response" in call else bytes.fromhex(call["response_hex"]).decode() for call in done)

        file.write('{"id": "u{i}"}')
        file.flush()
        for data in (("-d", '{"id": "u{i}"}'), ("--data-file", file.name)):
            same(sent("shop.Orders/Get", *data, "-n", "3"), ["u0", "u1", "u2"])
            same(sent("shop.Orders/Get", *data, "-n", "20", "-c", "8", "--timing"), sorted(f"u{i}" for i in range(20)))
            same(sent("shop.Orders/Get", *data), ["u0"])
        got = [line["message"]["response"]["id"] for line in lines(address, "shop.Orders/Chat", "-d", '{"id": "a{i}"} {"id": "b{i}"}', "-n", "2")
               if "message" in line]
        same(sorted(got), ["a0", "a1", "b0", "b1"])
        refused(address, "shop.Orders/Get", "-d", '{"units": "x{i}"}', says="field units")
        refused(address, "shop.Orders/Get", "-d", '{"prices": {"e": {i}}, "units": "{i}", "id": {i}}', says="the request, a shop.Order: line 1")
    with running("backend") as echo:
        address = echo.listening()
        same(sent("echo.Echo/Say", "-d", "<{i}>", "-n", "3"), ["<0>", "<1>", "<2>"])
        same(sent("echo.Echo/Say", "-d", "<{i}>", "-n", "2", "--raw"), ["<{i}>"] * 2)
        same(sent("echo.Echo/Say", "-d", "{int:1:2}{ i }", "--raw"), ["{int:1:2}{ i }"])
        same(sent("echo.Echo/Say", "--data-hex", b"{i}".hex(), "-n", "2"), ["{i}"] * 2)


def test_requests_that_do_not_fit():
    with server() as address:
        refused(address, "shop.Orders/Get", "-d", '{"di": 1}', says="the request, a shop.Order: line 1, column 2: shop.Order has no field di")
        same(calls(address, "shop.Orders/Get", "-d", '{"di": 1}', "--allow-unknown-fields")[0][0]["response"], {})
        refused(address, "shop.Orders/Get", "-d", '{"units": "x"}', says="field units")
        refused(address, "shop.Orders/Get", "-d", '{"id": "1"} {"id": "2"}', says="shop.Orders/Get takes one message, and 2 were given")
        refused(address, "shop.Orders/Nothing", "-d", "{}", says="the service shop.Orders has no method Nothing; it has Get, Watch, Load, Chat, Fail")
        has = "grpc.reflection.v1.ServerReflection, grpc.reflection.v1alpha.ServerReflection, shop.Orders"
        for asked in ("shop.Other/Get", "shop.Other.Get"):
            refused(address, asked, "-d", "{}", says=f"call: the server has no service shop.Other; it has {has} (--raw sends the request as bytes)\n")
            refused(address, asked, "-d", "{}", "--reflect", says=f"call: the server has no service shop.Other; it has {has}\n")
            refused(address, asked, "--protoset", SET, says="no file has the service 'shop.Other'; they have shop.Orders\n")
        with server("undescribed") as other:
            refused(other, "shop.Orders/Get", "-d", "{}", says="call: the server lists the service shop.Orders, but has no description of it: give one "
                                                               "with --proto or --protoset (--raw sends the request as bytes)\n")
            same(calls(other, "shop.Orders/Get", "-d", '{"id": "1"}', "--protoset", SET)[0][0]["response"], {"id": "1"})
        for types in ((), ("--reflect",), ("--protoset", SET)):
            refused(address, "shop.Orders", "-d", "{}", *types,
                    says="call: shop.Orders is a service: METHOD is shop.Orders/ and one of Get, Watch, Load, Chat, Fail\n")


def test_place_of_an_error():
    """What is wrong with one of several messages has its line and column in the whole, and the name of the file."""
    text = '{"id": "\u00fc"}\n\n {"id": "2"}  {"id": 3}'
    says = "the request, a shop.Order: line 3, column 22: field id: must be a string"
    with server() as address, tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        chat = (address, "shop.Orders/Chat")
        file.write(text)
        file.flush()
        refused(*chat, "-d", text, says=f"torc call: {says}")
        refused(*chat, "--data-file", file.name, says=f"{file.name}: {says}")
        for option in ("-d@", "--data-file=-"):
            refused(*chat, option, stdin=text, says=f"standard input: {says}")
        said = run("bench", *chat, "-d", f"@{file.name}", status=1).stderr
        check(f"{file.name}: {says}" in said, said)
        said = run("bench", *chat, "-d", "@", stdin='{"id": "{i}"}\n{"id": {i}}', status=1).stderr
        check("standard input: the request, a shop.Order: line 2, column 8: field id" in said, said)
        if shutil.which("protoc"):
            refused(*chat, "--format", "text", "-d", 'id: "1"\n\x1eid: "2" \x1e\nidd: "3"', says="input:3:")


def test_responses_that_do_not_fit():
    with server() as address:
        (call,), _ = calls(address, "shop.Orders/Get", "--reflect", "--data-hex", "0aff", status=1)
        same((call["code"], call["response_hex"], "response" in call), (0, "0aff", False))
        check(call["response_error"], call)
        shown = run("call", address, "shop.Orders/Get", "--reflect", "--data-hex", "0aff", status=1).stdout
        check("cannot be shown: " in shown, shown)
        deep = b""
        for _ in range(120):
            deep = b"\x1a" + (bytes([len(deep)]) if len(deep) < 128 else bytes([len(deep) & 127 | 128, len(deep) >> 7])) + deep
        (call,), _ = calls(address, "shop.Orders/Get", "--reflect", "--data-hex", deep.hex(), status=1)
        check("max_depth" in call["response_error"], call["response_error"])


def test_details():
    with server() as address:
        (call,), _ = calls(address, "shop.Orders/Fail", "-d", "{}", status=1)
        same((call["code"], call["message"]), (9, "sold out"))
        wanted = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "SOLD_OUT", "domain": "shop.example"},
                  {"@type": "type.googleapis.com/shop.Order", "id": "7"},
                  {"@type": "type.googleapis.com/shop.Unheard", "@value": "CAE="}]
        same(call["details"], wanted)
        same(calls(address, "shop.Orders/Fail", status=1)[0][0]["details"][0], wanted[0])
        same(run("call", "--exit-status", "grpc", address, "shop.Orders/Fail", status=64 + 9).stdout.count("detail {"), 3)
        order = ("-d", '{"prices": {"a": 0.1, "b": 1e20}, "id": "\\u0000"}')
        shown = re.findall("detail (.*)", run("call", address, "shop.Orders/Fail", *order, status=1).stdout)
        printed = run("call", "-o", "json", address, "shop.Orders/Fail", *order, status=1).stdout
        check(len(shown) == 3 and f'"details":[{",".join(shown)}]' in printed and '"a":0.1,' in shown[1], f"numbers as they came: {shown}, {printed}")
        run("call", "--exit-status", "grpc", address, "shop.Orders/Get")
        refused("--exit-status", "other", address, "shop.Orders/Get", says="--exit-status: 'other' is not grpc", status=2)


def test_options():
    with server() as address:
        get = (address, "shop.Orders/Get")
        env = {"SHOP_USER": "ann"}
        (call,), _ = calls(*get, "-H", "x-a: 1", "--rpc-header", "x-b: ${SHOP_USER}", "--reflect-header", "x-c: 3", "--expand-headers",
                           "-user-agent", "mine/1", "-max-receive-bytes", "1M", "--deadline", "30", "--connect-timeout", "5", "--keepalive-time=60",
                           "--plaintext", env=env)
        same([call["headers"].get(name) for name in ("x-a", "x-b", "x-c")], [["1"], ["ann"], None])
        check(call["headers"]["x-user-agent"][0].startswith("mine/1 torc-c/"), call)
        shown = run("call", *get, "-H", "x-a: 1", "--show-metadata").stdout
        check("header x-a: 1" in shown, shown)
        timing = calls(*get, "--timing", "--reflect")[0][0]["timing"]
        check(0 < timing["first_message_us"] <= timing["total_us"] and timing["schema_us"] > 0, timing)
        check("types " in run("call", *get, "--timing", "--reflect").stdout, "a line of times")
        refused(*get, "-H", "x-a: ${NO_SUCH_NAME}", "--expand-headers", says="no variable 'NO_SUCH_NAME'", status=2)
        same(calls(*get, "-H", "x-a: ${SHOP_USER}", env=env)[0][0]["headers"]["x-a"], ["${SHOP_USER}"])
        for option, says in (("-insecure", "say --plaintext or --skip-verify"), ("--alts", "Torc has no ALTS"), ("-max-time=3", "use --deadline"),
                             ("--config", "write them on the command line"), ("-alts-handshaker-service", "Torc has no ALTS"),
                             ("-use-reflection=false", "unless --raw is given"), ("-lb-strategy", "use --service-config"),
                             ("--dead=3", "unknown option '--dead=3'"), ("-msg-template", "--template")):
            refused(*get, option, says=says, status=2)
        refused(*get, "--plaintext", "--skip-verify", says="--plaintext goes with no option of TLS", status=2)
        refused(*get, "--creds", "insecure", "--skip-verify", says="--skip-verify goes with --creds tls", status=2)
        refused(*get, "--raw", "--format", "json", says="--raw and --format contradict", status=2)
        refused(*get, "--format", "xml", says="--format: 'xml' is neither json nor text", status=2)
        same(calls(*get, "-d", "-raw")[0][0]["response_hex"], b"-raw".hex())  # the value of an option, whatever it looks like
        done = run("call", *get, "--skip-verify", status=1)
        check("--skip-verify: anybody in between" in done.stderr, done.stderr)


def test_dry_run_asks_nobody():
    with server("ends") as address:
        same(run("call", "--dry-run", address, "shop.Orders/Get", "-d", "{}").stderr, "")


def plain(text, address):
    """A text without what differs from run to run: the address, times, rates, and the width of columns."""
    text = text.replace(address, "ADDRESS").replace("127.0.0.1:50051", "ADDRESS")
    text = re.sub(r'"(latency_us|p50|p90|p99|max|seconds|cpu_seconds)":[0-9.]+', r'"\1":0', text)
    text = re.sub(r"[0-9]+ a second", "RATE", text)
    return re.sub(r" +", " ", re.sub(r"[0-9.]+ (us|ms|s)\b", "TIME", text))


def test_guide():
    """The commands of docs/guide/command.md, and what they print."""
    commands = [part.partition("\n")[::2] for block in blocks("docs/guide/command.md", "console") for part in block.split("$ ") if part]
    check(len(commands) > 10, commands)
    with server() as address, tempfile.TemporaryDirectory() as folder:
        shutil.copy(SET, os.path.join(folder, "shop.pb"))
        run("list", "--protoset", SET, "--proto-out-dir", folder)
        env = {**os.environ, "PATH": BUILD + ":" + os.environ["PATH"]}
        for command, wanted in commands:
            if "--proto " in command and not shutil.which("protoc"):
                continue
            done = subprocess.run(["sh", "-c", command.replace("localhost:50051", address)], cwd=folder, env=env, capture_output=True, text=True,
                                  timeout=WAIT, check=False)
            same(plain(done.stdout + done.stderr, address), plain(wanted, address))


def test_mesh():
    """Reflection and streams on xds:/// targets, explained; torc list; the guide's commands for a mesh."""
    with server() as address, tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mesh.json")
        write_resources(path, "1", listener("shop", "routes"), routes("routes", {"match": {"prefix": "/"}, "route": {"cluster": "shop"}}),
                        cluster("shop", lb_policy="RING_HASH"), endpoints("shop", address))
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as plane:
            env = bootstrap(plane.listening())
            printed = lines("xds:///shop", "shop.Orders/Watch", "-d", '{"id": "5"}', "--explain", env=env)
            explained = [line["message"]["explain"] for line in printed if "message" in line]
            same([(e["cluster"], e["policy"], e["endpoint"]) for e in explained], [("shop", "ring_hash", address)] * 3)
            same([line["call"]["explain"]["cluster"] for line in printed if "call" in line], ["shop"])
            check("shop.Orders" in run("list", "xds:///shop", env=env).stdout.splitlines(), "list")
            # The guide's commands for a mesh.
            for command in [text for text in blocks("docs/guide/command.md", "sh") if "xds:///" in text]:
                done = subprocess.run(["sh", "-c", command.replace("xds:///orders", "xds:///shop").replace("--duration 1m", "--duration 1s")],
                                      env={**os.environ, **env, "PATH": BUILD + ":" + os.environ["PATH"]}, capture_output=True, text=True,
                                      timeout=WAIT, check=False)
                check(done.returncode == 0 and address in done.stdout, f"{command}: {done}")


main(test_unary, test_bytes_as_before, test_any, test_any_of_a_bad_type, test_time_of_all_questions, test_extensions, test_streams, test_memory_of_a_stream,
     test_a_response_too_many, test_long_input, test_interactive, test_terminal, test_progress, test_text, test_tls,
     test_numbers_in_requests, test_requests_that_do_not_fit, test_place_of_an_error, test_responses_that_do_not_fit, test_details, test_options, test_dry_run_asks_nobody, test_guide, test_mesh)
