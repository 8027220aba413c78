"""`weft upgrade check`: finds obstacles to an upgrade of Weft before anything is changed (OPS-003)."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from cyclopts import App

from weft import __version__
from weft.base.errors import UserError
from weft.cli.asking import status_of
from weft.cli.doctor_fleet import judged
from weft.cli.doctor_node import LOOKS
from weft.cli.doctor_node import findings as of_node
from weft.cli.kit.exits import DONE, NOT_SO
from weft.cli.kit.lines import print_compact
from weft.cli.kit.options import Flag
from weft.cli.status import NO_ANSWER, ORDER, Ask, Picture, picture_of
from weft.cli.which import PORT, AskedPort
from weft.lake import layout, manifest, offsets, schemas
from weft.lake.layout import LakeJson, Layout
from weft.pipeline.doctor import BROKEN, FINE, WARNING, Finding
from weft.wire import clients, hop, segments, token
from weft.wire.catalog import bridges
from weft.wire.store import mesh

app = App(
    name="upgrade", help="What stands in the way of another version of Weft; formats that this one reads and writes."
)

OF_STATE: Final = ("identity", "journal", "room")
"""Checks of `weft doctor` that must pass before a new version starts."""


class Format(NamedTuple):
    """A format that another version reads or receives."""

    what: str
    where: str
    version: str
    other: str
    """How another version handles it."""


FORMATS: Final = (
    Format(
        "journal",
        "STATE/journal/*.seg, *.snap",
        f"{segments.SEGMENT.decode()}, {segments.SNAPSHOT.decode()}",
        "its header counts as damaged, as `weft journal verify` says; a record of an unknown kind is kept as it came",
    ),
    Format("lake", "LAKE/lake.json", str(layout.FORMAT), "weft upgrade check says so"),
    Format(
        "segments of the lake",
        "`schema` of a manifest",
        str(schemas.VERSION),
        "older ones are read; columns are only added",
    ),
    Format("manifests of the lake", "`format` of a manifest", str(manifest.FORMAT), "refused: segment-changed"),
    Format("offsets of readers", "`v` of an offset", str(offsets.VERSION), "refused"),
    Format(
        "links between nodes",
        "`v` of hello",
        str(hop.VERSION),
        "refused with the version that is spoken; unknown keys are ignored",
    ),
    Format("chains, for programs", "`v` of hello", str(clients.VERSION), "refused with the version that is spoken"),
    Format(
        "store, between nodes",
        "`v` of hello",
        str(mesh.VERSION),
        "it is sent and not checked; unknown keys are ignored",
    ),
    Format("bridges of the catalog", "`v` of a header", str(bridges.VERSION), "refused: unsupported"),
    Format("tokens of weft invite", "the first byte", str(token.VERSION), "refused: unknown-version"),
)
"""docs/formats.md is made of this."""


@app.command
def formats(*, json: Flag = False) -> int:
    """List the formats on disk and on the wire that this version writes, and how it treats other versions.

    Args:
        json: one array of {"what", "where", "version", "other"}.
    """
    if json:
        print_compact([one._asdict() for one in FORMATS])
        return DONE
    for one in FORMATS:
        print(f"{one.what:24} {one.version:20} {one.other}")
    return DONE


@app.command
def check(*, port: AskedPort = PORT, lake: Path | None = None, json: Flag = False) -> int:
    """Say what stands in the way of an upgrade of the fleet, and in which order to upgrade its nodes: `weft upgrade check`.

    It asks the fleet of the node at PORT, if one answers, and reads the states of this user's nodes here, and a lake.
    Nothing is changed. Exit status 1 if something stands in the way.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        lake: also this lake.
        json: a JSON object per finding: what, state, text, mend.
    """
    is_free = True
    for found in _findings(port, lake):
        is_free &= found.state == FINE
        if json:
            print_compact(found._asdict())
        else:
            print(f"{found.state:4} {found.what}: {found.text}" + (f"\n     try: {found.mend}" if found.mend else ""))
    if not json:
        print("nothing stands in the way" if is_free else "mend what is not ok first, then ask again")
    return DONE if is_free else NOT_SO


def _findings(port: int, lake: Path | None) -> Iterator[Finding]:
    from weft.cli.doctor import states_here

    yield from of_fleet(port)
    looks = {name: LOOKS[name] for name in OF_STATE}
    for patient in states_here(None):
        yield from of_node(patient, looks)
    if lake is not None:
        yield of_lake(Layout(lake))


def of_fleet(port: int, ask: Ask = status_of) -> Iterator[Finding]:
    """The checks of the fleet: all nodes must be well, have their records safe, and run one version or the next."""
    try:
        picture = picture_of(port, ask, time.time_ns())
    except UserError:
        mend = "weft upgrade check --port N of a running node; or nothing, if no node shall run"
        yield Finding("fleet", WARNING, f"no node answers at port {port}, so the state of the fleet is unknown", mend)
        return
    yield from judged(picture)
    yield spools(picture)
    yield Finding("order", FINE, order_of(picture))


def spools(picture: Picture) -> Finding:
    """Records that have not reached the root are on one disk only while its node is upgraded."""
    waiting = {status["name"]: _unsafe(status) for status in picture.nodes}
    named = ", ".join(f"{name} {count:,}" for name, count in sorted(waiting.items()) if count > SPOOL_MAX)
    if not named:
        return Finding("spool", FINE, "no node has more than a moment's records that are not safe at the root")
    return Finding(
        "spool",
        WARNING,
        f"records that are not safe at the root yet: {named}",
        "wait until weft status --long shows none",
    )


SPOOL_MAX: Final = 10_000  # records that a busy node makes in a second or two


def _unsafe(status: dict[str, Any]) -> int:
    carrier = status["cores"].get("carrier", {})
    return int(carrier.get("spool_records", 0))


def order_of(picture: Picture) -> str:
    """Sensors first, so that a receiver is never older than its sender; the root last."""
    able = sorted(
        (m for m in picture.members if m.health != NO_ANSWER), key=lambda m: (-ORDER.get(m.level, 2), -m.depth, m.name)
    )
    return f"one after the other, each well again before the next: {', '.join(member.name for member in able)}"


def of_lake(place: Layout) -> Finding:
    """Whether this version knows the format of the lake."""
    try:
        lake = msgspec.json.decode(place.lake_json.read_bytes(), type=LakeJson)
    except (OSError, msgspec.DecodeError) as error:
        return Finding(
            "lake",
            BROKEN,
            f"{place.lake_json} cannot be read: {error}",
            "--lake DIR, the directory that the root drains into",
        )
    newer = [name for name, version in lake.schemas.items() if version > schemas.VERSION]
    if lake.format > layout.FORMAT or newer:
        text = f"{place.root} is written by a later Weft than this, {__version__}"
        return Finding("lake", BROKEN, text, "the version that wrote it, or a later one")
    return Finding("lake", FINE, f"{place.root} has format {lake.format}, as this version writes it")
