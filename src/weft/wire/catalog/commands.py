"""The messages between clients, services and the broker, and between clients and services.

    message  = envelope "" command time *body
    envelope = *8 frame                         ; none of them empty, up to 255 bytes each
    command  = one of `messages.COMMANDS`; of a call to a service, the name of its endpoint

What a body means is not judged here, except that an answer and a ping have one: a registration without a body is denied
in words, and not dropped (CAT-009).
"""

from collections.abc import Sequence
from typing import Final

from weft.base.errors import PeerError
from weft.wire.catalog.messages import COMMANDS, PING, PONG, REPLY, Envelope, Message

FRAMES_MAX: Final = 64  # a request names some services; only answers with cached values are longer (LVC-003)
ENVELOPE_FRAMES_MAX: Final = 8  # CAT-005
ENVELOPE_BYTES_MAX: Final = 255
ENDPOINT_BYTES_MAX: Final = 255
_WITH_BODY: Final = frozenset({REPLY, PING, PONG})


def decode(frames: Sequence[bytes], frames_max: int = FRAMES_MAX) -> Message:
    """The message of its frames without the routing id; PeerError `malformed` or `unknown-command` (CAT-005, R20).

    >>> decode([b"", b"u_U", b"1795227299", b"thermo"])
    Message(command=b'u_U', time=b'1795227299', body=(b'thermo',), envelope=())
    """
    count = len(frames)
    if 2 < count <= frames_max and not frames[0]:
        command = frames[1]
        if command in COMMANDS and (count > 3 or command not in _WITH_BODY):
            return Message(command, frames[2], tuple(frames[3:]))
    message = _split(frames, frames_max)
    if message.command not in COMMANDS:
        raise PeerError("unknown-command", "no command of this protocol", message.command)
    if message.command in _WITH_BODY and not message.body:
        raise PeerError("malformed", "an answer or a ping without a body", message.command)
    return message


def decode_call(frames: Sequence[bytes], frames_max: int = FRAMES_MAX) -> Message:
    """A message at a service, where the command is an endpoint's name (CAT-070); PeerError `malformed`."""
    message = _split(frames, frames_max)
    if not 0 < len(message.command) <= ENDPOINT_BYTES_MAX:
        raise PeerError("malformed", f"a command of {len(message.command)} bytes", message.command)
    return message


def encode(message: Message) -> list[bytes]:
    """The frames of a message, behind its envelope and without a routing id.

    >>> encode(Message(b"u_U", b"1795227299", (b"thermo",)))
    [b'', b'u_U', b'1795227299', b'thermo']
    """
    if message.envelope:
        return [*message.envelope, b"", message.command, message.time, *message.body]
    return [b"", message.command, message.time, *message.body]


def _split(frames: Sequence[bytes], frames_max: int) -> Message:
    if len(frames) > frames_max:
        raise PeerError("malformed", f"{len(frames)} frames")
    envelope = _envelope(frames)
    behind = frames[len(envelope) + 1 :]
    if len(behind) < 2:
        raise PeerError("malformed", "no command, or no time behind it")
    return Message(behind[0], behind[1], tuple(behind[2:]), envelope)


def _envelope(frames: Sequence[bytes]) -> Envelope:
    """What stands before the first empty frame."""
    for place, frame in enumerate(frames[: ENVELOPE_FRAMES_MAX + 1]):
        if not frame:
            return tuple(frames[:place])
        if len(frame) > ENVELOPE_BYTES_MAX:
            break
    raise PeerError("malformed", "no empty frame behind a short envelope")
