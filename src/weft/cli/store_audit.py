"""`weft store audit`: compares the stores of several nodes (STO-017)."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from weft.base.changes import Event
from weft.base.endpoints import shifted
from weft.base.errors import UserError
from weft.cli.kit.exits import DONE, NOT_SO, UNREACHABLE
from weft.cli.kit.lines import print_json
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean
from weft.cli.store_calls import STORE_PORT, at_store, ordered
from weft.cli.store_lines import line, plain
from weft.client.store.auditing import Contents, Differing, contents_of, differing
from weft.client.store.client import Client
from weft.client.store.errors import StoreError
from weft.client.store.values import MISSING
from weft.wire.store.path import text_of

if TYPE_CHECKING:
    from weft.wire.store.clients import Op

AGAIN_S: Final = 2.0
"""Entries that differ are compared again after this time, because a change may still be on its way."""
DIGITS: Final = 12
"""Digits of a digest that are shown."""
SHOWN_MAX: Final = 100
FIRST_PORT: Final = 27_500


def audit(
    *others: Annotated[str, Parameter(negative="")],
    repair: Flag = False,
    under: str = ":",
    node: str | None = None,
    port: int | None = None,
    json: Flag = False,
) -> int:
    """Compare the store of a node with those of others, entry by entry: `weft store audit`, `weft store audit 10.0.0.7:27505`.

    Path, last change and value of each entry must be equal; a deleted entry counts as absent. Differences are checked
    again after 2 s, because a change may be on its way. Exit status 1 if anything differs, 3 if a node does not answer.

    Args:
        others: host:port of their stores, names, or state directories; real MoaT-KV servers too. Default: all members that
            are linked, each at the store's port of its ten.
        repair: write differing entries again, as the first node has them, so that all nodes take them, and delete at the
            others what was deleted at the first; entries that it never had stay.
        under: only entries at and below this path.
        node: the first node: host:port of its store, its name or state directory; default: the one that runs here.
        port: first of the ten ports of a node of this machine.
        json: as JSON, one object for each of the others.
    """
    if not others:
        found = _members(node, FIRST_PORT if port is None else port)
        if isinstance(found, int):
            return found
        others = found

    async def work(client: Client) -> int:
        statuses = [await _against(client, other, under, repair=repair, json=json) for other in others]
        return max(statuses)

    return at_store(node, port, work, reads=not repair)


def _members(node: str | None, port: int) -> tuple[str, ...] | int:
    """The addresses of all linked members' stores, or the exit status after a complaint."""
    answer = ordered(port, "store-show", what="members") if node is None else {}
    if isinstance(answer, int):
        return answer
    found = [row["endpoint"] for row in answer.get("members", ()) if row["link"] == "mesh"]
    if not found:
        raise UserError(
            "usage", "no store to compare with", "weft store audit HOST:PORT; weft store members lists the nodes"
        )
    return tuple(shifted(endpoint, STORE_PORT) for endpoint in found)


async def _against(client: Client, where: str, under: str, *, repair: bool, json: bool) -> int:
    written = 0
    try:
        async with Client(where) as other:
            here, found = await _compared(client, other, under)
            if repair:
                written = await _repaired(client, found) + await _deleted(other, here, found)
    except StoreError as error:
        if json:
            print_json({"node": where, "error": error.code})
        else:
            print(f"{clean(where)}: {clean(error.text)}")
        return UNREACHABLE
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


async def _compared(client: Client, other: Client, under: str) -> tuple[Contents, list[Differing]]:
    """The differences that are still there after `SETTLE_S`."""
    here, there = await contents_of(client, under), await contents_of(other, under)
    if here.digest == there.digest:
        return here, []
    before = {each.path for each in differing(here, there)}
    await asyncio.sleep(AGAIN_S)
    here, there = await contents_of(client, under), await contents_of(other, under)
    return here, [each for each in differing(here, there) if each.path in before]


async def _repaired(client: Client, found: list[Differing]) -> int:
    """Write each entry that exists here again (STO-014): a new change with the same value, which all nodes take."""
    from msgspec import UNSET, Raw

    from weft.wire.store.clients import Op

    ops = [
        Op(path=event.path, value=Raw(event.value), until=UNSET if event.until is None else event.until)
        for each in found
        if (event := each.here) is not None and event.value is not None
    ]
    return await _written(client, ops)


async def _deleted(other: Client, here: Contents, found: list[Differing]) -> int:
    """Delete at the other node what was deleted here, unless it changes meanwhile: a new deletion, which all nodes take."""
    from weft.wire.store.clients import Op, links_of

    gone = [(each.path, each.there) for each in found if each.here is None and each.path in here.deleted]
    return await _written(other, [Op(path=at, chain=links_of(event.chain, 1)) for at, event in gone if event])


async def _written(client: Client, ops: "list[Op]") -> int:
    for begin in range(0, len(ops), SHOWN_MAX):
        await client.write_all(ops[begin : begin + SHOWN_MAX])
    return len(ops)


def _show(where: str, here: Contents, found: list[Differing], written: int) -> None:
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
    facts = {
        name: {"value": plain(_value(event)), "by": event.node, "tick": event.tick}
        for name, event in sides.items()
        if event
    }
    return {"path": text_of(each.path), **facts}
