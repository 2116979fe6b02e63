"""gRPC's interop suite: other clients against Torc's server."""
import os
import pathlib
import re
import subprocess
import tempfile

import build_peers
from programs import HERE, Failure, Program
from suite_rpc import ITERATIONS, PROTOS, Counter, certificates, names_of

# The least and the most bytes on the wire that come back when the server compresses one of two equal answers (unary),
# or the smaller one of a stream: so the suite sees it for clients that do not show whether an answer came compressed.
# Without compression another 314159 or 31415 bytes come back.
TRAFFIC = {"server_compressed_unary": (314159, 340000), "server_compressed_streaming": (92653, 110000)}
PEERS = ["torc", "go", "python", "node", "java"]
# grpc-java's client does not name its cases.
JAVA_CASES = ["empty_unary", "large_unary", "client_compressed_unary", "server_compressed_unary", "client_streaming",
              "client_compressed_streaming", "server_streaming", "server_compressed_streaming", "ping_pong", "empty_stream",
              "custom_metadata", "status_code_and_message", "special_status_message", "unimplemented_method",
              "unimplemented_service", "cancel_after_begin", "cancel_after_first_response", "timeout_on_sleeping_server"]


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
        flags = self.flags(name, target, tls)
        try:
            done = subprocess.run([*self.command, *flags], capture_output=True, text=True, timeout=120, check=False,
                                  env=self.env)
        except subprocess.TimeoutExpired:
            return "not done within 120 s"
        return None if done.returncode == 0 else f"exit {done.returncode}: {(done.stderr + done.stdout).strip()[-500:]}"

    def flags(self, name, target, tls):
        flags = [f"--target={target}", f"--case={name}"] + ([f"--ca={tls}", "--authority=interop.test"] if tls else [])
        if name in ITERATIONS:
            flags.append(f"--iterations={ITERATIONS[name]}")
        if not self.joined:
            flags = [word for flag in flags for word in flag.split("=", 1)]
        return flags

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


class JavaClient(Client):
    """grpc-java's client, which has its roots from a key store."""

    def __init__(self, folder):
        self.cases, self.env = JAVA_CASES, dict(os.environ)
        self.version = re.search(r"<version>([1-9].*)</version>", (HERE / "java" / "pom.xml").read_text(encoding="ascii"))[1]
        self.command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}/*"]

    def flags(self, name, target, tls):
        main = ["io.grpc.testing.integration.TestServiceClient", f"--test_case={name}", "--server_host=127.0.0.1",
                f"--server_port={target.rsplit(':', 1)[1]}", f"--use_tls={'true' if tls else 'false'}", "--use_test_ca=false"]
        if not tls:
            return main
        store = pathlib.Path(tls).with_suffix(".p12")
        if not store.exists():
            subprocess.run(["keytool", "-importcert", "-noprompt", "-alias", "interop", "-file", tls, "-keystore", store,
                            "-storetype", "PKCS12", "-storepass", "changeit"], check=True, capture_output=True)
        return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStorePassword=changeit", *main,
                "--server_host_override=interop.test"]


def one_way(paths, client, tls_files, names, more=()):
    flags = [f"{flag}={path}" for flag, path in zip(("--tls-cert", "--tls-key"), tls_files or ())] + list(more)
    with Program([paths.own("interop_server"), *flags]) as server:
        address = server.word_after("listening")
        faults = []
        for name in names:
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
            client = JavaClient(paths.large_peer("java", options)) if peer == "java" else Client(paths, peer)
        except build_peers.Missing as missing:
            yield {"peer": peer, "version": "", "skipped": 36, "why": [str(missing)]}
            continue
        with tempfile.TemporaryDirectory() as folder:
            ways = None, certificates(pathlib.Path(folder))
            faults = [fault for way in ways for fault in one_way(paths, client, way, client.cases)]
            two_streams = names_of(paths, "--list-two-streams", 1) if peer == "torc" else []
            for way in ways if two_streams else ():
                faults += one_way(paths, client, way, two_streams, ["--max-streams=2"])
        cases = 2 * len(client.cases) + 2 * len(two_streams)
        yield {"peer": peer, "version": client.version, "cases": cases, "passed": cases - len(faults), "failed": len(faults),
               "why": faults}
