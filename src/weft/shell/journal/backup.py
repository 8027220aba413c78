"""Copies the state of a node, running or not, into a new state directory (JRN-043).

Snapshots are copied before segments. Whatever the node deletes or condenses meanwhile, the copied segments hold every
record that the copied snapshot does not cover. The copy is verified before it counts as one. What makes the node what it
is beside its journal (identity, keys, address, secrets of its lake) is copied unchanged, so a node that starts on the copy is
the same node in a new era: without its keys a node of a closed fabric would be an open one that nobody knows.
"""

from pathlib import Path
from typing import Final

from weft.base.errors import UserError
from weft.shell.docdoors import NOTE
from weft.shell.files import Files, put_whole, read_whole
from weft.shell.journal.reader import survey_of
from weft.shell.journal.segment import Segment
from weft.shell.keymaking import ADDRESS
from weft.shell.keys import FOLDER
from weft.shell.masking import FILE

IDENTITY: Final = "node.json"
JOURNAL: Final = "journal"
BESIDE: Final[tuple[str, ...]] = (IDENTITY, ADDRESS, FILE, NOTE, "node.toml")
"""Files of a state directory that a start reads; the last one is there if `weft join` has made it."""
PARTIAL: Final = ".tmp"
"""What a file's name ends in until it is whole (`put_whole`)."""
TRIES_MAX: Final = 3  # attempts; a node that writes snapshots faster than that cannot be copied


def backup(files: Files, source: Path, target: Path) -> int:
    """Copy the journal in `source`, and what the node has beside it, into the new state directory `target`; how many bytes.

    Whole turns only; the journal stands in `target/journal`.

    UserError `no-journal`, `storage-failed` (the source is damaged so that no start would use it) or `target-exists`.
    """
    try:
        files.list(target)
    except FileNotFoundError:
        files.make_directory(target)
        files.sync_directory(target.parent)
    else:
        raise UserError("target-exists", f"{target} is there already", "name a directory that is not there yet")
    for tries_left in reversed(range(TRIES_MAX)):
        try:
            return _copy(files, source, _prepared(files, source, target))
        except FileNotFoundError:
            if not tries_left:
                raise
    raise AssertionError("unreachable")


def _prepared(files: Files, source: Path, target: Path) -> Path:
    there = files.list(source.parent)
    found = [name for name in BESIDE if name in there]
    if FOLDER in there:
        files.make_directory(target / FOLDER)
        found += [f"{FOLDER}/{name}" for name in files.list(source.parent / FOLDER) if not name.endswith(PARTIAL)]
    for name in found:
        put_whole(files, target / name, read_whole(files, source.parent / name))
    files.make_directory(target / JOURNAL)
    files.sync_directory(target)
    return target / JOURNAL


def _copy(files: Files, source: Path, target: Path) -> int:
    survey = survey_of(files, source)
    copied = sum(_copy_file(files, snapshot, target, snapshot.size) for snapshot in survey.snapshots)
    survey = survey_of(files, source)
    copied += sum(_copy_file(files, segment, target, segment.end.offset) for segment in survey.segments)
    check = survey_of(files, target)
    check.follow(check.snapshot())
    if check.faults:
        raise UserError(
            "storage-failed",
            f"the copy in {target} is not whole: {check.faults[0]}",
            f"weft journal verify {source}",
        )
    return copied


def _copy_file(files: Files, segment: Segment, target: Path, size: int) -> int:
    put_whole(files, target / segment.path.name, read_whole(files, segment.path)[:size])
    return size
