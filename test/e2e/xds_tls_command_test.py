"""torc call --creds xds: mutual TLS as the control plane says, a certificate replaced under 100 calls a second; a name
that is not the backend's; a plaintext backend. The backend prints the certificates that it saw."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import (LONG, bootstrap, calls, check, cluster, ended, endpoints, listener, main, routes, run, running,
                         write_resources)
from support.pki import Pki, serial
from support.proxy import proxy_to

ROUTE = {"match": {"prefix": ""}, "route": {"cluster": "orders"}}
TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"


class MeshPki(Pki):
    """A client's certificate is cert.pem and key.pem, roots are ca.pem."""

    def use(self, name):
        """Makes it the client's, one file after the other."""
        for part in ("cert", "key"):
            os.replace(self.path(f"{name}-{part}.pem"), self.path(f"{part}.pem"))

    def bootstrap(self, control_plane):
        env = bootstrap(control_plane)
        config = json.loads(env["GRPC_XDS_BOOTSTRAP_CONFIG"])
        config["certificate_providers"] = {"mesh": {"plugin_name": "file_watcher", "config": {
            "ca_certificate_file": self.path("ca.pem"), "certificate_file": self.path("cert.pem"),
            "private_key_file": self.path("key.pem"), "refresh_interval": "1s"}}}
        return {**env, "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(config)}


def mesh(address, name):
    instance = {"instance_name": "mesh"}
    context = {"@type": TLS, "common_tls_context": {
        "tls_certificate_provider_instance": instance,
        "validation_context": {"ca_certificate_provider_instance": instance,
                               "match_subject_alt_names": [{"exact": name}]}}}
    return [listener("orders", "orders-routes"), routes("orders-routes", ROUTE), endpoints("orders", address),
            cluster("orders", transport_socket={"name": "envoy.transport_sockets.tls", "typed_config": context})]


def test_mutual_tls_and_rotation():
    with tempfile.TemporaryDirectory() as folder:
        pki, path = MeshPki(folder), os.path.join(folder, "mesh.json")
        pki.make("server", "DNS:orders.mesh.test")
        serials = [serial(pki.make(name, "URI:spiffe://mesh.test/a")[0]) for name in ("first", "second")]
        pki.use("first")
        with running("backend", "--tls-cert", pki.path("server-cert.pem"), "--tls-key", pki.path("server-key.pem"),
                     "--client-ca", pki.path("ca.pem"), "--count-log") as backend, proxy_to(backend.listening()) as way:
            write_resources(path, "1", *mesh(way.address, "orders.mesh.test"))
            with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as server:
                env = pki.bootstrap(server.listening())
                with running("call", "-o", "json", "--creds", "xds", "xds:///orders", "a.B/C", "--rps", "100", "--duration",
                             LONG, env=env) as load:
                    for _ in range(50):
                        ended(load)
                    pki.use("second")
                    way.wait_heard(2)  # the connection with the second
                    for _ in range(load.lines.qsize() + 100):
                        ended(load)
            write_resources(path, "2", *mesh(way.address, "other.mesh.test"))
            with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as server:
                failed = run("call", "--creds", "xds", "xds:///orders", "a.B/C", env=pki.bootstrap(server.listening()),
                             status=1)
                check("UNAVAILABLE" in failed.stdout and "subject alternative names" in failed.stdout,
                      failed.stdout + failed.stderr)
            backend.stop()
            seen = json.loads(backend.rest()[-1])["backend"]["client_certificates"]
            check([client["serial"] for client in seen] == serials, f"{serials}: {seen}")
            check(seen[0]["connections"] == 1, str(seen))


def test_nothing_goes_in_the_clear_instead():
    with tempfile.TemporaryDirectory() as folder:
        pki, path = MeshPki(folder), os.path.join(folder, "mesh.json")
        pki.make("first", "URI:spiffe://mesh.test/a")
        pki.use("first")
        with running("backend", "--count-log") as backend:
            at = backend.listening()
            write_resources(path, "1", *mesh(at, "orders.mesh.test"))
            with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as server:
                env = pki.bootstrap(server.listening())
                failed = run("call", "--creds", "xds", "xds:///orders", "a.B/C", env=env, status=1)
                check("TLS handshake" in failed.stdout, failed.stdout + failed.stderr)
                # With credentials of its own the channel does as those say (A29).
                _, summary = calls("xds:///orders", "a.B/C", env=env)
                check(summary["by_peer"] == {at: 1}, str(summary))
            backend.stop()
            check(json.loads(backend.rest()[-1])["backend"]["requests"] == 1, "one request, that of the insecure channel")


def test_the_wrong_kind_of_pem():
    with tempfile.TemporaryDirectory() as folder:
        pki = MeshPki(folder)
        ca, key = pki.path("ca.pem"), pki.path("ca-key.pem")
        for args, file, text in ((["--ca", key], key, "no CERTIFICATE, but a PRIVATE KEY"),
                                 (["--cert", ca, "--key", ca], ca, "no PRIVATE KEY, but a CERTIFICATE")):
            done = run("call", "--creds", "tls", *args, "127.0.0.1:1", "a/b", status=1)
            check(f"{args[-2]} {file}: the PEM file has {text}" in done.stderr, done.stderr)
        done = run("backend", "--tls-cert", ca, "--tls-key", key, "--client-ca", key, status=1)
        check(f"--client-ca {key}: the PEM file has no CERTIFICATE" in done.stderr, done.stderr)


def test_usage():
    with tempfile.NamedTemporaryFile() as pem:
        pem.write(b"-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n")
        pem.flush()
        for args in (["--creds", "insecure", "--ca", pem.name], ["--plaintext", "--ca", pem.name], ["--creds", "google_default", "--cert", pem.name, "--key", pem.name]):
            run("call", *args, "xds:///orders", "a.B/C", status=2)


main(test_mutual_tls_and_rotation, test_nothing_goes_in_the_clear_instead, test_the_wrong_kind_of_pem, test_usage)
