"""Announcements and control: how nodes find their place (TOP-001, TOP-002).

    announcement = key endpoint uuid content            PUB connect -> SUB bind +0
    key          = "/MARCO" / "/GROUP/" group "/" / "/RECOVERY/wutup" / "/RECOVERY/iwin"
    control      = command endpoint uuid properties     DEALER with delimiter -> ROUTER +1
    command      = polo / assignment / stop / sos / keepcalm / yo / aye / nay

Endpoints are `host:port` of a port block, the UUID is of 16 bytes, content and properties are JSON objects. Unknown
names in them are ignored. A ROUTER may also answer WTF (`wire.replication.Wtf`).
"""

from typing import Any, Final

import msgspec

MARCO: Final = "/MARCO"
WUTUP: Final = "/RECOVERY/wutup"
IWIN: Final = "/RECOVERY/iwin"
COMMANDS: Final = ("polo", "assignment", "stop", "sos", "keepcalm", "yo", "aye", "nay")


class Announcement(msgspec.Struct, frozen=True, gc=False):
    """Something said to everybody who listens."""

    key: str
    endpoint: str
    uuid: bytes
    content: dict[str, Any]
    """MARCO `{fleet, epoch, count, protocol, why?, acting?}`; GROUP `{epoch, why}`; wutup `{election, propose, holds}`; iwin `{election, epoch, holds, votes, of}`."""

    @property
    def group(self) -> str:
        """The group that is called; empty: not a GROUP."""
        return self.key[7:-1] if self.key.startswith("/GROUP/") else ""


class Control(msgspec.Struct, frozen=True, gc=False):
    """Something said to one node; `assignment` names the assigned node, the others their sender."""

    command: str
    endpoint: str
    uuid: bytes
    properties: dict[str, Any]


def group_key(group: str) -> str:
    """The announcement key of a group; the slash keeps `g1` and `g10` apart (CFG-020)."""
    return f"/GROUP/{group}/"
