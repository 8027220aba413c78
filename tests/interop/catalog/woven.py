"""A service of Weft that finds its broker by the beacon, until it is ended."""  # a script

import asyncio
import sys

from weft.catalog import Service

service = Service("Woven", interval_s=0.5)


@service.endpoint
async def read(what: bytes) -> bytes:
    """What it is for."""
    return b"read " + what


async def main() -> None:
    """Say when a broker has approved, and stay."""
    await service.start()
    sys.stdout.write(f"up as {service.instance}\n")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
