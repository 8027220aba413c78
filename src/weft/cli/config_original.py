"""`weft config original`: the configuration of a running original dCAMP root, as a fleet's file (CFG-100)."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from weft.base.endpoints import is_endpoint, shifted
from weft.base.errors import PeerError, UserError
from weft.cli.kit.exits import DONE, notice
from weft.cli.kit.lines import print_json
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean
from weft.client.link.channel import Channel
from weft.client.link.dealer import dealer
from weft.client.link.inbox import Inbox
from weft.client.link.opening import Target
from weft.wire.dcamp2014 import Ask, End, Pair, decode, encode

ASK_PORT: Final = 3
"""Of a node's ports: snapshots."""
PAIRS_MAX: Final = 10_000  # an original fleet of 200 nodes has 400
WITHIN_S: Final = 10.0


def original(
    root: str,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    within: float = WITHIN_S,
    json: Flag = False,
) -> int:
    """Write the configuration of an original dCAMP root as a fleet's file: `weft config original 10.0.0.5:5500 -o fleet.toml`.

    It asks the root once for a snapshot, as the root's collectors do, and changes nothing there. An existing file is not
    overwritten.

    Args:
        root: host:port of the root, its first port; its collectors answer, too.
        output: the file; default: standard output.
        within: seconds to wait for the whole answer.
        json: as JSON.
    """
    from weft.cli.config import write_new
    from weft.node.cfgfile import read_cfg
    from weft.node.cfgtext import to_cfg
    from weft.node.fleetparts import refusal
    from weft.node.fleettext import to_toml

    if not is_endpoint(root):
        raise UserError("usage", f"{clean(root)} is no host:port", "weft config original 10.0.0.5:5500")
    try:
        text = to_cfg(asyncio.run(_asked(shifted(root, ASK_PORT), within)))
    except PeerError as error:
        raise UserError(
            "bad-answer",
            f"{root} sent what no original root sends: {clean(str(error))}",
            "weft config export of a Weft fleet",
        ) from None
    reading = read_cfg(text)
    if reading.fleet is None:
        raise refusal(reading.errors, root)
    for mistake in reading.warnings:
        notice(clean(mistake.describe(root)))
    toml = to_toml(reading.fleet)
    if output is not None:
        write_new(output, toml)
    if json:
        print_json({"file": str(output) if output else None, "toml": toml})
    else:
        print(toml if output is None else f"{output} says what {root} runs\n", end="")
    return DONE


async def _asked(endpoint: str, within_s: float) -> list[Pair]:
    """All pairs of the root; UserError if it does not answer."""
    inbox: Inbox[list[bytes]] = Inbox()
    channel = Channel(partial(dealer, Target(f"tcp://{endpoint}")), inbox.put, per_turn=100)
    channel.say(encode(Ask("/")))
    try:
        async with asyncio.timeout(within_s):
            return [pair async for pair in _snapshot(inbox)]
    except TimeoutError:
        mend = "the first port of an original root that runs; weft config import FILE.cfg reads its file"
        raise UserError("unavailable", f"{endpoint} did not answer within {within_s:g} s", mend) from None
    finally:
        channel.close()


async def _snapshot(inbox: Inbox[list[bytes]]) -> AsyncIterator[Pair]:
    """The rows of a snapshot, up to its end."""
    count = 0
    while not isinstance(message := decode(await inbox.take()), End):
        if isinstance(message, Pair):
            count += 1
            yield message
        if count > PAIRS_MAX:
            raise PeerError("too-large", f"more than {PAIRS_MAX} pairs")
