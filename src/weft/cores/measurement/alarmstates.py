"""When an alert fires for one series (MET-004).

Each sample of the series is compared with the condition. It has to be true for the span `for` without interruption;
then the alert fires until the value is back at `clear`, so a value that swings around the limit raises one alert and
not many. A series that disappears ends its alert. A metric that fails or hangs changes nothing: a firing alert goes on.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey
from weft.cores.measurement.alertsettings import AlertSpec


class Alarm(TableKey):
    """States of one alert for one series."""

    QUIET = "nothing is kept of it"
    PENDING = "the condition holds, but not for long enough"
    FIRING = "raised, and in the journal"


class Heard(TableKey):
    BEYOND = "the value lies beyond the limit"
    LONG_BEYOND = "it has done so for the whole span `for`"
    BETWEEN = "it lies between the limit and `clear`"
    BACK = "it is back at `clear`"
    GONE = "the series, the metric or the alert is there no longer"


class Cell(NamedTuple):
    do: str  # a method of alarms.Alarms
    then: Alarm


TABLE: Final[dict[tuple[Alarm, Heard], Cell]] = {
    (Alarm.QUIET, Heard.BEYOND): Cell("await_span", Alarm.PENDING),
    (Alarm.QUIET, Heard.LONG_BEYOND): Cell("raise_alert", Alarm.FIRING),
    (Alarm.PENDING, Heard.LONG_BEYOND): Cell("raise_alert", Alarm.FIRING),
    (Alarm.PENDING, Heard.BETWEEN): Cell("forget", Alarm.QUIET),
    (Alarm.PENDING, Heard.BACK): Cell("forget", Alarm.QUIET),
    (Alarm.PENDING, Heard.GONE): Cell("forget", Alarm.QUIET),
    (Alarm.FIRING, Heard.BACK): Cell("clear_alert", Alarm.QUIET),
    (Alarm.FIRING, Heard.GONE): Cell("clear_alert", Alarm.QUIET),
}
"""Without a row nothing changes."""


def heard(spec: AlertSpec, value: float, held_ns: int) -> Heard:
    """What a sample says, where the condition has held for `held_ns` before it without interruption."""
    if spec.holds(value):
        return Heard.LONG_BEYOND if held_ns >= spec.for_ns else Heard.BEYOND
    return Heard.BACK if spec.is_back(value) else Heard.BETWEEN
