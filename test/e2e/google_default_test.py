"""google_default against a metadata server and token endpoints of the test: the token goes over TLS alone, is refreshed
before it expires, and an outage of the endpoint fails only calls that have no valid token."""
import base64
import contextlib
import http.server
import json
import os
import ssl
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import LONG, WAIT, check, free_address, main, run, running
from support.pki import Pki, openssl

HEADERS = "torc.test.Backend/Headers"
TOKEN_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"
CLEAN = {name: "" for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GCE_METADATA_HOST", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
                               "http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY")}


HANG = None


def token(name, lifetime):
    return (200, json.dumps({"access_token": name, "expires_in": lifetime, "token_type": "Bearer"}).encode())


class Endpoint:
    """An HTTP(S) server with a plan: an answer (status, body) or HANG for each request, the last of them for all that follow."""

    def __init__(self, certificate=None):
        self.answers = [(500, b"")]
        self.headers = {"Metadata-Flavor": "Google"}
        self.requests = []
        self.times = []  # when each came
        self.changed = threading.Condition()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def reply(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                with outer.changed:
                    outer.times.append(time.monotonic())
                    outer.requests.append((self.command, self.path, dict(self.headers), body))
                    outer.changed.notify_all()
                    outer.changed.wait_for(lambda: outer.answers[0] is not HANG)
                    status, text = outer.answers[0] if len(outer.answers) == 1 else outer.answers.pop(0)
                    headers = outer.headers
                    outer.changed.notify_all()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = reply

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.fail(500)
        self.server.shutdown()
        self.server.server_close()

    def plan(self, *answers):
        """What the next requests get, and those that hang."""
        with self.changed:
            self.answers = list(answers)
            self.changed.notify_all()

    def give(self, name, lifetime):
        self.plan(token(name, lifetime))

    def fail(self, status):
        self.plan((status, b""))

    def wait_requests(self, count):
        with self.changed:
            check(self.changed.wait_for(lambda: len(self.requests) >= count, WAIT), f"{count} requests: {self.requests}")


@contextlib.contextmanager
def world():
    """A folder, a PKI, and a TLS backend."""
    with tempfile.TemporaryDirectory() as folder:
        pki = Pki(folder)
        cert, key = pki.make("server", "IP:127.0.0.1")
        with running("backend", "--tls-cert", cert, "--tls-key", key) as backend:
            yield folder, pki, backend.listening()


def environment(folder, pki, **more):
    return {**CLEAN, "HOME": folder, "CLOUDSDK_CONFIG": folder, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": pki.ca, **more}


def seen(call):
    """The request's headers as the backend saw them."""
    lines = bytes.fromhex(call["response_hex"]).decode().splitlines()
    return [line.split(": ", 1) for line in lines]


def token_of(call):
    return [value for name, value in seen(call) if name == "authorization"]


def one_call(address, env, status=0):
    done = run("call", "--creds", "google_default", "-o", "json", "--deadline", LONG, f"ipv4:{address}", HEADERS,
               env=env, status=status)
    return json.loads(done.stdout.splitlines()[0])["call"]


class Stream:
    """One torc that calls on and on, whose calls come one by one."""

    def __init__(self, process):
        self.process = process

    def until(self, wanted):
        """The calls up to the first that is wanted, it included."""
        calls = []

        def look(line):
            calls.append(json.loads(line).get("call"))
            return calls[-1] is not None and wanted(calls[-1])

        self.process.wait_line(look)
        return calls


def test_metadata_server_refresh_and_outage():
    with world() as (folder, pki, backend), Endpoint() as metadata:
        # The first serves for 61 s after the margin: it is fetched anew when one of them is over. The second serves for 7 s, in
        # which the fetches fail.
        metadata.plan(token("first", 91), token("second", 37), (503, b""))
        env = environment(folder, pki, GCE_METADATA_HOST=metadata.address)
        with running("call", "--creds", "google_default", "-o", "json", "--rps", "50", "--duration", LONG, "--deadline",
                     LONG, f"ipv4:{backend}", HEADERS, env=env) as process:
            stream = Stream(process)
            calls = stream.until(lambda call: True)
            check(token_of(calls[0]) == ["Bearer first"], f"the token reaches the backend: {calls}")
            command, path, headers, _ = metadata.requests[0]
            check((command, path) == ("GET", TOKEN_PATH) and headers.get("Metadata-Flavor") == "Google",
                  f"as the metadata server wants it: {metadata.requests}")
            # Refreshed long before it expires; no call fails or waits without a token.
            calls = stream.until(lambda call: token_of(call) == ["Bearer second"])
            check(all(call["code"] == 0 for call in calls), "no call fails while the token is refreshed")
            check(all(token_of(call) == ["Bearer first"] for call in calls[:-1]), "the first serves until the second is there")
            check(metadata.times[1] - metadata.times[0] >= 1, "one fetch for all calls of the first second")
            # The outage: calls go on with the second while fetches fail.
            calls = stream.until(lambda call: call["code"] != 0)
            check(len(calls) > 1 and all(token_of(call) == ["Bearer second"] for call in calls[:-1]),
                  f"calls with a valid token do not feel the outage: {len(calls)}")
            check(len(metadata.requests) > 2, "it was asked, and failed")
            check(calls[-1]["status"] == "UNAVAILABLE" and "HTTP status 503" in calls[-1]["message"], f"{calls[-1]}")
            check(metadata.address in calls[-1]["message"], f"the message names the endpoint: {calls[-1]}")
            check(calls[-1]["attempts"] == 0, "nothing was sent without a token")
            metadata.give("third", 3600)
            calls = stream.until(lambda call: call["code"] == 0)
            check(all(call["status"] == "UNAVAILABLE" for call in calls[:-1]), f"until then: {calls[:-1]}")
            check(token_of(calls[-1]) == ["Bearer third"], "the next attempt after the backoff")
            gaps = [after - before for before, after in zip(metadata.times[2:], metadata.times[3:])]
            least = [0.79 * 1.6 ** i for i in range(len(gaps))]  # a second with the least jitter, and then more
            check(all(gap >= at_least for gap, at_least in zip(gaps, least)), f"backoff between attempts: {gaps}")


def test_metadata_server_that_hangs():
    with world() as (folder, pki, backend), Endpoint() as metadata:
        metadata.plan(token("first", 37), HANG)  # serves for 7 s, all of which it is fetched anew
        env = environment(folder, pki, GCE_METADATA_HOST=metadata.address)
        with running("call", "--creds", "google_default", "-o", "json", "--rps", "50", "--duration", LONG, "--deadline",
                     "5s", f"ipv4:{backend}", HEADERS, env=env) as process:
            stream = Stream(process)
            metadata.wait_requests(2)  # the early fetch
            calls = stream.until(lambda call: call["code"] != 0)
            valid = [call for call in calls[:-1] if token_of(call) == ["Bearer first"]]
            check(len(valid) == len(calls) - 1 and len(valid) > 20, f"those with a valid token go on: {len(valid)}")
            check(calls[-1]["status"] == "DEADLINE_EXCEEDED" and calls[-1]["attempts"] == 0, f"{calls[-1]}")
            url = f"http://{metadata.address}{TOKEN_PATH}"
            check(f"while waiting for the call credentials (google_default, from {url})" in calls[-1]["message"],
                  f"the message says what it waited for: {calls[-1]}")
            check(len(metadata.requests) == 2, f"one fetch at a time: {metadata.requests}")
            metadata.give("second", 3600)
            calls = stream.until(lambda call: call["code"] == 0)
            check(all(call["status"] == "DEADLINE_EXCEEDED" for call in calls[:-1]), f"until then: {calls[:-1]}")


def test_token_that_comes_expired():
    with world() as (folder, pki, backend), Endpoint() as metadata:
        metadata.plan(token("old", 0), token("new", 3600))
        env = environment(folder, pki, GCE_METADATA_HOST=metadata.address)
        with running("call", "--creds", "google_default", "-o", "json", "--rps", "20", "--duration", LONG, "--deadline",
                     LONG, f"ipv4:{backend}", HEADERS, env=env) as process:
            stream = Stream(process)
            call = stream.until(lambda call: True)[0]
            check(call["status"] == "UNAVAILABLE" and call["attempts"] == 0 and "it expired" in call["message"] and
                  metadata.address in call["message"], f"{call}")
            calls = stream.until(lambda call: call["code"] == 0)
            check(token_of(calls[-1]) == ["Bearer new"], f"{calls[-1]}")
            check(len(metadata.requests) == 2, f"after the backoff: {len(metadata.requests)}")


def test_plaintext_gets_no_token():
    with world() as (folder, pki, _), Endpoint() as metadata, running("backend", "--count-log") as plain:
        metadata.give("secret", 3600)
        env = environment(folder, pki, GCE_METADATA_HOST=metadata.address)
        call = one_call(plain.listening(), env, status=1)
        check(call["status"] == "UNAVAILABLE" and "TLS" in call["message"], f"{call}")
        check(not metadata.requests, "no token was even asked for")
        plain.stop()
        counted = json.loads(plain.rest()[-1])["backend"]
        check(counted["requests"] == 0, f"{counted}")


def test_what_a_metadata_server_may_answer():
    with world() as (folder, pki, backend), Endpoint() as metadata:
        env = environment(folder, pki, GCE_METADATA_HOST=metadata.address)
        metadata.fail(404)
        call = one_call(backend, env, status=1)
        check(call["status"] == "UNAUTHENTICATED" and "HTTP status 404" in call["message"], f"{call}")
        metadata.plan((200, b"x" * 100000))
        call = one_call(backend, env, status=1)
        check(call["status"] == "UNAVAILABLE" and "more than 65536 bytes" in call["message"], f"{call}")
        metadata.plan((200, b'{"access_token":"a\\r\\nx: y","expires_in":60}'))
        call = one_call(backend, env, status=1)
        check(call["status"] == "UNAUTHENTICATED" and "cannot be sent in a header" in call["message"], f"{call}")
        with Endpoint() as elsewhere:
            elsewhere.give("elsewhere", 3600)
            metadata.fail(302)
            metadata.headers = {"Metadata-Flavor": "Google", "Location": f"http://{elsewhere.address}/"}
            call = one_call(backend, env, status=1)
            check(call["status"] == "UNAUTHENTICATED" and "HTTP status 302" in call["message"], f"{call}")
            check(not elsewhere.requests, "a redirect is not followed")
        # A server that does not say that it is a metadata server is refused, however good its token looks.
        metadata.give("foreign", 3600)
        for headers in ({}, {"Metadata-Flavor": "Other"}, {"X-Metadata-Flavor": "Google"}, {"Metadata-Flavor": "Google2"}):
            metadata.headers = headers
            call = one_call(backend, env, status=1)
            check(call["status"] == "UNAUTHENTICATED" and call["attempts"] == 0 and
                  'its answer has no header "Metadata-Flavor: Google"' in call["message"], f"{headers}: {call}")
        metadata.headers = {"metadata-flavor": "Google "}
        check(token_of(one_call(backend, env)) == ["Bearer foreign"], "names have no case, and space around values is none")
        # Nobody listens there.
        nobody = free_address()
        call = one_call(backend, {**env, "GCE_METADATA_HOST": nobody}, status=1)
        check(call["status"] == "UNAVAILABLE" and nobody.split(":")[1] in call["message"], f"{call}")


def test_authorized_user():
    with world() as (folder, pki, backend), Endpoint((pki.path("server-cert.pem"), pki.path("server-key.pem"))) as endpoint:
        user = {"type": "authorized_user", "client_id": "the client", "client_secret": "s&=%", "refresh_token": "1//r",
                "token_uri": f"https://{endpoint.address}/token"}
        with open(os.path.join(folder, "application_default_credentials.json"), "w", encoding="ascii") as out:
            json.dump(user, out)
        endpoint.give("ya29.user", 3600)
        endpoint.headers = {}  # which is the metadata server's alone
        env = environment(folder, pki)
        call = one_call(backend, env)
        check(token_of(call) == ["Bearer ya29.user"], f"{call}")
        command, path, _, body = endpoint.requests[0]
        check((command, path) == ("POST", "/token"), f"{endpoint.requests}")
        check(urllib.parse.parse_qs(body) == {"grant_type": ["refresh_token"], "client_id": ["the client"],
                                              "client_secret": ["s&=%"], "refresh_token": ["1//r"]}, body)
        endpoint.plan((400, b'{"error":"invalid_grant","error_description":"Token has been revoked."}'))
        call = one_call(backend, env, status=1)
        check(call["status"] == "UNAUTHENTICATED" and "HTTP status 400 (invalid_grant)" in call["message"], f"{call}")
        # An endpoint that the roots do not vouch for gets no refresh token.
        other = os.path.join(folder, "other")
        os.mkdir(other)
        stranger = Pki(other)
        before = len(endpoint.requests)
        done = run("call", "--creds", "google_default", "--ca", pki.ca, "-o", "json", f"ipv4:{backend}", HEADERS,
                   env={**env, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": stranger.ca}, status=1)
        call = json.loads(done.stdout.splitlines()[0])["call"]
        check(call["status"] == "UNAVAILABLE" and "certificate" in call["message"], f"{call}")
        check(len(endpoint.requests) == before, "the request was not sent")


def test_no_proxy_reads_a_refresh_token():
    """An endpoint of this machine may be plaintext; the environment's proxy is not used for it, because it would read everything."""
    with world() as (folder, pki, backend), Endpoint() as endpoint, Endpoint() as proxy:
        user = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
                "token_uri": f"http://{endpoint.address}/token"}
        with open(os.path.join(folder, "application_default_credentials.json"), "w", encoding="ascii") as out:
            json.dump(user, out)
        endpoint.give("mine", 3600)
        proxy.give("stolen", 3600)
        address = f"http://{proxy.address}"
        call = one_call(backend, environment(folder, pki, http_proxy=address, all_proxy=address, ALL_PROXY=address))
        check(token_of(call) == ["Bearer mine"], f"{call}")
        check(not proxy.requests, f"the proxy saw nothing: {proxy.requests}")
        check(len(endpoint.requests) == 1, f"{endpoint.requests}")


def test_service_account():
    with world() as (folder, pki, backend):
        key, public = os.path.join(folder, "sa.pem"), os.path.join(folder, "sa.pub")
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", key)
        openssl("pkey", "-in", key, "-pubout", "-out", public)
        with open(key, encoding="ascii") as pem:
            account = {"type": "service_account", "private_key": pem.read(), "private_key_id": "k7",
                       "client_email": "me@project.test"}
        path = os.path.join(folder, "sa.json")
        with open(path, "w", encoding="ascii") as out:
            json.dump(account, out)
        call = one_call(backend, environment(folder, pki, GOOGLE_APPLICATION_CREDENTIALS=path))
        value = token_of(call)[0]
        check(value.startswith("Bearer "), value)
        header, payload, signature = value[7:].split(".")

        def decode(part):
            return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))

        check(json.loads(decode(header)) == {"alg": "RS256", "typ": "JWT", "kid": "k7"}, decode(header))
        claims = json.loads(decode(payload))
        check(claims["aud"] == f"https://{backend}/" and claims["iss"] == claims["sub"] == "me@project.test", claims)
        check(claims["exp"] - claims["iat"] == 3600, claims)
        signed, sig = os.path.join(folder, "signed"), os.path.join(folder, "sig")
        with open(signed, "wb") as out:
            out.write(f"{header}.{payload}".encode())
        with open(sig, "wb") as out:
            out.write(decode(signature))
        openssl("dgst", "-sha256", "-verify", public, "-signature", sig, signed)


def test_bad_files_are_told():
    with tempfile.TemporaryDirectory() as folder:
        env = {**CLEAN, "HOME": folder, "CLOUDSDK_CONFIG": folder, "GOOGLE_APPLICATION_CREDENTIALS": "/nothing/here.json"}
        done = run("call", "--creds", "google_default", "ipv4:127.0.0.1:1", HEADERS, env=env, status=1)
        check("/nothing/here.json: No such file" in done.stderr, done.stderr)
        fifo = os.path.join(folder, "application_default_credentials.json")
        os.mkfifo(fifo)
        done = run("call", "--creds", "google_default", "ipv4:127.0.0.1:1", HEADERS, status=1,
                   env={**env, "GOOGLE_APPLICATION_CREDENTIALS": ""})
        check(f"{fifo}: it is a FIFO, not a regular file" in done.stderr, done.stderr)


if __name__ == "__main__":
    main(test_metadata_server_refresh_and_outage, test_metadata_server_that_hangs, test_token_that_comes_expired,
         test_plaintext_gets_no_token, test_what_a_metadata_server_may_answer,
         test_authorized_user, test_no_proxy_reads_a_refresh_token, test_service_account, test_bad_files_are_told)
