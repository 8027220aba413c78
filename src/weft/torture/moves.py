"""The fault of a machine that restarts at another address, with the same disk and name, and later at its first one."""

from collections.abc import Callable
from pathlib import Path

from weft.torture.clients import Machine
from weft.torture.files import node_text
from weft.torture.plan import MOVE
from weft.torture.room import Net, host_of, number_of, other_host_of


class Mover:
    """Moves nodes of a room whose files are in `place`: `kill` ends a node, `let_go` lets it start again."""

    def __init__(
        self,
        place: Path,
        machines: dict[str, Machine],
        net: Net,
        kill: Callable[[str], None],
        let_go: Callable[[str], None],
    ) -> None:
        self._place, self._machines, self._net = place, machines, net
        self._kill, self._let_go = kill, let_go
        self.acts = {
            MOVE: (lambda name: self._move(name, other_host_of), lambda name: self._move(name, host_of)),
        }
        """The functions that begin and end the fault."""

    def _move(self, name: str, host: Callable[[int], str]) -> None:
        self._kill(name)
        number = number_of(self._machines, name)
        self._net.place(number, host(number))
        there = {**self._machines, name: self._machines[name]._replace(host=host(number))}
        text = node_text(there, name, self._place, self._place / "lake")
        (self._place / f"{name}.toml").write_text(text, "utf-8")
        self._let_go(name)
