"""The flight recorder: the last things that a node heard, was ordered, and did, for whoever looks at a crash (OBS-006).

It holds them in memory only. They are written to the folder `flight` of the state directory when the node ends by a
fault, or on SIGUSR2; `weft debug dump` asks a running node for them. Frames are cut, so a dump stays small; what it
shows of them may be secret, so its file is private.
"""

import json
import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.base.effects import Source, Tell
from weft.node.node import NodeEffect, Transmit

NOTES_MAX: Final = 4_096
HELD_BYTES_MAX: Final = 4 << 20  # of frames that the recorder keeps alive
FRAMES_SHOWN: Final = 8
FRAME_BYTES_SHOWN: Final = 128
EVENT_CHARS_SHOWN: Final = 300
FILES_MAX: Final = 8  # older dumps are removed
FOLDER: Final = "flight"


class Note(NamedTuple):
    """One thing that happened. `frames` of a message, else what it was."""

    mono_ns: int
    what: str
    where: str
    peer: bytes
    frames: Sequence[bytes]
    said: Any = None


class Flight:
    """Keeps the last `NOTES_MAX` notes, and of their frames at most `HELD_BYTES_MAX`."""

    def __init__(self) -> None:
        self.notes: deque[Note] = deque()
        self._bytes = 0

    def heard(self, mono_ns: int, source: Source, frames: Sequence[bytes]) -> None:
        """A message came."""
        self._keep(Note(mono_ns, "heard", source.channel, source.peer, frames))

    def ordered(self, mono_ns: int, core: str, order: Any) -> None:
        """Somebody outside gave an order."""
        self._keep(Note(mono_ns, "ordered", core, b"", (), type(order).__name__))

    def wrote(self, mono_ns: int, records: int, next_lsn: int) -> None:
        """A turn was made durable."""
        self._keep(Note(mono_ns, "wrote", "journal", b"", (), f"{records} records before {next_lsn}"))

    def did(self, mono_ns: int, effect: NodeEffect) -> None:
        """The node does something."""
        if type(effect) is Transmit:
            self._keep(Note(mono_ns, "said", effect.channel, effect.peer, effect.frames))
        elif type(effect) is Tell:
            self._keep(Note(mono_ns, "told", "", b"", (), effect.event))
        else:
            self._keep(Note(mono_ns, "did", type(effect).__name__, b"", (), _name_of(effect)))

    def _keep(self, note: Note) -> None:
        self.notes.append(note)
        self._bytes += sum(map(len, note.frames))
        while len(self.notes) > NOTES_MAX or (self._bytes > HELD_BYTES_MAX and len(self.notes) > 1):
            self._bytes -= sum(map(len, self.notes.popleft().frames))

    def lines(self) -> Iterator[str]:
        """The notes as JSON lines, oldest first; `at` in seconds of the machine's monotonic clock."""
        for note in self.notes:
            line: dict[str, Any] = {"at": note.mono_ns / 1e9, "what": note.what, "where": note.where}
            if note.peer:
                line["peer"] = note.peer.hex()
            if note.frames:
                line["bytes"] = [len(frame) for frame in note.frames[:FRAMES_SHOWN]]
                line["frames"] = [bytes(frame[:FRAME_BYTES_SHOWN]).hex() for frame in note.frames[:FRAMES_SHOWN]]
                line["count"] = len(note.frames)
            if note.said is not None:
                line["said"] = str(note.said)[:EVENT_CHARS_SHOWN]
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


def _name_of(effect: Any) -> str:
    """What kind of work or answer it is; its content may be large."""
    inner = getattr(effect, "work", None) or getattr(effect, "answer", None) or getattr(effect, "event", None)
    return type(inner).__name__ if inner is not None else str(effect)[:EVENT_CHARS_SHOWN]
