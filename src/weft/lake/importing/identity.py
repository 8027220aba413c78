"""Identities of imported samples. Importing a file again gives the same identities (PIP-097)."""

from hashlib import blake2b
from typing import Final

_SALT: Final = b"weft-import"


def drain_of(dataset: str) -> str:
    """The drain that writes a dataset's segments (PIP-095)."""
    return _hex(_SALT, dataset.encode())


def is_dataset(drain: str, name: str) -> bool:
    """Whether a drain belongs to the dataset of this name. The id is a hash, so no node's drain can have the same."""
    return drain == drain_of(name)


def origin_of(dataset: str, source: str) -> str:
    """The origin of the samples of a source, 32 hex."""
    return _hex(_SALT, dataset.encode(), source.encode())


def era_of(name: str, first_line: bytes) -> int:
    """The era of a file, 63 bits: a hash of its base name and its first line of data."""
    data = b"\0".join((name.encode(errors="surrogateescape"), first_line))
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") & (1 << 63) - 1


def _hex(*parts: bytes) -> str:
    return blake2b(b"\0".join(parts), digest_size=16).hexdigest()
