"""`torc call fd:N`: a socket that another process has connected."""
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import BUILD, TORC, blocks, check, main, running


def call(sock, *args):
    return subprocess.run([TORC, "call", f"fd:{sock.fileno()}", "a.B/C", "-d", "x", *args], pass_fds=[sock.fileno()], capture_output=True,
                          text=True, timeout=100, check=False)


def test_a_connected_socket_is_used():
    with running("backend", "--listen", "127.0.0.1:0") as backend:
        host, port = backend.listening().rsplit(":", 1)
        with socket.create_connection((host, int(port))) as sock:
            done = call(sock, "-n", "3")
            check(done.returncode == 0, done.stderr)


def test_guide():
    """The line of docs/guide/connections.md: bash connects, and the command inherits the descriptor."""
    with running("backend", "--listen", "127.0.0.1:0") as backend:
        (line,) = blocks("docs/guide/connections.md", "sh")
        line = line.replace("127.0.0.1/50051", backend.listening().replace(":", "/"))
        done = subprocess.run(["bash", "-c", line], env={**os.environ, "PATH": BUILD + ":" + os.environ["PATH"]}, capture_output=True, text=True,
                              timeout=100, check=False)
        check(done.returncode == 0 and " OK " in done.stdout, f"{line}: {done}")


def test_another_socket_is_refused():
    with socket.socket() as sock:
        done = call(sock)
        check(done.returncode == 2 and "not connected" in done.stderr, f"{done.returncode} {done.stderr}")


main(test_a_connected_socket_is_used, test_guide, test_another_socket_is_refused)
