"""A TCP relay on 127.0.0.1 in front of a server, for suites that watch or change what passes."""
import socket
import threading


class Relay:
    """Subclasses pass bytes on in `to_server(client, server)` and `to_client(server, client)`, each on a thread of its own."""

    def __init__(self, server):
        host, port = server.rsplit(":", 1)
        self.server = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.server)
            threading.Thread(target=self.to_server, args=(client, server), daemon=True).start()
            threading.Thread(target=self.to_client, args=(server, client), daemon=True).start()

    def close(self):
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
