"""Notices at once when a local program of a node dies (CLI-005).

A killed program sends no goodbye. Its silence would be noticed only after seconds, in which its messages wait. The kernel
reports its end at once, through a descriptor of the process.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Any, Final

from weft.cores.chains.messages import ProcessAttached, ProcessEnded

LAST_WORDS_S: Final = 0.02  # delay of the report, so that messages still in the socket's buffer are read first


class Watch:
    """Watches the processes of all clients; `order` gives a core an order."""

    def __init__(self, order: Callable[[str, Any], None]) -> None:
        self._order = order
        self._watched: dict[int, int] = {}
        """The descriptor of each process."""

    def hear(self, event: Any) -> None:
        """Watch the process of a client that has attached."""
        if isinstance(event, ProcessAttached) and event.process not in self._watched:
            # if the kernel lacks these descriptors, or the process is dead already, its silence is noticed later
            with contextlib.suppress(OSError):
                self._begin(event.process)

    def close(self) -> None:
        """Stop watching."""
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
