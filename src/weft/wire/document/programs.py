"""The bytes between a program and its node (JAM-040): `clients.Asked` one way, `clients.Answer` the other.

    request = id map        map = {"verb": text, "session"?: text, "args"?: map}
    answer  = id map        map = {"body"?: any, "code"?: text, "more"?: bool}

An id is 1 to 8 bytes that the program chooses; keys with their default are left out, unknown ones are ignored.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from weft.base.errors import UNREADABLE, PeerError
from weft.wire.document.clients import Answer, Asked

ID_BYTES_MAX: Final = 8
ARGS_MAX: Final = 64
REQUEST_BYTES_MAX: Final = 4 << 20  # a file is brought in by many requests
ANSWER_BYTES_MAX: Final = 64 << 20  # a page of operations has 4 MiB, a document may have more
BAD_REQUEST: Final = "bad-request"
"""The code of the answer to a request that could not be read."""

Word = Annotated[str, Meta(max_length=64)]


class _Request(msgspec.Struct, omit_defaults=True, gc=False):
    verb: Annotated[str, Meta(min_length=1, max_length=64)]
    session: Annotated[str, Meta(max_length=512)] = ""
    args: Annotated[dict[Word, Any], Meta(max_length=ARGS_MAX)] = {}


class _Reply(msgspec.Struct, omit_defaults=True, gc=False):
    body: Any = None
    code: Word = ""
    more: bool = False


_encoder: Final = msgspec.msgpack.Encoder()
_request: Final = msgspec.msgpack.Decoder(_Request)
_reply: Final = msgspec.msgpack.Decoder(_Reply)
_UNREADABLE: Final = (*UNREADABLE, TypeError, ValueError)


def encode_request(request: Asked) -> list[bytes]:
    """The frames of a request."""
    return [request.id, _encoder.encode(_Request(request.verb, request.session, request.args))]


def decode(frames: Sequence[bytes]) -> Asked:
    """The request of a program; PeerError `bad-request`."""
    number, body = _two(frames, REQUEST_BYTES_MAX)
    try:
        read = _request.decode(body)
    except _UNREADABLE as error:
        raise PeerError(BAD_REQUEST, str(error)[:200], body) from None
    return Asked(number, read.verb, read.session, read.args)


def encode(answer: Answer) -> list[bytes]:
    """The frames of an answer."""
    return [answer.id, _encoder.encode(_Reply(answer.body, answer.code, answer.more))]


def decode_answer(frames: Sequence[bytes]) -> Answer:
    """The answer of a node; PeerError `bad-answer`."""
    try:
        number, body = _two(frames, ANSWER_BYTES_MAX)
        read = _reply.decode(body)
    except (PeerError, *_UNREADABLE) as error:
        raise PeerError("bad-answer", str(error)[:200]) from None
    return Answer(number, read.body, read.code, read.more)


def refuse(frames: Sequence[bytes], error: PeerError) -> list[bytes]:
    """The answer to a request that cannot be read; with its id, if that can be read."""
    number = frames[0][:ID_BYTES_MAX] if frames else b""
    mend = "ask with two frames: an id of 1 to 8 bytes, and a MessagePack map with `verb`"
    return encode(Answer(number, {"text": error.why or error.code, "mend": mend}, error.code))


def _two(frames: Sequence[bytes], bytes_max: int) -> tuple[bytes, bytes]:
    if len(frames) != 2 or not 1 <= len(frames[0]) <= ID_BYTES_MAX:
        raise PeerError(BAD_REQUEST, "not an id of 1 to 8 bytes and a map")
    if len(frames[1]) > bytes_max:
        raise PeerError(BAD_REQUEST, f"{len(frames[1])} bytes")
    return frames[0], frames[1]
