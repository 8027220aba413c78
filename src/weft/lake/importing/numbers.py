"""Numbers and instants as text writes them, without a detour that would cost digits."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from weft.lake.importing.limits import LONG_MAX, NS_PER_S

_WHOLE: Final = re.compile(r"([+-]?[0-9]{1,19})(?:\.0*)?")
_REAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DECIMAL: Final = re.compile(r"(-?)([0-9]{1,19})(?:\.([0-9]{0,40}))?")
_DATE: Final = re.compile(r"([^.,]{10,40})[.,]([0-9]{1,40})(.*)")
_SCALES: Final = ((10**11, NS_PER_S), (10**14, 1_000_000), (10**17, 1_000))
"""Below: what one unit is, in nanoseconds. Seconds would be beyond the year 5100, milliseconds before 1973."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def number(text: str) -> int | float | None:
    """An integer if the fraction is zero and 63 bits hold it, else a double; None for what is no finite number.

    >>> number("48730.00"), number("0.25"), number("1e5"), number("nan"), number("")
    (48730, 0.25, 100000.0, None, None)
    """
    whole = _WHOLE.fullmatch(text)
    if whole is not None and -LONG_MAX - 1 < (value := int(whole[1])) <= LONG_MAX:
        return value
    if _REAL.fullmatch(text) is None:
        return None
    real = float(text)
    return real if real - real == 0.0 else None


def epoch_ns(text: str) -> int | None:
    """An instant written as a count since 1970; seconds to nanoseconds, told apart by their size.

    >>> epoch_ns("1795226590.369"), epoch_ns("1795226590369")
    (1795226590369000000, 1795226590369000000)
    """
    if len(text) == 13 and text.isdigit() and text.isascii() and text >= "1":
        return int(text) * 1_000_000  # as nearly all are written
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    sign, whole, fraction = match[1], int(match[2]), match[3] or ""
    unit = next((unit for bound, unit in _SCALES if whole < bound), 1)
    at = whole * unit + int(f"{fraction:0<9.9}") * unit // NS_PER_S
    return -at if sign else at


def instant_ns(text: str, zone: tzinfo) -> int | None:
    """An instant as a count or as ISO 8601; one that names no zone is of `zone`.

    >>> instant_ns("2026-11-21T01:43:10.369000001", UTC)
    1795225390369000001
    """
    counted = epoch_ns(text)
    if counted is not None:
        return counted
    match = _DATE.fullmatch(text)
    plain, fraction = (match[1] + match[3], match[2]) if match else (text, "")
    try:
        moment = datetime.fromisoformat(plain)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        seconds = (moment - _EPOCH) // timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None
    return seconds * NS_PER_S + int(f"{fraction:0<9.9}" if fraction else "0")
