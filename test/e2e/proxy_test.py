"""Channels through an HTTP proxy of the test (A1): what the environment says, tunnels with and without TLS, refusals,
malformed answers, and a proxy that never answers; the control plane's, and those that xDS names (A86)."""
import base64
import contextlib
import json
import os
import select
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import (LONG, WAIT, bootstrap, check, cluster, endpoints, free_address, listener, main, routes, run, running,
                         with_time, write_resources)
from support.pki import Pki, TlsFront

CLEAN = {"no_proxy": "", "no_grpc_proxy": ""}
HEADERS = "torc.test.Backend/Headers"


class Proxy:
    """Reads one request head a connection. `answer` is bytes to send instead of a tunnel; None: a tunnel to
    names[target]; "hang": nothing."""

    def __init__(self, names=None):
        self.names = names or {}
        self.answer = None
        self.heads = []
        self.tunnels = 0
        self.carried = b""  # what clients sent through tunnels
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.sockets.append(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                part = client.recv(4096)
                if not part:
                    return
                head += part
            lines = head.decode().split("\r\n")
            self.heads.append(lines[:-2])
            if self.answer == "hang":
                return
            if self.answer is not None:
                client.sendall(self.answer)
                client.shutdown(socket.SHUT_WR)
                return
            host, port = self.names[lines[0].split(" ")[1]].rsplit(":", 1)
            backend = socket.create_connection((host, int(port)))
            self.sockets.append(backend)
            self.tunnels += 1
            client.sendall(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n")
            self._pump(client, backend)

    def _pump(self, one, other):
        while True:
            ready, _, _ = select.select([one, other], [], [])
            for source in ready:
                data = source.recv(65536)
                if not data:
                    one.close()
                    other.close()
                    return
                if source is one:
                    self.carried += data
                (other if source is one else one).sendall(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for s in [self.listener, *self.sockets]:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()


def call(target, *args, env, status=0):
    done = run("call", "-o", "json", "--deadline", LONG, *args, target, HEADERS, env={**CLEAN, **env}, status=status)
    return json.loads(done.stdout.splitlines()[0])["call"]


def test_tunnel_without_dns():
    # Only the proxy knows what backend.invalid is.
    with running("backend", "--name", "b1") as backend:
        with Proxy({"backend.invalid:50051": backend.listening()}) as proxy:
            for name in ("grpc_proxy", "https_proxy", "http_proxy"):
                made = call("dns:///backend.invalid:50051", env={name: proxy.url})
                check(made["code"] == 0 and made["headers"]["x-backend"] == ["b1"], f"{name}: {made}")
                check(f":authority: backend.invalid:50051" in bytes.fromhex(made["response_hex"]).decode(),
                      f"the target's authority: {made}")
                check(proxy.heads[-1] == ["CONNECT backend.invalid:50051 HTTP/1.1", "Host: backend.invalid:50051"],
                      f"{proxy.heads[-1]}")
            # Many calls, one tunnel.
            before = proxy.tunnels
            done = run("call", "-o", "json", "--quiet", "-n", "200", "-c", "20", "backend.invalid:50051", HEADERS,
                       env={**CLEAN, "http_proxy": proxy.url})
            check(json.loads(done.stdout)["summary"]["ok"] == 200, done.stdout)
            check(proxy.tunnels == before + 1, f"{proxy.tunnels - before} tunnels")


def test_userinfo():
    with running("backend") as backend, Proxy({"backend.invalid:443": backend.listening()}) as proxy:
        url = proxy.url.replace("http://", "http://me%40test:p%3Ass@")
        made = call("dns:///backend.invalid", env={"grpc_proxy": url})
        check(made["code"] == 0, f"{made}")
        sent = base64.b64encode(b"me@test:p:ss").decode()
        check(proxy.heads[-1] == ["CONNECT backend.invalid:443 HTTP/1.1", "Host: backend.invalid:443",
                                  f"Proxy-Authorization: Basic {sent}"], f"{proxy.heads[-1]}")
        check("Basic" not in bytes.fromhex(made["response_hex"]).decode(), "the backend gets none of it")


def test_tls_inside():
    with tempfile.TemporaryDirectory() as folder:
        pki = Pki(folder)
        cert, key = pki.make("server", "DNS:backend.invalid")
        with running("backend", "--tls-cert", cert, "--tls-key", key) as backend:
            address = backend.listening()
            with Proxy({"backend.invalid:443": address, "other.invalid:443": address}) as proxy:
                tls = ("--creds", "tls", "--ca", pki.ca)
                made = call("dns:///backend.invalid", *tls, env={"https_proxy": proxy.url})
                check(made["code"] == 0, f"the certificate is the target's, not the proxy's: {made}")
                made = call("dns:///other.invalid", *tls, env={"https_proxy": proxy.url}, status=1)
                check(made["status"] == "UNAVAILABLE" and "other.invalid" in made["message"], f"{made}")


def test_exemptions():
    with running("backend") as backend, Proxy() as proxy:
        address = backend.listening()
        # This machine's own addresses, with and without a name.
        for target in (f"ipv4:{address}", address, f"localhost:{address.rsplit(':', 1)[1]}"):
            check(call(target, env={"grpc_proxy": proxy.url})["code"] == 0, target)
        check(not proxy.heads, "the proxy was not asked")
        # Exempt names are resolved here, and this one is nobody's.
        made = call("dns:///backend.invalid:1", env={"grpc_proxy": proxy.url, "no_grpc_proxy": "x.test, .invalid"}, status=1)
        check("backend.invalid" in made["message"] and not proxy.heads, f"{made}")


def test_refusals():
    with Proxy() as proxy:
        env = {"grpc_proxy": proxy.url}
        for answer, wanted in (
            (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nnope", "HTTP status 403 Forbidden"),
            (b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n",
             "HTTP status 407 Proxy Authentication Required"),
            (b"\x00\x01\x02garbage\r\n\r\n", "its answer is not HTTP/1"),
            (b"HTTP/1.1 200 OK\r\nX: y\r\n", "it closed the connection"),
            (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 10_000_000 + b"\r\n\r\n",
             "the head of its answer has more than 8192 bytes"),
        ):
            proxy.answer = answer
            made = call("dns:///backend.invalid:50051", env=env, status=1)
            check(made["status"] == "UNAVAILABLE", f"{made}")
            check(f"the proxy {proxy.url[7:]} did not connect to backend.invalid:50051: {wanted}" in made["message"], f"{made}")


def test_hang_ends_with_the_deadline():
    with Proxy() as proxy:
        proxy.answer = "hang"

        def unanswered(seconds):
            done = run("call", "-o", "json", "--deadline", f"{seconds}s", "dns:///backend.invalid:50051", HEADERS,
                       env={**CLEAN, "grpc_proxy": proxy.url}, status=1)
            return json.loads(done.stdout.splitlines()[0])["call"]

        made = with_time(unanswered, lambda made: "CONNECTING" in made["message"])
        check(made["status"] == "DEADLINE_EXCEEDED", f"{made}")


def test_no_proxy_there():
    url = f"http://{free_address()}"
    made = call("dns:///backend.invalid:50051", env={"grpc_proxy": url}, status=1)
    check(made["status"] == "UNAVAILABLE" and f"failed to connect to the proxy {url[7:]}: Connection refused"
          in made["message"], f"{made}")
    # A value that is not the URL of a proxy is ignored.
    done = run("call", "-o", "json", "dns:///backend.invalid:50051", HEADERS, "-v",
               env={**CLEAN, "grpc_proxy": "socks5://u:secret@127.0.0.1:1"}, status=1)
    check("grpc_proxy is not the URL of an HTTP proxy" in done.stderr and "secret" not in done.stderr, done.stderr)


WRAPPER = "type.googleapis.com/envoy.extensions.transport_sockets.http_11_proxy.v3.Http11ProxyUpstreamTransport"
PROXY_KEY = "envoy.http11_proxy_transport_socket.proxy_address"


def address_of(text):
    host, port = text.rsplit(":", 1)
    return {"socket_address": {"address": host, "port_value": int(port)}}


def proxied(text):
    return {"typed_filter_metadata": {
        PROXY_KEY: {"@type": "type.googleapis.com/envoy.config.core.v3.Address", **address_of(text)}}}


def test_by_xds():
    """A86: the endpoint's proxy, else its locality's, else none; and only where the cluster says so."""
    with running("backend", "--name", "b1") as backend, tempfile.TemporaryDirectory() as folder:
        address = backend.listening()
        with Proxy({address: address}) as one, Proxy({address: address}) as two:
            path = os.path.join(folder, "mesh.json")
            wrapped = {"transport_socket": {"name": "proxy", "typed_config": {"@type": WRAPPER}}}

            def mesh(version, wrapper, endpoint_proxy, locality_proxy):
                assignment = endpoints("orders", address)
                locality = assignment["endpoints"][0]
                if endpoint_proxy:
                    locality["lb_endpoints"][0]["metadata"] = proxied(endpoint_proxy.url[7:])
                if locality_proxy:
                    locality["metadata"] = proxied(locality_proxy.url[7:])
                route = {"match": {"prefix": ""}, "route": {"cluster": "orders"}}
                write_resources(path, version, listener("orders", "r"), routes("r", route), cluster("orders", **wrapper), assignment)

            mesh("1", {}, one, two)
            with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path, "--strict") as server:
                at = server.listening()
                for version, (wrapper, endpoint_proxy, locality_proxy, wanted) in enumerate((
                        ({}, one, two, None), (wrapped, one, two, one), (wrapped, None, two, two), (wrapped, None, None, None))):
                    mesh(str(version + 2), wrapper, endpoint_proxy, locality_proxy)
                    until(lambda w=wanted: reached(at, address, one, two) == w)
            check(one.heads[-1][0] == two.heads[-1][0] == f"CONNECT {address} HTTP/1.1", f"{one.heads[-1]} {two.heads[-1]}")


def simple_mesh(path, address, **fields):
    write_resources(path, "1", listener("orders", "r"), routes("r", {"match": {"prefix": ""}, "route": {"cluster": "orders"}}),
                    cluster("orders", **fields), endpoints("orders", address))


def through(server_uri, creds, **more):
    """The bootstrap of that control plane and channel credentials."""
    env = bootstrap(server_uri)
    config = json.loads(env["GRPC_XDS_BOOTSTRAP_CONFIG"])
    config["xds_servers"][0]["channel_creds"] = [creds]
    return {**env, "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps({**config, **more})}


def test_control_plane():
    """A1, A86: the control plane is reached by the environment's proxy, endpoints are not."""
    with tempfile.TemporaryDirectory() as folder, running("backend") as backend:
        address, path, pki = backend.listening(), os.path.join(folder, "mesh.json"), Pki(folder)
        simple_mesh(path, address)
        cert, key = pki.make("cp", "DNS:cp.invalid")
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as server, \
                contextlib.ExitStack() as stack:
            at = server.listening()
            front, other = (stack.enter_context(TlsFront(at, cert, key)) for _ in range(2))
            proxy = stack.enter_context(Proxy({"cp.invalid:443": front.address}))
            tls = {"type": "tls", "config": {"ca_certificate_file": pki.ca}}
            env = {**through("dns:///cp.invalid", tls), "https_proxy": proxy.url}
            made = call("xds:///orders", env=env)
            check(made["code"] == 0 and made["peer"] == address, f"{made}")
            check([head[0] for head in proxy.heads] == ["CONNECT cp.invalid:443 HTTP/1.1"], f"one tunnel: {proxy.heads}")
            check(front.connections == 1 and b"cp.invalid" in proxy.carried, "TLS through the tunnel, with the control plane")
            check(b"PRI * HTTP/2" not in proxy.carried and b"envoy" not in proxy.carried, "the proxy reads none of it")
            # The certificate is the control plane's, by the name of its server_uri.
            proxy.names["other.invalid:443"] = other.address
            made = call("xds:///orders", env={**env, **through("dns:///other.invalid", tls)}, status=1)
            check(other.connections >= 1, "the other name leads there")
            check(made["status"] == "UNAVAILABLE" and 'not valid for "other.invalid"' in made["message"], f"{made}")
            # What the proxy refuses is said; nothing goes around it.
            proxy.answer = b"HTTP/1.1 403 Forbidden\r\n\r\n"
            made = call("xds:///orders", env=env, status=1)
            check(made["status"] == "UNAVAILABLE" and
                  f"the proxy {proxy.url[7:]} did not connect to cp.invalid:443: HTTP status 403" in made["message"], f"{made}")
            check(front.connections == 1, f"the first call's alone: {front.connections}")


def test_control_plane_in_the_clear():
    """A control plane without TLS goes through the same proxy; no_grpc_proxy exempts it."""
    with tempfile.TemporaryDirectory() as folder, running("backend") as backend:
        address, path = backend.listening(), os.path.join(folder, "mesh.json")
        simple_mesh(path, address)
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as server, \
                Proxy({"cp.invalid:18000": server.listening()}) as proxy:
            env = {**through("dns:///cp.invalid:18000", {"type": "insecure"}), "https_proxy": proxy.url}
            check(call("xds:///orders", env=env)["code"] == 0, "by the proxy")
            check([head[0] for head in proxy.heads] == ["CONNECT cp.invalid:18000 HTTP/1.1"], f"{proxy.heads}")
            made = call("xds:///orders", env={**env, "no_grpc_proxy": "cp.invalid"}, status=1)
            check("cp.invalid" in made["message"] and len(proxy.heads) == 1, f"its name is asked for here: {made}")


TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"


def test_by_xds_with_tls():
    """A86: the endpoint's proxy carries TLS that is spoken with the endpoint (A29)."""
    with tempfile.TemporaryDirectory() as folder:
        path, pki = os.path.join(folder, "mesh.json"), Pki(folder)
        cert, key = pki.make("server", "DNS:orders.mesh.test")
        with running("backend", "--tls-cert", cert, "--tls-key", key) as backend:
            address = backend.listening()
            with Proxy({address: address}) as proxy:
                def mesh(name):
                    context = {"@type": TLS, "common_tls_context": {"validation_context": {
                        "ca_certificate_provider_instance": {"instance_name": "roots"},
                        "match_subject_alt_names": [{"exact": name}]}}}
                    wrapper = {"@type": WRAPPER, "transport_socket": {"name": "tls", "typed_config": context}}
                    assignment = endpoints("orders", address)
                    assignment["endpoints"][0]["lb_endpoints"][0]["metadata"] = proxied(proxy.url[7:])
                    write_resources(path, name, listener("orders", "r"),
                                    routes("r", {"match": {"prefix": ""}, "route": {"cluster": "orders"}}),
                                    cluster("orders", transport_socket={"name": "proxy", "typed_config": wrapper}), assignment)

                provider = {"plugin_name": "file_watcher", "config": {"ca_certificate_file": pki.ca}}
                for name, status in (("orders.mesh.test", 0), ("other.mesh.test", 1)):
                    mesh(name)
                    with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as server:
                        env = through(server.listening(), {"type": "insecure"}, certificate_providers={"roots": provider})
                        made = call("xds:///orders", "--creds", "xds", env=env, status=status)
                    if status == 0:
                        check(made["peer"] == address and proxy.tunnels == 1, f"{made}")
                    else:
                        check(made["status"] == "UNAVAILABLE" and "subject alternative names" in made["message"], f"{made}")
                check(proxy.tunnels >= 2 and b"PRI * HTTP/2" not in proxy.carried and b"torc.test" not in proxy.carried,
                      f"no plaintext: {proxy.carried[:200]}")


def reached(control_plane, address, one, two):
    """The proxy, `one` or `two`, that a call of a new process went through; None: neither."""
    before = one.tunnels, two.tunnels
    made = call("xds:///orders", env=bootstrap(control_plane))
    check(made["code"] == 0 and made["peer"] == address, f"{made}")
    return one if one.tunnels > before[0] else two if two.tunnels > before[1] else None


def until(held):
    """Waits until held() is true: a changed file takes a while to reach the control plane's clients."""
    deadline = time.monotonic() + WAIT
    while not held():
        check(time.monotonic() < deadline, "the change arrives")


if __name__ == "__main__":
    main(test_tunnel_without_dns, test_userinfo, test_tls_inside, test_exemptions, test_refusals,
         test_hang_ends_with_the_deadline, test_no_proxy_there, test_by_xds, test_control_plane,
         test_control_plane_in_the_clear, test_by_xds_with_tls)
