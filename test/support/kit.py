"""What the tests that drive the command share: processes that end with the test, waiting for a line, resources as JSON."""
import contextlib
import json
import os
import queue
import re
import socket
import subprocess
import threading
import time

BUILD = os.environ["TORC_BINARY_DIR"]
SOURCE = os.environ["TORC_SOURCE_DIR"]
TORC = os.path.join(BUILD, "torc")
WAIT = 120.0  # seconds: what is waited for comes at once, unless the machine hardly runs
LONG = "600s"  # longer than any test needs a process that it ends itself
_reserved = []  # sockets of free_address()


class Failure(Exception):
    pass


def check(held, what):
    if not held:
        raise Failure(what)


def page_program(page, marked):
    """The one C program in a page of the repository that has the text `marked`."""
    with open(os.path.join(SOURCE, page), encoding="utf-8") as text:
        (program,) = [text for text in re.findall(r"```c\n(.*?)```", text.read(), re.S) if marked in text]
    return program


def readme_program(marked):
    return page_program("README.md", marked)


def bytes_program():
    """A program that sends bytes and prints what comes back."""
    return page_program("docs/guide/quickstart.md", "torc_unary(")


def blocks(page, *kinds):
    """The blocks of code of a page of the repository, in their order: those of the kinds ("c", "sh")."""
    with open(os.path.join(SOURCE, page), encoding="utf-8") as file:
        return [text for kind, text in re.findall(r"^```(\w+)\n(.*?)^```$", file.read(), re.S | re.M) if kind in kinds]


def case(name):
    """Records that the running test asserts a row of test/cases.md, as TC_CASE does in C. Stands at the top of the test."""
    directory = os.environ.get("TC_CASE_DIR")
    if directory:
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, "python"), "a", encoding="ascii") as out:
            out.write(name + "\n")


class Process:
    """A program that runs beside the test; its standard output comes as lines, and with `log` its standard error too."""

    def __init__(self, *args, env=None, log=False, program=TORC, stdin=subprocess.DEVNULL):
        self.args = args
        self.process = subprocess.Popen(
            [program, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE if log else None, stdin=stdin,
            text=True, env={**os.environ, **(env or {})})
        self.lines, self.log_lines = queue.Queue(), queue.Queue()
        self.seen, self.seen_log = [], []
        self.reader = self._start(self.process.stdout, self.lines)
        self.log_reader = self._start(self.process.stderr, self.log_lines) if log else None

    @staticmethod
    def _start(stream, lines):
        def read():
            for line in stream:
                lines.put(line.rstrip("\n"))
            lines.put(None)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread

    def _wait(self, lines, seen, wanted):
        while True:
            try:
                line = lines.get(timeout=WAIT)
            except queue.Empty:
                raise Failure(f"{self.args[0]}: no such line within {WAIT} s; saw {seen[-5:]}") from None
            if line is None:
                raise Failure(f"{self.args[0]} ended with {self.process.wait()}; saw {seen[-5:]}")
            seen.append(line)
            if wanted(line):
                return line

    def wait_line(self, wanted):
        """The first line not taken yet for which wanted(line) is true; the lines before it are taken, too."""
        return self._wait(self.lines, self.seen, wanted)

    def wait_log(self, wanted):
        """Waits for a line on standard error; `wanted` is a function of the line, or a part of the line."""
        return self._wait(self.log_lines, self.seen_log, wanted if callable(wanted) else lambda line: wanted in line)

    def listening(self):
        return self.wait_line(lambda line: line.startswith("listening ")).split()[1]

    def stop(self):
        """Ends it by SIGTERM; its exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        status = self.process.wait(timeout=WAIT)
        self.reader.join(timeout=WAIT)
        if self.log_reader:
            self.log_reader.join(timeout=WAIT)
        return status

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=WAIT)

    def rest(self):
        """Lines that are left after the end."""
        lines = []
        while not self.lines.empty():
            line = self.lines.get()
            if line is not None:
                lines.append(line)
        return lines


@contextlib.contextmanager
def running(*args, **options):
    """A Process with these arguments and options, which is killed at the end if it still runs."""
    process = Process(*args, **options)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.kill()


def run(*args, env=None, status=0, stdin=""):
    """Runs the command to its end; the CompletedProcess. The exit status must be as said; None: any."""
    done = subprocess.run([TORC, *args], capture_output=True, text=True, input=stdin, timeout=WAIT * 2,
                          env={**os.environ, **(env or {})}, check=False)
    if status is not None:
        check(done.returncode == status,
              f"torc {' '.join(args)}: exit {done.returncode}, wanted {status}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def calls(*args, env=None, status=0):
    """torc call -o json: the list of call objects, and the summary."""
    lines = [json.loads(line) for line in run("call", "-o", "json", *args, env=env, status=status).stdout.splitlines()]
    return [line["call"] for line in lines if "call" in line], lines[-1]["summary"]


def calls_to_all(addresses, *args, env=None):
    """Runs of `torc call -o json` until a run was answered by all of these addresses, and no other; (calls, summary) of
    each. A policy sends calls as soon as one of its endpoints is connected, so a run may end before the channel has
    connected to the others."""
    deadline = time.monotonic() + WAIT
    runs = []
    while not runs or set(runs[-1][1]["by_peer"]) != set(addresses):
        check(time.monotonic() < deadline, f"no run of calls got to all of {sorted(addresses)}: {runs and runs[-1][1]}")
        runs.append(calls(*args, env=env))
    return runs


def ended(load):
    """The peer of the next call of a running `torc call -o json` that ends; none may fail."""
    call = json.loads(load.wait_line(lambda line: line.startswith('{"call"')))["call"]
    check(call["code"] == 0, f"an RPC failed: {call}")
    return call["peer"]


def until_peer(load, address):
    deadline = time.monotonic() + WAIT
    while ended(load) != address:
        check(time.monotonic() < deadline, f"calls do not get to {address}")


def free_address():
    """An address where nothing listens, and which no process outside the test gets while the test runs: connections are
    refused. Processes that the test starts can listen there, one after another."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))  # bound without listening: the system gives the port to nobody who asks for any port
    _reserved.append(s)
    return f"127.0.0.1:{s.getsockname()[1]}"


def with_time(act, far_enough, seconds=(0.3, 3, 30)):
    """Calls act(seconds) with longer and longer times until far_enough(result), and returns that result: when the machine
    stalls, the shorter times prove nothing."""
    for allowed in seconds:
        result = act(allowed)
        if far_enough(result):
            return result
    raise Failure(f"within {seconds[-1]} s it got no further than {result}")


def bootstrap(control_plane, node="test-node"):
    return {"GRPC_XDS_BOOTSTRAP": "", "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps({
        "xds_servers": [{"server_uri": control_plane, "channel_creds": [{"type": "insecure"}]}],
        "node": {"id": node}})}


ROUTER = {"name": "router", "typed_config": {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}


def listener(name, route_config):
    return {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": name, "api_listener": {
        "api_listener": {
            "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "rds": {"route_config_name": route_config, "config_source": {"ads": {}}}, "http_filters": [ROUTER]}}}


def routes(name, *route_list):
    return {"@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "name": name,
            "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": list(route_list)}]}


def cluster(name, **fields):
    return {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": name, "type": "EDS",
            "eds_cluster_config": {"eds_config": {"ads": {}}}, **fields}


def endpoints(name, *addresses):
    listed = []
    for address in addresses:
        host, port = address.rsplit(":", 1)
        listed.append({"endpoint": {"address": {"socket_address": {"address": host, "port_value": int(port)}}}})
    return {"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": name,
            "endpoints": [{"locality": {"region": "r"}, "load_balancing_weight": 1, "lb_endpoints": listed}]}


def write_resources(path, version, *resources):
    """Replaces a resource file by rename, as careful writers do."""
    with open(path + ".new", "w", encoding="utf-8") as out:
        json.dump({"version_info": version, "resources": list(resources)}, out)
    os.replace(path + ".new", path)


def main(*tests):
    """Runs the tests in order; the first failure ends the program with status 1."""
    for test in tests:
        print(f"[ RUN      ] {test.__name__}", flush=True)
        try:
            test()
        except Failure as failure:
            print(f"[  FAILED  ] {test.__name__}: {failure}", flush=True)
            raise SystemExit(1) from failure
        print(f"[       OK ] {test.__name__}", flush=True)
