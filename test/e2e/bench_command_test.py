"""torc bench: closed and open loop against the echo backend, latency from the intended start, errors by status; what it sends, its
reports, and what it prints when it is interrupted."""
import contextlib
import csv
import html.parser
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import (BUILD, TORC, WAIT, bootstrap, calls, check, cluster, endpoints, free_address, listener, main, routes, run, running,
                         with_time, write_resources)

SERVER, SET = os.path.join(BUILD, "test", "command_server"), os.path.join(BUILD, "test", "command_server.pb")
METHOD = "torc.test.Backend/Echo"


def bench(*args, status=0):
    return json.loads(run("bench", "-o", "json", *args, status=status).stdout)["bench"]


def check_sums(figures):
    check(sum(figures["by_status"].values()) == figures["calls"], str(figures))
    check(figures["by_status"].get("OK", 0) == figures["ok"], str(figures))
    latency = list(figures["latency_us"].values())
    check(latency == sorted(latency) and latency[0] > 0, f"percentiles grow: {latency}")


def test_closed_loop():
    with running("backend", "--name", "b1", "--count-log") as backend:
        address = backend.listening()
        figures = with_time(lambda seconds: bench("-c", "8", "--duration", f"{seconds}s", "--payload", "1k", "--channels", "2",
                                                  address, METHOD), lambda figures: figures["calls"] > 8)
        check_sums(figures)
        check(figures["ok"] == figures["calls"] and figures["most_in_flight"] == 8, str(figures))
        check(figures["cpu_us_per_call"] > 0 and figures["seconds"] >= 0.3, str(figures))
        check(abs(figures["rps"] - figures["calls"] / figures["seconds"]) < 0.01 * figures["rps"], str(figures))
        text = run("bench", "--duration", "50ms", address, METHOD).stdout
        check(" a second" in text and "p99.9" in text and "OK" in text and "us a call" in text, text)
        check(backend.stop() == 0, "the backend ends well")
        counted = json.loads([line for line in backend.rest() if line.startswith("{")][0])["backend"]
        check(counted["requests"] >= figures["calls"] and counted["connections"] >= 2, str(counted))


def test_open_loop():
    with running("backend") as backend:
        figures = bench("--rps", "500", "--duration", "400ms", backend.listening(), METHOD)
        check_sums(figures)
        check(figures["calls"] == 200 and figures["not_started"] == 0, f"every call that was due: {figures}")


def test_extreme_rates():
    """A load at the least and at the most that --rps takes ends with --duration; a duration of centuries is taken."""
    with running("backend") as backend:
        address = backend.listening()
        check(bench("--rps", "0.001", "--duration", "100ms", address, METHOD)["calls"] == 1, "the first, at once")
        figures = bench("--rps", "1000000", "-c", "4", "--duration", "100ms", address, METHOD)
        check(figures["calls"] + figures["not_started"] == 100_000, str(figures))
        summary = calls("--rps", "0.001", "--duration", "100ms", address, METHOD)[1]
        check(summary["calls"] == 1 and summary["seconds"] >= 0.1, str(summary))
        summary = calls("--channels", "10000", "--duration", "1ms", address, METHOD)[1]
        check(summary["calls"] >= 1, f"a call, though it took longer to make the channels: {summary}")
        done = calls("-n", "3", "--duration", "2400000h", address, METHOD)[1]
        check(done["ok"] == 3, str(done))


def test_latency_from_the_intended_start():
    """Calls are due every 20 ms for 400 ms, and take 50 ms each, one at a time: each begins 30 ms later after its due
    time than the one before."""
    with running("backend", "--delay", "50ms") as backend:
        figures = bench("--rps", "50", "-c", "1", "--duration", "400ms", backend.listening(), METHOD)
        check_sums(figures)
        check(figures["most_in_flight"] == 1, str(figures))
        check(figures["calls"] + figures["not_started"] == 20 and figures["not_started"] > 0, str(figures))
        check(figures["latency_us"]["max"] > 150_000, f"waiting for a turn counts: {figures}")


def test_failures():
    with running("backend", "--fail", "UNAVAILABLE") as backend:
        figures = bench("--duration", "50ms", backend.listening(), METHOD, status=1)
        check(figures["ok"] == 0 and list(figures["by_status"]) == ["UNAVAILABLE"], str(figures))
    with running("backend") as backend:
        address = backend.listening()
        done = with_time(lambda seconds: run("bench", "-o", "json", "-c", "3", "--duration", "50ms", "--deadline",
                                             f"{seconds}s", address, "torc.test.Backend/Hang", status=1),
                         lambda done: "cannot connect" not in done.stderr)
        figures = json.loads(done.stdout)["bench"]
        check(figures["by_status"] == {"DEADLINE_EXCEEDED": 3}, str(figures))


def test_why_it_cannot_connect():
    """The command gives the reason that torc call gives: at once, or, where waiting can help, when the deadline is
    over."""
    closed = free_address()

    def refused(target):
        began = time.monotonic()
        said = run("bench", "--deadline", "10m", target, METHOD, status=1).stderr
        return time.monotonic() - began, said

    for target in (closed, f"ipv4:{closed}"):
        # Several tries: a bench that waited for its ten seconds would need them every time.
        _, said = with_time(lambda _, target=target: refused(target), lambda result: result[0] < 9, range(5))
        check(said.startswith(f"torc bench: cannot connect to {target}: UNAVAILABLE: ") and "refused" in said, said)
        call = calls(target, METHOD, status=1)[0][0]
        check(call["message"] in said, f"{call} and {said}")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"

        def unanswered(seconds, target, env=None):
            return run("bench", "--deadline", f"{seconds}s", target, METHOD, env=env, status=1).stderr

        with_time(lambda seconds: unanswered(seconds, address), lambda said: said.endswith(": still CONNECTING\n"))
        with_time(lambda seconds: unanswered(seconds, "xds:///orders", bootstrap(address)),
                  lambda said: "cannot connect to xds:///orders" in said and 'waits for LDS resource "orders"' in said)


def test_wrong_usage():
    for args, what in ((("127.0.0.1:1",), "METHOD"), (("127.0.0.1:1", "x"), "package.Service/Method"),
                       (("-c", "0", "a:1", "a.B/C"), "-c"), (("--rps", "no", "a:1", "a.B/C"), "--rps"),
                       (("--duration", "0s", "a:1", "a.B/C"), "--duration"), (("--nope",), "--nope"),
                       (("--payload", "5G", "a:1", "a.B/C"), "--payload"), (("--ca", "/", "a:1", "a.B/C"), "")):
        done = run("bench", *args, status=None)
        check(done.returncode in (1, 2) and what in done.stderr and done.stderr.count("\n") == 1, f"{args}: {done}")
    for method, what in (("a", "form"), ("/a", "form"), ("a/", "form"), ("/a/", "form"), ("//b", "form"), ("", "form"),
                         ("a b/c", "printable"), ("ü/x", "printable"), ("a/b\n", "printable"),
                         ("a/" + "b" * 65535, "65535")):
        for command in ("bench", "call"):
            done = run(command, "127.0.0.1:1", method, status=2)
            check("METHOD" in done.stderr and what in done.stderr and not done.stdout, f"{method[:20]!r}: {done}")
    for rate in ("0", "-1", "1e-300", "1e-20", "0.0009", "1000001", "1e10", "1e300", "1e999", "nan", "inf"):
        for command in ("bench", "call"):
            done = run(command, "--rps", rate, "--duration", "50ms", "127.0.0.1:1", METHOD, status=2)
            check(f"--rps: '{rate}' is not a number from 0.001 to 1000000" in done.stderr, done.stderr)
    check("open loop" in run("bench", "--help").stdout, "--help explains")


def stages(address, *args, status=0):
    """The rows of stages, and all figures. Checks that the rows add up to the figures."""
    figures = bench(*args, address, METHOD, status=status)
    rows = figures["stages"]
    check([row["stage"] for row in rows] == list(range(1, len(rows) + 1)), str(rows))
    check(sum(row["calls"] for row in rows) == figures["calls"] and sum(row["ok"] for row in rows) == figures["ok"], str(figures))
    check(sum(row["not_started"] for row in rows) == figures["not_started"], str(figures))
    check(all(sum(row["by_status"].values()) == row["calls"] for row in rows), str(figures))
    check(all(row["seconds"] == 0 or abs(row["rps"] - row["calls"] / row["seconds"]) < 0.1 + (0.01 + 0.001 / row["seconds"]) * row["rps"] for row in rows), str(rows))
    return rows, figures


def test_stages():
    """What is due in each stage is counted in that stage, whatever became of it."""
    with running("backend", "--count-log") as backend:
        address = backend.listening()
        rows, figures = stages(address, "--stage", "100/500ms,400..0/500ms", "--stage", "0/100ms,500/2x200ms")
        check([row["load"] for row in rows] == ["100/0.5s", "400..0/0.5s", "0/0.1s", "500/0.2s", "500/0.2s"], str(rows))
        check([row["calls"] + row["not_started"] for row in rows] == [50, 100, 0, 100, 100], str(rows))
        check([row["seconds"] for row in rows] == [0.5, 0.5, 0.1, 0.2, 0.2] and figures["calls"] == 350, str(rows))
        # Closed loop: a stage of two at a time, none, one.
        rows, figures = stages(address, "--stage", "c=2/200ms,c=0/300ms,c=1..3/200ms")
        check(rows[0]["calls"] > 2 and rows[1]["calls"] == 0 and rows[2]["calls"] > 3 and figures["most_in_flight"] == 3, str(rows))
        # -n ends them, and warm-up is load as the first stage begins with.
        rows, figures = stages(address, "--stage", "100/100ms,1000..2000/10s,5/1h", "-n", "40", "--warmup", "100ms")
        check([row["calls"] for row in rows] == [10, 30, 0] and rows[1]["seconds"] < 10 and rows[2]["seconds"] == 0, str(rows))
        text = run("bench", "--stage", "100/100ms,200/100ms", "--report", "csv=-", address, METHOD).stdout
        check("stage" in text and "a second" in text and "not begun" in text and 'stage,"2: 200/0.1s",20,0,200.0,' in text, text)
        check([words[1] for words in map(str.split, text.splitlines()) if words[:1] == ["all"]] == ["30"], f"a total: {text}")
        check("stages" not in bench("-n", "1", address, METHOD), "none without --stage")
        check(backend.stop() == 0, "the backend ends well")
        requests = json.loads([line for line in backend.rest() if line.startswith("{")][0])["backend"]["requests"]
        check(requests > 350 + 40 + 30 + 2, f"what the rows count was sent: {requests}")


def test_stages_from_the_intended_start():
    """One RPC at a time takes 50 ms. The 20 RPCs that are due in the first stage of 100 ms are still made during the
    second, in which none is due: each counts in the first stage, and its latency from when it was due."""
    with running("backend", "--delay", "50ms") as backend:
        rows, _ = stages(backend.listening(), "-c", "1", "--stage", "200/100ms,0/600ms,10/300ms")
        check(rows[0]["calls"] + rows[0]["not_started"] == 20 and rows[1]["calls"] + rows[1]["not_started"] == 0, str(rows))
        check(rows[0]["calls"] >= 3 and rows[0]["latency_us"]["max"] > 100_000, f"waiting for a turn counts: {rows}")
        check(rows[2]["calls"] + rows[2]["not_started"] == 3 and rows[2]["not_started"] > 0, f"those of the first stage go first: {rows}")


class Recorder:
    """Stands between the command and a server, and keeps the bytes that the command sent."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.server, self.listener, self.sent = (host, int(port)), socket.create_server(("127.0.0.1", 0)), bytearray()
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client = self.listener.accept()[0]
            server = socket.create_connection(self.server)
            threading.Thread(target=self._copy, args=(client, server, self.sent), daemon=True).start()
            threading.Thread(target=self._copy, args=(server, client, bytearray()), daemon=True).start()

    @staticmethod
    def _copy(source, target, kept):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                kept += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def wait(self, part):
        """Waits until the command has sent this."""
        deadline = time.monotonic() + WAIT
        while part not in self.sent:
            check(time.monotonic() < deadline, f"{part} was not sent")
            time.sleep(0.001)

    def take(self):
        sent = bytes(self.sent)
        self.sent.clear()
        return sent


@contextlib.contextmanager
def recorded(*server, **options):
    with running(*server, **options) as process:
        recorder = Recorder(process.listening())
        recorder.process = process.process
        yield recorder


def late(target, env, *server):
    """The server starts when the command's first connection was refused."""
    process = subprocess.Popen([TORC, "bench", "-n", "10", "--wait-for-ready", "--deadline", "60s", "-vv", target, METHOD],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **env})
    check(any("refused" in line for line in iter(process.stderr.readline, "")), "the first connection is refused")
    with running(*server) as started:
        started.listening()
        out, err = process.communicate(timeout=WAIT)
        check(process.returncode == 0 and out.startswith("10 calls in "), f"{out} {err}")


def test_wait_for_ready():
    """The backend, or the control plane, starts after the command."""
    address = free_address()
    late(address, {}, "backend", "--listen", address)
    with running("backend") as backend, tempfile.TemporaryDirectory() as folder:
        path, control = os.path.join(folder, "mesh.json"), free_address()
        write_resources(path, "1", *hashed("shop", "orders", cluster("orders"), endpoints("orders", backend.listening())))
        late("xds:///shop", bootstrap(control), "serve-xds", "--listen", control, "--resources", path)


def test_count_and_warmup():
    with running("backend", "--count-log") as backend:
        address = backend.listening()
        figures = bench("-n", "100", "-c", "7", address, METHOD)
        check(figures["calls"] == 100 and figures["ok"] == 100 and not figures["interrupted"], str(figures))
        check(bench("-n", "50", "--rps", "5000", address, METHOD)["calls"] == 50, "open loop")
        figures = bench("-n", "1000000000", "--duration", "100ms", address, METHOD)
        check(0 < figures["calls"] < 1000000000 and figures["seconds"] < WAIT, f"--duration ends it first: {figures}")
        counted = 150 + figures["calls"]
        figures = [bench("-n", "100", "--warmup", "200ms", *more, address, METHOD) for more in (("-c", "3"), ("--rps", "200"))]
        check([f["calls"] for f in figures] == [100, 100], str(figures))
        check(backend.stop() == 0, "the backend ends well")
        requests = json.loads([line for line in backend.rest() if line.startswith("{")][0])["backend"]["requests"]
        check(requests >= counted + 200 + 30, f"the warm-up is load that does not count: {requests} of {counted}")


def test_bytes_that_are_sent():
    with recorded("backend") as server, tempfile.TemporaryDirectory() as folder:
        def sent(*args):
            check(bench("-n", "10", *args, server.address, METHOD)["ok"] == 10, str(args))
            return server.take()

        got = sent("-d", "<{i}>")
        check(all(f"<{i}>".encode() in got for i in range(10)), str(got))
        check(sent("-d", "<{i}>", "--raw").count(b"<{i}>") == 10, "--raw")
        check(sent("--data-hex", b"<{i}>".hex()).count(b"<{i}>") == 10, "--data-hex")
        check(sent("-d", "a { b } {} {\"x\":1}", "--raw").count(b'a { b } {} {"x":1}') == 10, "other braces")
        check(sent("-d", "a { b } {} {\"x\":1}").count(b'a { b } {} {"x":1}') == 10, "other braces are no placeholders")
        got = sent("-d", "<{int:-3:-3}{int:-9223372036854775808:9223372036854775807}|{uuid}|{str:5}>")
        words = [part.split(b">")[0].decode() for part in got.split(b"<-3")[1:]]
        check(len(words) == 10 and len(set(words)) == 10, str(words))
        check(all([len(part) for part in word.split("|")][1:] == [36, 5] for word in words), str(words))
        path = os.path.join(folder, "requests")
        with open(path, "w", encoding="ascii", newline="") as out:
            out.write("[first]\r\n\n[second {i}]\n")
        got = sent("-d", "@" + path)
        check(got.count(b"[first]") == 5 and all(f"[second {i}]".encode() in got for i in range(1, 10, 2)), str(got))
        done = run("bench", "-n", "4", "-d", "@", server.address, METHOD, stdin="[one]\n[two]\n")
        got = server.take()
        check(got.count(b"[one]") == 2 and got.count(b"[two]") == 2, f"{done}: {got}")
        check(sent("--data-file", path).count(b"[first]\r\n\n[second ") == 10, "--data-file is one request")


def test_json_that_is_sent():
    with recorded("good", SET, program=SERVER) as server:
        def sent(*args, method="shop.Orders/Get"):
            figures = bench("-n", "6", *args, server.address, method)
            check(figures["ok"] == 6, str(figures))
            return server.take(), {name: n for name, n in figures.get("messages", {}).items() if name != "latency_us"}

        for types in ((), ("--reflect",), ("--protoset", SET)):
            got, _ = sent("-d", '{"id": "k{i}", "units": {i}}', *types)
            check(all(b"\x0a\x02k%d" % i + (b"\x10%c" % i if i else b"") in got for i in range(6)), str(got))
        got, _ = sent("-d", '{"id": "ka"} {"id": "kb"}')
        check(got.count(b"\x0a\x02ka") == 3 and got.count(b"\x0a\x02kb") == 3, f"in turn: {got}")
        got, messages = sent("-d", '{"id": "ka"} {"id": "kb"}', method="shop.Orders/Load")
        check(got.count(b"\x0a\x02ka") == 6 and got.count(b"\x0a\x02kb") == 6, f"all of them: {got}")
        check(messages == {"sent": 12, "received": 6}, str(messages))
        _, messages = sent("-d", '{"id": "ka"} {"id": "kb"} {"id": "kc"}', method="shop.Orders/Watch")
        check(messages["sent"] == 6 and messages["received"] > 6, str(messages))
        got, messages = sent("-d", '{"id": "ka"} {"id": "kb{i}"}', "--call-count", "5", "-c", "3", method="shop.Orders/Chat")
        check(messages == {"sent": 30, "received": 30}, str(messages))
        check(got.count(b"\x0a\x02ka") == 15 and all(b"\x0a\x03kb%d" % i in got for i in range(6)), f"in turn: {got}")
        # Seconds of 60 and more are no time: such a number comes soon, and ends the load.
        for method in ("Get", "Chat"):
            done = run("bench", "-n", "1000000", "-c", "4", "-d", '{"at": "2026-01-02T03:04:{int:40:60}Z"}', server.address, "shop.Orders/" + method,
                       status=1)
            check("the request, a shop.Order: " in done.stderr and (" calls in " in done.stdout or not done.stdout), str(done))
        for args, says in ((("-d", '{"di": 1}'), "no field di"), (("-d", '{"units": "{str:3}"}'), "units"),
                           (("--reflect", "-d", ""), "there is no request in it"), (("--reflect", "--payload", "5"), "--payload"),
                           (("--reflect", "--call-count", "2"), "--call-count"), (("--reflect", "--format", "text"), "--format text")):
            said = run("bench", *args, server.address, "shop.Orders/Get", status=None)
            check(said.returncode in (1, 2) and says in said.stderr and not said.stdout, str(said))


def test_stream_interval():
    """Each message is sent when it is due; a response's latency counts from that time, also when the server stands
    still."""
    with recorded("good", SET, program=SERVER) as server:
        chat = [server.address, "shop.Orders/Chat"]
        figures = bench("-n", "2", "-c", "2", "-d", '{"id": "a"}', "--call-count", "5", "--stream-interval", "50ms", *chat)
        check(figures["messages"]["sent"] == 10 and figures["messages"]["received"] == 10, str(figures))
        check(figures["latency_us"]["p50"] > 200_000 > figures["messages"]["latency_us"]["p50"], f"four intervals: {figures}")
        text = run("bench", "-n", "1", "-d", '{"id": "a"}', "--call-count", "3", "--report", "csv=-", *chat).stdout
        check("of a call  a message" in text and 'messages,"received",3,0,' in text, text)
        figures = bench("-n", "1", "-d", '{"id": "a"}', "--call-count", "3", server.address, "shop.Orders/Load")
        check(figures["messages"] == {"sent": 3, "received": 1}, f"no stream of responses: {figures}")
        # Of 60 messages in 600 ms, some 40 are due while the server stands still for 400 ms.
        server.take()
        process = subprocess.Popen([TORC, "bench", "-n", "1", "-d", '{"id": "<{i}>"}', "--call-count", "60", "--stream-interval", "10ms", "-o", "json",
                                    *chat], stdout=subprocess.PIPE, text=True)
        server.wait(b"<0>" )
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(0.4)  # the stall itself
        server.process.send_signal(signal.SIGCONT)
        messages = json.loads(process.communicate(timeout=WAIT)[0])["bench"]["messages"]
        check(messages["sent"] == 60 and messages["received"] == 60, str(messages))
        check(messages["latency_us"]["p50"] > 50_000 and messages["latency_us"]["max"] > 300_000, f"the stall shows: {messages}")


def test_call_duration():
    proto = """syntax = "proto3"; package torc.test; message Text { string text = 1; }
        service Backend { rpc Echo(stream Text) returns (stream Text); rpc Repeat(Text) returns (stream Text); rpc Hang(stream Text) returns (Text); }"""
    with running("backend") as backend, tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "backend.proto"), "w", encoding="ascii") as out:
            out.write(proto)
        types = ["--import-path", folder, "--proto", "backend.proto", "-d", '{"text": "a"}']
        target = backend.listening()

        def timed(method, *args, status=0):
            return bench(*types, *args, target, "torc.test.Backend/" + method, status=status)

        # A message each 100 ms for 350 ms: four of them, those due at 0, 100, 200 and 300 ms.
        figures = timed("Echo", "-n", "3", "-c", "3", "--call-duration", "350ms", "--stream-interval", "100ms")
        check(figures["ok"] == 3 and figures["messages"]["sent"] == figures["messages"]["received"] == 12, str(figures))
        check(figures["latency_us"]["p50"] >= 350_000, str(figures))
        figures = timed("Echo", "-n", "2", "--call-duration", "1s", "--stream-interval", "10ms", "--call-count", "3")
        check(figures["messages"]["sent"] == 6 and figures["seconds"] < 2, f"--call-count is reached first: {figures}")
        figures = timed("Echo", "-n", "1", "--call-duration", "200ms")
        check(figures["ok"] == 1 and figures["messages"]["sent"] > 10 and figures["latency_us"]["max"] >= 200_000, f"as fast as it goes: {figures}")
        # A stream of responses that never ends is ended, and is no error.
        figures = timed("Repeat", "-n", "2", "--call-duration", "200ms")
        check(figures["by_status"] == {"OK": 2} and figures["messages"]["received"] > 10 and figures["latency_us"]["p50"] >= 200_000, str(figures))
        figures = timed("Repeat", "-n", "4", "--call-count", "7")
        check(figures["by_status"] == {"OK": 4} and figures["messages"]["received"] == 28, str(figures))
        # A server that does not end the RPC behind the last message has until the deadline.
        figures = timed("Hang", "-n", "1", "--call-duration", "100ms", "--deadline", "300ms", status=1)
        check(figures["by_status"] == {"DEADLINE_EXCEEDED": 1} and figures["messages"]["sent"] > 0, str(figures))
        for method, args, what in (("Repeat", ("--stream-interval", "1ms"), "--stream-interval: torc.test.Backend/Repeat does not take a stream"),
                                   ("Echo", ("--stream-interval", "1s", "--call-count", "11"), "--stream-interval: the 11 messages of an RPC take longer")):
            said = run("bench", *types, *args, target, "torc.test.Backend/" + method, status=2).stderr
            check(what in said and said.count("\n") == 1, said)
        for args, what in ((("--stream-interval", "1s"), "--stream-interval: torc.test.Backend/Echo does not take a stream, as far"),
                           (("--call-duration", "1s"), "--call-duration: torc.test.Backend/Echo has no stream, as far"),
                           (("--call-count", "1"), "--call-count: torc.test.Backend/Echo has no stream, as far")):
            said = run("bench", *args, target, METHOD, status=2).stderr
            check(what in said and said.count("\n") == 1, said)


def test_files_that_cannot_be():
    with tempfile.TemporaryDirectory() as folder:
        empty = os.path.join(folder, "empty")
        with open(empty, "w", encoding="ascii") as out:
            out.write("\n\n")
        with running("backend") as backend:
            said = run("bench", "-d", "@" + empty, backend.listening(), METHOD, status=2).stderr
            check("-d: there is no request in it" in said, said)
        for path, says in ((os.path.join(folder, "none"), "cannot open"), (folder, "cannot read"),
                           ("/dev/zero", "is larger than 64 MiB")):
            said = run("bench", "-d", "@" + path, "127.0.0.1:1", METHOD, status=1).stderr
            check(path in said and says in said and said.count("\n") == 1, said)
        for report, says, status in (("hdr=" + folder, "cannot write", 1), (f"csv={folder}/no/file", "No such file", 1),
                                     ("svg=x", "'svg=x' is not KIND=FILE, KIND csv, hdr, html or prometheus", 2), ("html=,csv=x", "the path is empty", 2), ("hdr=", "the path is empty", 2),
                                     ("hdr", "is not KIND=FILE", 2), (f"hdr={folder}/a,csv=", "the path is empty", 2)):
            said = run("bench", "--report", report, "127.0.0.1:1", METHOD, status=status).stderr
            check(said.startswith("torc bench: --report: ") and says in said and said.count("\n") == 1, said)


def test_reports():
    with running("backend", "--fail", "ABORTED:20") as backend, tempfile.TemporaryDirectory() as folder:
        hdr, table = os.path.join(folder, "hdr,1"), os.path.join(folder, "csv")
        figures = json.loads(run("bench", "-n", "1000", "-o", "json", "--report", f"hdr={hdr},csv={table}", backend.listening(), METHOD,
                                 status=1).stdout)["bench"]
        with open(hdr, encoding="ascii") as text:
            lines = text.read().splitlines()
        check(lines[0].split() == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"] and not lines[1], str(lines[:2]))
        rows = [[float(word) for word in line.split()] for line in lines[2:-3]]
        check(rows == sorted(rows) and rows[0][1] == 0 and rows[-1][1:] == [1.0, 1000.0], str(rows))
        for value, quantile, seen, *inverse in rows[:-1]:
            check(seen >= quantile * 1000 and abs(inverse[0] - 1 / (1 - quantile)) < 0.01 * inverse[0], str((value, quantile, seen, inverse)))
        at = {quantile: value for value, quantile, *_ in rows}
        check(all(abs(at[q] * 1000 - figures["latency_us"][name]) < 1 for q, name in ((0.5, "p50"), (0.9, "p90"), (1, "max"))), str(figures))
        check(lines[-3].startswith("#[Mean    =") and lines[-2].split("=")[2].strip(" ]") == "1000" and "SubBuckets" in lines[-1], str(lines[-3:]))
        with open(table, encoding="ascii", newline="") as text:
            rows = list(csv.DictReader(text))
        check([row["scope"] for row in rows] == ["all", "status", "status", "backend"], str(rows))
        by_status = {row["name"]: int(row["calls"]) for row in rows if row["scope"] == "status"}
        check(by_status == figures["by_status"] and by_status["ABORTED"] == int(rows[0]["errors"]) == int(rows[3]["errors"]), str(rows))
        check(rows[0]["p99_us"] == str(figures["latency_us"]["p99"]) and rows[3]["p99_us"] == rows[0]["p99_us"], str(rows))
        shown = run("bench", "-n", "10", "--report", "hdr=-", backend.seen[0].split()[1], METHOD, status=None).stdout
        check("backend " in shown and "#[Mean " in shown, shown)
    if os.path.exists("/dev/full"):
        with running("backend") as backend:
            said = run("bench", "-n", "1", "--report", "hdr=/dev/full", backend.listening(), METHOD, status=1).stderr
            check("--report: cannot write /dev/full: No space left" in said, said)


class Page(html.parser.HTMLParser):
    """The tags that are open, the texts of cells, and what would load anything."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.cells, self.loads = [], set(), [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.loads += [name for name, _ in attrs if name in ("src", "href", "action") or name.startswith("on")]
        if tag not in ("meta", "path"):
            self.open.append(tag)
        if tag in ("td", "h1"):
            self.cells.append("")

    def handle_endtag(self, tag):
        if tag != "path":
            check(self.open.pop() == tag, f"{tag} is closed in its place")

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "h1"):
            self.cells[-1] += data


def test_html_and_prometheus():
    """Hostile names of methods are text in both; figures are those of -o json."""
    method = "torc.test.Backend/<script>alert('1')</script>&amp;\"\\{}"
    with running("backend", "--fail", "ABORTED:20") as backend, tempfile.TemporaryDirectory() as folder:
        page, metrics = os.path.join(folder, "page"), os.path.join(folder, "metrics")
        address = backend.listening()
        figures = bench("--stage", "500/1s,100/100ms", "--report", f"html={page},prometheus={metrics}", address, method, status=1)
        check(figures["status_texts"] == {"ABORTED": "failed by --fail"}, str(figures))
        with open(page, encoding="utf-8") as text:
            shown = Page(text.read())
        check(not shown.open and not shown.loads and "script" not in shown.tags and shown.cells[0] == method, f"{shown.tags} {shown.cells}")
        for cell in (address, "failed by --fail", "1: 500/1s", str(figures["calls"]), str(figures["by_status"]["ABORTED"])):
            check(cell in shown.cells, f"{cell}: {shown.cells}")
        with open(metrics, encoding="utf-8") as text:
            lines = text.read().splitlines()
        seen, typed = {}, set()
        for line in lines:
            if line.startswith("# TYPE "):
                check(line.split()[2] not in typed, f"{line}: once")
                typed.add(line.split()[2])
            if line.startswith("#"):
                continue
            sample = re.fullmatch(r'(torc_bench_\w+)\{((?:\w+="(?:[^"\\\n]|\\[\\"n])*",?)+)\} (\S+)', line)
            check(sample, line)
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', sample[2]))
            check(labels["method"].replace('\\"', '"').replace("\\\\", "\\") == method and labels["target"] == address, line)
            seen[(sample[1], *[labels[name] for name in labels if name not in ("method", "target")])] = float(sample[3])
        check({name[0] for name in seen} == {name + end for name in typed for end in ("", "_bucket", "_sum", "_count")} & {name[0] for name in seen}, "types")
        for status, n in figures["by_status"].items():
            check(seen[("torc_bench_calls", "all", "", status)] == n, str(seen))
            check(sum(seen.get(("torc_bench_calls", "stage", name, status), 0) for name in ("1: 500/1s", "2: 100/0.1s")) == n, str(seen))
        check(abs(seen[("torc_bench_latency_seconds", "all", "", "0.99")] * 1e6 - figures["latency_us"]["p99"]) < 1, str(figures))
        buckets = [value for name, value in seen.items() if name[0] == "torc_bench_distribution_seconds_bucket"]
        check(buckets == sorted(buckets) and buckets[-1] == seen[("torc_bench_distribution_seconds_count",)] == figures["calls"], str(buckets))
        text = run("bench", "-n", "50", address, METHOD, status=None).stdout
        check("failed by --fail" in text, text)


def wait_load(address, requests):
    """Waits until the backend has had `requests` more than now, of which this function makes a few itself."""
    def so_far():
        return int(bytes.fromhex(calls(address, "torc.test.Backend/Count")[0][0]["response_hex"]))

    wanted, deadline = so_far() + requests, time.monotonic() + WAIT
    while so_far() < wanted:
        check(time.monotonic() < deadline, f"no {requests} requests came")


def test_backend_that_dies():
    """Errors by status, and an end in time."""
    for more in ((), ("--rps", "500")):
        with running("backend") as backend:
            address = backend.listening()
            process = subprocess.Popen([TORC, "bench", "-c", "4", "--duration", "4s", *more, "-o", "json", address, METHOD],
                                       stdout=subprocess.PIPE, text=True)
            wait_load(address, 300)
            backend.kill()
            figures = json.loads(process.communicate(timeout=WAIT)[0])["bench"]
            check(process.returncode == 1 and figures["ok"] > 0 and figures["by_status"]["UNAVAILABLE"] > 0, str(figures))
            check_sums(figures)
            check(sum(row["calls"] for row in figures["backends"]) == figures["calls"], str(figures))


def test_stall_of_a_server():
    """A server stands still for 0.5 s of 1.5 s, at 200 RPCs a second. 100 RPCs are due in that time; the latency of
    each has the rest of that time in it, though -c lets only one be under way."""
    with recorded("backend") as server:
        process = subprocess.Popen([TORC, "bench", "-c", "1", "--rps", "200", "--duration", "1500ms", "-d", "<{i}>", "-o", "json", server.address,
                                    METHOD], stdout=subprocess.PIPE, text=True)
        server.wait(b"<80>")
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)  # the stall itself
        server.process.send_signal(signal.SIGCONT)
        figures = json.loads(process.communicate(timeout=WAIT)[0])["bench"]
        check(figures["calls"] + figures["not_started"] == 300, str(figures))
        check(figures["latency_us"]["p90"] > 250_000 and figures["latency_us"]["max"] > 400_000, f"the stall shows: {figures}")


def interrupted(server, part, *args):
    """Runs the command until it has sent `part`, and interrupts it."""
    server.take()
    process = subprocess.Popen([TORC, "bench", "-o", "json", "--deadline", "1h", "-d", '{"id": "<{i}>"}', *args],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    server.wait(part)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WAIT)
    return process.returncode, json.loads(out)["bench"], err


def test_interrupt():
    with recorded("good", SET, program=SERVER) as server:
        for more in ((), ("--rps", "100"), ("-n", "1000000000"), ("--warmup", "1h")):
            status, figures, err = interrupted(server, b"<20>", "--duration", "1h", *more, server.address, "shop.Orders/Get")
            check(status == 0 and figures["interrupted"] and (figures["calls"] > 0) == ("--warmup" not in more), f"{more}: {figures} {err}")
            check(("--rps" in more or figures["unfinished"] <= 1) and err == "", f"{figures} {err}")
        status, figures, err = interrupted(server, b"<20>", "--stage", "100/1h,50/1h", "--warmup", "1h", server.address, "shop.Orders/Get")
        check([row["seconds"] for row in figures["stages"]] == [0, 0] and figures["not_started"] == 0, f"no stage ran: {figures} {err}")
        for n in range(3, 8):  # messages of the streams still come while the program ends; the last stream is new to the server
            status, figures, err = interrupted(server, b"<%d>" % (n - 1), "-c", str(n), "--call-count", "4000000000", server.address,
                                               "shop.Orders/Chat")
            check((status, figures["calls"], figures["unfinished"]) == (0, 0, n) and figures["messages"]["sent"] > n, f"{figures} {err}")
    with recorded("backend") as server:
        status, figures, err = interrupted(server, b"<2>", "-c", "3", server.address, "torc.test.Backend/Hang")
        check((status, figures["calls"], figures["unfinished"]) == (0, 0, 3), f"{figures} {err}")


def on_a_terminal(*args):
    """What the command prints on a standard error that is a terminal."""
    master, slave = pty.openpty()
    done = subprocess.run([TORC, "bench", *args], stdout=subprocess.PIPE, stderr=slave, timeout=WAIT, check=False)
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):
        while data := os.read(master, 65536):
            shown += data
    os.close(master)
    check(done.returncode == 0 and b"calls in" in done.stdout, str(done))
    return shown.decode()


def test_live_line():
    with running("backend") as backend:
        address = backend.listening()
        shown = on_a_terminal("--duration", "1500ms", "--warmup", "600ms", address, METHOD)
        check("of the warm-up" in shown and " a second, 0 errors, p99" in shown, repr(shown))
        check(shown.endswith("\r\x1b[K") and "\n" not in shown, repr(shown))
        check(on_a_terminal("--duration", "700ms", "--quiet", address, METHOD) == "", "--quiet")
        check(run("bench", "--duration", "700ms", address, METHOD).stderr == "", "no terminal")


def hashed(name, service_cluster, *more):
    route = {"match": {"prefix": ""}, "route": {"cluster": service_cluster, "hash_policy": [{"header": {"header_name": "user"}}]}}
    return [listener(name, name + "-routes"), routes(name + "-routes", route), *more]


def test_spread_over_a_ring():
    """RPCs that are hashed by a header go to the backends that `torc ring` names for the values, and to their localities."""
    with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        addresses = [stack.enter_context(running("backend")).listening() for _ in range(5)]
        path = os.path.join(folder, "mesh.json")
        assignment = endpoints("orders", *addresses[:3])
        assignment["endpoints"] += [{**place, "locality": {"region": "far", "zone": "z"}} for place in endpoints("orders", *addresses[3:])["endpoints"]]
        write_resources(path, "1", *hashed("shop", "orders", cluster("orders", lb_policy="RING_HASH"), assignment))
        control = stack.enter_context(running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path))
        n, env = 20000, bootstrap(control.listening())
        done = run("bench", "-n", str(n), "-c", "16", "-H", "user: u{i}", "-o", "json", "xds:///shop", METHOD, env=env)
        figures = json.loads(done.stdout)["bench"]
        check_sums(figures)
        predicted = dict.fromkeys(addresses, 0)
        for line in run("ring", "--resources", path, "--cluster", "orders", "--key", "-", stdin="".join(f"u{i}\n" for i in range(n))).stdout.splitlines():
            predicted[line.split()[2]] += 1
        got = {row["address"]: row["calls"] for row in figures["backends"]}
        for address, calls_ in predicted.items():
            check(abs(got.get(address, 0) - calls_) <= 0.01 * calls_, f"{address}: {got}, torc ring says {predicted}")
        far = sum(row["calls"] for row in figures["backends"] if row["address"] in addresses[3:])
        by_locality = {row["locality"]: row["calls"] for row in figures["localities"]}
        check(sorted(by_locality.values()) == sorted((far, n - far)) and by_locality[[name for name in by_locality if "far" in name][0]] == far,
              str(figures["localities"]))
        check(all(row["latency_us"]["p50"] <= row["latency_us"]["p99"] and row["ok"] == row["calls"] and row["locality"] in by_locality
                  for row in figures["backends"]), str(figures["backends"]))
        text = run("bench", "-n", "500", "-H", "user: u{i}", "xds:///shop", METHOD, env=env).stdout
        check("locality" in text and all(address in text for address in addresses), text)


def test_localities_of_collections():
    """Localities whose endpoints come as a collection of their own (LEDS) have rows, beside one whose endpoints do not."""
    with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        addresses = [stack.enter_context(running("backend")).listening() for _ in range(3)]
        path = os.path.join(folder, "mesh.json")
        assignment = endpoints("orders", addresses[0])
        collections = []
        for name, address in zip(("xdstp:///envoy.config.endpoint.v3.LbEndpointCollection/far?b=1&a=2", "near"), addresses[1:]):
            (place,) = endpoints("orders", address)["endpoints"]
            entries = [{"inline_entry": {"resource": {"@type": "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint", **place["lb_endpoints"][0]}}}]
            collections.append({"@type": "type.googleapis.com/envoy.service.discovery.v3.Resource", "name": name.replace("b=1&a=2", "a=2&b=1"),
                                "resource": {
                                    "@type": "type.googleapis.com/envoy.config.endpoint.v3.LbEndpointCollection", "entries": entries}})
            assignment["endpoints"].append({"locality": {"region": name[:5]}, "load_balancing_weight": 1, "leds_cluster_locality_config": {
                "leds_config": {"self": {}}, "leds_collection_name": name}})
        write_resources(path, "1", *hashed("shop", "orders", cluster("orders"), assignment), *collections)
        control = stack.enter_context(running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path))
        env = bootstrap(control.listening())
        env["GRPC_XDS_BOOTSTRAP_CONFIG"] = json.dumps({**json.loads(env["GRPC_XDS_BOOTSTRAP_CONFIG"]), "authorities": {"": {}}})
        done = run("bench", "-n", "2000", "-c", "8", "-o", "json", "xds:///shop", METHOD, env=env)
        figures = json.loads(done.stdout)["bench"]
        got = {row["address"]: row.get("locality") for row in figures["backends"]}
        check([region in (got.get(address) or "") for region, address in zip(('"r"', '"xdstp"', '"near"'), addresses)] == [True] * 3, str(figures))
        check(sorted(row["calls"] for row in figures["localities"]) == sorted(row["calls"] for row in figures["backends"]), str(figures))


def test_wrong_requests():
    for args, what in ((("-n", "0"), "-n: '0' is not a whole number from 1"), (("-n", "-1"), "-n: '-1'"),
                       (("-n", "18446744073709551616"), "-n: '18446744073709551616'"), (("-n", "x"), "-n: 'x'"),
                       (("--warmup", "5"), "--warmup: '5' is not a duration"), (("--warmup", "5y"), "--warmup: '5y'"),
                       (("--duration", "9x"), "--duration: '9x'"), (("--max-duration", "0s"), "--duration"),
                       (("--deadline", "x"), "--deadline: 'x'"), (("--call-count", "0"), "--call-count"), (("--call-count", "4294967296"), "--call-count"),
                       (("-c", "100001"), "-c: '100001'"),
                       (("-d", "a", "--payload", "0"), "--payload goes with none of"), (("-d", "a", "-d", "b"), "once"),
                       (("--data-hex", "0"), "--data-hex"), (("--format", "xml"), "--format"), (("--raw", "--format", "json"), "contradict"),
                       (("-H", "user"), "-H: 'user' does not have the form"), (("-H", "user: {x}"), "-H: '{x}' is not a placeholder"),
                       (("-H", "user: {int:2:1}"), "'{int:2:1}'"), (("-H", "user: {int:1}"), "'{int:1}'"), (("-H", "user: {str:0}"), "'{str:0}'"),
                       (("-H", "user: {str:65537}"), "'{str:65537}'"), (("-H", "user: {i:1}"), "'{i:1}'"), (("-H", "user: {i"), "'{i'"),
                       (("-H", "user: {int:1:99999999999999999999}"), "'{int:1:"), (("-H", "user: {uuid:4}"), "'{uuid:4}'"),
                       (("--stream-interval", "0s"), "--stream-interval: '0s' is not above 0"), (("--stream-interval", "1"), "--stream-interval: '1' is not a"),
                       (("--call-duration", "0ms"), "--call-duration: '0ms' is not above 0"), (("--call-duration", "x"), "--call-duration: 'x' is not a"),
                       (("--call-duration", "10s"), "--call-duration: the deadline of an RPC, 10 s, is not later"),
                       (("--stage", "100"), "--stage: '100' has no time"), (("--stage", "1/1s,c=1/1s"), "--stage: 'c=1/1s': stages are all of"),
                       (("--stage", "x/1s"), "--stage: 'x/1s': 'x' is not a rate"), (("--stage", "c=x/1s"), "--stage: 'c=x/1s': 'x' is not a number of"),
                       (("--stage", "1/1"), "--stage: '1/1': '1' is not a duration"), (("--stage", "1/1x1s"), "'1' is not a number of steps"),
                       (("--stage", "1/1000x1s,1/1s"), "more than 1000 stages"), (("--stage", "1/1000x2501h"), "take more than 2500000h"),
                       (("--stage", "0/1s"), "--stage: no stage has a load"), (("--stage", "1/1s", "--rps", "1"), "--rps and --stage contradict"),
                       (("--stage", "1/1s", "--duration", "1s"), "--duration and --stage contradict"),
                       (("--stage", "c=1/1s", "-c", "1"), "-c and --stage c= contradict"), (("--stage", "0..1/1s", "--warmup", "1s"), "--warmup is load as"),
                       (("--total", "3"), "use --count"), (("-z", "5s"), "option '-z': use --duration"), (("-t2", "-c100"), "option '-t2': use --deadline"), (("-t", "5"), "option '-t': use --deadline"),
                       (("-m", "{}"), "option '-m': use -H"), (("--load-schedule", "step"), "use --stage 100..1000/30s"),
                       (("--load-start=5",), "use --stage 100..1000/30s"), (("-concurrency-step-duration", "5s"), "use --stage c=1..64/30s"),
                       (("--count-errors",), "RPCs that failed are always in the latencies"), (("--stream-call-count", "3"), "use --call-count"),
                       (("-H", "user: {{.RequestNumber}}"), "-H: '{{.RequestNumber}}' is a template of ghz"),
                       (("-H", "user: a{{ randomInt 1 9 }}b"), "-H: '{{ randomInt 1 9 }}' is a template of ghz"), (("--insecure",), "--plaintext")):
        done = run("bench", *args, "127.0.0.1:1", METHOD, status=2)
        check(what in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, f"{args}: {done}")
    with running("backend") as backend:
        address = backend.listening()
        said = run("bench", "-d", "<{str:}>", address, METHOD, status=2).stderr
        check("-d: '{str:}' is not a placeholder" in said, said)
        said = run("bench", "-d", "a{{newUUID}}", address, METHOD, status=2).stderr
        check("-d: '{{newUUID}}' is a template of ghz" in said, said)
        for more in ((), ("--data-file", "-")):
            said = run("bench", *(more or ("-d", '[ {"id": 1}]')), address, METHOD, stdin='[\n{"id": 1}]', status=2).stderr
            check("-d: requests are written one after the other" in said, said)
        check(bench("-n", "1", "-d", '[{"id": 1}]', "--raw", address, METHOD)["ok"] == 1, "bytes")
        for text in ("[", "[]", "[1]", "{{.name}}", "{{", "{{.", "{{ }}", "{{}}", "}}{{"):
            check(bench("-n", "1", "-d", text, address, METHOD)["ok"] == 1, f"{text} is nobody's")


main(test_closed_loop, test_open_loop, test_stages, test_stages_from_the_intended_start, test_extreme_rates, test_latency_from_the_intended_start, test_failures,
     test_why_it_cannot_connect, test_wrong_usage, test_wait_for_ready, test_count_and_warmup, test_bytes_that_are_sent, test_json_that_is_sent, test_stream_interval, test_call_duration,
     test_files_that_cannot_be, test_reports, test_html_and_prometheus, test_backend_that_dies, test_stall_of_a_server, test_interrupt, test_live_line,
     test_spread_over_a_ring, test_localities_of_collections, test_wrong_requests)
