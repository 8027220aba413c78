"""The MAC of datagrams on a closed fabric: datagrams made without the fabric's secret are refused (SEC-015, BEA-007).

    sealed = beacon SP "seq=" decimal SP "mac=" 32 hexadecimal digits

The MAC is made over everything before ` mac=`. `seq` grows with each datagram of a start, and the beacon names the era of
the start. So a node refuses a recorded datagram that is sent again, if it has heard a later one. Nodes without the secret
ignore both fields.
"""

import re
from hmac import compare_digest as is_same
from typing import Final

from weft.base.errors import PeerError
from weft.wire import beacon
from weft.wire.beacon import BEACON_BYTES_MAX
from weft.wire.catalog.beacon import mac_of

SENDERS_MAX: Final = 16_384  # a fabric has 10,000 nodes
_SEALED: Final = re.compile(rb"(.* seq=([0-9]{1,18})) mac=([0-9a-f]{32})", re.DOTALL)


class Seal:
    """The secret of a fabric, and the last number accepted from each sender."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._sent = 0
        self._heard: dict[bytes, tuple[int, int]] = {}
        """Era and number of the last datagram of each node."""

    def seal(self, data: bytes) -> bytes:
        """A datagram with its number and its MAC."""
        self._sent += 1
        signed = data + f" seq={self._sent}".encode()
        sealed = signed + f" mac={mac_of(signed, self._key)}".encode()
        assert len(sealed) <= BEACON_BYTES_MAX, sealed
        return sealed

    def fault(self, data: bytes) -> str:
        """Why a datagram is refused: `bad-mac`, `said-before`, or a malformed beacon; empty: it is accepted."""
        match = _SEALED.fullmatch(data) if len(data) <= BEACON_BYTES_MAX else None
        if match is None or not is_same(mac_of(match[1], self._key), match[3].decode("ascii")):
            return "bad-mac"
        try:
            decoded = beacon.decode([data])
        except PeerError as error:
            return error.code
        now = (decoded.era, int(match[2]))
        if now <= self._heard.get(decoded.node, (-1, -1)):
            return "said-before"
        if decoded.node not in self._heard and len(self._heard) >= SENDERS_MAX:
            del self._heard[next(iter(self._heard))]
        self._heard[decoded.node] = now
        return ""
