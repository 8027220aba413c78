"""The flight recorder: the last messages, orders and effects of a node, to analyse a crash (OBS-006).

It keeps them in memory. They are written into the folder `flight` of the state directory when the node ends by a fault, and
on SIGUSR2; `weft debug dump` asks a running node for them. Frames are shortened, so a dump stays small. It may show secrets,
so only its owner can read the file.
"""

import json
import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.base.effects import Source, Tell
from weft.node.channels import ENROL
from weft.node.events import EVENTS
from weft.node.node import NodeEffect, Transmit

NOTES_MAX: Final = 4_096
WHOLE_BYTES: Final = 1_024  # a larger message is shortened at once to what a dump shows, so that its memory is freed
FRAMES_SHOWN: Final = 8
FRAME_BYTES_SHOWN: Final = 128
EVENT_CHARS_SHOWN: Final = 300
FILES_MAX: Final = 8  # older dumps are removed
FOLDER: Final = "flight"
WROTE: Final = "%d records before %d"

assert FRAMES_SHOWN * FRAME_BYTES_SHOWN <= WHOLE_BYTES, "a shortened message is no larger than one that is kept whole"


class Note(NamedTuple):
    """One entry: a message with its frames, or an order, event or effect."""

    mono_ns: int
    what: str
    where: str
    peer: bytes
    frames: Sequence[bytes]
    detail: Any = None
    sizes: Sequence[int] = ()
    """Bytes of each frame of a message that was shortened; empty: it was not."""


class Flight:
    """Keeps the last `NOTES_MAX` notes, each with at most `WHOLE_BYTES` of frames: 4 MiB in all."""

    def __init__(self) -> None:
        self._notes: deque[tuple[Any, ...]] = deque(maxlen=NOTES_MAX)
        """The first fields of each `Note`, as tuples: a tuple is made in a fifth of the time (OBS-009)."""

    @property
    def notes(self) -> list[Note]:
        """All entries, oldest first."""
        return [Note(*note) for note in self._notes]

    def heard(self, mono_ns: int, source: Source, frames: Sequence[bytes]) -> None:
        """A message was received."""
        if sum(map(len, frames)) <= WHOLE_BYTES:
            self._notes.append((mono_ns, "heard", source.channel, source.peer, frames))
        else:
            self._notes.append((mono_ns, "heard", source.channel, source.peer, *_cut(frames)))

    def ordered(self, mono_ns: int, core: str, order: Any) -> None:
        """An order came from outside."""
        self._notes.append((mono_ns, "ordered", core, b"", (), type(order).__name__))

    def wrote(self, mono_ns: int, records: int, next_lsn: int) -> None:
        """A turn was made durable."""
        self._notes.append((mono_ns, "wrote", "journal", b"", (), (records, next_lsn)))

    def did(self, mono_ns: int, effect: NodeEffect) -> None:
        """An effect was carried out.

        For effects between cores only the kind is kept, because they may hold whole batches.
        """
        if type(effect) is Transmit:
            frames = effect.frames
            if effect.channel == ENROL:  # WELCOME has the secret of the fabric's datagrams (SEC-047)
                self._notes.append((mono_ns, "said", ENROL, effect.peer, ()))
            elif sum(map(len, frames)) <= WHOLE_BYTES:
                self._notes.append((mono_ns, "said", effect.channel, effect.peer, frames))
            else:
                self._notes.append((mono_ns, "said", effect.channel, effect.peer, *_cut(frames)))
        elif type(effect) is Tell:
            event = effect.event
            kind = type(event)
            self._notes.append((mono_ns, "told", "", b"", (), event if kind in EVENTS else kind.__name__))
        else:
            self._notes.append((mono_ns, "did", type(effect).__name__, b"", (), _shown_of(effect)))

    def lines(self) -> Iterator[str]:
        """The notes as JSON lines, oldest first; `at` in seconds of the machine's monotonic clock."""
        for note in self.notes:
            line: dict[str, Any] = {"at": note.mono_ns / 1e9, "what": note.what, "where": note.where}
            if note.peer:
                line["peer"] = note.peer.hex()
            if note.frames:
                sizes = note.sizes or list(map(len, note.frames))
                line["bytes"] = sizes[:FRAMES_SHOWN]
                line["frames"] = [bytes(frame[:FRAME_BYTES_SHOWN]).hex() for frame in note.frames[:FRAMES_SHOWN]]
                line["count"] = len(sizes)
            if note.detail is not None:
                line["said"] = (WROTE % note.detail if note.what == "wrote" else str(note.detail))[:EVENT_CHARS_SHOWN]
            yield json.dumps(line)

    def dump(self, state: Path, why: str, wall_ns: int) -> Path:
        """Write all notes into a file of the state directory that only its owner may read; OSError if that fails."""
        folder = state / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / f"{wall_ns}-{why}.jsonl"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in self.lines())
        for old in sorted(folder.glob("*.jsonl"), key=lambda each: int(each.name.partition("-")[0]))[:-FILES_MAX]:
            old.unlink()
        return path


def _cut(frames: Sequence[bytes]) -> tuple[list[bytes], None, list[int]]:
    """A large message, shortened to what a dump shows: the fields of its note from `frames` on."""
    return [bytes(frame[:FRAME_BYTES_SHOWN]) for frame in frames[:FRAMES_SHOWN]], None, list(map(len, frames))


def _shown_of(effect: Any) -> Any:
    """The kind of work or answer, because its content may be large; any other effect unchanged."""
    for name in ("work", "answer", "event"):
        if (inner := getattr(effect, name, None)) is not None:
            return type(inner).__name__
    return effect
