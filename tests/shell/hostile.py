"""What somebody might send who knows the protocol well, or not at all: drawn from a seed, never the same twice."""

import json
from pathlib import Path
from typing import Any

import msgspec

from weft.base.chance import Chance
from weft.base.errors import PeerError
from weft.wire import hop

VECTORS = Path(__file__).parents[1] / "vectors"
ENCODE = msgspec.msgpack.encode
EVIL = b"e" * 16
ERA = 5
NUMBERS = (0, 1, 2, 7, 1 << 31, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 2, (1 << 64) - 1, -1, -(1 << 63))
TEXTS = ("", "a", "weft.metric", "x" * 300, "x" * 5_000, "\x00", "\ud7ff", "é" * 100, "../../x", "=1+1", "\x1b[2J")
ORIGINS = ("", "name", "x" * 129, "é" * 64, "0" * 32, "sixteen-letters!", b"o" * 16, b"short", 7, None)
TYPES = ("weft.metric", "weft.event", "weft.log", "weft.store", "weft.documents", "weft.gone", "weft.message", "demo.x")
WALL = 1_795_000_000_000_000_000


def vectors(name: str) -> dict[str, dict[str, Any]]:
    """The lines of a vector file by id."""
    found = [json.loads(line) for line in (VECTORS / name).read_text("utf-8").splitlines()]
    return {line["id"]: line for line in found}


def frames_of(line: dict[str, Any]) -> list[bytes]:
    return [bytes.fromhex(frame) for frame in line.get("frames", [])]


class Intruder:
    """Draws messages. `about` says how often a field is as it should be."""

    def __init__(self, seed: str, about: float = 0.9) -> None:
        self.draw = Chance(seed)
        self.about = about
        self.known = [frames for line in vectors("chains-frames.jsonl").values() if (frames := frames_of(line))]
        self.number = 1

    def often(self, good: Any, *others: Any) -> Any:
        return good if self.draw.random() < self.about else self.draw.choice(others)

    # Noise.

    def noise(self) -> list[bytes]:
        """Frames that are no message at all, or one of another protocol, or a known one with something wrong."""
        make = self.draw.choice((self._random, self._known, self._mutated, self._mutated, self._shuffled, self._other))
        return make()

    def _random(self) -> list[bytes]:
        return [self.draw.randbytes(self.draw.randint(0, 200)) for _ in range(self.draw.randint(1, 4))]

    def _known(self) -> list[bytes]:
        return list(self.draw.choice(self.known))

    def _mutated(self) -> list[bytes]:
        frames = self._known()
        at = self.draw.randrange(len(frames))
        data = bytearray(frames[at])
        for _ in range(self.draw.randint(1, 4)):
            if data:
                data[self.draw.randrange(len(data))] = self.draw.randrange(256)
        frames[at] = bytes(data[: self.draw.randint(0, len(data))] if self.draw.random() < 0.4 else data)
        return frames

    def _shuffled(self) -> list[bytes]:
        frames = self._known() + self._known()
        self.draw.shuffle(frames)
        return frames[: self.draw.randint(0, len(frames))]

    def _other(self) -> list[bytes]:
        """Far too much of something, cheaply made."""
        return self.draw.choice(
            (
                [bytes(70_000)],
                [b"\x91" * 5_000],
                [b"\xdd\xff\xff\xff\xff"],
                [ENCODE({"op": "hello"}), *[b""] * 300],
                [ENCODE({"op": "beat"}), bytes((1 << 20) + 1)],
                [ENCODE({"op": "self-destruct", "v": 1})],
                [ENCODE({"op": "beat", "x" * 60_000: 1})],
                [b""],
                [],
            )
        )

    # A child that has learnt to say hello.

    def hello(self, peer_name: str = "evil") -> list[bytes]:
        return hop.encode(hop.Hello(v=1, role="node", name=peer_name, id=EVIL, era=ERA, first=1, next=1))

    def hop(self, count: int = 10) -> list[bytes]:
        """A hop that is well formed, and whose items are nearly so."""
        items: list[dict[str, Any]] = []
        frames: list[bytes] = []
        while len(items) < count:
            item, parts = self._item()
            header = ENCODE({"op": "hop", "era": ERA, "s": 1, "m": [item]})
            try:
                hop.decode([header, *parts])
            except PeerError:
                continue
            items.append(item)
            frames += parts
        first, self.number = self.number, self.number + count
        return [ENCODE({"op": "hop", "era": ERA, "s": first, "m": items}), *frames]

    def _item(self) -> tuple[dict[str, Any], list[bytes]]:
        kind = self.draw.choice((*TYPES, "weft.metric", "weft.lost", "weft.era"))
        is_note = kind in ("weft.lost", "weft.era")
        frames = (
            [self._note(kind)] if is_note else [self._body(), self.often(self._attributes(), self.draw.randbytes(9))]
        )
        if not is_note and self.draw.random() > self.about:
            frames = frames[: self.draw.randint(0, 1)] + [b""] * self.draw.randint(0, 3)
        item = {
            "mid": [self._origin(), self.often(ERA, None, *NUMBERS), self.often(self.draw.randint(1, 500), *NUMBERS)],
            "type": kind,
            "via": [EVIL] * self.often(1, 0, 2, 63, 64),
            "depth": 0,
            "ts": self.often(WALL, *NUMBERS),
            "n": len(frames),
        }
        return item, frames

    def _origin(self) -> Any:
        return self.often(EVIL, *ORIGINS)

    def _value(self, depth: int = 0) -> Any:
        kind = self.draw.randrange(10)
        if kind == 0 and depth < 5:
            return [self._value(depth + 1) for _ in range(self.draw.randrange(3))]
        if kind == 1 and depth < 5:
            return {self.draw.choice(("a", "via", "", 1, b"x")): self._value(depth + 1)}
        if kind == 2:
            deep: Any = None
            for _ in range(self.draw.choice((5, 30, 31, 32, 33, 400))):
                deep = [deep]
            return deep
        if kind == 3:
            return msgspec.msgpack.Ext(self.draw.choice((0, 5, 127)), self.draw.randbytes(self.draw.choice((0, 4, 12))))
        if kind == 4:
            return self.draw.choice((float("nan"), float("inf"), 1e308, True, None, self.draw.randbytes(9)))
        return self.draw.choice((*NUMBERS, *TEXTS))

    def _attributes(self) -> bytes:
        names = ("n", "rx", "key", "via", "cfg", "step", "node", "fmt", "level", "mime", "a")
        drawn = {name: self._value() for name in names if self.draw.random() < 0.08}
        if self.draw.random() < 0.02:
            drawn["large"] = "x" * self.draw.choice((60_000, 63_000, 64_500, 65_400))
        return ENCODE({"fmt": "json", **drawn})

    def _note(self, kind: str) -> bytes:
        stream = self.often(1, 0, 127, 128, 255, *NUMBERS)
        if kind == "weft.lost":
            first = self.often(600, *NUMBERS)
            return ENCODE([3, stream, self._origin(), ERA, first, self.often(first, *NUMBERS), self.often("x", *TEXTS)])
        return ENCODE([6, stream, self._origin(), ERA, self.often(3, *NUMBERS), self.often(9, *NUMBERS)])

    def _body(self) -> bytes:
        if self.draw.random() < 0.3:
            return self.draw.choice((b"", b"{}", self.draw.randbytes(40), ENCODE(self._value())))
        series = [
            self.often("cpu", *TEXTS),
            self.often("CPU", *TEXTS),
            "basic",
            self.often({}, {"a": "b"}, self._value()),
        ]
        row = [self.often(0, *NUMBERS), self.often(0, *NUMBERS), self.often(1.5, *NUMBERS, self._value())]
        return ENCODE([self.often(1, 2, None), self.often(WALL // 1_000_000, *NUMBERS), [series], [row]])
