"""Reads a past configuration from the lake (PIP-052), without Spark or Java.

The state follows from the numbers of writes: for an instant, the last write that a root had made by then, and all
writes before it. So the result is a state that the root really had, even if its clock was set back. For a node it is
the number in its last `config.applied`.

A root that was cut off may have gone on writing while another one was elected. The new root continues from the last
write that it had. So the numbers after it exist twice, under two epochs, and the later epoch wins (CFG-003): at
instants before the new root's first write those writes were in force, and from then on they are lost.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.base.errors import UserError
from weft.base.paths import is_under
from weft.pipeline.scan import quoted
from weft.pipeline.sql import Lake
from weft.pipeline.tables import CONFIGURATION, EVENTS, STAGES, Table

MICROSECOND: Final = 1_000
COUNTER_BITS: Final = 40
FOR_EVER: Final = (1 << 63) - 1
NODES_SHOWN: Final = 20  # nodes listed in the error about an unknown node

WRITES: Final = "SELECT *, epoch * 1099511627776 + counter AS number FROM silver.configuration"
LAST: Final = 'SELECT max(number) AS number FROM ({writes}) WHERE epoch_us("at") <= {upto}'
FIRST: Final = 'SELECT min(epoch_us("at")) AS first FROM silver.configuration'
STATE: Final = """
WITH writes AS (SELECT * FROM ({writes}) WHERE number <= {number}),
reigns AS (
    SELECT epoch, min(counter) AS first FROM (
        SELECT epoch, counter FROM writes UNION ALL SELECT {epoch}, {counter}
    ) GROUP BY epoch
)
SELECT key, number, value, "by", epoch_us("at") AS at_us FROM writes
WHERE NOT EXISTS (SELECT 1 FROM reigns WHERE reigns.epoch > writes.epoch AND reigns.first <= writes.counter)
ORDER BY number
"""
"""All writes that count, in order. Writes that a later root did not have are left out."""
APPLIED: Final = """
SELECT number, epoch_us("at") AS at_us FROM silver.events
WHERE event = 'config.applied' AND number IS NOT NULL AND (node = {node} OR origin IN ({origins})) AND epoch_us("at") <= {upto}
ORDER BY era DESC, sequence DESC LIMIT 1
"""
NODES: Final = """
SELECT node, origin, min(epoch_us("at")) AS first FROM silver.events
WHERE event = 'config.applied' AND number IS NOT NULL GROUP BY node, origin ORDER BY node, origin
"""
NAMED: Final = """
SELECT key, value FROM silver.configuration
WHERE starts_with(key, '/TOPO/') AND contains(value, '"name":') AND contains(value, {part})
GROUP BY key, value ORDER BY max((epoch, counter))
"""
"""Names of nodes, from the fleet tree in the configuration: who has, or had, which name."""
REFUSED: Final = "SELECT count(*) AS count FROM quarantine.configuration"


class Setting(NamedTuple):
    """A key and the value that it had in the wanted state."""

    key: str
    number: int
    """Number of the write that set it."""
    value: str
    """The value as JSON; `{"$b": base64}` if it is not valid JSON."""
    by: str | None
    at_ns: int


class State(NamedTuple):
    """The configuration after a write."""

    number: int
    """Number of that write: epoch and counter in one."""
    at_ns: int | None
    """When it was made; None if the lake does not have it."""
    settings: list[Setting]
    """The keys that had a value then."""
    missing: int
    """How many writes up to it the lake lacks. Keys that those changed show their earlier value."""
    refused: int
    """Number of writes in quarantine, of all times."""


def state_at(
    lake: Path | str, at_ns: int | None = None, *, node: str | None = None, subtrees: tuple[str, ...] = ("",)
) -> State:
    """The configuration of the root at an instant, or the one that `node` (name, or 32 hex) ran then.

    By default the latest known. Raises UserError `no-lake`, `no-configuration` if there is no table of it, `no-node` if
    that node never reported what it runs, `too-early` if nothing was written or reported by then.
    """
    upto = FOR_EVER if at_ns is None else at_ns // MICROSECOND
    with Lake(lake) as asked:
        _need(asked, CONFIGURATION, "writes of the configuration")
        number = _written(asked, upto) if node is None else _applied(asked, node, upto)
        return _state(asked, number, subtrees)


def _need(asked: Lake, table: Table, what: str) -> None:
    if table not in asked.tables():
        raise UserError("no-configuration", f"no table of the lake {asked.layout.root} has {what}", "weft lake run")


def _written(asked: Lake, upto: int) -> int:
    """The number of the last write up to an instant, in microseconds since 1970."""
    (last,) = asked.query(LAST.format(writes=WRITES, upto=upto)).to_pylist()
    if last["number"] is not None:
        return int(last["number"])
    (first,) = asked.query(FIRST).to_pylist()
    if first["first"] is None:
        raise UserError("no-configuration", "the lake has no write of the configuration yet", "weft lake check")
    raise _too_early("the first write in the lake was made", first["first"])


def _applied(asked: Lake, node: str, upto: int) -> int:
    """The number of the configuration that a node ran at an instant, in microseconds since 1970."""
    _need(asked, EVENTS, "events, so nobody knows what a node ran")
    origins = [node, *(origin for origin, name in names_in(asked, node) if name == node)]
    named = {"node": quoted(node), "origins": ", ".join(quoted(origin) for origin in origins)}
    found = asked.query(APPLIED.format(**named, upto=upto)).to_pylist()
    if found:
        return int(found[0]["number"])
    nodes = asked.query(NODES).to_pylist()
    if firsts := [row["first"] for row in nodes if row["node"] == node or row["origin"] in origins]:
        raise _too_early(f"{node} first reported what it runs", min(firsts))
    names = dict(names_in(asked))
    known = (
        ", ".join(list(dict.fromkeys(names.get(row["origin"], row["node"]) for row in nodes))[:NODES_SHOWN]) or "none"
    )
    raise UserError("no-node", f"the lake does not know what a node {node!r} ran", f"--on NODE; it knows of: {known}")


def names_in(asked: Lake, part: str = "") -> Iterator[tuple[str, str]]:
    """Nodes (32 hex) and every name that the fleet tree ever gave them; only records that contain the text `part`.

    The newest name of a node comes last. Empty if the lake has no configuration.
    """
    if CONFIGURATION not in asked.tables():
        return
    for row in asked.query(NAMED.format(part=quoted(part))).to_pylist():
        try:
            record = json.loads(row["value"])
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("name"):
            yield str(record.get("uuid", row["key"].rpartition("/")[2])), str(record["name"])


def _too_early(what: str, first_us: int) -> UserError:
    first = (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=first_us)).isoformat()
    return UserError("too-early", f"{what} at {first}, which is later", f"--at {first}")


def _state(asked: Lake, number: int, subtrees: tuple[str, ...]) -> State:
    epoch, counter = number >> COUNTER_BITS, number & (1 << COUNTER_BITS) - 1
    rows = asked.query(STATE.format(writes=WRITES, number=number, epoch=epoch, counter=counter)).to_pylist()
    last: dict[str, dict[str, Any]] = {row["key"]: row for row in rows}
    shown = [
        Setting(row["key"], row["number"], row["value"], row["by"], row["at_us"] * MICROSECOND)
        for row in last.values()
        if row["value"] is not None and any(is_under(row["key"], subtree) for subtree in subtrees)
    ]
    at = rows[-1]["at_us"] * MICROSECOND if rows and rows[-1]["number"] == number else None
    return State(number, at, sorted(shown), counter - len(rows), _refused(asked))


def _refused(asked: Lake) -> int:
    if STAGES["configuration"].quarantine not in asked.tables():
        return 0
    (row,) = asked.query(REFUSED).to_pylist()
    return int(row["count"])
