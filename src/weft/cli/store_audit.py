"""`weft store audit`: whether the stores of several nodes have the same (STO-017)."""

import asyncio
from typing import Annotated, Any, Final

from cyclopts import Parameter

from weft.base.changes import Event
from weft.base.errors import UserError
from weft.cli.kit.exits import DONE, NOT_SO, UNREACHABLE
from weft.cli.kit.lines import print_json
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean
from weft.cli.store_calls import at_store
from weft.cli.store_lines import line, plain
from weft.client.store.auditing import Differing, Told, differing, told
from weft.client.store.client import Client
from weft.client.store.errors import StoreError
from weft.client.store.values import MISSING
from weft.wire.store.path import text_of

AGAIN_S: Final = 2.0
"""What is on its way between two nodes is no difference: what differs is looked at once more."""
DIGITS: Final = 12
"""Of a digest, for people."""
SHOWN_MAX: Final = 100


def audit(
    *others: Annotated[str, Parameter(negative="")],
    repair: Flag = False,
    node: str | None = None,
    port: int | None = None,
    json: Flag = False,
) -> int:
    """Compare the store of a node with those of others, entry by entry: `weft store audit 10.0.0.7:27505`.

    Equal are path, last change and value; what was deleted is not there. What differs is looked at again after 2 s, since a
    change may be on its way. Exit status 1 if anything differs, 3 if one of them does not answer.

    Args:
        others: host:port of their stores, names, or state directories; real MoaT-KV servers too.
        repair: write what differs anew, as the first node has it, so that all take it; what it does not have is left.
        node: the first: host:port of the store, a node's name or state directory; default: the one that runs here.
        port: first of the ten ports of a node of this machine.
        json: as JSON, one object for each of the others.
    """
    if not others:
        raise UserError(
            "usage", "compared with which stores?", "weft store audit HOST:PORT; weft store members: who there is"
        )

    async def work(client: Client) -> int:
        statuses = [await _against(client, other, repair=repair, json=json) for other in others]
        return max(statuses)

    return at_store(node, port, work, reads=not repair)


async def _against(client: Client, where: str, *, repair: bool, json: bool) -> int:
    try:
        async with Client(where) as other:
            here, found = await _compared(client, other)
    except StoreError as error:
        if json:
            print_json({"node": where, "error": error.code})
        else:
            print(f"{clean(where)}: {clean(error.text)}")
        return UNREACHABLE
    written = await _repaired(client, found) if repair else 0
    if json:
        facts = {
            "node": where,
            "entries": len(here.entries),
            "digest": here.digest,
            "differ": len(found),
            "repaired": written,
        }
        print_json({**facts, "entries_that_differ": [_facts(each) for each in found[:SHOWN_MAX]]})
    else:
        _show(where, here, found, written)
    return NOT_SO if found else DONE


async def _compared(client: Client, other: Client) -> tuple[Told, list[Differing]]:
    """What differs, twice."""
    here, there = await told(client), await told(other)
    if here.digest == there.digest:
        return here, []
    before = {each.path for each in differing(here, there)}
    await asyncio.sleep(AGAIN_S)
    here, there = await told(client), await told(other)
    return here, [each for each in differing(here, there) if each.path in before]


async def _repaired(client: Client, found: list[Differing]) -> int:
    """Write each that is here once more (STO-014): one more change, unchanged in value, that all take."""
    from msgspec import UNSET, Raw

    from weft.wire.store.clients import Op

    ops = [
        Op(path=event.path, value=Raw(event.value), until=UNSET if event.until is None else event.until)
        for each in found
        if (event := each.here) is not None and event.value is not None
    ]
    for begin in range(0, len(ops), SHOWN_MAX):
        await client.write_all(ops[begin : begin + SHOWN_MAX])
    return len(ops)


def _show(where: str, here: Told, found: list[Differing], written: int) -> None:
    if not found:
        print(f"{clean(where)}: the same, {len(here.entries):,} entries, {here.digest[:DIGITS]}")
        return
    print(f"{clean(where)}: {len(found):,} of {len(here.entries):,} entries differ, {written:,} written anew")
    for each in found[:SHOWN_MAX]:
        print(f"  {clean(text_of(each.path))}: {_side(each.here)}; there {_side(each.there)}")


def _side(event: Event | None) -> str:
    return "nothing" if event is None else f"{line(_value(event))} by {clean(event.node)}:{event.tick}"


def _value(event: Event | None) -> Any:
    from weft.wire.store.pack import unpack

    return MISSING if event is None or event.value is None else unpack(event.value)


def _facts(each: Differing) -> dict[str, Any]:
    sides = {"here": each.here, "there": each.there}
    told = {
        name: {"value": plain(_value(event)), "by": event.node, "tick": event.tick}
        for name, event in sides.items()
        if event
    }
    return {"path": text_of(each.path), **told}
