"""Runs the steps of a batch: measures their time, and lets a watcher observe or interrupt them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Watcher = Callable[[str, str], None]
"""Called with `before` or `after`, and the name of the step."""


def _look_away(_when: str, _step: str) -> None:
    """The default watcher, which does nothing."""


NOBODY: Watcher = _look_away


class Steps:
    """Use as `with steps("silver"):`; afterwards `seconds` says how long each step took."""

    def __init__(self, watcher: Watcher = NOBODY) -> None:
        self.watcher = watcher
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self.watcher("before", name)
        started = time.perf_counter()
        yield
        self.seconds[name] = round(self.seconds.get(name, 0.0) + time.perf_counter() - started, 4)
        self.watcher("after", name)
