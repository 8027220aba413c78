"""What the alerts core hears and says."""

import msgspec

from weft.cores.alerts import limits
from weft.wire.alerts import Alert


class SinkSettings(msgspec.Struct, frozen=True):
    """Somebody outside who is told; the shell knows how."""

    name: str
    severity: str = "warning"
    """The least that is told."""


class AlertsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Who is told of what."""

    fleet: str = ""
    sinks: tuple[SinkSettings, ...] = ()
    active_max: int = limits.ACTIVE_MAX
    notices_max: int = limits.NOTICES_MAX


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to tell one sink. A receiver knows by `ident` and `what` that it is told again."""

    number: int
    """Of this root's journal."""
    sink: str
    what: str
    """`raised` or `cleared`."""
    ident: str
    fleet: str
    alert: Alert
    at: int
    """Wall-clock ms when it was raised or cleared."""
    why: str = ""
    """Of what was cleared."""
    made_at: int
    """Wall-clock ms of this root."""


# Orders


class Hear(msgspec.Struct, frozen=True, gc=False):
    """Order: a node of the fleet, or this one, has journaled an event of `weft.wire.alerts`."""

    origin: bytes
    key: str
    payload: bytes


class ForgetAlert(msgspec.Struct, frozen=True, gc=False):
    """Order: its node will not come back, so nobody else will end this alert; answered by a `Reply`."""

    ticket: int
    ident: str


class NoticeSent(msgspec.Struct, frozen=True, gc=False):
    """Order: the receiver has the notice."""

    sink: str
    number: int
    attempt: int


class NoticeFailed(msgspec.Struct, frozen=True, gc=False):
    """Order: it has it not."""

    sink: str
    number: int
    attempt: int
    why: str
    is_final: bool = False
    """Whether the receiver will never take this very notice."""


# Work


class SendNotice(msgspec.Struct, frozen=True):
    """Work: tell a sink; answered by NoticeSent or NoticeFailed."""

    notice: Notice
    attempt: int
    """Since the start; the answer repeats it."""


# Events


class AlertNotSent(msgspec.Struct, frozen=True, gc=False):
    """Event: a sink was not told. It waits for the next try, or is given up. At most one an hour and sink, but for those."""

    sink: str
    alert: str
    node: str
    what: str
    why: str
    is_given_up: bool
    waiting: int
    """How many notices wait for this sink."""
