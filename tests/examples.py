"""How many examples are drawn by a test that says a number of its own: that many in `make prove`, a third in `make test`."""

from typing import Any, Final

import hypothesis

USUAL: Final = 60
"""Of a test that says no number, in `make prove`: see tests/conftest.py."""


def examples(count: int, **more: Any) -> hypothesis.settings:
    """The settings of a test: more examples than others have, or fewer, in every run; with --soak what all have."""
    drawn = hypothesis.settings().max_examples
    return hypothesis.settings(max_examples=min(count * drawn // USUAL, max(count, drawn)), **more)
