"""Files of a store: MessagePack maps in a row, as real MoaT-KV servers save and log them (ADM-012), both directions.

    file = *(state / entry)
    state = {nodes, known, deleted, node, tock}            also under `info`
    entry = {value?, chain, tock, path, depth}             of a saved store
          / {node, tick, prev, path, depth, value?, tock}  of a log

An entry without `value` is a deletion. Every entry counts for the shortening of paths, deletions too; a real server's
reader leaves these out, so a writer who wants to be read by it puts all deletions behind the entries with a value.
"""

from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from weft.base.changes import Event
from weft.base.errors import PeerError
from weft.wire.store.bus import is_name
from weft.wire.store.clients import (
    NO_VALUE,
    Answer,
    Links,
    PathExpander,
    PathShortener,
    chain_of,
    decode_answer,
    encode,
    links_of,
    until_of,
)
from weft.wire.store.messages import Ticks
from weft.wire.store.pack import check_sound
from weft.wire.store.ranges import ticks_of_wire, ticks_to_wire

TICK_MAX: Final = (1 << 63) - 1
_prev: Final = msgspec.msgpack.Decoder(Links | None)


class State(NamedTuple):
    """What a store knew beyond its entries."""

    nodes: dict[str, int]
    """The highest tick of each node."""
    known: Ticks
    deleted: Ticks
    """Purged; real servers and we also name the deletions that still stand as entries."""
    node: str = ""
    """Who wrote it."""
    tock: int = 0


class _Wrapped(msgspec.Struct):
    info: Raw | UnsetType = UNSET


_wrapped: Final = msgspec.msgpack.Decoder(_Wrapped)


class Writer:
    """Makes the records of one file."""

    def __init__(self) -> None:
        self._shortener = PathShortener()

    def entry(self, event: Event) -> bytes:
        """The record of an entry; a deletion has no value."""
        depth, path = self._shortener.cut(event.path)
        value = NO_VALUE if event.value is None else Raw(event.value)
        until = UNSET if event.until is None else event.until
        chain = links_of(event.chain)
        return encode(Answer(depth=depth, path=path, tock=event.tock, chain=chain, value=value, until=until))

    @staticmethod
    def state(state: State) -> bytes:
        """The record of what is known."""
        known, deleted = ticks_to_wire(state.known), ticks_to_wire(state.deleted)
        return encode(Answer(nodes={**state.nodes}, known=known, deleted=deleted, node=state.node, tock=state.tock))


class Reader:
    """Understands the records of one file, in their order."""

    def __init__(self) -> None:
        self._expander = PathExpander()

    def read(self, raw: bytes) -> Event | State:
        """The contents of a record; PeerError if it cannot be read, and then the rest of the file cannot be trusted either."""
        answer = decode_answer(_unwrapped(raw))
        if not isinstance(answer, Answer):
            raise PeerError("malformed", "neither a state nor an entry")
        return self._entry(answer) if answer.path is not UNSET else _state(answer)

    def _entry(self, answer: Answer) -> Event:
        if not isinstance(answer.path, tuple):
            raise PeerError("bad-path", "text is no path")
        path = self._expander.full(0 if answer.depth is UNSET else answer.depth, answer.path)
        chain = answer.chain if isinstance(answer.chain, Links) else _chain_of_log(answer)
        if not 0 <= answer.tock <= TICK_MAX:
            raise PeerError("bad-field", f"tock {answer.tock}")
        value = None if answer.value is NO_VALUE else bytes(answer.value)
        if value is not None:
            check_sound(value)
        return Event(chain_of(chain), answer.tock, path, value, until=until_of(answer))


def _unwrapped(raw: bytes) -> bytes:
    if b"info" not in raw:
        return raw
    try:
        inner = _wrapped.decode(raw).info
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise PeerError("malformed", str(error)) from None
    return raw if inner is UNSET else bytes(inner)


def _chain_of_log(answer: Answer) -> Links:
    if answer.node is UNSET or answer.tick is UNSET:
        raise PeerError("missing-field", "an entry without chain")
    if answer.prev is NO_VALUE:
        return Links(answer.node, answer.tick)
    try:
        return Links(answer.node, answer.tick, _prev.decode(bytes(answer.prev)))
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise PeerError("bad-chain", str(error)) from None


def _state(answer: Answer) -> State:
    if answer.nodes is UNSET and answer.known is UNSET and answer.deleted is UNSET and answer.tock < 0:
        raise PeerError("missing-field", "neither a state nor an entry")
    nodes = {} if answer.nodes is UNSET else {node: tick or 0 for node, tick in answer.nodes.items()}
    if not all(is_name(node) and 0 <= tick <= TICK_MAX for node, tick in nodes.items()):
        raise PeerError("bad-field", "a node or tick that is none")
    known = _ticks(answer.known) if answer.known is not UNSET else _ticks(answer.superseded)
    return State(nodes, known, _ticks(answer.deleted), "" if answer.node is UNSET else answer.node, max(answer.tock, 0))


def _ticks(ranges: object) -> Ticks:
    if not isinstance(ranges, dict):
        return {}
    if not all(is_name(node) for node in ranges):
        raise PeerError("bad-field", "a node that is none")
    return ticks_of_wire(ranges)
