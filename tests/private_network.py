"""A network of one's own on loopback: a certificate authority, and a proxy that leads every host to one port.

The authority and its certificate (for 127.0.0.1, localhost, far.example and two vendors' hosts) were made for these tests
alone, are trusted by nobody, and are valid until 2119.
"""

from __future__ import annotations

import contextlib
import select
import socket
import socketserver
import ssl
import threading
from pathlib import Path
from typing import Self

FOLDER = Path(__file__).with_name("data") / "private_ca"
AUTHORITY = str(FOLDER / "ca.pem")


def server_tls() -> ssl.SSLContext:
    """What a server with the certificate needs."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(FOLDER / "server.pem")
    return context


class Tunnel:
    """A proxy that takes `CONNECT` for any host and leads to one port of this machine. `hosts` are those that were asked."""

    def __init__(self, port: int) -> None:
        self.hosts: list[str] = []
        self._target = port
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), self._handler(), bind_and_activate=True)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[socketserver.StreamRequestHandler]:
        tunnel = self

        class Handler(socketserver.StreamRequestHandler):
            rbufsize = 0

            def handle(self) -> None:
                with contextlib.suppress(ConnectionError):
                    tunnel.lead(self.connection, self.rfile.readline())

        return Handler

    def lead(self, client: socket.socket, request_line: bytes) -> None:
        """Read the rest of the request's head, open the way, and pass on bytes until either side ends."""
        head = b""
        while not head.endswith(b"\r\n\r\n") and (byte := client.recv(1)):
            head += byte
        method, host, _ = request_line.split(b" ")
        assert method == b"CONNECT"
        self.hosts.append(host.decode())
        with socket.create_connection(("127.0.0.1", self._target)) as server:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            other = {client: server, server: client}
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    block = ready.recv(1 << 16)
                    if not block:
                        return
                    other[ready].sendall(block)
