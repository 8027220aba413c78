"""A cable between two nodes that can be pulled: each knows of the other only the relay's ports."""

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.fabric.edited import Edited
from weft.cli.fleet import free_blocks

PIECE = 65_536
TABLE = """
[doc.session.friday]
mdns = false
listen = "127.0.0.1:{port}"
advertise = "127.0.0.1:{relay}"
peers = ["127.0.0.1:{other}"]
operator = "{name}"

[doc.timing]
beat = "300ms"
evasive = "600ms"
gone = "1s"
gossip = "300ms"
"""


class Relay:
    """Passes bytes on from one port to another, unless it is cut."""

    def __init__(self, port: int, target: int) -> None:
        self._target, self._is_cut = target, False
        self._open: set[socket.socket] = set()
        self._server = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._is_cut = True
        for end in list(self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def join(self) -> None:
        self._is_cut = False

    def close(self) -> None:
        self.cut()
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            if self._is_cut:
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            self._open |= {near, far}
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(PIECE):
                sink.sendall(piece)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
            self._open.discard(end)


class Cable(Edited):
    """Two nodes of one session, and a relay in each direction."""

    NAMES = ("root", "sensor-a")

    def __init__(self, place: Path) -> None:
        super().__init__(place, {"root": "", "sensor-a": "root"})
        (block,) = free_blocks(1, 21_500)
        self.listen = {name: block + number for number, name in enumerate(self.NAMES)}
        self.relayed = {name: block + 5 + number for number, name in enumerate(self.NAMES)}
        self.relays = [Relay(self.relayed[name], self.listen[name]) for name in self.NAMES]

    def __enter__(self) -> Self:
        super().__enter__()
        self.until(self.is_mesh, "both know each other")
        return self

    def __exit__(self, *why: object) -> None:
        for relay in self.relays:
            relay.close()
        super().__exit__(*why)

    def settings(self, name: str, port: int, state: Path) -> str:
        other = next(one for one in self.NAMES if one != name)
        return super().settings(name, port, state) + TABLE.format(
            port=self.listen[name], relay=self.relayed[name], other=self.relayed[other], name=name
        )

    def pull(self) -> None:
        for relay in self.relays:
            relay.cut()

    def plug(self) -> None:
        for relay in self.relays:
            relay.join()
