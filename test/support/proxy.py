"""A TCP proxy of the test between a client and its control plane, which can misbehave on request."""
import contextlib
import os
import selectors
import socket
import threading

from support.kit import WAIT, Failure, free_address


class Proxy:
    """Forwards from an address of its own to `target` ("127.0.0.1:PORT").

    refuse()   closes all connections; new ones are refused
    silence()  closes all connections; new ones are accepted and read, and never answered
    cut()      closes all connections; new ones are forwarded
    stall()    all connections, new ones too, stay open, and are neither read nor written
    forward()  forwards again, also the bytes that waited during stall(); closes the connections of silence()"""

    def __init__(self, target):
        self.target = self._pair(target)
        self.lock = threading.Condition()
        self.mode, self.wanted = "", "forward"
        self.port = int(free_address().rsplit(":", 1)[1])  # which stays this proxy's while connections are refused
        self.listener = None
        self.pairs = {}  # socket -> its other side, or None: nobody
        self.heard = 0  # connections on which the client has spoken since the mode was set
        self.received = 0  # bytes that the target sent
        self.spoke, self.servers = set(), set()
        self.ending = False
        self.wake_out, self.wake_in = os.pipe()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.wake_out, selectors.EVENT_READ)
        self._listen()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        self._set("forward")

    @staticmethod
    def _pair(address):
        host, port = address.rsplit(":", 1)
        return host, int(port)

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def refuse(self):
        self._set("refuse")

    def silence(self):
        self._set("silence")

    def cut(self):
        self._set("cut")
        self._set("forward")

    def stall(self):
        self._set("stall")

    def forward(self):
        self._set("forward")

    def wait_heard(self, count=1):
        """Waits until the client spoke on so many connections since the mode was set."""
        with self.lock:
            if not self.lock.wait_for(lambda: self.heard >= count, timeout=WAIT):
                raise Failure(f"the client did not come to the proxy in mode {self.mode} within {WAIT} s")

    def take_received(self):
        """The number of bytes that came from the target since the last call of take_received."""
        with self.lock:
            received, self.received = self.received, 0
        return received

    def close(self):
        self.ending = True
        os.write(self.wake_in, b"x")
        self.thread.join(timeout=WAIT)
        self._drop_all()
        self._close_listener()
        os.close(self.wake_in)
        os.close(self.wake_out)

    def _set(self, mode):
        with self.lock:
            self.wanted = mode
            os.write(self.wake_in, b"x")
            if not self.lock.wait_for(lambda: self.mode == mode, timeout=WAIT):
                raise Failure(f"the proxy does not get to mode {mode}")

    # The methods below run on the thread, or while it does not run: in __init__ and close.

    def _listen(self):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(16)
        self.selector.register(self.listener, selectors.EVENT_READ)

    def _close_listener(self):
        if self.listener:
            self.selector.unregister(self.listener)
            self.listener.close()
            self.listener = None

    def _watch(self, sock, on):
        if on:
            self.selector.register(sock, selectors.EVENT_READ)
        elif sock in self.selector.get_map():
            self.selector.unregister(sock)

    def _drop(self, sock):
        for one in (sock, self.pairs.get(sock)):
            if one is not None and one in self.pairs:
                del self.pairs[one]
                self.servers.discard(one)
                self._watch(one, False)
                one.close()

    def _drop_all(self):
        for sock in list(self.pairs):
            self._drop(sock)

    def _turn_to(self, mode):
        if mode in ("refuse", "silence", "cut") or self.mode == "silence":
            self._drop_all()
        if mode == "refuse":
            self._close_listener()
        elif not self.listener:
            self._listen()
        for sock in self.pairs:
            if mode == "stall":
                self._watch(sock, False)
            elif self.mode == "stall":
                self._watch(sock, True)
        self.heard = 0
        self.spoke = set()
        self.mode = mode

    def _take(self):
        client, _ = self.listener.accept()
        if self.mode == "silence":
            self.pairs[client] = None
            self._watch(client, True)
            return
        try:
            server = socket.create_connection(self.target, timeout=WAIT)
        except OSError:
            client.close()
            return
        self.pairs[client], self.pairs[server] = server, client
        self.servers.add(server)
        if self.mode != "stall":
            self._watch(client, True)
            self._watch(server, True)

    def _pass_on(self, sock):
        other = self.pairs.get(sock)
        try:
            data = sock.recv(65536)
            if data and other is not None:
                other.sendall(data)
        except OSError:
            data = b""
        if sock in self.servers:
            self.received += len(data)
        elif data and sock not in self.spoke:
            self.spoke.add(sock)
            self.heard += 1
        if not data:
            self._drop(sock)

    def _run(self):
        while not self.ending:
            ready = [key.fileobj for key, _ in self.selector.select()]
            with self.lock:
                for one in ready:
                    if one == self.wake_out:
                        os.read(self.wake_out, 64)
                    elif one is self.listener:
                        self._take()
                    elif one in self.pairs:
                        self._pass_on(one)
                if self.wanted != self.mode:
                    self._turn_to(self.wanted)
                self.lock.notify_all()


@contextlib.contextmanager
def proxy_to(target):
    proxy = Proxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
