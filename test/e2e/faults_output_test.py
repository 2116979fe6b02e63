"""Output that cannot be written: full disks, closed pipes and descriptors, files that may not grow."""
import json
import os
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import TORC, WAIT, bootstrap, check, cluster, endpoints, listener, main, routes, run, running, write_resources

FULL = "No space left on device"
ROUTE = {"match": {"prefix": ""}, "route": {"cluster": "c"}}


def torc(*args, env=None, **pipes):
    """Runs the command to its end, within the time of any wait."""
    return subprocess.run([TORC, *args], stdin=subprocess.DEVNULL, text=True, timeout=WAIT, check=False,
                          env={**os.environ, **(env or {})}, **{"stderr": subprocess.PIPE, **pipes})


def expect(done, status, part):
    check(done.returncode == status and part in done.stderr,
          f"{' '.join(done.args[1:])}: exit {done.returncode}, said {done.stderr!r}; wanted {status} and {part!r}")


def resources(directory, backend):
    path = os.path.join(directory, "mesh.json")
    write_resources(path, "1", listener("svc", "r"), routes("r", ROUTE), cluster("c"), endpoints("c", backend))
    return path


def test_full_disk():
    """Commands say that their output could not be written, and which error it was; none ends by a signal."""
    with tempfile.TemporaryDirectory() as directory, running("backend") as backend, open("/dev/full", "w") as full:
        address = backend.listening()
        path = resources(directory, address)
        for args in (["--help"], ["--version"], ["call", "--help"], ["ring", "-e", "a"],
                     ["ring", "-e", "a", "-e", "b", "--svg", "-"],
                     ["call", address, "a/b"], ["call", "-o", "json", "-n", "200", address, "a/b"],
                     ["bench", "--duration", "100ms", address, "a/b"], ["backend"],
                     ["serve-xds", "--listen", "127.0.0.1:0", "--resources", path]):
            done = torc(*args, stdout=full)
            expect(done, 1, f"cannot write to standard output: {FULL}")
            check(done.stderr.count("\n") == 1, f"one line: {done.stderr!r}")


def first_line_then_closed(*args):
    """Reads one line of the command's output and closes it, as head -1 does. The command must end with exit status 1 and say nothing."""
    process = subprocess.Popen([TORC, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               stdin=subprocess.DEVNULL)
    try:
        check(process.stdout.readline() != "", "a first line")
        process.stdout.close()
        error = process.stderr.read()
        check(process.wait(timeout=WAIT) == 1, f"exit {process.returncode}")
    finally:
        if process.poll() is None:
            process.kill()
        process.stderr.close()
    check(error == "", f"{' '.join(args)}: {error!r}")


def test_reader_that_was_never_there():
    """Commands end quietly before "| true"."""
    with tempfile.TemporaryDirectory() as directory, running("backend") as backend:
        address = backend.listening()
        path = resources(directory, address)
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as plane:
            env = bootstrap(plane.listening())
            for args in (["help"], ["help", "ring"], ["--version"], ["version"], ["call", "--help"], ["ring", "-e", "a"],
                         ["ring", "-e", "a", "--min", "100000", "--max", "100000", "--cap", "100000", "--dump"],
                         ["call", address, "a/b"], ["call", "-o", "json", "-n", "200", address, "a/b"],
                         ["bench", "--duration", "100ms", address, "a/b"], ["backend"], ["demo"], ["demo", "-o", "json"],
                         ["xds", "xds:///svc"], ["xds", "-o", "json", "--watch", "xds:///svc"],
                         ["serve-xds", "--listen", "127.0.0.1:0", "--resources", path]):
                reader, writer = os.pipe()
                os.close(reader)
                done = torc(*args, stdout=writer, env=env)
                os.close(writer)
                check(done.returncode == 1 and done.stderr == "",
                      f"{' '.join(args)}: exit {done.returncode}, said {done.stderr!r}")


def test_reader_that_goes():
    """A command stops at the first write that fails: long before its time is over, and with calls that would not end."""
    first_line_then_closed("ring", "-e", "a", "--min", "1000000", "--max", "1000000", "--cap", "1000000", "--dump")
    with running("backend") as backend:
        address = backend.listening()
        for form in ("text", "json"):
            first_line_then_closed("call", "-o", form, "--rps", "100", "--duration", "10m", address, "a/b")
        hang = ["-n", "1000000", "-c", "4", address, "torc.test.Backend/Hang"]
        first_line_then_closed("call", "--events", "-o", "json", "--deadline", "500ms", *hang)
        first_line_then_closed("call", "-o", "json", "--rps", "20", "--duration", "10m", "--hold", "10m", address, "a/b")


def test_log_on_full_disk():
    """A library whose log cannot be written goes on without it."""
    with running("backend") as backend, open("/dev/full", "w") as full:
        address = backend.listening()
        done = torc("call", "-o", "json", "-n", "20", address, "a/b", env={"TORC_LOG": "trace"},
                    stdout=subprocess.PIPE, stderr=full)
        check(done.returncode == 0, f"exit {done.returncode}")
        summary = json.loads(done.stdout.splitlines()[-1])["summary"]
        check(summary["ok"] == 20, f"{summary}")


def test_closed_descriptors():
    """Sockets do not take the numbers of closed standard descriptors: nothing printed reaches a peer."""
    with running("backend", "--count-log") as backend:
        address = backend.listening()
        shell = '"$0" call -n 20 "$1" a/b '
        for closed, status in ((">&-", 1), ("2>&-", 0), ("<&- 2>&-", 0), ("<&- >&- 2>&-", 1)):
            done = subprocess.run(["sh", "-c", shell + closed, TORC, address], capture_output=True, text=True,
                                  timeout=WAIT, check=False, env={**os.environ, "TORC_LOG": "trace"})
            check(done.returncode == status, f"{closed}: exit {done.returncode} {done.stderr!r}")
        backend.stop()
        counts = json.loads(backend.rest()[-1])["backend"]
        # Where nobody can read of a call, no other follows.
        check(counts["requests"] == 1 + 20 + 20 + 1 and counts["connections"] == 4, f"{counts}")


def test_log_of_a_control_plane():
    with tempfile.TemporaryDirectory() as directory, running("backend") as backend:
        path = resources(directory, backend.listening())
        args = [TORC, "serve-xds", "--listen", "127.0.0.1:0", "--log", "json", "--resources", path]
        for name, limit, error, node in (("a pipe that nobody reads", None, "Broken pipe", "n"),
                                         ("a file that may not grow", 64, "File too large", "n"),
                                         ("lines that are longer than a buffer", 64, "File too large", "n" * 9000)):
            log = os.path.join(directory, "log")
            with open(log, "w+", encoding="utf-8") as out:
                reader = writer = None
                if limit is None:
                    reader, writer = os.pipe()
                process = subprocess.Popen(
                    args, stdout=writer if writer else out, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                    preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))) if limit else None)
                try:
                    if writer:
                        os.close(writer)
                        ready = os.read(reader, 100).decode()
                        os.close(reader)
                    else:
                        ready = ""
                        while not ready.endswith("\n") and process.poll() is None:
                            out.seek(0)
                            ready = out.readline()
                    address = ready.split()[1]
                    for _ in range(3):
                        run("xds", "xds:///svc", env=bootstrap(address, node))
                    process.terminate()
                    text = process.communicate(timeout=WAIT)[1]
                finally:
                    if process.poll() is None:
                        process.kill()
                check(process.returncode == 1, f"{name}: exit {process.returncode}: {text}")
                check(text.count("its lines are lost until it can be written: " + error) == 1, f"{name}: {text}")
                # A reader that went away needs no second word.
                check((f"cannot write to standard output: {error}" in text) == (limit is not None), f"{name}: {text}")


main(test_full_disk, test_reader_that_was_never_there, test_reader_that_goes, test_log_on_full_disk, test_closed_descriptors, test_log_of_a_control_plane)
