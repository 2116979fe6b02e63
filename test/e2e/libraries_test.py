"""What libtorc.so loads only when it is needed: a plaintext RPC through a mesh loads neither OpenSSL
nor RE2; a regex and TLS load theirs; what cannot be loaded fails what needs it, with the reason, and nothing else."""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import BUILD, WAIT, bootstrap, check, cluster, endpoints, listener, main, routes, running, write_resources

SANITIZED = bool(os.environ.get("TORC_SANITIZE"))
UNARY = os.path.join(BUILD, "examples", "unary")
LIBRARY = os.path.join(BUILD, "src", "libtorc.so.0.2")
LAZY = ("libssl", "libcrypto", "libre2", "libstdc++", "libtorc-regex", "libcurl")


def run(*args, **env):
    return subprocess.run(args, capture_output=True, text=True, errors="replace", timeout=WAIT, check=False, env={**os.environ, **env})


def loaded(done):
    """Returns the late-loading libraries that LD_DEBUG=files reports as initialised."""
    initialised = re.findall(r"calling init: (\S+)", done.stderr)
    check(any("libtorc.so" in path for path in initialised), f"no trace of the loader: {done.stderr[-500:]}")
    return {name for name in LAZY for path in initialised if os.path.basename(path).startswith(name)}


@contextlib.contextmanager
def mesh(match):
    """A control plane with a route of that match, and a backend."""
    with tempfile.TemporaryDirectory() as folder, running("backend", "--name", "b1") as backend:
        path = os.path.join(folder, "mesh.json")
        write_resources(path, "1", listener("svc", "r"), routes("r", {"match": match, "route": {"cluster": "c"}}),
                        cluster("c"), endpoints("c", backend.listening()))
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as control_plane:
            yield folder, bootstrap(control_plane.listening())


REGEX = {"safe_regex": {"regex": "/echo\\..*/S[a-z]y"}}


def test_rpcs_in_the_clear_load_neither():
    with mesh({"prefix": ""}) as (_, env):
        done = run(UNARY, "xds:///svc", LD_DEBUG="files", **env)
        check(done.returncode == 0 and done.stdout.startswith("OK from"), done.stdout + done.stderr[-1000:])
        check(SANITIZED or not loaded(done), f"through a mesh: {loaded(done)}")


def test_a_regex_loads_its_library():
    with mesh(REGEX) as (_, env):
        done = run(UNARY, "xds:///svc", LD_DEBUG="files", **env)
        check(done.returncode == 0 and done.stdout.startswith("OK from"), done.stdout + done.stderr[-1000:])
        check(SANITIZED or {"libtorc-regex", "libre2"} <= loaded(done), f"{loaded(done)}")
        check(SANITIZED or "libssl" not in loaded(done), f"{loaded(done)}")


def test_without_the_library_of_regexes():
    with mesh(REGEX) as (folder, env):
        shutil.copy(LIBRARY, folder)
        done = run(UNARY, "xds:///svc", LD_LIBRARY_PATH=folder, **env)
        check(done.returncode == 1, f"exit {done.returncode}: {done.stdout}")
        check(f"Torc's library of regular expressions cannot be loaded: {folder}/libtorc-regex.so.0.2" in done.stdout, done.stdout)
        # A program that has loaded it already needs no file beside libtorc.so.
        done = run(UNARY, "xds:///svc", LD_LIBRARY_PATH=folder, LD_PRELOAD=os.path.join(BUILD, "src", "libtorc-regex.so.0.2"), **env)
        check(SANITIZED or done.stdout.startswith("OK from"), done.stdout + done.stderr[-1000:])
    with mesh({"prefix": ""}) as (folder, env):
        shutil.copy(LIBRARY, folder)
        done = run(UNARY, "xds:///svc", LD_LIBRARY_PATH=folder, **env)
        check(done.stdout.startswith("OK from"), done.stdout + done.stderr[-1000:])


# Prints why there are no TLS credentials, or "made".
TLS = """
import ctypes, sys
torc = ctypes.CDLL(sys.argv[1])
torc.torc_credentials_tls.restype = ctypes.c_void_p
torc.torc_error_text.restype = ctypes.c_char_p
error = ctypes.c_void_p()
made = torc.torc_credentials_tls(None, ctypes.byref(error))
print("made" if made else f"{torc.torc_error_text(error).decode()} {torc.torc_error_code(error)}")
"""


def test_tls_loads_openssl():
    if SANITIZED:
        return  # Python is not linked with the sanitizers' runtime
    done = run(sys.executable, "-c", TLS, LIBRARY, LD_DEBUG="files")
    check(done.stdout.strip() == "made", done.stdout + done.stderr[-1000:])
    check({"libssl", "libcrypto"} <= loaded(done), f"{loaded(done)}")
    with tempfile.TemporaryDirectory() as folder:
        soname = re.search(r"libssl\.so\.\d+", done.stderr)[0]
        with open(os.path.join(folder, soname), "wb"):
            pass  # a file that is no library
        done = run(sys.executable, "-c", TLS, LIBRARY, LD_LIBRARY_PATH=folder)
        check(done.stdout.startswith(f"TLS is not available: OpenSSL cannot be loaded: {folder}/{soname}: "), done.stdout)
        check(done.stdout.endswith(" -9\n"), done.stdout)  # TORC_EUNSUPPORTED


with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as cache:
    if "TORC_LATE_LOADING:BOOL=ON" not in cache.read():
        print("built without TORC_LATE_LOADING: test/e2e/late_loading has what is linked")
        sys.exit(77)
main(test_rpcs_in_the_clear_load_neither, test_a_regex_loads_its_library, test_without_the_library_of_regexes,
     test_tls_loads_openssl)
