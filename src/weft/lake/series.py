"""The key of a time series: 64 bits of BLAKE2b over its definition (LAK-019)."""

from collections.abc import Mapping
from hashlib import blake2b
from itertools import chain
from typing import Final, NamedTuple

import msgspec

LABELS_MAX: Final = 64  # labels of one series
TEXT_MAX: Final = 1024  # characters of a name or a label


class SeriesDefinition(NamedTuple):
    """The fields that identify a series. Two definitions with the same key are a collision, which silver detects."""

    config_name: str
    detail: str
    type: str
    param: str
    labels: tuple[tuple[str, str], ...]
    """Sorted by label."""

    def is_too_long(self) -> bool:
        """Whether it has too many labels, or a text that is too long."""
        texts = (*self[:4], *chain.from_iterable(self.labels))
        return len(self.labels) > LABELS_MAX or any(len(text) > TEXT_MAX for text in texts)

    def canonical(self) -> bytes:
        """The canonical JSON array that is hashed: no spaces, UTF-8 unescaped, labels sorted."""
        return msgspec.json.encode([*self[:4], self.labels])

    def key(self) -> int:
        """First 8 bytes of BLAKE2b (digest size 8), as a signed 64-bit number in network order.

        >>> define("mem", "MEMORY", "basic", "", {}).key()
        6272995468246442855
        """
        return int.from_bytes(blake2b(self.canonical(), digest_size=8).digest(), "big", signed=True)


def define(config_name: str, detail: str, kind: str, param: str, labels: Mapping[str, str]) -> SeriesDefinition:
    """A definition with its labels sorted."""
    return SeriesDefinition(config_name, detail, kind, param, tuple(sorted(labels.items())))
