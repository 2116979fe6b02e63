"""Foreign text (a server's status, names, files) as the command shows it: nothing acts on a terminal, JSON stays JSON."""
import json
import os
import socket
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import check, main, run, running

METHOD = "torc.test.Backend/Echo"
HEADERS, SETTINGS = 1, 4
COOKIE = b"\x1f\x11"  # HPACK: a field that is never indexed, with the name 32 of the static table
MESSAGE = b"%1B[2Jone%0Atwo%9B%C2%9Bthree \xc3\xa9%FF%E2%80%AEback%E2%81%A6%D8%9C%E2%80%A8"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def text(value):
    return (bytes((len(value),)) if len(value) < 127 else bytes((127, len(value) - 127 & 127 | 128, len(value) - 127 >> 7))) + value


def literal(name, value):
    return b"\0" + text(name) + text(value)


class RawServer:
    """An HTTP/2 server that ends every call by one header block, whose bytes are as said. Keeps the blocks of requests."""

    def __init__(self, *fields):
        self.block = b"\x88" + b"".join(literal(*f) for f in ((b"content-type", b"application/grpc"), *fields))
        self.requests = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, client.makefile("rb") as stream:
            stream.read(24)
            client.sendall(frame(SETTINGS, 0, 0))
            while len(head := stream.read(9)) == 9:
                length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
                payload = stream.read(length)
                if kind == SETTINGS and not flags & 1:
                    client.sendall(frame(SETTINGS, 1, 0))
                elif kind == HEADERS:
                    self.requests.append(payload)
                    client.sendall(frame(HEADERS, 5, int.from_bytes(head[5:], "big"), self.block))


def printable(text):
    check(all(c == "\n" or (c.isprintable() and c != "\x9b") for c in text), f"controls in {text!r}")


def test_a_status_cannot_act_on_the_terminal():
    server = RawServer((b"grpc-status", b"13"), (b"grpc-message", MESSAGE), (b"x-note", b"a\xffb"))
    done = run("call", server.address, METHOD, status=1)
    printable(done.stdout)
    check("INTERNAL" in done.stdout and done.stdout.count("\n") == 1, done.stdout)
    check("\\u001b[2Jone\\u000atwo" in done.stdout and "\\u009bthree é" in done.stdout, done.stdout)
    check("\\u202eback\\u2066\\u061c\\u2028" in done.stdout, done.stdout)
    printable(run("call", "--explain", server.address, METHOD, status=1).stdout)


def test_json_is_utf8():
    """The kit decodes the output as UTF-8 and fails if it is not."""
    server = RawServer((b"grpc-status", b"13"), (b"grpc-message", MESSAGE), (b"x-note", b"a\xffb"))
    done = run("call", "-o", "json", server.address, METHOD, status=1)
    call = json.loads(done.stdout.splitlines()[0])["call"]
    check("\x1b[2Jone\ntwo" in call["message"] and "\x9bthree é" in call["message"], str(call))
    check(call["trailers"].get("x-note", call["headers"].get("x-note")) == ["a\ufffdb"], str(call))
    key = os.fsdecode(b"a\xffb\xe2\x82")
    ring = json.loads(run("ring", "-o", "json", "-e", key, "-e", "b").stdout)
    check("a\ufffdb\ufffd\ufffd" in json.dumps(ring, ensure_ascii=False), str(ring))


def test_errors_are_one_line():
    for args, status in ((("call", "127.0.0.1:1\x1b[2J\nx", METHOD, "z\x1b[2J\n"), 2),
                         (("call", "--data-file", "/none\x1b[2J\nx", "127.0.0.1:1", METHOD), 1)):
        done = run(*args, status=status)
        printable(done.stderr)
        check(done.stderr.count("\n") == 1 and "\\u001b[2J\\u000a" in done.stderr, done.stderr)


def test_a_control_plane_cannot_act_on_the_terminal():
    server = RawServer((b"grpc-status", b"7"), (b"grpc-message", MESSAGE))
    settings = {"xds_servers": [{"server_uri": server.address, "channel_creds": [{"type": "insecure"}]}],
                "node": {"id": "n"}}
    env = {"GRPC_XDS_BOOTSTRAP": "", "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(settings)}
    done = run("xds", "--timeout", "3s", "xds:///svc", env=env, status=1)
    printable(done.stdout)
    printable(done.stderr)
    check("\\u001b[2Jone" in done.stdout + done.stderr, str(done))
    done = run("xds", "-o", "json", "--timeout", "3s", "xds:///s\x9bv\u202ec", env=env, status=1)
    printable(done.stdout)
    check(json.loads(done.stdout)["clientScope"] == "xds:///s\x9bv\u202ec", done.stdout)


def test_a_backend_of_a_simulation_cannot_act_on_the_terminal():
    args = ("-e", "unix:/a\x1b[2J\nb\x9b\"", "-e", "10.0.0.1:80", "--clients", "1", "--duration", "1s")
    for form in "text", "json", "csv":
        shown = run("simulate", *args, "-o", form).stdout.replace("\r\n", "\n")
        printable(shown)
        check("unix:/a\\u001b[2J\\u000ab\\u009b" in shown, f"{form}: {shown!r}")


def test_a_ring_cannot_act_on_the_terminal():
    for args in ((), ("--dump",), ("--key", "k\x1b[2J"), ("--walk", "k"), ("--walk", "k\x1b[2J", "--walk", "l"), ("--remove", "a\x1b[2J"), ("--remove", "b")):
        shown = run("ring", "-e", "a\x1b[2J", "-e", "b", *args).stdout
        printable(shown)
        check("a\\u001b[2J" in shown, f"{args}: {shown}")
    lines = run("ring", "-e", "a\x1b[2J", "-e", "b").stdout.splitlines()
    check(len({len(line) for line in lines[:3]}) == 1, f"columns: {lines[:3]}")


def test_a_long_status_is_cut_between_characters():
    for begin in b"", b"x":
        server = RawServer((b"grpc-status", b"13"), (b"grpc-message", begin + "é".encode() * 150))
        shown = run("bench", "-n", "1", server.address, METHOD, status=1).stdout
        check("ééé" in shown and "\ufffd" not in shown and "é" * 110 not in shown, shown)


def test_secure_cookies_do_not_go_in_the_clear():
    """Without a file of TLS, --creds xds may be plaintext."""
    for attribute, sent in (b"", 2), (b"; Secure", 0):
        server = RawServer((b"grpc-status", b"0"), (b"set-cookie", b"session=7" + attribute))
        run("call", "--creds", "xds", "--cookies", "-n", "3", server.address, METHOD, status=None)
        later = server.requests[1:]  # the fields of the first request are in the dynamic table
        check(len(later) == 2 and sum(COOKIE in request for request in later) == sent, str(later))


main(test_a_status_cannot_act_on_the_terminal, test_json_is_utf8, test_errors_are_one_line,
     test_a_control_plane_cannot_act_on_the_terminal, test_a_backend_of_a_simulation_cannot_act_on_the_terminal,
     test_a_ring_cannot_act_on_the_terminal, test_a_long_status_is_cut_between_characters, test_secure_cookies_do_not_go_in_the_clear)
