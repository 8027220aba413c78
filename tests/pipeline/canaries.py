"""Bugs that are planted: how many of them in every run."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def planted(bugs: Iterable[Callable[..., Any] | str]) -> list[Any]:
    """Parameters of a test that plants a bug: the first one in every run, which shows that the check can fail at all;
    the others in `make soak`, since each takes as long as what it spoils."""
    return [
        pytest.param(bug, id=bug if isinstance(bug, str) else bug.__name__, marks=[pytest.mark.soak] if place else [])
        for place, bug in enumerate(bugs)
    ]
