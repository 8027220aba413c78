"""The library and a real node, through its socket and inside its process: the same story both ways."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.client.node import until
from tests.patience import PATIENCE_S
from tests.shell.ports import free_port
from weft.base.errors import UserError
from weft.client.chain.finding import Node
from weft.client.chain.message import Message
from weft.cores.chains.core import Chains
from weft.node.settings import settings_of
from weft.shell.blocks import free_blocks
from weft.shell.process import Process

Log = list[tuple[Any, ...]]


def made(place: Path) -> Process:
    node = {"name": "n1", "level": "root", "state": str(place), "port": free_blocks(1, 14_000)[0]}
    return Process(settings_of({"node": node, "fleet": {"beacon_port": free_port()}}))


def change(message: Message) -> Any:
    match message.text:
        case "boring":
            return weft.drop("boring")
        case "bad":
            raise ValueError("bad")
        case "none":
            return None
    return message.replace(payload=message.text.upper())


async def story(node: Node) -> Log:
    """What two clients of a root hear, in order."""
    log: Log = []

    def note(who: str, message: Message) -> None:
        log.append((who, message.text, message.own, message.direction, message.depth, message.to, message.lost))

    async with weft.chain_client("one", node) as one, weft.chain_client("two", node) as two:
        one.reads("demo.*", on="out", place=weft.BEFORE_ALL)(lambda message: note("above", message))
        one.rewrites("demo.report", on="out", place=100, fail="closed")(change)
        two.reads("demo.report", on="out", noself=True)(lambda message: note("not own", message))
        two.reads("demo.report", on="in", confirm=True)(lambda message: note("confirmed", message))

        @one.reads("demo.report")
        def answer(message: Message) -> None:
            note("below", message)
            one.send("demo.answer", message.payload, want="none")

        two.reads("demo.answer")(lambda message: note("answer", message))
        await asyncio.gather(one.ready(), two.ready())
        for sender, name in ((one, "one"), (two, "two")):
            for text in ("boring", "bad", "none", "good"):
                log.append((name, text, await became(sender.send("demo.report", text))))
        await until(lambda: sum(entry[0] == "answer" for entry in log) == 2)
        for to in (weft.direct("nobody"), weft.CHILDREN_OF_LOCAL, ("MULTICAST",)):
            log.append((to, await became(two.send("other", b"x", to=to, want="dest", keep="memory"))))
        two.reads("demo.report", on="out", confirm=True)(print)
        with pytest.raises(UserError) as refused:
            await two.ready()
        log.append(("refused", refused.value.code, one.counts["handlers failed"], two.here.level))
    return log


async def became(sent: "asyncio.Future[weft.Receipt]") -> str:
    try:
        return (await sent).why
    except weft.SendFailed as failure:
        return failure.why


def of(who: str, log: Log) -> Log:
    return [entry[1:] for entry in log if entry[0] == who]


def by_sender(heard: list[Any]) -> list[Any]:
    """The order of each sender is promised, and none between two."""
    return sorted(heard, key=lambda entry: bool(entry[1]))


@pytest.mark.proves("CLI-023", "CLI-020", "CLI-021")
def test_a_client_inside_the_process_hears_what_one_at_the_socket_hears(tmp_path: Path) -> None:
    async def main() -> tuple[Log, Log]:
        process = made(tmp_path)
        running = asyncio.ensure_future(process.run())
        chains = process.node.cores["chains"]
        assert isinstance(chains, Chains)
        async with asyncio.timeout(PATIENCE_S):
            await until(lambda: not chains.context.awaits_filters)  # before that, mail waits, and is told of later
            inside = await story(process.inside)
            outside = await story(tmp_path)
            process.stop()
            assert None is await running
        return inside, outside

    inside, outside = asyncio.run(main())
    up, kinds = ("PARENTSOF",), ("one", "two", "not own", "confirmed", "below", "answer", "refused")
    assert {who: of(who, inside) for who in kinds} == {who: of(who, outside) for who in kinds}
    assert by_sender(of("above", inside)) == by_sender(of("above", outside))
    ends = [("boring", "deleted"), ("bad", "filter-failed"), ("none", "filter-failed"), ("good", "local")]
    assert [ends, ends] == [of("one", inside), of("two", inside)]
    assert [("GOOD", False, "out", 0, up, 0)] == of("not own", inside)
    assert [("GOOD", own, "in", 0, up, 0) for own in (False, True)] == of("confirmed", inside)
    assert [("GOOD", own, "in", 0, up, 0) for own in (True, False)] == of("below", inside)
    assert [("GOOD", False, "in", 1, up, 0)] * 2 == of("answer", inside)
    assert [("confirm-on-out", 4, "root")] == of("refused", inside)


@pytest.mark.proves("CHN-030", part="more than a batch of the journal holds, let go at once by a program that ends")
def test_a_program_that_ends_with_twenty_megabytes_in_hand_ends_no_node(tmp_path: Path) -> None:
    async def main() -> list[str]:
        ports, fleet = free_blocks(2, 14_000), {"beacon_port": free_port()}
        above = {"name": "n0", "level": "root", "state": str(tmp_path / "root"), "port": ports[0]}
        node = {"name": "n1", "level": "collector", "state": str(tmp_path / "n1"), "port": ports[1]}
        node["parent"] = f"127.0.0.1:{ports[0]}"
        root, process = (Process(settings_of({"node": each, "fleet": fleet})) for each in (above, node))
        running = [asyncio.ensure_future(each.run()) for each in (root, process)]
        chains, place = process.node.cores["chains"], tmp_path / "n1"
        assert isinstance(chains, Chains)
        async with asyncio.timeout(PATIENCE_S), AsyncExitStack() as stack:
            await until(lambda: not chains.context.awaits_filters)
            senders = [await stack.enter_async_context(weft.chain_client(f"s{number}", place)) for number in range(3)]
            held: list[Message] = []

            async def hold(message: Message) -> None:
                held.append(message)
                await asyncio.Event().wait()

            async with weft.chain_client("slow", place) as slow:
                slow.rewrites("demo.big", on="out", window=64, parallel=64, timeout=PATIENCE_S)(hold)
                await slow.ready()
                sent = [sender.send("demo.big", bytes(700_000)) for sender in senders for _ in range(10)]
                await until(lambda: len(held) == len(sent))
            whys = [await became(each) for each in sent]
            for each in (process, root):
                each.stop()
            assert [None, None] == [await each for each in running]
        return whys

    assert ["spooled"] * 30 == asyncio.run(main())
