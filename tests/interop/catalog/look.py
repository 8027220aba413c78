"""A client of Weft that finds its broker by the beacon, and prints what it sees as JSON: `look.py NAME...` pings these."""  # a script

import asyncio
import json
import sys
from typing import Any

from weft.catalog import NotFound, find_broker
from weft.client.catalog.client import Client

PATIENCE_S = 10.0  # a broker of another make does one thing at a time, and this machine may have much else to do


async def seen() -> dict[str, Any]:
    """One of each lookup, and a ping of all that is there."""
    found = await find_broker(wait_s=10.0)
    async with Client(f"{found.host}:{found.port}", timeout=PATIENCE_S) as catalog:
        entries = await catalog.list()
        asked = [name for name in sys.argv[1:] if name in entries]
        missing = False
        try:
            await catalog.get("Nope")
        except NotFound:
            missing = True
        return {
            "is_legacy": found.is_legacy,
            "names": sorted(entries),
            "same": all([entry == await catalog.get(name) for name, entry in entries.items()]),
            "missing": missing,
            "answered": [name for name in asked if await catalog.ping(entries[name], timeout=PATIENCE_S) > 0],
        }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(seen())))
