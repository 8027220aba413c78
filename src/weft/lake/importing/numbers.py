"""Parses numbers and instants from text without losing digits."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from weft.lake.importing.limits import NS_PER_S
from weft.lake.schemas import LONG_MAX

_WHOLE: Final = re.compile(r"([+-]?[0-9]{1,19})(?:\.0*)?")
_REAL: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DECIMAL: Final = re.compile(r"(-?)([0-9]{1,19})(?:\.([0-9]{0,40}))?")
_DATE: Final = re.compile(r"([^.,]{10,40})[.,]([0-9]{1,40})(.*)")
_SCALES: Final = ((10**11, NS_PER_S), (10**14, 1_000_000), (10**17, 1_000))
"""Limits and nanoseconds per unit: a count below the first limit is in seconds, then milliseconds, then microseconds.

The first limit is after the year 5100 if it is in seconds, and in March 1973 if it is in milliseconds.
"""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def number(text: str) -> int | float | None:
    """An integer if the fraction is zero and it fits 63 bits, else a double; None if it is not a finite number.

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
    """An instant written as a count since 1970. The unit, seconds to nanoseconds, follows from the size of the number.

    >>> epoch_ns("1795226590.369"), epoch_ns("1795226590369")
    (1795226590369000000, 1795226590369000000)
    """
    if len(text) == 13 and text.isdigit() and text.isascii() and text >= "1":
        return int(text) * 1_000_000  # the usual form, milliseconds: a short cut
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    sign, whole, fraction = match[1], int(match[2]), match[3] or ""
    unit = next((unit for bound, unit in _SCALES if whole < bound), 1)
    at = whole * unit + int(f"{fraction:0<9.9}") * unit // NS_PER_S
    return -at if sign else at


def instant_ns(text: str, zone: tzinfo) -> int | None:
    """An instant written as a count or in ISO 8601; without a zone it is taken to be in `zone`.

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
