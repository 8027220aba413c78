"""The configuration messages of the original dCAMP nodes of 2014: five frames, whose last one is a pickle (CFG-100 to 102).

message   0          1              2      3     4
ICANHAZ   "ICANHAZ"  8 zero bytes   empty  "{}"  pickle of the subtree
KVSYNC    key        number         empty  "{}"  pickle of the value
KTHXBAI   "KTHXBAI"  number         empty  "{}"  pickle of the subtree
KVPUB     key        number         empty  "{}"  pickle of the value, None: deleted
HUGZ      key/HUGZ   8 zero bytes   empty  "{}"  pickle of None

number = u64 in network order; the first one is 0. Keys: /CONFIG/global/heartbeat, /CONFIG/GROUP/endpoints, filters, metrics,
/TOPO/root, /TOPO/GROUP/collector, /TOPO/GROUP/leaves/HOST:PORT, and /TOPO/HUGZ, /CONFIG/GROUP/HUGZ.

What cannot be read raises PeerError: `frame-count`, `key`, `sequence`, `properties`, `value`, `subtree`, or a code of `pickles`.
What the original nodes say on their other sockets (+0, +1, +4) is read where ours is: `discovery`, `data`.
"""

from typing import Any, Final

import msgspec

from weft.base.errors import PeerError
from weft.wire import jsontext, pickles
from weft.wire.parts import read_key, read_number

FRAMES: Final = 5
PROPERTIES_BYTES_MAX: Final = 4 << 10
ASK, END, BEAT = "ICANHAZ", "KTHXBAI", "HUGZ"
NO_NUMBER: Final = bytes(8)


class Ask(msgspec.Struct, frozen=True, gc=False):
    """A child asks for all pairs of a subtree."""

    subtree: str


class End(msgspec.Struct, frozen=True, gc=False):
    """The end of a snapshot: all pairs were sent, as of a number."""

    subtree: str
    number: int


class Beat(msgspec.Struct, frozen=True, gc=False):
    """The sender is there, and has sent nothing for a heartbeat."""

    key: str


class Pair(msgspec.Struct, frozen=True):
    """A row of a snapshot, or an update: the socket decides. A value of None deletes."""

    key: str
    number: int
    value: Any


Message = Ask | End | Beat | Pair


def decode(frames: list[bytes]) -> Message:
    """A message of any of the three sockets; PeerError."""
    if len(frames) != FRAMES:
        raise PeerError("frame-count", f"{len(frames)} frames", frames[0] if frames else b"")
    name, number, _, properties, value = frames
    jsontext.decode_object(properties or b"{}", PROPERTIES_BYTES_MAX, "properties")
    if name == ASK.encode():
        return Ask(_subtree(value))
    if name == END.encode():
        return End(_subtree(value), read_number(number))
    key = read_key(name)
    if key.endswith(f"/{BEAT}"):
        return Beat(key)
    return Pair(key, read_number(number), pickles.read(value))


def encode(message: Message) -> list[bytes]:
    """The five frames of a message."""
    match message:
        case Ask(subtree):
            return _frames(ASK, NO_NUMBER, subtree)
        case End(subtree, number):
            return _frames(END, number.to_bytes(8), subtree)
        case Beat(key):
            return _frames(key, NO_NUMBER, None)
        case Pair(key, number, value):
            return _frames(key, number.to_bytes(8), value)


def _frames(name: str, number: bytes, value: Any) -> list[bytes]:
    return [name.encode(), number, b"", b"{}", pickles.write(value)]


def _subtree(frame: bytes) -> str:
    subtree = pickles.read(frame)
    if type(subtree) is not str or not subtree.startswith("/"):
        raise PeerError("subtree", "it is no path", frame)
    return subtree


def shown(value: Any) -> Any:
    """A value for people and JSON: `@` names what it is an object of; who is above and below a node is left out (CFG-102)."""
    if type(value) in (list, tuple):
        return [shown(one) for one in value]
    if type(value) is dict:
        return {key: shown(one) for key, one in value.items()}
    if type(value) is not pickles.Made:
        return value
    fields = dict(value.fields)
    if value.kind == "UUID":
        return {"@": "UUID", "hex": f"{_whole(fields):032x}"}
    if value.kind == "datetime":
        return {"@": "datetime", "iso": instant(fields["bytes"])}
    if value.kind == "TopoNode":
        fields |= {"parent": None, "children": []}
    return {"@": value.kind} | {name: shown(one) for name, one in fields.items()}


def instant(raw: bytes) -> str:
    """The instant that an original node said: two bytes of the year, then one each down to the second, three of microseconds.

    >>> instant(bytes.fromhex("07ea0b15013921 02ccdb".replace(" ", "")))
    '2026-11-21T01:57:33.183515'
    """
    month, day, hour, minute, second = raw[2:7]
    micros = int.from_bytes(raw[7:])
    text = f"{int.from_bytes(raw[:2]):04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
    return f"{text}.{micros:06}" if micros else text


def _whole(fields: dict[str, Any]) -> int:
    number = fields.get("int")
    if type(number) is not int or not 0 <= number < 1 << 128:
        raise PeerError("value", "no UUID")
    return number
