"""The servers of examples/, asked by clients and stopped by SIGTERM; the guide's first server, built by the guide's own lines;
the certificates that docs/operations/security.md makes."""
import contextlib
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import BUILD, SOURCE, WAIT, blocks, calls, check, free_address, main
from support.pki import Pki

EXAMPLES = os.path.join(BUILD, "examples")


@contextlib.contextmanager
def serving(*args, **kwargs):
    """A server's address. In the end it must stop by SIGTERM, with exit status 0."""
    with subprocess.Popen(args, stdout=subprocess.PIPE, text=True, **kwargs) as server:
        try:
            line = server.stdout.readline()
            check(line.startswith("listening "), f"{args}: {line}")
            yield line.split()[1]
            server.terminate()
            check(server.wait(timeout=WAIT) == 0, f"{args}: exit {server.returncode}")
        finally:
            server.kill()


def example(name, *args):
    return serving(os.path.join(EXAMPLES, name), *args)


def say(address, *options, status=0):
    """What the answers to some RPCs are: a response, or the name of a status."""
    done, _ = calls(address, "echo.Echo/Say", "-d", "hello", *options, status=status)
    return {bytes.fromhex(call["response_hex"]).decode() if call["code"] == 0 else call["status"] for call in done}


def chat(address):
    done = subprocess.run([os.path.join(EXAMPLES, "streaming"), address], capture_output=True, text=True, timeout=WAIT, check=False)
    check("OK after 10 messages" in done.stdout, f"streaming: {done}")


def test_stream():
    with example("server_stream", "127.0.0.1:0") as address:
        for _ in range(3):
            chat(address)
        check(say(address, status=1) == {"UNIMPLEMENTED"}, "a method that it does not have")


def test_pool():
    with example("server_pool", "127.0.0.1:0") as address:
        chat(address)
        check(say(address, "-n", "50", "-c", "10") == {"hello"}, "unary")


def test_epoll():
    with example("server_epoll", "127.0.0.1:0") as address:
        check(say(address, "-n", "50", "-c", "10") == {"hello"}, "unary")


def test_interceptor():
    with example("server_interceptor", "127.0.0.1:0") as address:
        check(say(address, "-n", "20", "-H", "authorization: Bearer 1234") == {"hello"}, "with a token")
        check(say(address, "-H", "authorization: Bearer 5", status=1) == {"UNAUTHENTICATED"}, "with another token")
        check(say(address, status=1) == {"UNAUTHENTICATED"}, "without a token")


def test_tls():
    with tempfile.TemporaryDirectory() as folder:
        pki = Pki(folder)
        server, client = pki.make("server", "DNS:localhost,IP:127.0.0.1"), pki.make("client", "DNS:orders.example")
        tls = ("--creds", "tls", "--ca", pki.ca)
        with example("server_tls", *server, "127.0.0.1:0") as address:
            check(say(address, *tls) == {"stranger says hello"}, "a client without a certificate")
        with example("server_tls", *server, "127.0.0.1:0", pki.ca) as address:
            named = say(address, *tls, "--cert", client[0], "--key", client[1])
            check(named == {"orders.example says hello"}, f"its name: {named}")
            check(say(address, *tls, status=1) == {"UNAVAILABLE"}, "none, where one is required")


def test_certificates_for_a_try():
    """The block of docs/operations/security.md, with a free port; its files serve a program of both pages, and its last sentences hold."""
    (block,) = [text for text in blocks("docs/operations/security.md", "sh") if "openssl" in text]
    with tempfile.TemporaryDirectory() as folder:
        text = block.replace(":50051", ":" + free_address().rsplit(":", 1)[1])
        done = subprocess.run(["sh", "-ec", text], cwd=folder, capture_output=True, text=True, timeout=WAIT, check=False,
                              env={**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"})
        check(done.returncode == 0 and "OK" in done.stdout, str(done))
        at = {name: os.path.join(folder, name) for name in ("ca.pem", "cert.pem", "key.pem", "client.pem", "client.key")}
        tls = ("--cacert", at["ca.pem"], "--cert", at["client.pem"], "--key", at["client.key"])
        with example("server_tls", at["cert.pem"], at["key.pem"], "127.0.0.1:0", at["ca.pem"]) as address:
            for target in (address, address.replace("127.0.0.1", "localhost")):
                check(say(target, *tls) == {"client.example says hello"}, target)
            check(say(address, *tls, "--authority", "other.example", status=1) == {"UNAVAILABLE"}, "a name that the certificate does not have")
        unnamed = re.sub(r"(?s)-subj \"/CN=does not count\"(.*?) -extfile \S+", r'-subj "/CN=localhost"\1', block[:block.index("\ncertify client")])
        check("-extfile" not in unnamed, unnamed)
        subprocess.run(["sh", "-ec", unnamed], cwd=folder, capture_output=True, timeout=WAIT, check=True)
        with example("server_tls", at["cert.pem"], at["key.pem"], "127.0.0.1:0") as address:
            refused = say(address.replace("127.0.0.1", "localhost"), "--cacert", at["ca.pem"], status=1)
            check(refused == {"UNAVAILABLE"}, f"a certificate whose only name is its CN: {refused}")


def test_they_say_why():
    for name in ("server_stream", "server_pool", "server_epoll", "server_interceptor"):
        done = subprocess.run([os.path.join(EXAMPLES, name), "nowhere"], capture_output=True, text=True, timeout=WAIT, check=False)
        check(done.returncode == 1 and "nowhere" in done.stderr, f"{name}: {done}")
    for args in ([], ["no-certificate.pem", "no-key.pem"]):
        done = subprocess.run([os.path.join(EXAMPLES, "server_tls"), *args], capture_output=True, text=True, timeout=WAIT, check=False)
        check(done.returncode == 2 - len(args) // 2 and (args or ["usage"])[0] in done.stderr, f"server_tls: {done}")


def test_guide():
    """The steps of docs/guide/servers.md as they stand, but for the port, which the system chooses."""
    if os.environ.get("TORC_SANITIZE"):
        return  # an application is not linked with the sanitizers' runtime
    with open(os.path.join(SOURCE, "docs", "guide", "servers.md"), encoding="utf-8") as guide:
        steps = re.findall(r"^```(\w+)\n(.*?)^```", guide.read(), re.S | re.M)[:3]
    check([kind for kind, _ in steps] == ["proto", "c", "sh"], f"three steps: {steps}")
    (_, proto), (_, program), (_, build) = steps
    check(program.count("\n") <= 40, f"{program.count(chr(10))} lines")
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "prefix")
        subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, capture_output=True, timeout=WAIT)
        pc_dir = next(root for root, _, files in os.walk(prefix) if "torc-stubs.pc" in files)
        env = {**os.environ, "PKG_CONFIG_PATH": pc_dir, "LD_LIBRARY_PATH": os.path.dirname(pc_dir),
               "PATH": f"{prefix}/bin:{os.environ['PATH']}"}
        for name, text in (("helloworld.proto", proto), ("server.c", program)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write(text.replace("[::]:50051", "127.0.0.1:0"))
        lines, started = build.rstrip("\n").rsplit("\n", 1)
        check(started == "./server", started)
        subprocess.run(["sh", "-ec", lines], cwd=folder, env=env, check=True, timeout=WAIT)
        with serving("./server", cwd=folder, env=env) as address:
            # HelloRequest {name: "world"}; HelloReply {message: "Hello, world"}
            (done,), _ = calls(address, "helloworld.Greeter/SayHello", "--data-hex", "0a05776f726c64")
            check(bytes.fromhex(done["response_hex"]) == b"\n\x0cHello, world", str(done))


main(test_stream, test_pool, test_epoll, test_interceptor, test_tls, test_certificates_for_a_try, test_they_say_why, test_guide)
