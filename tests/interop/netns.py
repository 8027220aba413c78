"""Networks that a test can take apart: a namespace per machine, joined by switches in a namespace of their own (root).

Each machine has one interface, `eth0`, with the address `10.77.0.N`; its cable ends at a port of the switches. Moving a
port to another switch cuts both directions at once and in silence, as a pulled cable between two switches does. Nothing
outside these namespaces changes.
"""

import asyncio
import ctypes
import itertools
import os
import subprocess
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import pytest

from tests.interop.programs import needed
from tests.patience import PATIENCE_S

T = TypeVar("T")
CLONE_NEWNET: Final = 0x4000_0000
NOBODY: Final = "02:00:00:00:00:99"
"""A hardware address that no machine has."""
ANSWER_S: Final = PATIENCE_S
_numbers: Final = itertools.count(1)


def host_of(number: int) -> str:
    """The address of a machine."""
    return f"10.77.0.{number}"


class Net:
    """Machines 1 to `count`, all at one switch; `with` takes everything away again."""

    def __init__(self, count: int) -> None:
        self.numbers = range(1, count + 1)
        self._ip = needed("ip")
        self._base = f"weft-{os.getpid()}-{next(_numbers)}"
        self._insides: dict[int, Inside] = {}

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for inside in self._insides.values():
            inside.end()
        for name in ("switches", *map(str, self.numbers)):
            subprocess.run([self._ip, "netns", "del", f"{self._base}-{name}"], check=False, capture_output=True)

    def _make(self) -> None:
        switches = self.namespace("switches")
        self._run("netns", "add", switches)
        for switch in self.numbers:  # as many as there may be parts
            self._run("-n", switches, "link", "add", f"s{switch}", "type", "bridge")
            self._run("-n", switches, "link", "set", f"s{switch}", "up")
        for number in self.numbers:
            name = self.namespace(number)
            self._run("netns", "add", name)
            cable = ("type", "veth", "peer", "name", f"p{number}", "netns", switches)
            self._run("-n", name, "link", "add", "eth0", *cable)
            self._run("-n", name, "address", "add", f"{host_of(number)}/24", "broadcast", "+", "dev", "eth0")
            for device in ("lo", "eth0"):
                self._run("-n", name, "link", "set", device, "up")
            self._run("-n", switches, "link", "set", f"p{number}", "up")
        self.heal()

    def namespace(self, name: int | str) -> str:
        """What a machine's network is called."""
        return f"{self._base}-{name}"

    def _run(self, *words: str) -> None:
        ran = subprocess.run([self._ip, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if ran.returncode:
            why = f"weft: ip {' '.join(words)}: {ran.stderr.strip()}"
            pytest.fail(
                f"{why}\n  this test makes networks of its own, so it has to be root, with CAP_SYS_ADMIN", False
            )

    # Cutting

    def split(self, *sides: Sequence[int]) -> None:
        """Each side at a switch of its own; nobody is told."""
        for switch, side in enumerate(sides, 1):
            for number in side:
                self._run("-n", self.namespace("switches"), "link", "set", f"p{number}", "master", f"s{switch}")

    def heal(self) -> None:
        """All at one switch."""
        self.split(self.numbers)

    def deafen(self, receiver: int, sender: int) -> None:
        """What `sender` sends to `receiver` reaches nobody any more; the other direction works on."""
        self._neighbour(sender, "replace", host_of(receiver), "lladdr", NOBODY, "nud", "permanent")

    def open(self, receiver: int, sender: int) -> None:
        """And does again."""
        self._neighbour(sender, "del", host_of(receiver))

    def _neighbour(self, at: int, do: str, *words: str) -> None:
        self._run("-n", self.namespace(at), "neighbour", do, *words, "dev", "eth0")

    # Being there

    def command(self, number: int, words: Sequence[str]) -> list[str]:
        """What starts a program at a machine."""
        return [self._ip, "netns", "exec", self.namespace(number), *words]

    def at(self, number: int) -> "Inside":
        """A thread of this process that stands at a machine."""
        found = self._insides.get(number)
        if found is None:
            found = self._insides[number] = Inside(self.namespace(number))
            found.start()
        return found


class Inside(threading.Thread):
    """A thread whose sockets are those of another namespace, with a loop of its own."""

    def __init__(self, namespace: str) -> None:
        super().__init__(daemon=True)
        self._namespace = Path("/run/netns") / namespace
        self._loop = asyncio.new_event_loop()

    def run(self) -> None:
        """Move there, and work until the end."""
        libc = ctypes.CDLL(None, use_errno=True)
        with self._namespace.open("rb") as there:
            if libc.setns(there.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        self._loop.run_forever()
        self._loop.close()

    def begin(self, asked: Coroutine[Any, Any, T]) -> "Future[T]":
        """Let something be done there."""
        return asyncio.run_coroutine_threadsafe(asked, self._loop)

    def call(self, asked: Coroutine[Any, Any, T]) -> T:
        """And wait for it."""
        return self.begin(asked).result(ANSWER_S)

    def end(self) -> None:
        """Come back."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.join(10)
