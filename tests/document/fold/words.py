"""Short words for operations and folds in tests."""

from weft.cores.document.fold.folding import Fold
from weft.cores.document.fold.schema import Schema
from weft.wire.document.operations import Operation, parse, uuid_text
from weft.wire.document.xml import canonical

BEGAN = 1_763_800_000.0
DERBY, PLAIN = Schema.load("derby"), Schema.load("plain")


def source_of(letter: str) -> bytes:
    """`a` is a0000000-0000-4000-8000-000000000001, as in the vectors."""
    return bytes.fromhex(f"{letter}000000000004000800000000000000{ord(letter) - ord('a') + 1}")


def eid(number: int) -> str:
    """e1000000-0000-4000-8000-000000000001, and so on."""
    return f"e{number}000000-0000-4000-8000-{number:012d}"


class Desk:
    """A fold, and people who enter one operation after the other, a second apart."""

    def __init__(self, schema: Schema = DERBY) -> None:
        self.fold = Fold(schema)
        self.at = BEGAN
        self.sequences: dict[str, int] = {}

    def operation(self, letter: str, verb: str, reference: str, inner: str = "", at: float | None = None) -> Operation:
        self.sequences[letter] = sequence = self.sequences.get(letter, 0) + 1
        self.at = self.at + 1 if at is None else at
        stamp = f'source="{uuid_text(source_of(letter))}" timestamp="{self.at!r}" sequence="{sequence}"'
        return parse(f"<{verb} {reference} {stamp}>{inner}</{verb}>".encode())

    def say(self, letter: str, verb: str, reference: str, inner: str = "", at: float | None = None) -> str:
        """What became of it, steps joined by commas."""
        operation = self.operation(letter, verb, reference, inner, at)
        return ",".join(self.fold.apply(operation, operation.timestamp))

    def add(self, letter: str, reference: str, inner: str = "", at: float | None = None) -> str:
        return self.say(letter, "add", reference, inner, at)

    def set(self, letter: str, reference: str, inner: str = "", at: float | None = None) -> str:
        return self.say(letter, "set", reference, inner, at)

    def remove(self, letter: str, reference: str, at: float | None = None) -> str:
        return self.say(letter, "remove", reference, "", at)

    def present(self, letter: str, sequence: int = 1) -> str:
        return ",".join(self.fold.present((source_of(letter), sequence)))

    @property
    def document(self) -> str:
        return canonical(self.fold.root).decode()

    def has(self, xml: str) -> bool:
        return xml in self.document

    def conflicts(self) -> list[tuple[str, str, str, str, str, bool]]:
        """Kind, slot, attribute, both values, whether open."""
        return [
            (each.kind, each.slot, each.attr, each.first.value, each.second.value, each.is_open)
            for each in self.fold.conflicts()
        ]
