"""`torc call fd:N`: a socket that another process has connected."""
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import TORC, check, main, running


def call(sock, *args):
    return subprocess.run([TORC, "call", f"fd:{sock.fileno()}", "a.B/C", "-d", "x", *args], pass_fds=[sock.fileno()], capture_output=True,
                          text=True, timeout=100, check=False)


def test_a_connected_socket_is_used():
    with running("backend", "--listen", "127.0.0.1:0") as backend:
        host, port = backend.listening().rsplit(":", 1)
        with socket.create_connection((host, int(port))) as sock:
            done = call(sock, "-n", "3")
            check(done.returncode == 0, done.stderr)


def test_another_socket_is_refused():
    with socket.socket() as sock:
        done = call(sock)
        check(done.returncode == 2 and "not connected" in done.stderr, f"{done.returncode} {done.stderr}")


main(test_a_connected_socket_is_used, test_another_socket_is_refused)
