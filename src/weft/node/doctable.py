"""`[doc]` of a node's file: the documents that it holds, one table per session (docs/doc.md)."""

import hashlib
from collections.abc import Iterator
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from weft.base.chance import Chance
from weft.base.errors import PeerError, UserError
from weft.base.now import MILLISECOND, SECOND
from weft.base.settings import span_ns
from weft.cores.document.messages import SessionSettings, Timing
from weft.wire.document import endpoints

NAME_MAX: Final = 64
NAME_CHARACTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ._-")
SESSIONS_MAX: Final = 64
TOKEN_BYTES_MIN: Final = 8
SHIPPED: Final = ("derby", "plain")
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
SPAN_NS: Final = (10 * MILLISECOND, 3_600 * SECOND)
Port = Annotated[int, Meta(ge=0, le=65_535)]


class DocSessionTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[doc.session.NAME]`: one session."""

    schema: str = "derby"
    """`derby`, `plain`, or a TOML file of the user's."""
    peers: tuple[str, ...] = ()
    """`host:port` of peers that mDNS does not find."""
    listen: str = "127.0.0.1"
    """Host, or `host:port`; without a port any of 49152..65535."""
    advertise: str = ""
    """Host, or `host:port`, that is announced to others; empty: the address at which it listens."""
    key: str = ""
    """File of the session's key pair: only those who have it can take part (GSP-050); empty: no key."""
    mdns: bool = True
    """Whether to announce itself and find peers by mDNS, if that is installed."""
    operator: str = ""
    """The person who edits here; part of each operation."""
    serve: Port = 0
    """Port of a scoreboard for browsers; 0: none."""
    serve_host: str = "127.0.0.1"
    token: str = ""
    """The password that a browser on another machine needs to see the board and to edit."""


class DocTimingTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[doc.timing]`: seconds, or spans with a unit; they must be the same in the whole session."""

    beat: float | str = 5.0
    beat_soon: float | str = 0.5
    beat_most: float | str = 15.0
    evasive: float | str = 10.0
    gone: float | str = 30.0
    hint_gone: float | str = 5.0
    gossip: float | str = 2.0
    ask_hold: float | str = 0.15
    ask_most: float | str = 2.0
    resend_hold: float | str = 2.0
    resend_first: float | str = 0.05
    fresh: float | str = 0.15
    adopt_after: float | str = 60.0


class DocTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[doc]`."""

    session: dict[str, DocSessionTable] = {}
    timing: DocTimingTable = DocTimingTable()


def faults_of(table: DocTable) -> Iterator[str]:
    """Errors in the table, one line each."""
    if len(table.session) > SESSIONS_MAX:
        yield f"E04 doc.session: {len(table.session)} sessions; {SESSIONS_MAX} at most"
    for name, session in table.session.items():
        where = f"doc.session.{name!r}"
        if name != name.strip() or not 0 < len(name) <= NAME_MAX or not set(name) <= NAME_CHARACTERS:
            yield f"E15 {where}: letters, digits, space, `.`, `_`, `-` only, {NAME_MAX} at most, no space at either end"
        yield from _session_faults(where, session)
    for field in table.timing.__struct_fields__:
        if not SPAN_NS[0] <= (span_ns(getattr(table.timing, field)) or 0) <= SPAN_NS[1]:
            yield f"E04 doc.timing.{field} {getattr(table.timing, field)!r}: 10 ms to 1 h"


def _session_faults(where: str, session: DocSessionTable) -> Iterator[str]:
    for key in ("listen", "advertise"):
        value = getattr(session, key)
        if value and not (_is_numeric(value) or _is_numeric(f"{_bracketed(value)}:1")):
            yield f"E05 {where}.{key} {value!r}: an IP address, or address:port"
    for peer in session.peers:
        if not _is_numeric(peer):
            yield f"E05 {where}.peers {peer!r}: address:port, with an IP address"
    if session.token and len(session.token.encode()) < TOKEN_BYTES_MIN:
        yield f"E04 {where}.token: at least {TOKEN_BYTES_MIN} bytes, because a shorter one can be guessed"
    if session.serve_host not in LOOPBACK and not session.token:
        yield f"E05 {where}.serve_host {session.serve_host!r}: a board for other machines needs a token"
    if session.schema not in SHIPPED:
        try:
            _name_in(session.schema)
        except UserError as error:
            yield f"E04 {where}.schema: {error}"


def settings_of_session(
    name: str, session: DocSessionTable, timing: DocTimingTable, uuid: bytes, *, is_closed: bool = False
) -> SessionSettings:
    """The settings of a session for its core."""
    spans = {f"{field}_ns": span_ns(getattr(timing, field)) or 0 for field in timing.__struct_fields__}
    return SessionSettings(
        name=name,
        schema=session.schema,
        schema_name=_public_name(session.schema),
        uuid=uuid,
        listen=session.listen,
        advertise=session.advertise,
        peers=session.peers,
        mdns=session.mdns,
        is_closed=is_closed or bool(session.key),
        operator=session.operator,
        timing=Timing(**spans),
    )


def fresh_uuid(chance: Chance) -> bytes:
    """A new source id: UUID version 4; its first byte is not 0, which ZeroMQ reserves (PEE-003)."""
    while True:
        drawn = bytearray(chance.getrandbits(128).to_bytes(16, "big"))
        drawn[6], drawn[8] = drawn[6] & 0x0F | 0x40, drawn[8] & 0x3F | 0x80
        if drawn[0]:
            return bytes(drawn)


def _public_name(schema: str) -> str:
    """The schema's name for other peers. A user's own schema has a hash of its text in it, so only equal ones match."""
    if schema in SHIPPED:
        return schema
    return f"{_name_in(schema)}-{hashlib.sha256(schema.encode()).hexdigest()[:8]}"


def _name_in(schema: str) -> str:
    """The name in a user's own schema; UserError `bad-schema`."""
    from weft.cores.document.fold.schema import Schema  # imports parsers of XML and TOML, which few nodes need

    return Schema.load(schema).name


def _is_numeric(endpoint: str) -> bool:
    """Whether the host is an IP address. The seed accepts no names, because a name may mean several machines (PEE-004)."""
    try:
        endpoints.parse(endpoint)
    except PeerError:
        return False
    return True


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
