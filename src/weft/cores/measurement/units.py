"""Units for limits in settings, and units of the values compared with them (MET-003)."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from weft.cores.measurement.details import DETAILS, Detail

NEAR_LETTERS: Final = 3  # MEMORY and MEM_PART concern the same thing
SHOWN_MAX: Final = 3

_QUANTITY: Final = re.compile(r"([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?) ?(\S*)", re.ASCII)


class Size(NamedTuple):
    """A unit: its dimension, and its size in the simplest unit of that dimension."""

    dimension: str
    factor: float


_SHORT: Final = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY: Final = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50}
_BYTES: Final = {f"{prefix}B": factor for prefix, factor in (("", 1), *_SHORT.items(), *_BINARY.items())}

WRITTEN: Final[Mapping[str, Size]] = {
    **{name: Size("bytes", factor) for name, factor in _BYTES.items()},
    **{f"{name}/s": Size("bytes per second", factor) for name, factor in _BYTES.items()},
    **{
        name: Size("time", factor)
        for name, factor in (("us", 1e-6), ("ms", 1e-3), ("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400))
    },
    "%": Size("share", 1),
    "°C": Size("temperature", 1),
    "C": Size("temperature", 1),
    "rpm": Size("rotation", 1),
}
"""Units that may follow a number."""

MEASURED: Final[Mapping[str, Size]] = {
    "By": Size("bytes", 1),
    "By/s": Size("bytes per second", 1),
    "s": Size("time", 1),
    "%": Size("share", 1),
    "s/s": Size("share", 100),
    "ms/s": Size("share", 0.1),
    "us/s": Size("share", 1e-4),
    "Cel": Size("temperature", 1),
    "{rotation}/min": Size("rotation", 1),
}
"""Units of DETAILS with a written form; the others are counts, and their limits are plain numbers."""


def quantity(text: str) -> tuple[float | int, str] | None:
    """Number and unit of `90`, `90 %` or `10GiB`; None: the text has another form."""
    match = _QUANTITY.fullmatch(text)
    if match is None or (match[2] and match[2] not in WRITTEN):
        return None
    number = match[1]
    return (int(number) if number.lstrip("+-").isdecimal() else float(number)), match[2]


def limit_of(number: float, unit: str, name: str) -> float | int | str:
    """The number in the unit of a detail's values; or, as a text, why that is not possible and what would fit.

    >>> limit_of(10, "GiB", "MEMORY"), limit_of(20, "%", "PRESSURE"), limit_of(90, "", "CPU")
    (10737418240, 200000, 90)
    >>> limit_of(90, "%", "DISK_USE")
    'DISK_USE is not measured in %; DISK_PERCENT is'
    """
    if not unit:
        return number
    written, detail = WRITTEN[unit], DETAILS[name]
    measured = MEASURED.get(detail.unit)
    if measured is None or measured.dimension != written.dimension:
        return f"{name} is not measured in {unit}{_fitting(name, written.dimension)}"
    limit = round(number * written.factor / measured.factor, 9)
    return int(limit) if limit == int(limit) else limit


def _fitting(name: str, dimension: str) -> str:
    """Details with a similar name and this dimension."""
    near = name[:NEAR_LETTERS]
    found = [other for other, row in DETAILS.items() if other.startswith(near) and _dimension(row) == dimension]
    if not found:
        return ""
    return f"; {' and '.join(found[:SHOWN_MAX])} {'is' if len(found) == 1 else 'are'}"


def _dimension(row: Detail) -> str:
    measured = MEASURED.get(row.unit)
    return "" if measured is None else measured.dimension
