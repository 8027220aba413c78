"""A process that lives from a journal, to be killed, starved and denied: `python -m tests.journal.process WHAT DIR`."""

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Final

from tests.journal.model import NODE, SMALL, WALL, check_entries, turn_records
from weft.base.chance import Chance
from weft.base.errors import StorageFailed, UserError, exit_code
from weft.base.records import CoreRecord, SafeRecord, StreamRecord
from weft.shell.files import Files
from weft.shell.journal import Journal, Limits, StorageFull

STARVED: Final = Limits(budget_bytes=1 << 30, segment_bytes=64 << 10, ballast_bytes=256 << 10, free_bytes_min=0)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def live(directory: Path, turns: int | None = None) -> None:
    """Say which turn was found, then each turn once it is durable."""
    journal, recovery = Journal.open(directory, NODE, Files(), WALL, SMALL)
    turn = check_entries(recovery.entries()).last_turn
    say(f"found {turn}")
    chance = Chance(f"process-{turn}")
    for number in count(turn + 1) if turns is None else range(turn + 1, turn + turns + 1):
        journal.write(turn_records(number, chance), WALL)
        say(str(number))
        if number % 10 == 0:
            journal.snapshot([CoreRecord("model", 2, number.to_bytes(8, "big"))], WALL)
            journal.forget(journal.durable_lsn)
    journal.close(WALL)


def live_shortly(directory: Path) -> None:
    """Fifteen turns and an orderly stop."""
    live(directory, 15)


def live_longer(directory: Path) -> None:
    """A hundred turns and an orderly stop."""
    live(directory, 100)


def hold(directory: Path) -> None:
    """Open the journal and keep it until the input ends."""
    journal, _ = Journal.open(directory, NODE, Files(), WALL, SMALL)
    say("held")
    sys.stdin.read()
    journal.close(WALL)


def starve(directory: Path) -> None:
    """Fill a small disk, keep promises, be given room, and find everything again."""
    filler = directory / "filler"
    filler.write_bytes(bytes(512 << 10))
    journal, _ = Journal.open(directory / "journal", NODE, Files(), WALL, STARVED)
    written = 0
    try:
        while True:
            record = StreamRecord(1, NODE, 1, written + 1, WALL, WALL, "cpu", Chance(written).randbytes(5_000), {})
            journal.write([record], WALL)
            written += 1
    except StorageFull:
        say(f"full {journal.state.name} {(directory / 'journal' / 'ballast').exists()}")
    journal.write([SafeRecord(1, NODE, 1, written)], WALL)
    filler.unlink()
    journal.rest(WALL)
    say(f"room {journal.state.name} {(directory / 'journal' / 'ballast').exists()}")
    journal.write([StreamRecord(1, NODE, 1, written + 1, WALL, WALL, "cpu", b"", {})], WALL)
    journal.close(WALL)
    _, recovery = Journal.open(directory / "journal", NODE, Files(), WALL, STARVED)
    records = [record for _, record in recovery.entries()]
    numbers = [record.sequence for record in records if isinstance(record, StreamRecord)]
    say(f"kept {numbers == list(range(1, written + 2))} {written > 50} {SafeRecord(1, NODE, 1, written) in records}")


THINGS: Final[dict[str, Callable[[Path], None]]] = {
    "live": live,
    "live-shortly": live_shortly,
    "live-longer": live_longer,
    "hold": hold,
    "starve": starve,
}


def main() -> int:
    try:
        THINGS[sys.argv[1]](Path(sys.argv[2]))
    except UserError as error:
        sys.stderr.write(f"{error.text}\n")
        return exit_code(error.code)
    except StorageFailed as error:
        sys.stderr.write(f"{error}\n")
        return exit_code("storage-failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
