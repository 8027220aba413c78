"""The interface of samples and messages for filters: records by index, which of them are left, and their fields."""

from typing import Any, Protocol

from weft.cores.chains.where import Where

Value = int | float | None


class Viewed(Protocol):
    """A batch of samples, or the payload of a message, on its way down a chain."""

    kept: list[int]
    """Records that are left, ascending."""
    is_one: bool
    """Whether all records share type, origin, size, depth and time, because they came in one message."""
    is_readable: bool
    """Whether the payload is valid for its `fmt`. If not, it is one record without fields."""

    def matching(self, where: Where) -> list[int]:
        """The records left that fulfil the conditions."""

    def record(self, index: int) -> dict[Any, Any]:
        """All fields of a record; not to be changed."""

    def facts(self, index: int, names: tuple[str, ...]) -> dict[str, Any]:
        """Facts of a record besides its fields: those in `names` of `type`, `origin`, `size`, `depth`, `ts`."""

    def keys(self, fields: tuple[str, ...], seen: list[int]) -> list[bytes]:
        """For each record the MessagePack array of these fields, missing ones nil."""

    def identities(self, seen: list[int], node: bytes) -> list[bytes]:
        """For each record an identity that is unique and the same on every node; `node` is this one."""

    def groups(self, seen: list[int]) -> list[Any]:
        """For each record its default group: its series; for messages, type and origin."""

    def numbers(self, field: str, seen: list[int]) -> tuple[list[Value], list[int]]:
        """For each record the number in a field, None if missing; and the records where the value is not a number."""

    def times(self, seen: list[int]) -> list[int]:
        """For each record its own time, nanoseconds since 1970."""

    def put(self, index: int, record: dict[Any, Any]) -> bool:
        """Replace a record; False, and nothing has changed, if that is not possible."""

    def take_out(self, dropped: list[int]) -> None:
        """Drop these records."""
