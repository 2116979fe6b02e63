"""gRPC's interop suite: other clients against Torc's server."""
import os
import pathlib
import subprocess
import tempfile

import build_peers
from programs import Failure, Program
from suite_rpc import ITERATIONS, PROTOS, Counter, certificates

# What a server brings back that compresses one of two equal answers (unary), or the smaller one of a stream: clients that do
# not show whether an answer came compressed are judged by it. Without compression it would be twice as much and more.
TRAFFIC = {"server_compressed_unary": (314159, 340000), "server_compressed_streaming": (92653, 110000)}
PEERS = ["torc", "go", "python", "node"]


def client_command(paths, peer):
    if peer == "torc":
        return [paths.own("interop_client")], {}
    if peer == "go":
        return paths.go("client")
    if peer == "python":
        return paths.python("client.py")
    command, env = paths.node("client.js")
    return command + [f"--proto={PROTOS}"], env


class Client:
    """A client program, and the cases that it names."""

    def __init__(self, paths, peer):
        command, env = client_command(paths, peer)
        self.command, self.joined = command, peer != "torc"  # --flag=value; Torc's client wants two words
        self.env = {**os.environ, **env}
        listed = subprocess.run([*command, "--list"], capture_output=True, text=True, check=True, env=self.env)
        lines = listed.stdout.split("\n")
        self.version = lines.pop(0).removeprefix("version ") if lines[0].startswith("version ") else ""
        self.cases = [line for line in lines if line]
        if len(self.cases) < 18:
            raise Failure(f"{peer}: {len(self.cases)} cases only")

    def play(self, name, target, tls):
        """None, or why the case failed."""
        flags = [f"--target={target}", f"--case={name}"] + ([f"--ca={tls}", "--authority=interop.test"] if tls else [])
        if name in ITERATIONS:
            flags.append(f"--iterations={ITERATIONS[name]}")
        if not self.joined:
            flags = [word for flag in flags for word in flag.split("=", 1)]
        try:
            done = subprocess.run([*self.command, *flags], capture_output=True, text=True, timeout=120, check=False,
                                  env=self.env)
        except subprocess.TimeoutExpired:
            return "not done within 120 s"
        return None if done.returncode == 0 else f"exit {done.returncode}: {done.stderr.strip()[-500:]}"

    def play_counted(self, name, target, tls):
        """As play, with what comes back held against TRAFFIC."""
        bounds = TRAFFIC.get(name)
        if not bounds:
            return self.play(name, target, tls)
        counter = Counter(target)
        try:
            fault = self.play(name, counter.address, tls)
        finally:
            counter.close()
        if fault is None and not bounds[0] <= counter.returned <= bounds[1]:
            fault = f"{counter.returned} bytes came back, wanted {bounds[0]} to {bounds[1]}"
        return fault


def one_way(paths, client, tls_files):
    flags = [f"{flag}={path}" for flag, path in zip(("--tls-cert", "--tls-key"), tls_files or ())]
    with Program([paths.own("interop_server"), *flags]) as server:
        address = server.word_after("listening")
        faults = []
        for name in client.cases:
            fault = client.play_counted(name, address, tls_files and tls_files[0])
            if fault:
                faults.append(f"{name}, {'TLS' if tls_files else 'plain'}: {fault}")
        server.finish()
        return faults


def run(paths, options):
    for peer in options.peers or PEERS:
        if peer not in PEERS:
            continue
        try:
            client = Client(paths, peer)
        except build_peers.Missing as missing:
            yield {"peer": peer, "version": "", "skipped": 36, "why": [str(missing)]}
            continue
        with tempfile.TemporaryDirectory() as folder:
            faults = one_way(paths, client, None) + one_way(paths, client, certificates(pathlib.Path(folder)))
        cases = 2 * len(client.cases)
        yield {"peer": peer, "version": client.version, "cases": cases, "passed": cases - len(faults), "failed": len(faults),
               "why": faults}
