"""Verifies the bytes of a table's log (FLD-030) with lists of digests outside the log, one line per file.

```
<lake>/_weft/digests/silver.samples/00000007.sha256   of versions 7000 to 7999: digest, two spaces, name
```

The line of the checkpoint hint, which has no version, is in the newest list.

After each commit of this program a line is added (`note_commits`), and one for a checkpoint of the log that was made with
it. If the driver is killed in between, or a power cut loses a line, the next one adds it when it starts; if the disk refuses
it, the driver ends, because a later commit would hide that this one has no line. Of several lines for one name the last
counts. Commits of other programs and of earlier versions have no line until somebody adopts them as they are; they are
reported and never count as verified.
"""

import errno
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from weft.base.errors import UserError
from weft.lake.files import LocalFiles
from weft.lake.layout import Layout
from weft.pipeline.digests import THREADS_MAX, WITHOUT_A_COPY, Proof, sha256_of, unreadable
from weft.pipeline.tables import LOG, Table

MARK: Final = b'"weft.'
"""The beginning of a property that all commits of this program have."""
VERSIONS_PER_LIST: Final = 1_000
HINT: Final = "_last_checkpoint"
"""The file that says which checkpoint of the log is the newest."""
_FILE: Final = re.compile(r"(\d{20})\.(?:json|checkpoint\.parquet)")
_LINE: Final = re.compile(r"([0-9a-f]{64})  (\S+)")


def note_commits(layout: Layout, table: Table, after: int) -> None:
    """Make the commits after version `after` durable, and add them to the lists, except those of other programs.

    UserError `storage-failed` if the disk refuses.
    """
    try:
        _note(layout, table, after)
    except OSError as error:
        text = f"{table.full_name}: a commit was made, and the disk refuses to keep it: {error}"
        raise UserError(
            "storage-failed", text, "look at the disk; weft lake run completes it when it starts"
        ) from error


def _note(layout: Layout, table: Table, after: int) -> None:
    log, version, files = _log_of(layout, table), after + 1, LocalFiles()
    fresh: list[str] = []
    while (file := commit_file(log, version)).exists():
        checkpoint = log / f"{version:020d}.checkpoint.parquet"
        derived = [checkpoint.name, HINT] if checkpoint.exists() else []
        made = [file.name, *(name for name in derived if (log / name).exists())]
        for name in made:
            files.sync(log / name)
        if MARK in file.read_bytes():
            fresh += made
        version += 1
    files.sync_directory(log)
    _append(layout, table, fresh)
    if HINT in fresh:
        _drop_old(layout, table)


def note_missed(layout: Layout, table: Table) -> None:
    """Add commits of a process that ended before it could; does nothing for a log without a list."""
    if known := listed(layout, table):
        note_commits(layout, table, max(version_of(name) for name in known))


def refuse_changed(layout: Layout, table: Table) -> None:
    """Raise UserError `damaged` if a file of the log that the newest version needs has changed."""
    log = _log_of(layout, table)
    newest = max((version_of(file.name) for file in log.glob("*.checkpoint.parquet")), default=0)
    for proof in log_proofs(layout, table, newest):
        if proof.fault == "changed":
            mend = f"weft lake check --deep, which names all such files; {WITHOUT_A_COPY}"
            raise UserError("damaged", f"{table.full_name}: {proof.path} is {proof.fault}", mend)


def adopt_log(layout: Layout, table: Table, paths: Iterable[str]) -> None:
    """Adopt files of the log as they are now."""
    _append(layout, table, [path.removeprefix(f"{LOG}/") for path in paths])


def listed(layout: Layout, table: Table) -> dict[str, str]:
    """The digest of each file of the log that has one. Unreadable lines are ignored."""
    known = {}
    for file in sorted(layout.log_digests(table.full_name).glob("*.sha256")):
        for line in file.read_text("utf-8", errors="replace").splitlines():
            if found := _LINE.fullmatch(line):
                known[found[2]] = found[1]
    return known


def log_proofs(layout: Layout, table: Table, first: int = 0) -> Iterator[Proof]:
    """Every file of the log from a version on, read completely and compared with its digest."""
    log = _log_of(layout, table)
    names = sorted(file.name for file in log.iterdir() if file.name == HINT or version_of(file.name) >= first)
    known = listed(layout, table)  # read after the names, so that a commit made just now already has its line

    def prove(name: str) -> Proof | None:
        try:
            size, found = (log / name).stat().st_size, sha256_of(log / name)
        except FileNotFoundError:
            return None  # an old version of the log was deleted just now
        except OSError as error:
            return unreadable(f"{LOG}/{name}", error)
        fault = "" if known.get(name) == found else _fault(log, name, known)
        return Proof(f"{LOG}/{name}", size, fault)

    with ThreadPoolExecutor(min(THREADS_MAX, os.cpu_count() or 1)) as pool:
        yield from (proof for proof in pool.map(prove, names) if proof)


def _fault(log: Path, name: str, known: Mapping[str, str]) -> str:
    """What is wrong with a file whose digest is not the listed one: `unproved` or `changed`.

    `unproved`: it has no digest; or it is the hint, and names a checkpoint that another program has made.
    """
    if name not in known:
        return "unproved"
    if name != HINT:
        return "changed"
    try:
        version = int(json.loads((log / name).read_bytes())["version"])
    except (ValueError, KeyError, TypeError):
        return "changed"
    return "changed" if f"{version:020d}.checkpoint.parquet" in known else "unproved"


def _append(layout: Layout, table: Table, names: Iterable[str]) -> None:
    """Append one line for each name, with one write per list, because two processes may do so at once."""
    log, directory = _log_of(layout, table), layout.log_digests(table.full_name)
    newest = max((int(file.stem) for file in directory.glob("*.sha256")), default=0)
    lines: defaultdict[int, str] = defaultdict(str)
    for name in names:
        number = newest if version_of(name) < 0 else version_of(name) // VERSIONS_PER_LIST
        newest = max(newest, number)
        lines[number] += f"{sha256_of(log / name)}  {name}\n"
    if lines:
        LocalFiles().make_directories(directory)
    for number, text in lines.items():
        with (directory / f"{number:08d}.sha256").open("ab", buffering=0) as opened:
            data = b"\n" * bool(opened.tell()) + text.encode()
            if opened.write(data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), opened.name)


def _drop_old(layout: Layout, table: Table) -> None:
    """Delete the lists for versions that the log has dropped."""
    oldest = min(version_of(file.name) for file in _log_of(layout, table).glob("*.json"))
    for file in layout.log_digests(table.full_name).glob("*.sha256"):
        if int(file.stem) < oldest // VERSIONS_PER_LIST:
            file.unlink(missing_ok=True)


def commit_file(log: Path, version: int) -> Path:
    """The commit that made a version of a table, in its log."""
    return log / f"{version:020d}.json"


def version_of(name: str) -> int:
    """The version that a file of the log belongs to; -1 for the checkpoint hint."""
    found = _FILE.fullmatch(name)
    return int(found[1]) if found else -1


def _log_of(layout: Layout, table: Table) -> Path:
    return layout.table(table.layer, table.name) / LOG
