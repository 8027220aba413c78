"""The time frame: read in any of the forms that nodes write it in, answered in the same (CAT-010, CAT-011).

    4 bytes    float32, then unsigned, each little endian before big endian: seconds
    8 bytes    float64, little endian before big endian: seconds; then signed as s, ms, us, ns, each in both orders
    9-20 bytes decimal digits: seconds, perhaps with a fraction

Of the readings within ten years of our wall clock the nearest is meant; of equally near ones, the first above. A frame
without any is of unknown time, which is no error. No decision depends on a time frame (CAT-012): a float32 of today has
steps of 128 s.
"""

import math
import re
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

UNKNOWN: Final = "unknown"
WINDOW_S: Final = 315_576_000.0  # ten years
_BEYOND_S: Final = math.nextafter(WINDOW_S, math.inf)
_ASCII: Final = re.compile(rb"[0-9]{9,10}(?:\.[0-9]{1,9})?")
_LE4: Final = struct.Struct("<fI").unpack
_BE4: Final = struct.Struct(">fI").unpack
_LE8: Final = struct.Struct("<dq").unpack
_BE8: Final = struct.Struct(">dq").unpack
_UNITS: Final = (("s", 1), ("ms", 1_000), ("us", 1_000_000), ("ns", 1_000_000_000))
_FOUR: Final[tuple[str, ...]] = ("f32le", "f32be", "i32le", "i32be")
_EIGHT: Final[tuple[str, ...]] = (
    "f64le",
    "f64be",
    *(f"i64{order}-{unit}" for unit, _ in _UNITS for order in ("le", "be")),
)
_TEXT: Final[tuple[str, ...]] = ("ascii",)


class Time(NamedTuple):
    """What a time frame says."""

    format: str
    """One of `FORMATS`, or `unknown`."""
    seconds: float | None
    """Unix time; None: unknown."""


def read(frame: bytes, wall_s: float) -> Time:
    """What a frame of any bytes means, by our wall clock.

    >>> read(bytes.fromhex("fd01d64e"), 1795227299.0)
    Time(format='f32le', seconds=1795227264.0)
    >>> read(b"now", 1795227299.0)
    Time(format='unknown', seconds=None)
    """
    return Time(*_nearest(frame, wall_s))


def write(format: str, wall_s: float) -> bytes:  # noqa: A002  # what it is called
    """A time in a format; `unknown` is float32.

    >>> write("f32le", 1795227299.0).hex()
    'fd01d64e'
    """
    return _WRITERS[format](wall_s)


def format_of(frame: bytes, wall_s: float) -> str:
    """The format of the answers and messages to whoever sent this (CAT-011)."""
    form, _ = _nearest(frame, wall_s)
    if form == UNKNOWN:
        return "f64le" if len(frame) == 8 else "f32le"
    return form


def answer(frame: bytes, wall_s: float) -> bytes:
    """The time frame of the answer to a message with this one."""
    return _WRITERS[format_of(frame, wall_s)](wall_s)


def _nearest(frame: bytes, wall_s: float) -> tuple[str, float | None]:
    """The nearest to our wall clock of all times that a frame may mean; this runs once for every message."""
    size = len(frame)
    if size == 4:
        names, readings = _FOUR, _four(frame)
    elif size == 8:
        names, readings = _EIGHT, _eight(frame, wall_s)
    elif 9 <= size <= 20 and _ASCII.fullmatch(frame):
        names, readings = _TEXT, (float(frame),)
    else:
        return UNKNOWN, None
    chosen, found, nearest = UNKNOWN, None, _BEYOND_S
    for name, seconds in zip(names, readings):  # noqa: B905  # of whole numbers out of reach there are no readings
        distance = abs(seconds - wall_s)
        if distance < nearest:
            chosen, found, nearest = name, seconds, distance
    return chosen, found


def _four(frame: bytes) -> tuple[float, ...]:
    twice = frame + frame
    f_le, i_le = _LE4(twice)
    f_be, i_be = _BE4(twice)
    return f_le, f_be, i_le, i_be


def _eight(frame: bytes, wall_s: float) -> tuple[float, ...]:
    twice = frame + frame
    f_le, i_le = _LE8(twice)
    f_be, i_be = _BE8(twice)
    reach = (abs(wall_s) + _BEYOND_S) * 1e9
    if abs(i_le) > reach < abs(i_be):  # not even as nanoseconds, so as what a float64 usually is
        return f_le, f_be
    return f_le, f_be, *[number / unit for _, unit in _UNITS for number in (i_le, i_be)]


def _whole(form: str, unit: int) -> Callable[[float], bytes]:
    pack, end = struct.Struct(form).pack, 1 << (32 if form[-1] == "I" else 63)
    return lambda wall_s: pack(int(wall_s * unit) % end)


_WRITERS: Final[dict[str, Callable[[float], bytes]]] = {
    "f32le": struct.Struct("<f").pack,
    "f32be": struct.Struct(">f").pack,
    "i32le": _whole("<I", 1),
    "i32be": _whole(">I", 1),
    "f64le": struct.Struct("<d").pack,
    "f64be": struct.Struct(">d").pack,
    **{f"i64le-{name}": _whole("<q", unit) for name, unit in _UNITS},
    **{f"i64be-{name}": _whole(">q", unit) for name, unit in _UNITS},
    "ascii": lambda wall_s: b"%d" % int(wall_s),
}
FORMATS: Final = tuple(_WRITERS)
"""All that nodes write."""
_WRITERS[UNKNOWN] = _WRITERS["f32le"]
