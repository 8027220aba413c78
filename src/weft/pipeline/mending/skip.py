"""Gives up a segment whose rows were lost before they were read (PIP-008).

A job never skips a segment by itself, because nobody would know of the hole. A person decides it and gives a reason.
The manifest records that: it keeps its ranges and its place in the chain, and in `gold.completeness` all its numbers are
lost, for that reason. If another drain delivers them, they are still accepted. Other readers of the lake skip the segment
too.
"""

from pathlib import Path
from typing import Final, NamedTuple

from weft.base.errors import UserError
from weft.base.vectors import VersionVector
from weft.lake.files import LocalFiles
from weft.lake.layout import Layout
from weft.lake.manifest import FORMAT, NO_PRIOR, Link, Manifest, SegmentFault, name_of, range_rows
from weft.lake.reader import Source
from weft.lake.stubs import link_at, skipped_of
from weft.lake.vectors import EVERY, add_manifest, vector_at
from weft.pipeline.progress import reached
from weft.pipeline.sql import Lake
from weft.pipeline.tables import STAGES

REASON_MAX: Final = 256  # characters; it is repeated in a row for every origin of the segment
HELD: Final = "SELECT count(*) AS n FROM bronze.{stream} WHERE drain = '{drain}' AND segment = {number}"


class Place(NamedTuple):
    """The segment to give up."""

    stream: str
    drain: str
    number: int


class Skipped(NamedTuple):
    """What was given up."""

    stream: str
    drain: str
    number: int
    rows: int
    numbers: int
    """How many numbers it held, of all origins."""
    reason: str


def skip(lake: Layout, place: Place, reason: str) -> Skipped:
    """Give up a segment, durably; the caller holds the lease. Repeating it changes nothing.

    UserError `no-segment`, `bad-reason`, `segment-whole` (its rows can be read), `segment-taken` (tables have them).
    """
    if not reason.strip() or len(reason) > REASON_MAX or not reason.isprintable():
        raise UserError(
            "bad-reason", f"a reason has 1 to {REASON_MAX} printable characters", '--reason "disk replaced"'
        )
    manifest, digest = _manifest(lake, place)
    if not manifest.skipped:
        _refuse_readable(lake, manifest)
        _refuse_taken(lake, place)
        files, path = LocalFiles(), lake.manifest(*place)
        files.make_directories(path.parent)
        files.put(path, skipped_of(manifest, digest, reason.strip()).line())
    numbers = sum(ranges.count for _, ranges in manifest.vector())
    return Skipped(*place, manifest.rows, numbers, manifest.skipped or reason.strip())


def _manifest(lake: Layout, place: Place) -> tuple[Manifest, str]:
    """The manifest and its digest; if the manifest is lost too, a replacement and the digest of the lost one."""
    source = Source(lake, place.stream)
    tips = {drain: follower.tip for drain, follower in source.drains().items()}
    if not 1 <= place.number <= tips.get(place.drain, 0):
        known = ", ".join(f"{drain}:1-{tip}" for drain, tip in tips.items()) or "none"
        raise UserError("no-segment", f"{place.stream} has no segment {place.drain}:{place.number}", f"one of {known}")
    try:
        link = link_at(lake, *place)
    except SegmentFault as fault:
        if fault.code != "segment-gone":
            raise UserError(fault.code, str(fault), "put its manifest (.json) back from a copy") from fault
        link = _stand_in(lake, place)
    return link.manifest, link.digest


def _stand_in(lake: Layout, place: Place) -> Link:
    """A replacement for a lost manifest, whose digest the next manifest has.

    Its numbers are known if the drain has published a vector since; otherwise it has none, and they count as missing.
    """
    stream, drain, number = place
    before = link_at(lake, stream, drain, number - 1) if number > 1 else None
    after = link_at(lake, stream, drain, number + 1).manifest
    held = _published(lake, place)
    manifest = Manifest(
        format=FORMAT,
        stream=stream,
        schema=after.schema,
        drain=drain,
        number=number,
        rows=0,
        bytes=0,
        sha256="",
        first_received=None,
        last_received=None,
        lsn=(before.manifest.lsn[1] + 1 if before else 1, after.lsn[0] - 1),
        ranges=range_rows(((name_of(origin.node), origin.era), list(ranges)) for origin, ranges in held),
        lost=[],
        prior=before.digest if before else NO_PRIOR,
    )
    return Link(manifest, after.prior)


def _published(lake: Layout, place: Place) -> VersionVector:
    """The numbers of the segment, from the first vector that includes it: those that no other segment before has."""
    stream, drain, number = place
    last = number + -number % EVERY
    if not lake.vector(stream, drain, last).exists():
        return VersionVector()
    others = vector_at(lake, stream, drain, number - 1) if number > 1 else VersionVector()
    for step in range(number + 1, last + 1):
        add_manifest(others, lake, stream, drain, step)
    return vector_at(lake, stream, drain, last) - others


def _refuse_readable(lake: Layout, manifest: Manifest) -> None:
    """UserError for rows that can be read, or that retention has deleted after all consumers had read them."""
    name = f"{manifest.drain}:{manifest.number}"
    if manifest.gone:
        raise UserError(
            "segment-taken", f"retention has deleted {name} after all consumers had read it", "weft lake check"
        )
    path = lake.parquet(manifest.stream, manifest.drain, manifest.number)
    if _is_whole(path, manifest):
        raise UserError("segment-whole", f"{name} is intact", "weft lake run, which takes it")


def _is_whole(path: Path, manifest: Manifest) -> bool:
    """Whether a segment is there as it was drained; one that its disk cannot read is not."""
    try:
        return path.exists() and manifest.describes(path.read_bytes())
    except OSError:
        return False


def _refuse_taken(lake: Layout, place: Place) -> None:
    """UserError for rows that tables already have."""
    with Lake(lake.root) as asked:
        at, upto = reached(asked, place.stream)
        is_behind = upto >= 0 and at.get(place.drain, (1, 0))[0] > place.number
        bronze = STAGES[place.stream].bronze
        rows = asked.query(HELD.format(**place._asdict())).to_pylist() if bronze in asked.tables() else [{"n": 0}]
    if is_behind:
        raise UserError("segment-taken", f"the tables already have {place.drain}:{place.number}", "weft lake check")
    if rows[0]["n"] and at.get(place.drain, (1, 0)) <= (place.number, 0):
        text = (
            f"bronze.{place.stream} has {rows[0]['n']} rows of {place.drain}:{place.number}, from an unfinished batch"
        )
        raise UserError("segment-taken", text, "put the segment back from a copy, so that the batch can be finished")
