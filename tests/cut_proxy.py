"""A proxy on loopback that passes bytes on, until a test cuts all its connections. Later ones are passed on again."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Lock, Thread


class CutProxy:
    """Listens on `port`, and connects to `upstream`."""

    def __init__(self, upstream: int) -> None:
        self._upstream, self._lock = upstream, Lock()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """Cut all connections, and return how many there were."""
        with self._lock:
            sockets, self._open = self._open, []
        for each in sockets:
            with suppress(OSError):  # it has ended
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        return len(sockets) // 2

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                here, _ = self._listener.accept()
                there = socket.create_connection(("127.0.0.1", self._upstream))
                with self._lock:
                    self._open += [here, there]
                for pair in ((here, there), (there, here)):
                    Thread(target=_pump, args=pair, daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):  # cut
        while data := source.recv(1 << 16):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
