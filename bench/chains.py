"""Built-in filters in process.

P1: a metric message of about 100 bytes of MessagePack through `sample`, `threshold`, `edit set` and `dedupe`, decoded and
encoded again, as one array of 64 records and as single messages; and four stages that do nothing against four hooks of
pluggy. P6: one CEL expression of three comparisons, message decoded, against the library's own `execute`.

    .venv/bin/python -m bench.chains
"""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec
import pluggy

from bench.measure import Row, compare, show
from weft.base.mail import Mail
from weft.base.now import SECOND, Now
from weft.cores.chains.expression import engine
from weft.cores.chains.links import FilterLink
from weft.cores.chains.messageview import MessageView
from weft.cores.chains.parcel import IN, Parcel
from weft.cores.chains.settings import parse_filters
from weft.cores.chains.states import Verdict

TYPE: Final = "app.metric"
BATCH: Final = 64
MESSAGES: Final = 256  # a few milliseconds: on a busy machine one round of seven is left alone
GOALS: Final = {"singly": 50_000, "in batches": 100_000, "cel": 60_000}
ORIGIN: Final = bytes(range(16))
NOW: Final = Now(1_000_000_000, 1_795_000_000_000_000_000)
CEL: Final = 'f.value > 90.0 && type == "app.metric" && f.name == "cpu.user"'

STAGES: Final[list[dict[str, Any]]] = [
    {"kind": "sample", "rate": 1.0, "salt": "night"},
    {"kind": "threshold", "above": 10.0},
    {"kind": "edit", "edits": [["set", "site", "north"]]},
    {"kind": "dedupe", "fields": ["name", "t"], "within": "10s"},
]


def links_of(tables: list[dict[str, Any]]) -> list[FilterLink]:
    """The links of these filters, in this order."""
    specs, mistakes = parse_filters([{"name": f"f{n}", "types": [TYPE], **table} for n, table in enumerate(tables)])
    assert mistakes == [], mistakes
    return [FilterLink(spec) for spec in specs]


def metric(number: int) -> dict[str, Any]:
    """About 100 bytes of MessagePack."""
    labels = {"cpu": str(number % 8), "unit": "%"}
    at = NOW.wall + number
    return {
        "t": at,
        "node": "sensor-0017.rack-04",
        "name": "cpu.user",
        "value": 42.5 + number % 57,
        "labels": labels,
        "s": number,
    }


def parcels(per_message: int) -> list[Parcel]:
    """MESSAGES records, so many to a message."""
    made = []
    for first in range(0, MESSAGES, per_message):
        records = [metric(number) for number in range(first, first + per_message)]
        body = msgspec.msgpack.encode(records if per_message > 1 else records[0])
        mail = Mail(origin=ORIGIN, era=1, sequence=first + 1, type=TYPE, frames=(body,), to=("DIRECT",), fmt="msgpack")
        made.append(Parcel(first + 1, IN, mail))
    return made


def through(links: list[FilterLink], messages: list[Parcel], now: Now = NOW) -> int:
    """Send each message down the links, as the engine does; how many bytes are left."""
    size = 0
    for parcel in messages:
        view = MessageView(parcel)
        for link in links:
            verdict = link.offer(view, now)
            if verdict is Verdict.DROPPED or verdict is Verdict.FAILED:
                break
        else:
            size += len(view.close()[0])
    return size


def pipeline(per_message: int) -> Callable[[], object]:
    """The four stages; a minute passes between two rounds, so that nothing is a duplicate."""
    links, messages = links_of(STAGES), parcels(per_message)
    minutes = count()

    def run() -> None:
        mono = NOW.mono + next(minutes) * 60 * SECOND
        assert through(links, messages, Now(mono, NOW.wall)) > MESSAGES * 100, "all of it passes"

    return run


def by_hand(per_message: int) -> Callable[[], object]:
    """What can be saved at most: decoded and encoded by msgspec, a field set, and nothing else."""
    bodies = [parcel.frames[0] for parcel in parcels(per_message)]
    decode, encode = msgspec.msgpack.Decoder().decode, msgspec.msgpack.Encoder().encode

    def run() -> None:
        for body in bodies:
            content = decode(body)
            for record in content if per_message > 1 else [content]:
                record["site"] = "north"
            encode(content)

    return run


HOOK_SPEC, HOOK = pluggy.HookspecMarker("bench"), pluggy.HookimplMarker("bench")


class Spec:
    """One hook."""

    @HOOK_SPEC
    def offer(self, view: Any, now: Now) -> None:
        """See a message."""


class Plugin:
    """A hook that does nothing."""

    @HOOK
    def offer(self, view: Any, now: Now) -> None:
        """Nothing."""


def no_operations() -> tuple[Callable[[], object], Callable[[], object]]:
    """Four stages that do nothing, counters and all, and four hooks of pluggy."""
    links = links_of([{"kind": "journal", "dir": "in"}] * 4)
    view = MessageView(parcels(1)[0])
    plugins = pluggy.PluginManager("bench")
    plugins.add_hookspecs(Spec)
    for _ in range(4):
        plugins.register(Plugin())
    hook = plugins.hook.offer

    def ours() -> None:
        for _ in range(MESSAGES):
            for link in links:
                link.offer(view, NOW)

    def theirs() -> None:
        for _ in range(MESSAGES):
            hook(view=view, now=NOW)

    return ours, theirs


def expression() -> tuple[Callable[[], object], Callable[[], object]]:
    """One filter with an expression, message and all; and the library alone, its fields decoded already."""
    links, messages = links_of([{"kind": "match", "when": CEL}]), parcels(1)
    program = engine().compile(CEL)
    contexts = [{"type": TYPE, "f": metric(number)} for number in range(MESSAGES)]

    def alone() -> None:
        for context in contexts:
            program.execute(context)

    return lambda: through(links, messages), alone


def _judged(row: Row, goal: str) -> Row:
    rate = 1e9 / row.ours_ns
    return row._replace(note=f"{rate:,.0f}/s, goal {GOALS[goal]:,}: {'reached' if rate >= GOALS[goal] else 'MISSED'}")


def main() -> None:
    """Print the tables."""
    print(f"load {Path('/proc/loadavg').read_text('ascii')}")
    rows = []
    for what, size in (("singly", 1), ("in batches", BATCH)):
        row = compare(f"sample, threshold, edit, dedupe, {what}", pipeline(size), by_hand(size), MESSAGES)
        rows.append(_judged(row, what))
    show("P1: four filters over messages of about 100 bytes", rows, "msgspec alone")
    idle = compare("four stages that do nothing", *no_operations(), MESSAGES)
    show("P1: what a stage costs", [idle._replace(note="goal 2")], "pluggy")
    show("P6: three comparisons in CEL", [_judged(compare("message", *expression(), MESSAGES), "cel")], "cel alone")


if __name__ == "__main__":
    main()
