"""Decides who may connect to a port with keys: the answer to libzmq's request at every handshake (ZAP 1.0; SEC-011).

Pure. It only checks that a key is known; what its node may send is checked for every message (SEC-012).
"""

from typing import Final, NamedTuple

from weft.base.keys import Holder, KeyTable, may
from weft.node.channels import ENROL
from weft.wire.z85 import to_z85

VERSION: Final = b"1.0"
DOMAIN: Final = b"weft"
PUBLISH: Final = b"weft-publish"
"""Domain of sockets that publish the configuration: they receive no messages, so only the handshake can refuse a peer."""
JOIN: Final = b"weft-join"
"""Domain of the port for joining machines, whose keys are not known yet."""
VERBS: Final[dict[bytes, str]] = {DOMAIN: "", PUBLISH: "snapshot"}
"""The verb that a key's roles need to connect, by domain; empty: any known key may connect."""
DOMAINS: Final = {"publish": PUBLISH, ENROL: JOIN}
"""The domains of some channels; all others have `DOMAIN`."""
KEY_BYTES: Final = 32
_WELL, _NO = (b"200", b"OK"), (b"400", b"unknown key")
_DENIED: Final = (b"400", b"not this role")
_NOT_CURVE: Final = (b"400", b"no key")
_MALFORMED: Final = (b"500", b"malformed request")


class Verdict(NamedTuple):
    """An answer, and the client it is for."""

    frames: list[bytes]
    """Version, request id, status, text, User-Id, metadata."""
    address: str
    """The address of the client, from libzmq."""
    why: str
    """`ok`, `unknown-key`, `role`, `no-key` (another mechanism), `domain`, `malformed`."""

    @property
    def allowed(self) -> bool:
        """Whether the client may connect."""
        return self.why == "ok"


def decide(request: list[bytes], table: KeyTable) -> Verdict:
    """The answer to a request, given as its frames after the empty delimiter.

    A client is accepted if it uses CURVE, with a known key, or in the domain `JOIN` with any key; then the answer's User-Id
    is that key in Z85. Every other client gets 400, a malformed request 500.
    """
    version, number, *rest = [*request[:2], b"", b""][:2] + request[2:]
    if len(request) < 6 or version != VERSION:
        return _verdict(number if len(request) >= 2 else b"", _MALFORMED, b"", "", "malformed")
    domain, address, _, mechanism, *credentials = rest
    shown = address[:64].decode("ascii", "replace")
    if domain not in (*VERBS, JOIN):
        return _verdict(number, _NO, b"", shown, "domain")
    if mechanism != b"CURVE" or len(credentials) != 1 or len(credentials[0]) != KEY_BYTES:
        return _verdict(number, _NOT_CURVE, b"", shown, "no-key")
    key = to_z85(credentials[0])
    if domain != JOIN and (refused := _refusal(table.find(key), VERBS[domain])) is not None:
        return _verdict(number, refused[0], b"", shown, refused[1])
    return _verdict(number, _WELL, key.encode(), shown, "ok")


def _refusal(holder: Holder | None, verb: str) -> tuple[tuple[bytes, bytes], str] | None:
    """Text and reason of the refusal; None if the client may connect."""
    if holder is None:
        return _NO, "unknown-key"
    return (_DENIED, "role") if verb and not may(holder.roles, verb) else None


def _verdict(number: bytes, status: tuple[bytes, bytes], user: bytes, address: str, why: str) -> Verdict:
    return Verdict([VERSION, number, *status, user, b""], address, why)
