"""Which annexes are installed: found by their entry points, loaded only when one is asked for.

Looking them up costs a start some 20 ms and 3 MB, so nobody does who has no table, and no word, that Weft does not know.
"""

from typing import Any, Final

from weft.base.errors import UserError

GROUP: Final = "weft.annexes"
"""Of entry points, in the `pyproject.toml` of a package: `lease = "weft_lease:ANNEX"`."""
MEND: Final = "weft annexes shows what is installed; mend or remove that package"


def _points() -> dict[str, Any]:
    from importlib.metadata import entry_points  # the larger part of what a look costs

    return {point.name: point for point in entry_points(group=GROUP)}


def names() -> list[str]:
    """Of all that are installed; whether they can be loaded is not asked."""
    return sorted(_points())


def packages() -> frozenset[str]:
    """The packages that they come in."""
    return frozenset(point.module.partition(".")[0] for point in _points().values())


def version_of(name: str) -> str:
    """The distribution it comes in, and its version: `weft-lease 1.0`."""
    point = _points()[name]
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value


def load(name: str) -> Any:
    """What its entry point names; None: no such annex is installed. UserError `bad-annex` if it cannot be loaded."""
    point = _points().get(name)
    if point is None:
        return None
    try:
        return point.load()
    except Exception as error:  # whatever somebody else's module raises while it is imported
        raise UserError("bad-annex", f"the annex {name} ({point.value}) cannot be loaded: {error!r}", MEND) from error
