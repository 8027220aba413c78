"""Sees the programs beside a node die, as soon as the kernel does (CLI-005).

A program that is killed says no goodbye. Its silence would be noticed after seconds, in which what it holds waits; the
kernel tells at once through a descriptor of the process.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Any, Final

from weft.cores.chains.messages import ProcessAttached, ProcessEnded

LAST_WORDS_S: Final = 0.02  # what it said before is in a socket's buffer, and is heard first


class Watch:
    """The processes of all clients; `order` gives a core an order."""

    def __init__(self, order: Callable[[str, Any], None]) -> None:
        self._order = order
        self._watched: dict[int, int] = {}
        """The descriptor of each process."""

    def hear(self, event: Any) -> None:
        """A client has attached, and the kernel has said what process it is: look after that."""
        if isinstance(event, ProcessAttached) and event.process not in self._watched:
            with contextlib.suppress(OSError):  # a kernel without these descriptors, or it is dead: then silence tells
                self._begin(event.process)

    def close(self) -> None:
        """Watch no process any more."""
        for process in list(self._watched):
            self._end(process)

    def _begin(self, process: int) -> None:
        descriptor = self._watched[process] = os.pidfd_open(process)
        asyncio.get_running_loop().add_reader(descriptor, self._died, process)

    def _died(self, process: int) -> None:
        self._end(process)
        asyncio.get_running_loop().call_later(LAST_WORDS_S, self._order, "chains", ProcessEnded(process))

    def _end(self, process: int) -> None:
        descriptor = self._watched.pop(process)
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
