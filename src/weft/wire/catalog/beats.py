"""Heartbeats by UDP: lines of text, several of which may share a datagram (BEA-010, BEA-011, BEA-020).

    datagram = line *31(LF line) [LF]                           ; at most 1,400 bytes
    line     = word SP time SP name *(TAB token)  /  name SP "<3"        ; the latter of older nodes
    word     = "<3" / "</3" / "u.u"
    time     = 1*12 digits ["." 1*9 digits]                     ; shown, never judged by
    token    = "id=" instance / "seq=" number / "mac=" code     ; the code last, over all before its tab

Unknown tokens are ignored. A malformed line is counted and skipped; of a datagram beyond these bounds no line is read.
"""

import hmac
import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from weft.wire.catalog.beacon import Reader, mac_of, read_mac, read_tokens
from weft.wire.catalog.messages import AWK, DISCONNECT, HEARTBEAT, Beat, Beats

BYTES_MAX: Final = 1_400  # one Ethernet frame
LINES_MAX: Final = 32
NAME_BYTES_MAX: Final = 255  # CAT-014
SEQ_END: Final = 1 << 63
_WORDS: Final = {word: word.decode() for word in (HEARTBEAT, DISCONNECT, AWK)}
_OLDER: Final = " <3"
_LINE: Final = re.compile(r"(<3|</3|u\.u) ([0-9]{1,12}(?:\.[0-9]{1,9})?) (.+)")
_SEQ: Final = re.compile(r"[0-9]{1,19}")
_MALFORMED: Final = Beats((), 1)


def decode(frames: Sequence[bytes]) -> Beats:
    """The beats of a datagram, and how many of its lines are malformed; it never raises.

    >>> decode([b"Rohan <3"]).lines[0].name
    'Rohan'
    """
    if len(frames) != 1 or len(frames[0]) > BYTES_MAX:
        return _MALFORMED
    lines = frames[0].removesuffix(b"\n").split(b"\n")
    if len(lines) > LINES_MAX:
        return _MALFORMED
    beats = [beat for line in lines if (beat := _beat(line)) is not None]
    return Beats(tuple(beats), len(lines) - len(beats))


def encode(beat: Beat) -> list[bytes]:
    r"""The one frame of a beat; without a time, in the form of older nodes.

    >>> encode(Beat(b"<3", "thermo", 1795227299.25, "t1"))
    [b'<3 1795227299.250 thermo\tid=t1']
    """
    text = _text(beat)
    return [(f"{text}\tmac={beat.mac}" if beat.mac else text).encode()]


def join(beats: Sequence[Beat]) -> list[bytes]:
    """Datagrams of several beats each, within the bounds of one."""
    datagrams: list[bytes] = []
    count = 0
    for beat in beats:
        (line,) = encode(beat)
        if not datagrams or count == LINES_MAX or len(datagrams[-1]) + 1 + len(line) > BYTES_MAX:
            datagrams.append(line)
            count = 1
        else:
            datagrams[-1] += b"\n" + line
            count += 1
    return datagrams


def sign(beat: Beat, key: bytes) -> Beat:
    """The beat with its code (BEA-007, BEA-011)."""
    signed = _text(beat).encode()
    return msgspec.structs.replace(beat, mac=mac_of(signed, key), signed=signed)


def is_signed(beat: Beat, key: bytes) -> bool:
    """Whether a received beat has the code of this key."""
    return hmac.compare_digest(mac_of(beat.signed, key), beat.mac)


def _text(beat: Beat) -> str:
    """All but the code."""
    if beat.at is None:
        return beat.name + _OLDER
    text = f"{_WORDS[beat.word]} {beat.at:.3f} {beat.name}"
    if beat.id is not None:
        text += f"\tid={beat.id}"
    if beat.seq is not None:
        text += f"\tseq={beat.seq}"
    return text


def _beat(line: bytes) -> Beat | None:
    try:
        text, *tokens = line.decode().split("\t")
        match = _LINE.fullmatch(text)
        if match is None:
            return _older(text, tokens)
        word, seconds, name = match.groups()
        return Beat(word.encode(), _name(name), float(seconds), **_tokens(tokens, line))
    except ValueError:
        return None


def _older(text: str, tokens: list[str]) -> Beat | None:
    if tokens or not text.endswith(_OLDER) or text.startswith(("<3 ", "</3 ", "u.u ")):
        return None
    return Beat(HEARTBEAT, _name(text.removesuffix(_OLDER)))


def _tokens(tokens: list[str], line: bytes) -> dict[str, Any]:
    fields = read_tokens(tokens, _READERS)
    if "mac" in fields:
        fields["signed"] = line[: line.rindex(b"\tmac=")]
    return fields


def _name(text: str) -> str:
    if not text.isprintable() or not 0 < len(text.encode()) <= NAME_BYTES_MAX:
        raise ValueError("no name")
    return text


def _seq(text: str) -> int:
    if not _SEQ.fullmatch(text) or int(text) >= SEQ_END:
        raise ValueError("no number")
    return int(text)


_READERS: Final[dict[str, Reader]] = {"id": _name, "seq": _seq, "mac": read_mac}
