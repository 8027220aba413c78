"""Operations as a log hands them to an engine: whatever arrives, each source's come in sequence and once."""

import uuid
from collections.abc import Iterable

from tests.document.fold import oracle
from weft.cores.document.fold.engine import Engine
from weft.wire.document.operations import Operation, parse


def source_of(letter: str) -> bytes:
    """`a` is less than `b`."""
    return bytes([ord(letter)]) * 16


def said(  # tidy: what the tests vary, by name
    letter: str, sequence: int, at: float | str, text: str = "x", *, more: str = "", path: str = "note"
) -> Operation:
    """`set path="note"`, by a source of one letter."""
    source = uuid.UUID(bytes=source_of(letter))
    return parse(
        f'<set path="{path}" source="{source}" timestamp="{at}" sequence="{sequence}"{more}>{text}</set>'.encode()
    )


def copy_of(letter: str, sequence: int, original: tuple[str, int], at: float, text: str = "x") -> Operation:
    """An adopted copy."""
    source = uuid.UUID(bytes=source_of(original[0]))
    return said(letter, sequence, at, text, more=f' origsource="{source}" origsequence="{original[1]}"')


class Feed:
    """What a log knows, as far as that is needed here: the prefix of each source."""

    def __init__(self) -> None:
        self.latest: dict[bytes, int] = {}
        self.held: dict[tuple[bytes, int], Operation] = {}

    def take(self, arrived: Iterable[Operation]) -> list[Operation]:
        """What enters the prefix by it."""
        fresh: list[Operation] = []
        for operation in arrived:
            source = operation.source
            if operation.sequence > self.latest.get(source, 0):
                self.held.setdefault((source, operation.sequence), operation)
            while (following := self.held.pop((source, self.latest.get(source, 0) + 1), None)) is not None:
                self.latest[source] = following.sequence
                fresh.append(following)
        return fresh


def result_of(engine: Engine) -> oracle.Result:
    """What the engine shows, in the words of the oracle."""
    assert not engine.is_behind
    keys = list(engine.order())
    pairs = [(key.source, key.sequence) for key in keys]
    return oracle.Result(
        engine.digest(),
        {oracle.name_of(pair): engine.outcomes(*pair) for pair in pairs},
        sorted(map(oracle.name_of, engine.parked())),
        [conflict.as_data() for conflict in engine.conflicts()],
        [oracle.name_of(pair) for pair in pairs],
    )
