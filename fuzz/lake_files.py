"""What a lake holds in text: any bytes are a manifest, an offset, or refused; any payload has a body, or a reason (LAK-010, LAK-012)."""

import json
from collections.abc import Iterable

from fuzz.house.choices import Choices
from fuzz.house.running import outcomes, run
from fuzz.house.vectors import hostile, lines
from weft.base.errors import UserError
from weft.lake import body, manifest, offsets
from weft.lake.manifest import SegmentFault

FORMATS = ("msgpack", "json", "text", "xml", "raw", "loose", "strange")
REASONS = frozenset((None, "unknown-format", "undecodable", "bad-json", "bad-number", "too-long"))


def one(data: bytes) -> None:
    """The first byte picks the format of the payload."""
    try:
        link = manifest.decode(data, "d", 1)
    except SegmentFault as error:
        outcomes.add((error.code, error.why[:40]))
    else:
        assert data == link.manifest.line(), link
        assert link.manifest.vector() | link.manifest.lost_vector(), link
        link.manifest.era_ends()
    _offset(data.decode("utf-8", "replace"))
    fmt = Choices(data).pick(FORMATS)
    made = body.body_of(data[1:], {"fmt": fmt})
    outcomes.add((fmt, str(made.error)))
    assert made.error in REASONS, made
    if made.text is not None:
        json.loads(made.text)


def _offset(text: str) -> None:
    try:
        offset = offsets.parse(text)
    except UserError as error:
        outcomes.add((error.code, error.text[-40:]))
    else:
        assert offset == offsets.parse(offset.text()) == offsets.parse(offset.plain()), offset


def seeds() -> Iterable[bytes]:
    """Manifests of the examples, offsets, payloads of each format."""
    sound = manifest.Manifest(
        format=1, stream="samples", schema=1, drain="d", number=1, rows=3, bytes=10, sha256="0" * 64, first_received=1,
        last_received=2, lsn=(1, 3), ranges=[("0f" * 16, 1, [(1, 3)]), ("n1", None, [(5, 5)])],
        lost=[("n1", None, 2, 3, "spool-full"), ("n1", 4, 1, 9, "era-end")], prior=manifest.NO_PRIOR,
    )  # fmt: skip
    yield sound.line()
    yield json.dumps({"at": {"0f" * 16: [1, 0]}, "o": 1, "v": 1, "vec": "0" * 32}).encode()
    yield from (line["text"].encode() for line in lines("pipeline") if "text" in line)
    for data in hostile("json", "msgpack", "msgpack-value", "config-json", "samples-value"):
        yield from (bytes((kind,)) + data for kind in range(len(FORMATS)))
    yield b"\0\x84\xa1a\x92\xc3\xc4\x01x\x01\xcb?\xf8\0\0\0\0\0\0\xa1b\xc7\x01\x05y\xc0\xd6\xff\0\0\0\1"


if __name__ == "__main__":
    run(one)
