"""Orders, work and events of the alerts core."""

import msgspec

from weft.cores.alerts import limits
from weft.wire.alerts import Alert


class SinkSettings(msgspec.Struct, frozen=True):
    """A sink: a receiver of notices outside the fleet. The shell knows how to reach it."""

    name: str
    severity: str = "warning"
    """Lowest severity that is sent."""


class AlertsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The sinks, and limits."""

    fleet: str = ""
    sinks: tuple[SinkSettings, ...] = ()
    active_max: int = limits.ACTIVE_MAX
    notices_max: int = limits.NOTICES_MAX


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One notice for one sink. A receiver recognises a repeated notice by `ident` and `what`."""

    number: int
    """Unique in this root's journal."""
    sink: str
    what: str
    """`raised` or `cleared`."""
    ident: str
    fleet: str
    alert: Alert
    at: int
    """Wall-clock ms when it was raised or cleared."""
    why: str = ""
    """Why it ended; only for `cleared`."""
    made_at: int
    """Wall-clock ms when this root made the notice."""


# Orders


class Hear(msgspec.Struct, frozen=True, gc=False):
    """Order: a node of the fleet (this one included) has journaled an event of `weft.wire.alerts`."""

    origin: bytes
    key: str
    payload: bytes


class ForgetAlert(msgspec.Struct, frozen=True, gc=False):
    """Order: end this alert, since its node will not come back to end it; answered by a `Reply`."""

    ticket: int
    ident: str


class NoticeSent(msgspec.Struct, frozen=True, gc=False):
    """Order: the receiver has the notice."""

    sink: str
    number: int
    attempt: int


class NoticeFailed(msgspec.Struct, frozen=True, gc=False):
    """Order: sending the notice failed."""

    sink: str
    number: int
    attempt: int
    why: str
    is_final: bool = False
    """True if the receiver will never accept this notice."""


# Work


class SendNotice(msgspec.Struct, frozen=True):
    """Work: send a notice to a sink; answered by NoticeSent or NoticeFailed."""

    notice: Notice
    attempt: int
    """Number of the attempt since the start; the answer repeats it."""


# Events


class AlertNotSent(msgspec.Struct, frozen=True, gc=False):
    """Event: a notice was not sent. It is tried again, or was given up.

    Told at most once an hour per sink, except when a notice is given up.
    """

    sink: str
    alert: str
    node: str
    what: str
    why: str
    is_given_up: bool
    waiting: int
    """How many notices wait for this sink."""
