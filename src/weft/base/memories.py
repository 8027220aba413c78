"""A core's own memory as journal records, and back: each kind is a struct with a number (JRN-014)."""

from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

from weft.base.errors import UNREADABLE, OurFault
from weft.base.records import CoreRecord

M = TypeVar("M")


class Memories(Generic[M]):
    """The kinds of memory of one core; a number is never used again for anything else."""

    def __init__(self, core: str, kinds: Mapping[int, type[M]]) -> None:
        self.core, self.kinds = core, dict(kinds)
        self._numbers = {kind: number for number, kind in self.kinds.items()}
        self._decoders = {number: msgspec.msgpack.Decoder(kind) for number, kind in self.kinds.items()}
        self._encode = msgspec.msgpack.Encoder().encode

    def to_record(self, memory: M) -> CoreRecord:
        """The journal record of a piece of memory."""
        return CoreRecord(self.core, self._numbers[type(memory)], self._encode(memory))

    def from_record(self, record: CoreRecord) -> M:
        """The piece of memory in a journal record; OurFault for one that this version cannot have written."""
        decoder = self._decoders.get(record.kind)
        if decoder is None:
            raise OurFault(f"newer-data: the core {self.core} knows no record of kind {record.kind}")
        try:
            return decoder.decode(record.data)
        except UNREADABLE as error:
            raise OurFault(
                f"newer-data: a record of kind {record.kind} of {self.core} cannot be read: {error}"
            ) from None
