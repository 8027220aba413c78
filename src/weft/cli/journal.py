"""`weft journal`: inspect a journal, repair it, copy it. No node has to run, and only commands that say so write."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from cyclopts import App

from weft.base.errors import StorageFailed, UserError
from weft.base.mail import INBOX, OUTBOX
from weft.base.records import (
    CoreRecord,
    DamageRecord,
    EraRecord,
    LostRecord,
    Record,
    SafeRecord,
    Stream,
    StreamRecord,
    UnknownRecord,
)
from weft.cli.kit.exits import DONE, NOT_SO
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean

app = App(name="journal", help="Look at a journal, mend it, copy it; none of these needs a running node.")

STREAMS: Final = {int(stream): stream.name.lower() for stream in Stream} | {OUTBOX: "outbox", INBOX: "inbox"}
NAMES: Final[dict[type, str]] = {
    CoreRecord: "core",
    StreamRecord: "stream",
    LostRecord: "lost",
    SafeRecord: "safe",
    DamageRecord: "damage",
    EraRecord: "era",
}
"""Names of record types."""


@app.command
def verify(directory: Path, /, *, json: Flag = False) -> int:
    """Read every byte of a journal and report the state of each file. Changes nothing; the node may keep running.

    `weft journal verify ~/.local/state/weft/lab/root`: the node's state directory, or the `journal` directory in it.
    Exit status 0 if all files are clean, or end in a torn record, which the next start cuts off; 1 if something is
    damaged or missing and that loss has not been accepted; 2 if there is no journal.

    Args:
        directory: a node's state directory, or the `journal` directory in it.
        json: one object: journal, is_good, files, and faults, the reasons not to start.
    """
    from weft.shell.files import Files
    from weft.shell.journal.verify import faults, verify

    files, where = Files(), _journal(directory)
    node = _owner(where)
    reports = list(_with_progress(verify(files, where, node)))
    reasons = faults(files, where, node)
    if not reports and not reasons:
        raise _absent(where)
    is_good = not reasons and all(report.is_good for report in reports)
    if json:
        print(_json({"journal": str(where), "is_good": is_good, "files": reports, "faults": reasons}))
    else:
        _tell_verdicts(where, reports, reasons, is_good=is_good)
    return DONE if is_good else NOT_SO


def _tell_verdicts(where: Path, reports: list[Any], reasons: list[str], *, is_good: bool) -> None:
    print(f"journal {where}")
    for report in reports:
        print(f"{report.file:22} {report.verdict:10} {report.bytes:>11,} bytes {report.records:>9,} records")
        for gap in report.gaps:
            missing = f"records {gap['first_lsn']} to before {gap['end_lsn'] or 'the next file'}"
            print(f"{'':22} {gap['why']}: bytes {gap['offset']} to {gap['to']}, {missing}")
        for lost in report.lost:
            print(f"{'':22} lost: {lost}")
        if report.note:
            print(f"{'':22} {report.note}")
    for reason in reasons:
        print(f"no start: {reason}")
    size, bad = sum(report.bytes for report in reports), sum(not report.is_good for report in reports)
    verdict = "nothing is missing" if is_good else f"{bad} of them damaged, {len(reasons)} reasons not to start"
    print(f"{len(reports)} files, {size:,} bytes read: {verdict}")
    if reasons:
        print(f"  try: weft journal repair {where} --write")
    elif not is_good:
        print(f"  try: weft journal accept-loss {where}, if you can do without the lost records")


@app.command
def show(
    directory: Path, /, *, since: int = 1, stream: str | None = None, limit: int | None = None, json: Flag = False
) -> int:
    """Print the records of a journal, running or not. Changes nothing.

    `weft journal show DIR --since 1000 --stream samples --json`

    Args:
        directory: a node's state directory, or the `journal` directory in it.
        since: the first lsn to print.
        stream: one of samples messages logs events catalog configuration store documents outbox inbox; without it all
            records, also the cores' own.
        limit: stop after so many records.
        json: one line of JSON per record.
    """
    from weft.shell.journal.reader import JournalReader

    wanted = _stream(stream)
    shown = 0
    for lsn, record in JournalReader(_journal(directory)).entries(since):
        if wanted is not None and getattr(record, "stream", None) != wanted:
            continue
        if limit is not None and shown >= limit:
            break
        shown += 1
        fields = {"lsn": lsn, **_fields(record)}
        print(_json(fields) if json else _line(fields))
    return DONE


@app.command
def repair(directory: Path, /, *, write: Flag = False, json: Flag = False) -> int:
    """Say what a repair would change so that a node can start with this journal again; with --write, do it.

    Nothing is deleted: unusable files are moved to `damaged/`. Lost records stay lost: the node then starts, and
    reports the loss until `weft journal accept-loss`.

    Args:
        directory: a node's state directory, or the `journal` directory in it.
        write: do it; the node must not run.
        json: the next step, as `next`; with --write all that was done, as `done`.
    """
    from weft.shell.files import Files
    from weft.shell.journal.repair import carry_out, next_mend
    from weft.shell.journal.start import lock_directory, prepare_directory

    files, where = Files(), _journal(directory)
    node = _owner(where)
    done: list[str] = []
    if write:
        prepare_directory(files, where)
    lock = lock_directory(files, where) if write else None
    try:
        while (mend := next_mend(files, where, node)) is not None:
            done.append(mend.text)
            if not write:
                break
            carry_out(files, mend)
    except OSError as error:
        raise StorageFailed(f"{where} cannot be mended: {error}") from error
    finally:
        if lock is not None:
            files.close(lock)
    _tell_repair(done, write=write, json=json)
    return DONE if write or not done else NOT_SO


@app.command(name="accept-loss")
def accept_loss(directory: Path, /, *, json: Flag = False) -> int:
    """Accept the losses that `weft journal verify` lists: then the node is no longer degraded. A running node notices it.

    Args:
        directory: a node's state directory, or the `journal` directory in it.
        json: the losses, as `accepted`.
    """
    from weft.shell.files import Files
    from weft.shell.journal.damage import DamageLog

    log = DamageLog(Files(), _journal(directory))
    notes = log.notes()
    log.accept_all()
    if json:
        print(_json({"accepted": notes}))
        return DONE
    for note in notes:
        print(f"accepted: records {note.first_lsn} to before {note.end_lsn} of {note.file} ({note.why})")
    print(f"{len(notes)} losses accepted")
    return DONE


@app.command
def backup(directory: Path, target: Path, /, *, json: Flag = False) -> int:
    """Copy a journal and the node's identity into a new state directory; the node may run.

    `weft journal backup ~/.local/state/weft/lab/root/journal /backup/root`, and later
    `weft up root.toml --state /backup/root`: the same node, in a new era.

    Args:
        directory: a node's state directory, or the `journal` directory in it.
        target: the new state directory, which must not exist yet.
        json: how many bytes were copied, as `bytes`.
    """
    from weft.shell.files import Files
    from weft.shell.journal.backup import backup

    copied = backup(Files(), _journal(directory), target)
    print(_json({"bytes": copied}) if json else f"{copied:,} bytes copied to {target}")
    return DONE


def _json(answer: Any) -> str:
    return msgspec.json.encode(answer).decode()


def _journal(directory: Path) -> Path:
    """The journal directory: the given directory itself, or the `journal` in a node's state directory."""
    from weft.shell.journal.backup import IDENTITY, JOURNAL
    from weft.shell.journal.witness import note_of

    if (directory / JOURNAL).is_dir() or note_of(directory / JOURNAL).is_file():
        return directory / JOURNAL
    if not directory.is_dir() or (directory / IDENTITY).is_file():
        raise _absent(directory)
    return directory


def _absent(directory: Path) -> UserError:
    return UserError(
        "no-journal",
        f"there is no journal in {directory}",
        "a node's state directory, or the `journal` directory in it",
    )


def _owner(journal: Path) -> bytes | None:
    """The node that owns the journal, from the identity beside it; None if there is none."""
    from weft.shell.identity import identity_in

    identity = identity_in(journal.parent)
    return None if identity is None else identity.node_id


def _stream(name: str | None) -> int | None:
    if name is None:
        return None
    for number, known in STREAMS.items():
        if known == name.lower():
            return number
    raise UserError("no-stream", f"there is no stream {name!r}", f"one of {' '.join(STREAMS.values())}")


def _with_progress(reports: Iterator[Any]) -> Iterator[Any]:
    if not sys.stderr.isatty():
        yield from reports
        return
    from rich.progress import track

    from weft.cli.kit.console import console

    yield from track(reports, "verifying", console=console(stderr=True), transient=True)


def _fields(record: Record) -> dict[str, Any]:
    """A record as printable names and values: bytes as hex, streams by name."""
    if isinstance(record, UnknownRecord):
        return {"record": f"tag {record.tag}", "raw": record.raw.hex()}
    fields: dict[str, Any] = msgspec.structs.asdict(record)
    named = {key: value.hex() if isinstance(value, bytes) else value for key, value in fields.items()}
    if "stream" in named:
        named["stream"] = STREAMS.get(fields["stream"], fields["stream"])
    return {"record": NAMES[type(record)], **named}


def _line(fields: dict[str, Any]) -> str:
    """One line for a terminal, without control characters from the record (SEC-045)."""
    shown = " ".join(f"{key}={clean(value)}" for key, value in fields.items() if key not in ("lsn", "record"))
    return f"{fields['lsn']:>10} {fields['record']:7} {shown}"


def _tell_repair(done: list[str], *, write: bool, json: bool) -> None:
    if json:
        print(_json({"done" if write else "next": done}))
        return
    for text in done:
        print(f"{'done' if write else 'would'}: {text}")
    if not done:
        print("nothing to mend: a node can start on this journal")
    elif not write:
        print("a repair may find more to do; add --write to do it")
