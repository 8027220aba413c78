"""The demonstrations at the client library: what they say to a node, and what they print."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.client.node import MID, FakeNode, in_loop
from weft.cli.chain_calls import _watch as watch
from weft.cli.chain_lines import Lines
from weft.cli.demos.live import Make, Player, Stage
from weft.cli.demos.programs import Aggregator, Detector, Responder, Rewriter
from weft.cli.demos.report import accumulated, leaf, visited
from weft.wire import clients

A0, A1 = leaf("A", 0), leaf("A", 1)


def said(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def starts(node: FakeNode, make: Make, **how: Any) -> "asyncio.Task[None]":
    stage = Stage(name="demo", node=node.endpoint, json=True, **how)
    return asyncio.ensure_future(Player(make, stage).play())


@pytest.mark.proves("DEM-001")
def test_a_detector_reports_at_once_and_ends_with_its_last_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    @in_loop
    async def dialogue() -> None:
        async with FakeNode(tmp_path) as node:
            demo = starts(node, lambda here: Detector(here.name, 2), period_s=0.01, is_prompt=True)
            await node.welcomes()
            for number, why in enumerate(["spooled", "deleted"]):
                sent = await node.hears(clients.Send)
                (item,) = sent.m
                assert ("demo.report", ["PARENTSOF"], "xml") == (item.type, item.to, item.fmt)
                assert [leaf("B", number)] == sent.frames
                node.ends(item.tag, why)
            await demo

    dialogue()
    ready, first, second, end = said(capsys)
    assert ("ready", "B", "127.0.0.1") == (ready["event"], ready["node"], ready["address"])
    assert [(True, "spooled"), (False, "deleted")] == [(event["ok"], event["why"]) for event in (first, second)]
    assert {"sent": 2, "spooled": 1, "deleted": 1} == end["counts"]


@pytest.mark.proves("DEM-002", "DEM-004")
def test_a_rewriter_answers_each_report_and_prints_what_became_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    @in_loop
    async def dialogue() -> None:
        async with FakeNode(tmp_path) as node:
            demo = starts(node, lambda here: Rewriter(here.addr, 4711, 7))
            await node.welcomes()
            reg = await node.registers()
            assert ("out", "rw", 7, 5_000) == (reg.dir, reg.access, reg.at, reg.timeout)
            node.gives(1, A0)
            assert [visited(A0, "127.0.0.1", 4711)] == (await node.hears(clients.Next)).frames
            node.gives(1, A1, first=2)
            assert 2 == (await node.hears(clients.Drop)).m[0].id
            node.gives(1, b"<!", first=3)
            assert clients.Next(1, [clients.NextItem(id=3)], []) == await node.hears(clients.Next)
            os.kill(os.getpid(), signal.SIGINT)
            await demo

    dialogue()
    *events, end = said(capsys)
    messages = [event for event in events if event["event"] == "message"]
    assert [("passed", visited(A0, "127.0.0.1", 4711).decode()), ("dropped", A1.decode()), ("passed", "<!")] == [
        (event["verdict"], event["payload"]) for event in messages
    ]
    assert {"seen": 3, "tagged": 1, "deleted": 1, "refused": 1} == end["counts"]


@pytest.mark.proves("DEM-003")
def test_an_aggregator_sends_a_period_after_it_began(tmp_path: Path) -> None:
    @in_loop
    async def dialogue() -> None:
        async with FakeNode(tmp_path) as node:
            demo = starts(node, lambda here: Aggregator(here.name, outbound=True), period_s=0.2)
            await node.welcomes()
            first, second = await node.registers(), await node.registers()
            assert [("in", "ro"), ("out", "rw")] == [(reg.dir, reg.access) for reg in (first, second)]
            node.gives(1, A0)
            node.gives(2, A1, first=2)
            assert 2 == (await node.hears(clients.Drop)).m[0].id
            assert [accumulated("B", [A0, A1])] == (await node.hears(clients.Send)).frames
            demo.cancel()

    dialogue()


def test_who_holds_messages_answers_only_what_comes_after_them(tmp_path: Path) -> None:
    @in_loop
    async def dialogue() -> None:
        async with FakeNode(tmp_path) as node:
            demo = starts(node, lambda _: Responder("out", access="rw", hold=2))
            await node.welcomes()
            assert (await node.registers()).timeout > 60_000
            node.gives(1, A0, A1, A0)
            assert 3 == (await node.hears(clients.Next)).m[0].id
            demo.cancel()

    dialogue()


def test_whoever_watches_ends_after_so_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    @in_loop
    async def dialogue() -> None:
        async with FakeNode(tmp_path) as node:
            watching = asyncio.ensure_future(watch(node.endpoint, "demo.*", ("in", "after-all"), 2, Lines(json=False)))
            await node.welcomes()
            reg = await node.registers()
            assert ("demo.*", "in", "ro") == (reg.type, reg.dir, reg.access)
            node.gives(1, A0, b"\x1b[2J", A1)
            await watching

    dialogue()
    out, errors = capsys.readouterr()
    assert [f"in  {MID[0].hex()[:8]} {A0.decode()}", rf"in  {MID[0].hex()[:8]} \x1b[2J"] == [
        line.partition(" ")[2] for line in out.splitlines()
    ]
    assert "watching demo.* on in of B" in errors
