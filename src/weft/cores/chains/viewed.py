"""What filters see, samples and messages alike: records by their index, those that are still in, and their fields."""

from typing import Any, Protocol

from weft.cores.chains.where import Where

Value = int | float | None


class Viewed(Protocol):
    """A batch of samples, or the payload of a message, on its way down a chain."""

    kept: list[int]
    """Records that are still in, ascending."""
    is_one: bool
    """Whether all records have the same type, origin, size, depth and time: they came in one message."""
    is_readable: bool
    """Whether the payload is what its `fmt` says. If not, it is one record without fields."""

    def matching(self, where: Where) -> list[int]:
        """The records still in that fulfil the conditions."""

    def record(self, index: int) -> dict[Any, Any]:
        """All fields of a record; not to be changed."""

    def facts(self, index: int, names: tuple[str, ...]) -> dict[str, Any]:
        """What is known of a record besides its fields: of `type`, `origin`, `size`, `depth`, `ts` those in `names`."""

    def keys(self, fields: tuple[str, ...], seen: list[int]) -> list[bytes]:
        """For each record the MessagePack array of these fields, missing ones nil."""

    def identities(self, seen: list[int], node: bytes) -> list[bytes]:
        """For each record what makes it this one and no other, on every node; `node` is this one."""

    def groups(self, seen: list[int]) -> list[Any]:
        """For each record what it is one of, if nobody names fields: its series; of messages, type and origin."""

    def numbers(self, field: str, seen: list[int]) -> tuple[list[Value], list[int]]:
        """For each record the number in a field, None if there is none; and the records where something else stands."""

    def times(self, seen: list[int]) -> list[int]:
        """For each record its own time, nanoseconds since 1970."""

    def put(self, index: int, record: dict[Any, Any]) -> bool:
        """Another record in the place of this one; false, and nothing has changed, if that cannot be said."""

    def take_out(self, dropped: list[int]) -> None:
        """These records are out."""
