"""Converts a program's payload to frames, and back. The format is never guessed from the content."""

from typing import Any, Final

import msgspec

Frames = tuple[bytes, ...]
JSON: Final = msgspec.json.Encoder()
MSGPACK: Final = msgspec.msgpack.Encoder()


def to_frames(payload: Any, fmt: str | None = None) -> tuple[Frames, str]:
    r"""The frames of a payload, and its format.

    Bytes are one frame of format `raw`, text is one of format `text`, a tuple of bytes is that many `raw` frames;
    everything else is encoded as JSON, or as MessagePack with `fmt="msgpack"`. A given `fmt` replaces these names, as in
    `to_frames("<a/>", "xml")`.

    >>> to_frames("ö"), to_frames({"a": 1}), to_frames(b"<a/>", "xml"), to_frames((b"1", b"2"))[1]
    (((b'\xc3\xb6',), 'text'), ((b'{"a":1}',), 'json'), ((b'<a/>',), 'xml'), 'raw')
    """
    if isinstance(payload, bytes):
        return (payload,), fmt or "raw"
    if isinstance(payload, bytearray | memoryview):
        return (bytes(payload),), fmt or "raw"
    if isinstance(payload, str):
        return (payload.encode(),), fmt or "text"
    if isinstance(payload, tuple) and all(isinstance(frame, bytes) for frame in payload):
        return payload, fmt or "raw"
    if fmt == "msgpack":
        return (MSGPACK.encode(payload),), fmt
    return (JSON.encode(payload),), fmt or "json"


def of_frame(frame: bytes, fmt: str) -> Any:
    """The values of a frame: MessagePack if `fmt` says so, else JSON; ValueError if it is neither."""
    return msgspec.msgpack.decode(frame) if fmt == "msgpack" else msgspec.json.decode(frame)
