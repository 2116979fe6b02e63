"""torc bench: closed and open loop against the echo backend, latency from the intended start, errors by status."""
import json
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import bootstrap, calls, check, free_address, main, run, running, with_time

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
    """The least and the most that --rps takes end with --duration, and a duration of centuries is one."""
    with running("backend") as backend:
        address = backend.listening()
        check(bench("--rps", "0.001", "--duration", "100ms", address, METHOD)["calls"] == 1, "the first, at once")
        figures = bench("--rps", "1000000", "-c", "4", "--duration", "100ms", address, METHOD)
        check(figures["calls"] + figures["not_started"] == 100_000, str(figures))
        summary = calls("--rps", "0.001", "--duration", "100ms", address, METHOD)[1]
        check(summary["calls"] == 1 and summary["seconds"] >= 0.1, str(summary))
        summary = calls("--channels", "10000", "--duration", "1ms", address, METHOD)[1]
        check(summary["calls"] == 1, f"one call, though it took longer to make the channels: {summary}")
        done = calls("-n", "3", "--duration", "2400000h", address, METHOD)[1]
        check(done["ok"] == 3, str(done))


def test_latency_from_the_intended_start():
    """One call at a time takes 50 ms: of 50 a second for 400 ms, each next one is later by 30 ms than it was to begin."""
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
    """The reason that torc call gives, at once, or when the deadline is over where waiting could have helped."""
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


main(test_closed_loop, test_open_loop, test_extreme_rates, test_latency_from_the_intended_start, test_failures,
     test_why_it_cannot_connect, test_wrong_usage)
