"""SIGTERM ends a server cleanly from the moment that it can be reached, even before it has said where it listens."""
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import TORC, WAIT, check, cluster, free_address, main, write_resources


@contextlib.contextmanager
def full_pipe():
    """(reader, writer, the number of bytes in it): a process that writes to the pipe waits until another reads from
    it."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    filled = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            filled += os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    try:
        yield reader, writer, filled
    finally:
        os.close(reader)


def wait_until_it_listens(address):
    host, port = address.rsplit(":", 1)
    deadline = time.monotonic() + WAIT
    while True:
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection((host, int(port))):
            return
        check(time.monotonic() < deadline, f"nobody listens at {address}")


def ended_while_it_says_where(*args):
    """SIGTERM while the process waits to write its first line. Returns its output."""
    address = free_address()
    with full_pipe() as (reader, writer, filled):
        process = subprocess.Popen([TORC, *args, "--listen", address], stdin=subprocess.DEVNULL, stdout=writer)
        os.close(writer)
        try:
            wait_until_it_listens(address)
            process.terminate()
            with open(reader, "rb", closefd=False) as out:
                said = out.read()[filled:].decode()
            status = process.wait(timeout=WAIT)
        finally:
            process.kill()
    check(status == 0, f"{args[0]} ended with {status}")
    check(said.startswith(f"listening {address}\n"), f"{args[0]} said {said!r}")
    return said


def test_a_server_that_just_started():
    said = ended_while_it_says_where("backend", "--count-log")
    check(json.loads(said.splitlines()[1])["backend"]["requests"] == 0, said)
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "mesh.json")
        write_resources(path, "1", cluster("orders"))
        ended_while_it_says_where("serve-xds", "--resources", path)


main(test_a_server_that_just_started)
