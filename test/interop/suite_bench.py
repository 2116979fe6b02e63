"""torc bench and ghz side by side: the same requests on one server of the public API, closed loop and open loop. What each tells, and
the CPU time that it takes, are printed; both must have the number of RPCs and their outcomes, and torc bench, in open loop, the rate."""
import json
import re
import resource
import subprocess

from programs import HERE, Program

METHOD = "grpc.testing.TestService/UnaryCall"
REQUEST = {"payload": {"body": "AAECAwQFBgcICQ=="}, "response_size": 64}
RATE, TRIES = 500, 4


class Tool:
    """One of the two programs. run() returns RPCs by status, the rate, p50 and p99 in microseconds, and CPU time of an RPC."""

    def __init__(self, name, command, flags, read):
        self.name, self.command, self.flags, self.read = name, command, flags, read

    def run(self, data, **load):
        flags = [part for key, value in load.items() for part in (*self.flags[key].split(), str(value))]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*map(str, self.command), "-d", json.dumps(data), *flags], capture_output=True, text=True, timeout=300, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not done.stdout:
            raise AssertionError(f"{self.name}: exit {done.returncode}: {done.stderr[-500:]}")
        figures = self.read(json.loads(done.stdout))
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {**figures, "cpu": cpu * 1e6 / max(1, sum(figures["statuses"].values()))}


def read_ghz(told):
    at = {row["percentage"]: row["latency"] / 1e3 for row in told["latencyDistribution"] or []}
    return {"statuses": told["statusCodeDistribution"], "rate": told["rps"], "p50": at.get(50, 0), "p99": at.get(99, 0)}


def read_torc(told):
    told = told["bench"]
    names = {status: status.title().replace("_", "") if status != "OK" else "OK" for status in told["by_status"]}
    return {"statuses": {names[status]: n for status, n in told["by_status"].items()}, "rate": told["rps"],
            "p50": told["latency_us"]["p50"], "p99": told["latency_us"]["p99"]}


def tools(paths, address):
    return [Tool("ghz", [paths.peer("probes") / "ghz", "-O", "json", "--insecure", "--call", METHOD, address],
                 {"n": "-n", "c": "-c", "channels": "--connections", "rate": "--async -r"}, read_ghz),
            Tool("torc bench", [paths.command(), "bench", "-o", "json", address, METHOD],
                 {"n": "-n", "c": "-c", "channels": "--channels", "rate": "--rps"}, read_torc)]


def both(programs, notes, what, data, **load):
    told = [program.run(data, **load) for program in programs]
    for program, figures in zip(programs, told):
        notes.append(f"{what}: {program.name}: {figures['rate']:.0f} a second, p50 {figures['p50']:.0f} us, p99 {figures['p99']:.0f} us, "
                     f"CPU {figures['cpu']:.1f} us an RPC")
    return told


def closed_loop(programs, notes):
    for concurrent, channels in ((1, 1), (50, 1), (50, 5)):
        told = both(programs, notes, f"{concurrent} at a time, {channels} connections", REQUEST, n=5000, c=concurrent, channels=channels)
        yield f"{told}" if any(one["statuses"] != {"OK": 5000} for one in told) else None


def open_loop(programs, notes):
    """Plays up to TRIES times while the rate of torc bench is off: the machine may have stood still."""
    for attempt in range(TRIES):
        said = []
        told = both(programs, said, f"{RATE} a second begun", REQUEST, n=2 * RATE, rate=RATE)
        if abs(told[1]["rate"] - RATE) < 0.05 * RATE or attempt == TRIES - 1:
            break
    notes += said
    late = abs(told[1]["rate"] - RATE) >= 0.05 * RATE  # of torc bench; ghz's is told
    yield f"{told}" if late or any(one["statuses"] != {"OK": 2 * RATE} for one in told) else None


def failures(programs, notes):
    told = both(programs, notes, "RPCs that fail", {"response_status": {"code": 9, "message": "no"}}, n=500, c=5)
    yield f"{told}" if any(one["statuses"] != {"FailedPrecondition": 500} for one in told) else None


def run(paths, options):
    if options.peers and "probes" not in options.peers:
        return
    pinned = (HERE / "probes" / "go.mod").read_text(encoding="ascii")
    notes, faults = [], []
    with Program([paths.own("interop_server")]) as server:
        programs = tools(paths, server.word_after("listening"))
        for case in (closed_loop, open_loop, failures):
            faults += case(programs, notes)
        server.finish()
    why = [fault for fault in faults if fault]
    yield {"peer": "ghz", "version": re.search(r"bojand/ghz v(\S+)", pinned)[1], "cases": len(faults), "passed": len(faults) - len(why),
           "failed": len(why), "why": why, "notes": notes}
