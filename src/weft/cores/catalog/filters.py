"""What a query or a watch looks for (CAT-035, CAT-041)."""

from typing import Any

from weft.cores.catalog.instances import Instance


class Filter:
    """Conditions that must all hold; none: everything is meant."""

    __slots__ = ("canonical", "exact_name", "first_tag", "given")

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.canonical = b""
        """The filter as canonical JSON."""
        self.exact_name: str | None = None
        """The only name that can match; None: several can."""
        self.first_tag: str | None = None
        """A tag that everything that matches has; None: there is no such."""

    @property
    def topic(self) -> str:
        """`watch/` and the first 16 hex digits of SHA-256 of the canonical filter."""
        raise NotImplementedError

    def matches(self, instance: Instance) -> bool:
        raise NotImplementedError


def parse(body: bytes) -> Filter:
    """A filter as it came; no bytes: everything. Raises Refusal `bad-argument`."""
    raise NotImplementedError


def canonical(found: Filter) -> bytes:
    """Sorted keys, no spaces, UTF-8 (CAT-041)."""
    return found.canonical
