"""The alerts core: any story of what nodes tell, sinks that take it or do not, and crashes (FUZ-002)."""

from collections.abc import Iterable
from typing import Any

import msgspec

from fuzz.house.choices import Choices
from fuzz.house.life import Cast, play
from fuzz.house.running import run
from fuzz.house.stories import drawn
from fuzz.node_alerts import ALERT
from weft.cores.alerts.core import Alerts
from weft.cores.alerts.messages import (
    AlertsSettings,
    ForgetAlert,
    Hear,
    NoticeFailed,
    NoticeSent,
    SendNotice,
    SinkSettings,
)
from weft.wire.alerts import Alert, AlertCleared, AlertRaised, AlertsFiring

SETTINGS = AlertsSettings(
    fleet="lab", sinks=(SinkSettings("hook"), SinkSettings("pager", "critical")), active_max=3, notices_max=4
)
NODES = (b"a" * 16, b"b" * 16)


def _alert(choices: Choices) -> dict[str, Any]:
    said = msgspec.structs.asdict(ALERT)
    labels = {"mount": choices.pick(("/", "/data"))}
    severity = choices.pick(("warning", "critical", "loud"))
    return said | {"labels": labels, "severity": severity, "since": ALERT.since + choices.below(3)}


def _told(choices: Choices) -> Hear:
    said, origin = _alert(choices), choices.pick(NODES)
    kinds = (
        ("alert.raised", AlertRaised(**said)),
        ("alert.cleared", AlertCleared(**said, at=ALERT.since + 9, why="back")),
        ("alert.firing", AlertsFiring((Alert(**said),))),
        ("alert.firing", AlertsFiring(())),
    )
    key, told = choices.pick(kinds)
    return Hear(origin, key, msgspec.json.encode(told))


def _sent(work: Any, choices: Choices) -> Any:
    assert isinstance(work, SendNotice), work
    notice = work.notice
    if choices.flag(3):
        return NoticeFailed(notice.sink, notice.number, work.attempt, "x", is_final=choices.flag(3))
    return NoticeSent(notice.sink, notice.number, work.attempt)


CAST = Cast(
    make=lambda start: Alerts(SETTINGS),
    says=(),
    orders=(_told, _told, Hear(NODES[0], "alert.raised", b"{"), NoticeSent("hook", 1, 1), ForgetAlert),
    works=_sent,
)


def one(data: bytes) -> None:
    """One root."""
    play(CAST, data)


def seeds() -> Iterable[bytes]:
    """Stories drawn from seeds."""
    return drawn("alerts", 1)


if __name__ == "__main__":
    run(one)
