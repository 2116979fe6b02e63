"""Files that options name: certificates, keys and configuration from regular files alone, data from pipes too; and a
process that may open few."""
import json
import os
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import TORC, WAIT, check, main, run, running
from support.pki import Pki, openssl

METHOD = "torc.test.Backend/Echo"


def refused(part, *args, status=1):
    done = run(*args, status=status)
    check(part in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, f"{args}: {done}")


def test_no_fifo_is_waited_for():
    with tempfile.TemporaryDirectory() as directory:
        fifo = os.path.join(directory, "fifo")
        os.mkfifo(fifo)
        for option in ("--ca", "--cert", "--key"):
            for command in ("call", "bench"):
                refused(f"{option}: cannot read {fifo}: it is a FIFO, not a regular file", command, "--creds", "tls",
                        option, fifo, "127.0.0.1:1", METHOD)
        for option in ("--tls-cert", "--tls-key", "--client-ca"):
            refused(f"{option}: cannot read {fifo}: it is a FIFO", "backend", option, fifo)
        refused(f"--service-config: cannot read {fifo}: it is a FIFO", "call", "--service-config", "@" + fifo,
                "127.0.0.1:1", METHOD)
        refused(f"--ca: cannot read {directory}: it is a directory", "call", "--creds", "tls", "--ca", directory,
                "127.0.0.1:1", METHOD)
        refused("--key: cannot read /dev/zero: it is a device", "call", "--creds", "tls", "--key", "/dev/zero",
                "127.0.0.1:1", METHOD)


def test_data_from_pipes():
    """What a shell makes of another command's output has a name, and is a pipe."""
    with running("backend") as backend:
        script = '"$0" call -o json --data-file <(printf hello) "$1" ' + METHOD
        done = subprocess.run(["bash", "-c", script, TORC, backend.listening()], capture_output=True, text=True,
                              timeout=WAIT, check=True)
        call = json.loads(done.stdout.splitlines()[0])["call"]
        check(bytes.fromhex(call["response_hex"]) == b"hello", str(call))
    done = subprocess.run(["bash", "-c", '"$0" ring --endpoints <(printf "a\\nb\\n") --key k', TORC],
                          capture_output=True, text=True, timeout=WAIT, check=True)
    check(done.stdout.startswith("k 0x"), done.stdout)


def test_tls_files():
    """A file that cannot be used is named with its option, by clients and by the server."""
    with tempfile.TemporaryDirectory() as directory:
        pki = Pki(directory)
        cert, key = pki.make("a", "DNS:localhost")
        other = pki.make("b", "DNS:localhost")[1]
        locked, damaged = pki.path("locked.pem"), pki.path("damaged.pem")
        openssl("pkcs8", "-topk8", "-in", key, "-passout", "pass:secret", "-out", locked)
        with open(damaged, "w", encoding="ascii") as out:
            out.write("-----BEGIN CERTIFICATE-----\nMAAB\n-----END CERTIFICATE-----\n")
        for bad_key, why in ((locked, "it is encrypted, and such keys are not read"), (other, "key values mismatch")):
            refused(f"--cert {cert}, --key {bad_key}: private key: {why}", "call", "--creds", "tls", "--cert", cert,
                    "--key", bad_key, "127.0.0.1:1", METHOD)
            refused(f"--tls-cert {cert}, --tls-key {bad_key}: private key: {why}", "backend", "--tls-cert", cert,
                    "--tls-key", bad_key)
        # An option that is given twice has its last value.
        refused(f"--ca {key}: the PEM file has no CERTIFICATE", "call", "--ca", pki.path("ca.pem"), "--ca", key, "127.0.0.1:1", METHOD)
        done = run("call", "--cert", cert, "--key", other, "--cert", pki.path("b-cert.pem"), "127.0.0.1:1", METHOD, status=1)
        check("UNAVAILABLE" in done.stdout and not done.stderr, str(done))
        refused(f"--ca {damaged}: root certificates: ", "bench", "--creds", "tls", "--ca", damaged, "--cert", cert,
                "--key", key, "127.0.0.1:1", METHOD)
        refused(f"--client-ca {damaged}: root certificates: ", "backend", "--tls-cert", cert, "--tls-key", key,
                "--client-ca", damaged)
        refused(f"--cert {damaged}, --key {key}: certificate chain: ", "call", "--creds", "xds", "--cert", damaged,
                "--key", key, "127.0.0.1:1", METHOD)


def test_no_descriptors():
    # A search for leaks needs descriptors too.
    env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}

    def run_with(most, command):
        return subprocess.run([TORC, command, "127.0.0.1:1", METHOD], capture_output=True, text=True, timeout=WAIT, check=False,
                              env=env, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))

    for most in range(4, 7):  # libuv itself would end a program that has none for the pipe of its first loop
        for command in ("call", "bench"):
            done = run_with(most, command)
            check(done.returncode == 1, f"{most}: {done}")
            check(done.stderr == f"torc {command}: cannot make an event loop: Too many open files\n", f"{most}: {done.stderr}")
    for most in range(7, 20):
        check(run_with(most, "call").returncode == 1, f"{most} descriptors")


main(test_no_fifo_is_waited_for, test_data_from_pipes, test_tls_files, test_no_descriptors)
