"""gRPC's interop suite: Torc's client against other servers."""
import pathlib
import socket
import subprocess
import tempfile

import build_peers
import relay
from programs import HERE, Failure, Program

PROTOS = HERE.parent.parent / "proto" / "grpc" / "testing"
# grpcio and grpc-js do not tell a server whether a request came compressed, and grpc-js's server compresses nothing: these
# cases would say nothing there.
CLIENT_COMPRESSED = {"client_compressed_unary", "client_compressed_streaming"}
WITHOUT_MEANING = {"go": set(), "python": CLIENT_COMPRESSED,
                   "node": CLIENT_COMPRESSED | {"server_compressed_unary", "server_compressed_streaming"}}
# The least and the most bytes on the wire that a case brings back when the server compressed what it was asked to; an
# answer that is not compressed adds its 314159 or 31415 bytes. grpc-go compresses all messages of a stream, or none.
TRAFFIC = {
    "server_compressed_unary": {"go": (314159, 340000), "python": (314159, 340000)},
    "server_compressed_streaming": {"go": (200, 12000), "python": (92653, 110000)},
}
ITERATIONS = {"rpc_soak": 200, "channel_soak": 50}


def server_command(paths, peer):
    if peer == "go":
        return paths.go("server")
    if peer == "python":
        return paths.python("server.py")
    command, env = paths.node("server.js")
    return command + [f"--proto={PROTOS}"], env


def certificates(folder):
    """A self-signed certificate for "interop.test" that is its own root."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days",
                    "2", "-subj", "/CN=interop.test", "-addext", "subjectAltName=DNS:interop.test"],
                   check=True, capture_output=True)
    return cert, key


class Counter(relay.Relay):
    """Counts the bytes that come back from the server."""

    def __init__(self, server):
        self.returned = 0
        super().__init__(server)

    def to_server(self, client, server):
        self._pump(client, server, False)

    def to_client(self, server, client):
        self._pump(server, client, True)

    def _pump(self, source, sink, counts):
        try:
            while data := source.recv(65536):
                self.returned += len(data) if counts else 0
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # either side is gone; the other one learns it by the shutdown of its own peer


def one_case(paths, name, target, tls):
    command = [paths.own("interop_client"), "--target", target, "--case", name,
               "--iterations", str(ITERATIONS.get(name, 1))]
    if tls:
        command += ["--ca", str(tls), "--authority", "interop.test"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return "not done within 120 s"
    return None if done.returncode == 0 else f"exit {done.returncode}: {done.stderr.strip()[-500:]}"


def checked_case(paths, name, peer, address, tls):
    """None, or why it failed."""
    bounds = TRAFFIC.get(name, {}).get(peer)
    if not bounds:
        return one_case(paths, name, address, tls)
    counter = Counter(address)
    try:
        fault = one_case(paths, name, counter.address, tls)
    finally:
        counter.close()
    if fault is None and not bounds[0] <= counter.returned <= bounds[1]:
        fault = f"{counter.returned} bytes came back, wanted {bounds[0]} to {bounds[1]}"
    return fault


def names_of(paths, flag, least):
    listed = subprocess.run([paths.own("interop_client"), flag], capture_output=True, text=True, check=True)
    names = listed.stdout.split()
    if len(names) < least:
        raise Failure(f"{len(names)} cases only")
    return names


def one_server(paths, peer, names, tls_files):
    command, env = server_command(paths, peer)
    for flag, path in zip(("--tls-cert", "--tls-key"), tls_files or ()):
        command = command + [f"{flag}={path}"]
    way = "TLS" if tls_files else "plain"
    with Program(command, env) as server:
        version = server.word_after("version")
        address = server.word_after("listening")
        faults = []
        for name in names:
            fault = checked_case(paths, name, peer, address, tls_files and tls_files[0])
            if fault:
                faults.append(f"{name}, {way}: {fault}")
        return version, faults


def run(paths, options):
    every = names_of(paths, "--list", 20)
    for peer in options.peers or ["go", "python", "node"]:
        try:
            server_command(paths, peer)
        except build_peers.Missing as missing:
            yield {"peer": peer, "version": "", "skipped": 2 * len(every), "why": [str(missing)]}
            continue
        names = [name for name in every if name not in WITHOUT_MEANING[peer]]
        with tempfile.TemporaryDirectory() as folder:
            version, faults = one_server(paths, peer, names, None)
            faults += one_server(paths, peer, names, certificates(pathlib.Path(folder)))[1]
        yield {"peer": peer, "version": version, "cases": 2 * len(names), "passed": 2 * len(names) - len(faults),
               "failed": len(faults), "why": faults}


def run_http2(paths, options):
    """The HTTP/2 negative cases against a server of ours on golang.org/x/net's framer."""
    if options.peers and "go" not in options.peers:
        return
    names = names_of(paths, "--list-http2", 6)
    try:
        command, env = paths.go("http2server")
        version = paths.go_module("golang.org/x/net")
    except build_peers.Missing as missing:
        yield {"peer": "x/net/http2", "version": "", "skipped": len(names), "why": [str(missing)]}
        return
    with Program(command, env) as server:
        faults = []
        for name in names:
            fault = one_case(paths, name, server.word_after(name), None)
            if fault:
                faults.append(f"{name}: {fault}")
    yield {"peer": "x/net/http2", "version": version, "cases": len(names), "passed": len(names) - len(faults),
           "failed": len(faults), "why": faults}
