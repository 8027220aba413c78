"""A cable between processes of this machine that can be cut: a relay of TCP connections."""

import contextlib
import socket
import threading
from typing import Final

PIECE_BYTES: Final = 1 << 16
DIAL_S: Final = 2.0


class Cable:
    """While joined, forwards connections at one loopback port to another, in both directions."""

    def __init__(self, port: int, target: int) -> None:
        self._joined = threading.Event()
        self._joined.set()
        self._target = target
        self._lock = threading.Lock()
        self._ends: set[socket.socket] = set()
        self._door = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close all connections, and close new ones at once, so that nothing passes."""
        with self._lock:
            self._joined.clear()
            for end in self._ends:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def join(self) -> None:
        """Forward new connections again."""
        self._joined.set()

    def close(self) -> None:
        """For good."""
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
            except OSError:
                return  # closed
            try:
                self._connect(near)
            except OSError:
                near.close()

    def _connect(self, near: socket.socket) -> None:
        if not self._joined.is_set():
            near.close()
            return
        far = socket.create_connection(("127.0.0.1", self._target), DIAL_S)
        far.settimeout(None)
        with self._lock:
            self._ends |= {near, far}
            if not self._joined.is_set():  # cut meanwhile
                near.shutdown(socket.SHUT_RDWR)
        left = [near, far]
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=self._pass_on, args=(source, sink, left), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, left: list[socket.socket]) -> None:
        """Copy bytes until either end closes; the last of both directions closes both sockets."""
        with contextlib.suppress(OSError):
            while piece := source.recv(PIECE_BYTES):
                sink.sendall(piece)
        with self._lock:
            left.remove(source)
            for end in (source, sink):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            if not left:
                for end in (source, sink):
                    self._ends.discard(end)
                    end.close()
