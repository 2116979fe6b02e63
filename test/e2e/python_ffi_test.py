"""examples/python_ffi: libtorc.so used by functions alone, from a language that does not read its headers."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import BUILD, SOURCE, check, main, running

LIBRARY = os.path.join(BUILD, "src", "libtorc.so")
WANTED = """unary: b'hello\\x00world'
headers: True
stream: b'message 0'
stream: b'message 1'
stream: b'message 2'
finished
"""
PARTS = ("failed: PERMISSION_DENIED: ", "late: DEADLINE_EXCEEDED: ", "options: options: \"no_such_field\" is not a field of struct torc_call_options",
         "state: READY", "channel: target \"nosuch:x\"", "range: options: connect_timeout_ms: is -7, must be ")


def test_the_example_calls_a_backend():
    with running("backend", "--name", "b1") as backend:
        done = subprocess.run([sys.executable, os.path.join(SOURCE, "examples", "python_ffi", "echo.py"), LIBRARY, backend.listening()],
                              capture_output=True, text=True, timeout=200, check=False, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    check(done.returncode == 0, done.stdout + done.stderr)
    check(done.stdout.startswith(WANTED), done.stdout)
    for part in PARTS:
        check(part in done.stdout, f"{part!r} is not in\n{done.stdout}")


if not os.path.exists(LIBRARY) or os.environ.get("TORC_SANITIZE"):
    print("needs libtorc.so without a sanitizer, whose runtime Python does not have")
    sys.exit(77)
main(test_the_example_calls_a_backend)
