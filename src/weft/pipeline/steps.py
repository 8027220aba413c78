"""Measures the steps of a batch, and tells a watcher before and after each: tests interrupt batches there."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Watcher = Callable[[str, str], None]
"""Called with `before` or `after`, and the name of the step."""


def _ignore(_when: str, _step: str) -> None:
    """The default watcher, which does nothing."""


NOBODY: Watcher = _ignore


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
