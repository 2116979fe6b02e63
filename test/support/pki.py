"""Certificates made on the spot by the openssl command, and TLS in front of a server that has none."""
import contextlib
import os
import select
import socket
import ssl
import subprocess
import threading


def openssl(*args):
    return subprocess.run(["openssl", *args], check=True, capture_output=True, timeout=60, text=True).stdout


NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Pki:
    """A CA in a folder (ca.pem, of the subject /CN=NAME), and certificates by it."""

    def __init__(self, folder, name="ca"):
        self.folder = folder
        self.ca = self.path("ca.pem")
        openssl("req", "-x509", *NEW_KEY, "-days", "2", "-keyout", self.path("ca-key.pem"), "-out", self.ca, "-subj",
                f"/CN={name}")

    def path(self, name):
        return os.path.join(self.folder, name)

    def make(self, name, sans):
        """Writes NAME-cert.pem and NAME-key.pem; their paths."""
        cert, key, request = (self.path(f"{name}-{part}.pem") for part in ("cert", "key", "request"))
        openssl("req", "-new", *NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        with open(self.path("extensions"), "w", encoding="ascii") as out:
            out.write(f"subjectAltName={sans}\n")
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.path("ca-key.pem"), "-CAcreateserial", "-out",
                cert, "-days", "2", "-extfile", self.path("extensions"))
        return cert, key


def serial(cert):
    return openssl("x509", "-in", cert, "-noout", "-serial").strip().split("=")[1]


class TlsFront:
    """Terminates TLS with ALPN h2 on an address of its own, and forwards the plaintext to `target` ("HOST:PORT")."""

    def __init__(self, target, cert, key):
        host, port = target.rsplit(":", 1)
        self.target = host, int(port)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        self.context.set_alpn_protocols(["h2"])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.connections = 0
        self.sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.connections += 1
                self.sockets.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with contextlib.suppress(OSError):
            outer = self.context.wrap_socket(client, server_side=True)
            inner = socket.create_connection(self.target)
            self.sockets += [outer, inner]
            while self._pass(outer, inner):
                pass
            outer.close()
            inner.close()

    @staticmethod
    def _pass(outer, inner):
        # What TLS has decrypted already makes no socket readable.
        ready = [outer] if outer.pending() else select.select([outer, inner], [], [])[0]
        for source in ready:
            data = source.recv(65536)
            if not data:
                return False
            (inner if source is outer else outer).sendall(data)
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for s in [self.listener, *self.sockets]:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()
