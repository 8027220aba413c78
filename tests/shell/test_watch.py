"""A program that dies without a word is seen by the kernel's word, and only it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from weft.cores.chains.messages import ClientWelcomed, ProcessAttached, ProcessEnded
from weft.shell.watch import Watch


def descriptors() -> int:
    """How many this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.proves("CLI-005")
def test_a_killed_program_is_dead_for_the_chains_once_and_others_are_not() -> None:
    orders: list[tuple[str, Any]] = []

    async def main() -> None:
        told = asyncio.Event()

        def order(core: str, what: Any) -> None:
            orders.append((core, what))
            told.set()

        watch = Watch(order)
        one, other = [await asyncio.create_subprocess_exec("sleep", "60") for _ in range(2)]
        try:
            for _ in range(2):  # two clients of one program
                watch.hear(ProcessAttached(one.pid))
            watch.hear(ProcessAttached(other.pid))
            watch.hear(ClientWelcomed("far", 4711))  # what a program says of itself
            one.kill()
            async with asyncio.timeout(PATIENCE_S):
                await told.wait()
            assert [("chains", ProcessEnded(one.pid))] == orders
        finally:
            other.kill()
            await asyncio.gather(one.wait(), other.wait())
            watch.close()

    asyncio.run(main())


def test_a_program_that_is_dead_already_is_left_to_its_silence() -> None:
    async def main() -> None:
        gone = await asyncio.create_subprocess_exec("true")
        await gone.wait()
        before = descriptors()
        watch = Watch(lambda core, order: None)
        watch.hear(ProcessAttached(gone.pid))
        assert before == descriptors()
        watch.close()

    asyncio.run(main())
