"""h2spec, a conformance test of HTTP/2 servers, against `torc backend`, the CSDS server that an application has, and a server of the
public API (torc/server.h). What fails is the table of docs/evidence/interop.md, no more and no less."""
import concurrent.futures
import contextlib
import pathlib
import re
import socket
import subprocess
import tempfile
import xml.etree.ElementTree

import relay
from programs import HERE, Failure, Program

PAGE = HERE.parent.parent / "docs" / "evidence" / "interop.md"
ROW = re.compile(r"^\| ((?:generic|hpack|http2)/[0-9./]+) \|")
QUIET = 0.04


def known():
    """The cases that fail."""
    rows = [ROW.match(line) for line in PAGE.read_text(encoding="utf-8").splitlines()]
    return {row[1] for row in rows if row}


class Pieces(relay.Relay):
    """Hands on what h2spec sends in one piece, when it has been quiet for a moment. Its requests are `GET /`, which a gRPC
    server refuses at once, so that whether their stream is still there for the next frame would be a matter of chance."""

    def to_server(self, client, server):
        self._pass(client, server, self._piece)

    def to_client(self, server, client):
        self._pass(server, client, lambda s: s.recv(65536))

    @staticmethod
    def _piece(client):
        piece = b""
        client.settimeout(None)
        with contextlib.suppress(TimeoutError):
            while more := client.recv(65536):
                piece += more
                client.settimeout(QUIET)
        return piece

    @staticmethod
    def _pass(source, sink, receive):
        with contextlib.suppress(OSError):
            while piece := receive(source):
                sink.sendall(piece)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def results(report):
    """What became of each case: "passed", "skipped", or why it failed."""
    out = {}
    for suite in xml.etree.ElementTree.parse(report).getroot().iter("testsuite"):
        for number, case in enumerate(suite.iter("testcase"), 1):
            fault = next((part for part in case if part.tag in ("error", "failure")), None)
            skipped = case.find("skipped") is not None
            why = " ".join((fault.text or "").split()) if fault is not None else "skipped" if skipped else "passed"
            out[f"{case.get('package')}/{number}"] = why
    return out


def play(command, server):
    with Pieces(server) as pieces:
        return play_at(command, pieces.address)


def play_at(command, address):
    host, port = address.rsplit(":", 1)
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        done = subprocess.run([*command, "--host", host, "--port", port, "--strict", "--junit-report", report], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        if not report.exists():
            raise Failure(f"h2spec ended with {done.returncode}: {done.stdout[-500:]}")
        return results(report)


@contextlib.contextmanager
def backend(paths):
    with Program([paths.command(), "backend", "--listen", "127.0.0.1:0"]) as program:
        yield program.word_after("listening")


@contextlib.contextmanager
def csds(paths):
    with backend(paths) as at, Program([paths.command(), "call", "--quiet", "--wait-for-ready", "--duration", "600s", "--rps",
                                        "1", "--csds", "127.0.0.1:0", f"ipv4:{at}", "a/b"], errors=True) as caller:
        yield caller.word_after("torc call: CSDS at")


@contextlib.contextmanager
def interop_server(paths):
    with Program([paths.own("interop_server")]) as program:
        yield program.word_after("listening")


def is_fault(case, outcome, may):
    return (outcome not in ("passed", "skipped")) != (case in may)


def settled(command, address, may):
    """The outcomes. h2spec waits 2 s for an answer, and the pieces depend on when it is quiet: a case that differs from
    docs/evidence/interop.md is judged by two more plays, in one of which it must be as the page says."""
    outcomes = play(command, address)
    for _ in range(2):
        odd = [case for case, outcome in outcomes.items() if is_fault(case, outcome, may)]
        if odd:
            again = play(command, address)
            outcomes.update((case, again[case]) for case in odd)
    return outcomes


def faults(server, outcomes, may):
    for case in sorted(may - outcomes.keys()):
        yield f"{server}: {case} of docs/evidence/interop.md is not a case of h2spec"
    for case, outcome in outcomes.items():
        if is_fault(case, outcome, may):
            yield (f"{server}: {case} is in docs/evidence/interop.md and {outcome}" if case in may else
                   f"{server}: {case} fails and is not in docs/evidence/interop.md: {outcome}")


def run(paths, options):
    if options.peers and "h2spec" not in options.peers:
        return
    command, version = paths.h2spec()
    may = known()

    def outcomes_of(server):
        with server(paths) as address:
            return settled(command, address, may)

    servers = {"torc backend": backend, "CSDS": csds, "interop_server": interop_server}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        all_outcomes = list(pool.map(outcomes_of, servers.values()))
    for name, outcomes in zip(servers, all_outcomes):
        why = list(faults(name, outcomes, may))
        skipped = sum(outcome == "skipped" for outcome in outcomes.values())
        yield {"peer": f"h2spec, {name}", "version": version, "cases": len(outcomes), "passed": len(outcomes) - len(why),
               "failed": len(why), "why": why, "notes": [f"of {len(outcomes)} cases {len(may)} fail as docs/evidence/interop.md says, {skipped} are skipped"] * (not why)}
