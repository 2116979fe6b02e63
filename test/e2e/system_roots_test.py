"""The system's roots, used if no roots are given: credentials tls, xds (A82), google_default, and those of the control
plane (A65). OpenSSL finds the system's by SSL_CERT_FILE and SSL_CERT_DIR, here a CA of the test."""
import contextlib
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import (LONG, bootstrap, check, cluster, endpoints, listener, main, routes, run, running, write_resources)
from support.pki import Pki, TlsFront, openssl

HEADERS = "torc.test.Backend/Headers"
TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"


def call(target, *args, env, status=0):
    done = run("call", "-o", "json", "--deadline", LONG, *args, target, HEADERS, env=env, status=status)
    return json.loads(done.stdout.splitlines()[0])["call"]


def roots_of(pki):
    """Environments in which the system trusts this CA: by a file, and by a folder of hashed names."""
    folder = pki.path("hashed")
    if not os.path.isdir(folder):
        os.mkdir(folder)
        os.symlink(pki.ca, os.path.join(folder, openssl("x509", "-in", pki.ca, "-noout", "-subject_hash").strip() + ".0"))
    return ({"SSL_CERT_FILE": pki.ca, "SSL_CERT_DIR": "/nonexistent"},
            {"SSL_CERT_FILE": "/nonexistent", "SSL_CERT_DIR": folder})


@contextlib.contextmanager
def world():
    """A PKI, a stranger's, and a TLS backend of the first."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        pki, stranger = Pki(folder, "the mesh's own"), Pki(other, "a stranger")
        cert, key = pki.make("server", "DNS:orders.mesh.test,IP:127.0.0.1")
        with running("backend", "--name", "b1", "--tls-cert", cert, "--tls-key", key, "--count-log") as backend:
            yield pki, stranger, backend


def expect_unknown(made):
    check(made["status"] == "UNAVAILABLE" and made["attempts"] == 0, f"{made}")
    check('certificate verify failed: ' in made["message"], f"{made}")
    check('the authority "/CN=the mesh\'s own" is not among the roots' in made["message"], f"it is named: {made}")


def requests(backend):
    backend.stop()
    return json.loads(backend.rest()[-1])["backend"]["requests"]


def test_tls():
    with world() as (pki, stranger, backend):
        address = backend.listening()
        for env in roots_of(pki):
            made = call(f"ipv4:{address}", "--creds", "tls", env=env)
            check(made["code"] == 0 and made["headers"]["x-backend"] == ["b1"], f"{env}: {made}")
        for env in (*roots_of(stranger), {"SSL_CERT_FILE": "/nonexistent", "SSL_CERT_DIR": "/nonexistent"}):
            expect_unknown(call(f"ipv4:{address}", "--creds", "tls", env=env, status=1))
        check(requests(backend) == 2, "those of the first")


def test_xds():
    with world() as (pki, stranger, backend), tempfile.TemporaryDirectory() as folder:
        address, path = backend.listening(), os.path.join(folder, "mesh.json")
        context = {"@type": TLS, "common_tls_context": {"validation_context": {
            "system_root_certs": {}, "match_subject_alt_names": [{"exact": "orders.mesh.test"}]}}}
        write_resources(path, "1", listener("orders", "r"),
                        routes("r", {"match": {"prefix": ""}, "route": {"cluster": "orders"}}), endpoints("orders", address),
                        cluster("orders", transport_socket={"name": "envoy.transport_sockets.tls", "typed_config": context}))
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path, "--strict") as server:
            mesh = bootstrap(server.listening())
            for env in roots_of(pki):
                made = call("xds:///orders", "--creds", "xds", env={**mesh, **env})
                check(made["code"] == 0 and made["peer"] == address, f"{env}: {made}")
            for env in roots_of(stranger):
                expect_unknown(call("xds:///orders", "--creds", "xds", env={**mesh, **env}, status=1))
        check(requests(backend) == 2, "those of the first")


def test_control_plane():
    with world() as (pki, stranger, _), running("backend") as backend, tempfile.TemporaryDirectory() as folder:
        address, path = backend.listening(), os.path.join(folder, "mesh.json")
        write_resources(path, "1", listener("orders", "r"),
                        routes("r", {"match": {"prefix": ""}, "route": {"cluster": "orders"}}), endpoints("orders", address),
                        cluster("orders"))
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as server, \
                TlsFront(server.listening(), pki.path("server-cert.pem"), pki.path("server-key.pem")) as front:
            mesh = bootstrap(front.address)
            config = json.loads(mesh["GRPC_XDS_BOOTSTRAP_CONFIG"])
            config["xds_servers"][0]["channel_creds"] = [{"type": "tls"}]
            mesh["GRPC_XDS_BOOTSTRAP_CONFIG"] = json.dumps(config)
            for env in roots_of(pki):
                check(call("xds:///orders", env={**mesh, **env})["code"] == 0, f"{env}")
            for env in roots_of(stranger):
                expect_unknown(call("xds:///orders", env={**mesh, **env}, status=1))


def test_google_default():
    with world() as (pki, stranger, backend), tempfile.TemporaryDirectory() as folder:
        address = backend.listening()
        account = os.path.join(folder, "account.json")
        key = os.path.join(folder, "key.pem")
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", key)
        with open(key, encoding="ascii") as pem, open(account, "w", encoding="ascii") as out:
            json.dump({"type": "service_account", "private_key": pem.read(), "private_key_id": "k",
                       "client_email": "me@project.test"}, out)
        google = {"GOOGLE_APPLICATION_CREDENTIALS": account, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": ""}
        for env in roots_of(pki):
            made = call(f"ipv4:{address}", "--creds", "google_default", env={**google, **env})
            check(made["code"] == 0 and "authorization: Bearer " in bytes.fromhex(made["response_hex"]).decode(), f"{made}")
        for env in roots_of(stranger):
            expect_unknown(call(f"ipv4:{address}", "--creds", "google_default", env={**google, **env}, status=1))
        check(requests(backend) == 2, "no token went to whom the roots do not vouch for")


if __name__ == "__main__":
    main(test_tls, test_xds, test_control_plane, test_google_default)
