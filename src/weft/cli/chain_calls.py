"""The client side of `weft chain`: what it sends to a node's chains."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from weft.base.errors import UserError
from weft.cli.chain_ends import until_any
from weft.cli.chain_lines import Lines, who
from weft.client.chain.addressing import LOCAL, direct
from weft.client.chain.client import chain_client
from weft.client.chain.links import Handler
from weft.client.chain.message import Message, SendFailed

Stand = Callable[[Handler], Handler]
NAME: Final = "weft-chain"
ANSWER_S: Final = 15.0  # a node keeps a message in memory for up to 10 s while its link is down
PARTS_MAX: Final = 3
PLACE_MAX: Final = 4_294_967_294


def destination_of(text: str) -> tuple[Any, ...]:
    """A destination from the command line: kind, node and maximum of hops, separated by colons.

    >>> destination_of("parentsof"), destination_of("local"), destination_of("direct:C")
    (('PARENTSOF',), ('DIRECT',), ('DIRECT', 'C'))
    >>> destination_of("childrenof:node_local:3")
    ('CHILDRENOF', None, 3)
    """
    kind, *rest = text.split(":")
    if kind.lower() in ("local", "node_local", "localnode"):
        kind = "DIRECT"
    if not kind or len(rest) >= PARTS_MAX or (rest[1:] and not rest[1].isdecimal()):
        raise UserError("usage", f"--to {text!r} is no destination", "parentsof, childrenof, nearestcoord, direct:NODE")
    parts: list[Any] = [kind.upper()]
    if rest:
        parts.append(_node_of(rest[0]))
    if rest[1:]:
        parts.append(int(rest[1]))
    return tuple(parts)


def place_of(text: str) -> int | str:
    """A place in a chain from the command line; UserError if it is invalid."""
    if text in ("before-all", "after-all"):
        return text
    if text.isdecimal() and 1 <= int(text) <= PLACE_MAX:
        return int(text)
    raise UserError("usage", f"--place {text!r} is no place in a chain", "before-all, after-all, or a number from 1")


def _node_of(text: str) -> str | bytes | None:
    if text.upper() in ("", LOCAL, "NODE_LOCAL", "LOCALNODE"):
        return None
    node: str | bytes = direct(text)[1]  # a name, or an id in hexadecimal
    return node


def send_once(node: str | None, type_name: str, payload: bytes, **how: Any) -> tuple[bool, str]:
    """Send one message and wait for its final status: whether it succeeded, and the word for it."""
    how["to"] = destination_of(how["to"])
    return asyncio.run(_send_once(node, type_name, payload, how))


async def _send_once(node: str | None, type_name: str, payload: bytes, how: dict[str, Any]) -> tuple[bool, str]:
    async with chain_client(NAME, node=node) as chain:
        try:
            receipt = await asyncio.wait_for(chain.send(type_name, payload, **how), ANSWER_S)
        except SendFailed as error:
            return False, str(error)
        except TimeoutError:
            text = f"no answer within {ANSWER_S:g} s; the node may still send the message"
            raise UserError("unavailable", text, "weft chain ls: who holds it; weft status: who is above") from None
        reached = "" if receipt.count is None else f" to {receipt.count} {'node' if receipt.count == 1 else 'nodes'}"
        return True, f"{receipt.why}{reached}"


def watch_messages(
    node: str | None, type_name: str, where: tuple[str, int | str], count: int | None, *, json: bool
) -> int:
    """Print messages as they pass this chain at this place, until a signal or, if `count` is given, so many have passed."""
    asyncio.run(_watch(node, type_name, where, count, Lines(json)))
    return 0


async def _watch(
    node: str | None, type_name: str, where: tuple[str, int | str], count: int | None, lines: Lines
) -> None:
    left, (on, place) = count, where
    async with chain_client(NAME, node=node) as chain:

        def see(message: Message) -> None:
            nonlocal left
            if left == 0:
                return
            lines.message(message, who(message, chain.here), "", message.payload)
            if left is not None:
                left -= 1
                if not left:
                    chain.close()

        reads: Stand = chain.reads(type_name, on=on, place=place)
        reads(see)
        await chain.ready()
        here = chain.here
        lines.begin(f"watching {type_name} on {on} of {here.name}, a {here.level}; Ctrl-C ends it", node=here.name)
        await until_any(chain.run(), lines.broken())
