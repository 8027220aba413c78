"""Files of a node and of a fleet: any text is settings, or refused with every mistake in its line (CFG-070..073, SEC-044)."""

from collections.abc import Iterable
from pathlib import Path

from fuzz.house.running import outcomes, run
from fuzz.house.vectors import hostile, payloads
from weft.base.errors import UserError
from weft.cli.up import EXAMPLE
from weft.node import cfgfile, fleetkeys
from weft.node.fleet import read_fleet
from weft.node.fleetparts import Reading
from weft.node.settings import read_document, settings_of

PAGES = Path(__file__).parents[1] / "docs"


def one(data: bytes) -> None:
    """As each of the three kinds of files."""
    text = data.decode("utf-8", "replace")
    try:
        settings_of(read_document(text, "the file"), "the file")
    except UserError as error:
        assert error.code == "bad-settings", error
        outcomes.add((error.code, error.text.partition("\n")[2][:24]))
    for reading in (read_fleet(text), read_fleet(text, is_of_root=True), cfgfile.read_cfg(text)):
        _looked_at(reading, text)


def _looked_at(reading: Reading, text: str) -> None:
    fleet, errors, _ = reading
    outcomes.update((error.code, error.text[:20]) for error in errors)
    assert (fleet is None) == bool(errors), errors
    assert all(1 <= error.line <= len(text.splitlines()) + 1 for error in errors), errors
    if fleet is not None:
        pairs = fleetkeys.to_pairs(fleet)
        again, _ = fleetkeys.from_pairs(pairs)
        assert pairs == fleetkeys.to_pairs(again), text


def seeds() -> Iterable[bytes]:
    """The example of a node's file, those of the manual, and the files of the original."""
    yield EXAMPLE.encode()
    yield from payloads("config-cfg")
    yield from hostile("toml")
    for path in sorted(PAGES.glob("*.md")):
        for block in path.read_text("utf-8").split("```toml\n")[1:]:
            yield block.partition("```")[0].encode()


if __name__ == "__main__":
    run(one)
