"""Which class stands behind each kind of filter."""

from collections.abc import Callable
from typing import Final

from weft.cores.chains.edit import Edit
from weft.cores.chains.filters import (
    NOWHERE,
    Dedupe,
    Filter,
    HandOver,
    House,
    Match,
    Python,
    RateLimit,
    Sample,
    Threshold,
)
from weft.cores.chains.settings import FilterSpec

MAKERS: Final[dict[str, Callable[..., Filter]]] = {
    "match": Match,
    "sample": Sample,
    "rate-limit": RateLimit,
    "dedupe": Dedupe,
    "edit": Edit,
    "threshold": Threshold,
    "forward": HandOver,
    "journal": HandOver,
    "aggregate": HandOver,
    "batch": HandOver,
    "route": HandOver,
    "absorb": HandOver,
    "stdout": HandOver,
    "python": Python,
}


def make(spec: FilterSpec, house: House = NOWHERE) -> Filter:
    """The filter of a specification, with a fresh state."""
    return MAKERS[spec.kind](spec, spec.options, house)
