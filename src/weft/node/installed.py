"""Finds installed annexes by their entry points, and loads one when it is needed.

The look-up costs some 20 ms and 3 MB. So it is done only if a file has a table, or a command line a word, that Weft does
not know.
"""

from typing import Any, Final

from weft.base.errors import UserError

GROUP: Final = "weft.annexes"
"""The group of entry points, in the `pyproject.toml` of a package: `lease = "weft_lease:ANNEX"`."""
MEND: Final = "weft annexes shows what is installed; repair or remove that package"


def _points() -> dict[str, Any]:
    from importlib.metadata import entry_points  # imported late: it is the larger part of the cost of a look-up

    return {point.name: point for point in entry_points(group=GROUP)}


def names() -> list[str]:
    """Names of all installed annexes, without checking that they can be loaded."""
    return sorted(_points())


def packages() -> frozenset[str]:
    """The packages that contain them."""
    return frozenset(point.module.partition(".")[0] for point in _points().values())


def version_of(name: str) -> str:
    """The distribution that contains it, and its version: `weft-lease 1.0`."""
    point = _points()[name]
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value


def load(name: str) -> Any:
    """The object that its entry point names; None if no such annex is installed.

    UserError `bad-annex` if it cannot be loaded.
    """
    point = _points().get(name)
    if point is None:
        return None
    try:
        return point.load()
    except Exception as error:  # a foreign module may raise anything during its import
        raise UserError("bad-annex", f"the annex {name} ({point.value}) cannot be loaded: {error!r}", MEND) from error
