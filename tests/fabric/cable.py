"""A cable between two nodes that can be pulled: each knows of the other only the relay's ports."""

from pathlib import Path
from typing import Self

from tests.fabric.edited import Edited
from weft.cli.demos import cable
from weft.shell.blocks import free_blocks

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


class Cabled(Edited):
    """Two nodes of one session, and a relay in each direction."""

    NAMES = ("root", "sensor-a")

    def __init__(self, place: Path) -> None:
        super().__init__(place, {"root": "", "sensor-a": "root"})
        (block,) = free_blocks(1, 21_500)
        self.listen = {name: block + number for number, name in enumerate(self.NAMES)}
        self.relayed = {name: block + 5 + number for number, name in enumerate(self.NAMES)}
        self.relays = [cable.Cable(self.relayed[name], self.listen[name]) for name in self.NAMES]

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
