"""`aggregate` in process (CHN-067): samples a second of one core's time.

Messages of 1,000 records of MessagePack for 20 hosts and one minute, fields `t`, `host`, `value`: (1) decoded before, into windows
with sketches, until the windows are told; (2) with decoding; (3) with decoding, and with a further field `unit`, so that they are
decoded to maps; (4) values that come as one list for each group, which is what of the work is the windows' own; (5) aggregates of
20 groups, merged by the level above. Beside them msgspec's decoding alone, to maps.

    .venv/bin/python -m bench.chains_aggregate
"""

import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from bench.measure import Row, compare, show
from weft.base.mail import Mail
from weft.base.now import SECOND, Now
from weft.cores.chains.aggregating import AggregateLink
from weft.cores.chains.core import Chains
from weft.cores.chains.messages import ChainsSettings
from weft.cores.chains.messageview import MessageView
from weft.cores.chains.options import AggregateOptions
from weft.cores.chains.parcel import IN, Parcel
from weft.cores.chains.settings import parse_filters
from weft.cores.chains.windows import Windows

RECORDS: Final = 1_000
MESSAGES: Final = 40
HOSTS: Final = 20
GOAL: Final = 1_000_000
START: Final = 1_795_000_020 * SECOND
NOW: Final = Now(0, START)
OPTIONS: Final = AggregateOptions(60 * SECOND, ("host",), functions=("mean", "p99"))
TABLE: Final[dict[str, Any]] = {
    "name": "minutes",
    "kind": "aggregate",
    "types": ["app.load"],
    "dir": "in",
    "window": "1m",
    "group": ["host"],
    "functions": ["mean", "p99"],
}


def link() -> AggregateLink:
    """The link of a node below a parent."""
    specs, mistakes = parse_filters([TABLE])
    assert not mistakes, mistakes
    core = Chains(specs, ChainsSettings(level="collector"), b"B" * 16, 1)
    made = core.chain(IN, "app.load")[0]
    assert isinstance(made, AggregateLink)
    return made


def payloads(**more: str) -> list[bytes]:
    """Messages of a minute."""
    chance = Random(7)
    return [msgspec.msgpack.encode([record(at, chance) | more for at in range(RECORDS)]) for _ in range(MESSAGES)]


def record(at: int, chance: Random) -> dict[str, Any]:
    return {"t": START + at * 1_000_000, "host": f"host-{at % HOSTS}", "value": chance.lognormvariate(3, 1)}


def parcel_of(payload: bytes, number: int) -> Parcel:
    """A message as it comes."""
    mail = Mail(
        origin=b"A" * 16,
        era=1,
        sequence=number,
        type="app.load",
        frames=(payload,),
        to=("PARENTSOF",),
        at=START,
        fmt="msgpack",
    )
    return Parcel(number, IN, mail)


def into(views: list[MessageView]) -> int:
    """All of them into windows, and the windows told; how many records are told."""
    of = link()
    for view in views:
        view.kept, view.is_changed = list(range(RECORDS)), False
        of.absorb(view, view.parcel, NOW)
    return len(list(of.close_all()))


def whole(payloads: list[bytes]) -> int:
    """The same of messages that no filter has read, as they go down a chain."""
    of = link()
    for number, payload in enumerate(payloads, 1):
        parcel = parcel_of(payload, number)
        if of.absorb_whole(parcel, NOW) is None:
            of.absorb(MessageView(parcel), parcel, NOW)
    return len(list(of.close_all()))


def windows_alone(lists: list[list[list[float]]]) -> int:
    """Values that come as a list for each group."""
    of = Windows(OPTIONS)
    for some in lists:
        for host, part in enumerate(some):
            cell = of.cell(START, ("app.load", "msgpack", bytes([host])), [host], START)
            cell.add(part, START, part[-1])
    return len([cell.result(OPTIONS) for cell in of.close_all()])


def merged(parts: list[dict[str, Any]]) -> int:
    """Aggregates of the level below."""
    of = Windows(OPTIONS)
    for _ in range(MESSAGES):
        for host, part in enumerate(parts):
            of.cell(START, ("app.load", "msgpack", bytes([host])), [host], START).merge(part)
    return len([cell.result(OPTIONS) for cell in of.close_all()])


def parts_of(payload: bytes) -> list[dict[str, Any]]:
    """What one message's aggregate tells."""
    told = link()
    told.absorb_whole(parcel_of(payload, 1), NOW)
    return [msgspec.msgpack.decode(mail.frames[0]) for mail, _, _ in told.close_all()]


def main() -> None:
    """Print the rows."""
    sent, decode = payloads(), msgspec.msgpack.decode
    more = payloads(unit="W")
    views = [MessageView(parcel_of(each, number)) for number, each in enumerate(sent, 1)]
    values = [[record["value"] for record in decode(payload)] for payload in sent]
    lists = [[some[host::HOSTS] for host in range(HOSTS)] for some in values]
    parts = parts_of(sent[0])
    count = RECORDS * MESSAGES
    sides: list[tuple[str, int, Callable[[], object]]] = [
        ("records, decoded before", count, lambda: into(views)),
        ("records, with decoding", count, lambda: whole(sent)),
        ("records of four fields, with decoding", count, lambda: whole(more)),
        ("windows alone, values by group", count, lambda: windows_alone(lists)),
        ("aggregates of 50 samples, merged", MESSAGES * HOSTS * RECORDS // HOSTS, lambda: merged(parts)),
    ]
    print(f"load {Path('/proc/loadavg').read_text('ascii')}")

    def alone() -> object:
        return [decode(each) for each in sent]

    rows = [_judged(compare(what, way, alone, many, time.process_time_ns)) for what, many, way in sides]
    show("samples through one aggregate of 20 groups, mean and p99", rows, "msgspec decoding alone")


def _judged(row: Row) -> Row:
    rate = 1e9 / row.ours_ns
    return row._replace(note=f"{rate:,.0f}/s, goal {GOAL:,}: {'reached' if rate >= GOAL else 'MISSED'}")


if __name__ == "__main__":
    main()
