"""The payload of a message as filters see it: decoded once, encoded once, and only if one of them has changed it.

Frame 1 is read by the message's `fmt`. A map is one record; an array of maps is one record each, filtered one by one,
and the message is deleted when none is left (CHN-060). Text, XML and raw bytes are one record without fields. Other
frames are not examined. Frames that were given out before are never modified: a change makes new frames.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from weft.cores.chains import limits
from weft.cores.chains.fields import Fields, reader
from weft.cores.chains.parcel import Parcel
from weft.cores.chains.viewed import Value
from weft.cores.chains.where import NUMBERS, Where

JSON, MSGPACK = "json", "msgpack"
Content = dict[str, Any] | list[dict[str, Any]]
DECODERS: Final[dict[str, Callable[[bytes], Any]]] = {
    JSON: msgspec.json.Decoder(type=Content).decode,
    MSGPACK: msgspec.msgpack.Decoder(type=Content).decode,
}
ENCODERS: Final[dict[str, Callable[[Any], bytes]]] = {
    JSON: msgspec.json.Encoder().encode,
    MSGPACK: msgspec.msgpack.Encoder().encode,
}
UNREADABLE: Final = (msgspec.DecodeError, ValueError, TypeError, RecursionError, OverflowError)
pack: Final = msgspec.msgpack.Encoder().encode
TIME: Final = "t"
"""The field with a record's own time, nanoseconds since 1970 (CHN-071)."""


class MessageView:
    """One message on its way down one chain; built at the first filter."""

    __slots__ = ("_grown", "_is_array", "is_changed", "is_readable", "kept", "parcel", "records")

    is_one = True

    def __init__(self, parcel: Parcel) -> None:
        self.parcel = parcel
        self.records: list[Fields] = [{}]
        self.is_changed = False
        """Whether the message was changed."""
        self._is_array = False
        self.is_readable = True
        self._grown = 0
        """Upper bound of the bytes that the payload has grown by."""
        self.kept: list[int] = [0]
        decode = DECODERS.get(parcel.fmt)
        if decode is not None:
            try:
                content = decode(parcel.frames[0])
            except UNREADABLE:
                self.is_readable = False
            else:
                self._take(content)

    def _take(self, content: Any) -> None:
        if type(content) is dict:
            self.records = [content]
        elif len(content) > limits.RECORDS_MAX:
            self.is_readable = False
        else:
            self.records, self._is_array = content, True
            self.kept = list(range(len(content)))

    def matching(self, where: Where) -> list[int]:
        """The records left that fulfil the conditions."""
        found, records = self.kept, self.records
        for read, test in where.of_records:
            found = [index for index in found if test(read(records[index]))]
        return found

    def record(self, index: int) -> Fields:
        return self.records[index]

    def facts(self, index: int, names: tuple[str, ...]) -> dict[str, Any]:
        """Facts about the message: the same for all its records."""
        return {name: FACTS[name](self.parcel) for name in names}

    def keys(self, fields: tuple[str, ...], seen: list[int]) -> list[bytes]:
        """The fields' values of the records, as they are now."""
        records = self._some(seen)
        if len(fields) == 1:
            read = reader(fields[0])
            return [packed([read(record)]) for record in records]
        reads = [reader(field) for field in fields]
        return [packed([read(record) for read in reads]) for record in records]

    def fields(self, field: str, seen: list[int]) -> list[Any]:
        """The values in a field, of any type; None where it is missing."""
        records = self._some(seen)
        if "." not in field:
            return [record.get(field) for record in records]
        read = reader(field)
        return [read(record) for record in records]

    def identities(self, seen: list[int], node: bytes) -> list[bytes]:
        """The identity of the message, so its records stay or are dropped together."""
        parcel = self.parcel
        origin = parcel.origin or node
        return [origin + parcel.era.to_bytes(8, "big") + parcel.sequence.to_bytes(8, "big")] * len(seen)

    def groups(self, seen: list[int]) -> list[Any]:
        """One group for all records of a message."""
        return [(self.parcel.type, self.parcel.origin)] * len(seen)

    def numbers(self, field: str, seen: list[int]) -> tuple[list[Value], list[int]]:
        """Texts and booleans are not numbers."""
        read, records = reader(field), self.records
        values = [read(records[index]) for index in seen]
        wrong = [
            index for index, value in zip(seen, values, strict=True) if type(value) not in NUMBERS and value is not None
        ]
        return [value if type(value) in NUMBERS else None for value in values] if wrong else values, wrong

    def times(self, seen: list[int]) -> list[int]:
        """The time in field `t`, else the time when the message was sent."""
        at = self.parcel.at
        return [value if type(value := record.get(TIME)) is int else at for record in self._some(seen)]

    def _some(self, seen: list[int]) -> list[Fields]:
        records = self.records
        return records if len(seen) == len(records) else [records[index] for index in seen]

    def take_out(self, dropped: list[int]) -> None:
        """Drop these records."""
        if len(dropped) == len(self.kept):
            self.kept = []
        else:
            gone = dict.fromkeys(dropped)
            self.kept = [index for index in self.kept if index not in gone]
        self.is_changed = True

    def put(self, index: int, record: Fields) -> bool:
        """Replace a record; False, and nothing has changed, if the payload could not hold it."""
        encode = ENCODERS.get(self.parcel.fmt)
        try:
            more = 0 if encode is None else len(encode(record)) - len(encode(self.records[index]))
        except UNREADABLE:
            return False
        if encode is None or not self.has_room(max(0, more)):
            return False
        self.records[index] = record
        self.is_changed = True
        return True

    def has_room(self, more: int) -> bool:
        """Whether the payload can grow by `more` bytes without being encoded to check."""
        self._grown += more
        return self.parcel.size + self._grown <= limits.PAYLOAD_BYTES_MAX

    def fits(self) -> bool:
        """Whether the payload is within the limit; encodes it to find out."""
        self._grown = len(self._encoded()) - len(self.parcel.frames[0])
        return self.parcel.size + self._grown <= limits.PAYLOAD_BYTES_MAX

    def _encoded(self) -> bytes:
        """Frame 1 with the records left."""
        records = self.records
        content = [records[index] for index in self.kept] if self._is_array else records[0]
        return ENCODERS[self.parcel.fmt](content)

    def close(self) -> tuple[bytes, ...]:
        """The frames of what is left: the original ones, if nothing was changed."""
        if not self.is_changed or not self.kept:
            return self.parcel.frames
        return (self._encoded(), *self.parcel.frames[1:])


def packed(values: list[Any]) -> bytes:
    """The MessagePack array of these values."""
    try:
        return pack(values)
    except (ValueError, TypeError, RecursionError, OverflowError):
        return b""  # not a type of MessagePack: all such values count as equal


FACTS: Final[dict[str, Callable[[Parcel], Any]]] = {
    "type": lambda parcel: parcel.type,
    "origin": lambda parcel: parcel.origin.hex(),
    "size": lambda parcel: parcel.size,
    "depth": lambda parcel: parcel.depth,
    "ts": lambda parcel: parcel.at,
}
