"""Which modules of the product do something that is looked for."""

from collections.abc import Callable, Iterable

from tests.house.requirements import ROOT


def places_of(ask: Callable[[str], Iterable[str]], *rooms: str) -> dict[str, set[str]]:
    """What `ask` finds in the text of each module of these rooms of `weft`, where it finds something; no room: of all modules."""
    source = ROOT / "src"
    paths = sorted(path for room in rooms or ("",) for path in (source / "weft" / room).rglob("*.py"))
    made = {str(path.relative_to(source)): set(ask(path.read_text("utf-8"))) for path in paths}
    return {path: found for path, found in made.items() if found}
