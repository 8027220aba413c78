"""One byte at a time is changed in a journal and in a lake, and put back; each change has to be noticed (FLD-030).

`python -m tests.pipeline.flips JOURNAL LAKE [PLACES] [SEED]` says of each place whether it was, and by whom. Give it
copies of what nobody uses at the moment: a stopped node's directory `journal`, and its lake.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from weft.base.chance import Chance
from weft.base.errors import WeftError
from weft.lake.layout import Layout
from weft.pipeline.check import Check
from weft.pipeline.tables import there
from weft.pipeline.upkeep.log import live_files, opened
from weft.shell.files import Files
from weft.shell.journal.verify import faults, verify

KINDS: Final = ("journal", "segment", "manifest", "table", "log")


class Place(NamedTuple):
    """One bit of one file."""

    kind: str
    file: Path
    at: int
    bit: int


class Outcome(NamedTuple):
    """What became of one change."""

    place: Place
    noticed: str
    """By what it was noticed; empty: by nothing."""


def files_of(journal: Path, lake: Layout) -> dict[str, list[Path]]:
    """Every file whose bytes count, by its kind."""
    data: list[Path] = []
    log: list[Path] = []
    for table in there(lake):
        root, handle = lake.table(table.layer, table.name), opened(lake, table)
        assert handle is not None, table.full_name
        data += [root / file.path for file in live_files(handle, table)]
        log += [path for path in (root / "_delta_log").iterdir() if path.is_file()]
    drained = [path for path in (lake.root / "drain").rglob("*") if path.is_file()]
    return {
        "journal": sorted(path for path in journal.iterdir() if path.suffix in (".seg", ".snap")),
        "segment": sorted(path for path in drained if path.suffix == ".parquet"),
        "manifest": sorted(path for path in drained if path.suffix == ".json"),
        "table": sorted(data),
        "log": sorted(log),
    }


def places(files: dict[str, list[Path]], count: int, chance: Chance) -> Iterator[Place]:
    """So many places: of each kind in turn, in a file of it, anywhere."""
    kinds = [kind for kind in files if files[kind]]
    for number in range(count):
        kind = kinds[number % len(kinds)]
        file = chance.choice([file for file in files[kind] if file.stat().st_size])
        yield Place(kind, file, chance.randint(0, file.stat().st_size - 1), chance.randint(0, 7))


def noticed_in_journal(journal: Path) -> str:
    reports = list(verify(Files(), journal))
    bad = [f"{report.file} {report.verdict}" for report in reports if not report.is_good]
    return "; ".join([*bad, *faults(Files(), journal)])


def noticed_in_lake(lake: Layout) -> str:
    try:
        verdict = Check(lake, deep=True).run()
    except WeftError as error:
        return str(error)
    return "" if verdict.state == "equal" else verdict.state + "".join(f", {d.what}" for d in verdict.differences)


def play(journal: Path, lake: Layout, count: int, chance: Chance, kinds: tuple[str, ...] = KINDS) -> Iterator[Outcome]:
    """Change each place, look, and put it back."""
    look: dict[str, Callable[[], str]] = {"journal": lambda: noticed_in_journal(journal)}
    for place in places({kind: files_of(journal, lake)[kind] for kind in kinds}, count, chance):
        whole = place.file.read_bytes()
        altered = bytearray(whole)
        altered[place.at] ^= 1 << place.bit
        place.file.write_bytes(altered)
        try:
            yield Outcome(place, look.get(place.kind, lambda: noticed_in_lake(lake))())
        finally:
            place.file.write_bytes(whole)


def told(outcome: Outcome) -> str:
    """One line about it."""
    (kind, file, at, bit), noticed = outcome
    return f"{kind:8} {file.name} byte {at} bit {bit}: {noticed[:150] or 'NOT NOTICED'}"


def main(journal: str, lake: str, count: str = "200", seed: str = "1") -> int:
    """Print every place, then how many of each kind were noticed."""
    all_, found = Counter[str](), Counter[str]()
    for outcome in play(Path(journal), Layout(lake), int(count), Chance(f"flips/{seed}")):
        all_[outcome.place.kind] += 1
        found[outcome.place.kind] += bool(outcome.noticed)
        sys.stdout.write(f"{told(outcome)}\n")
    for kind, number in all_.items():
        sys.stdout.write(f"{kind:8} {found[kind]} of {number} noticed\n")
    return 0 if found.total() == all_.total() else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
