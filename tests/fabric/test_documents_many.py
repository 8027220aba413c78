"""Sixteen real nodes edit one document while they are killed and stopped (GSP-030, PEE-010)."""

import os
import random
import signal
import time
from pathlib import Path
from typing import Self

import pytest

from tests.fabric.edited import Edited
from weft.doc import DocError, SyncClient
from weft.shell.blocks import free_blocks

pytestmark = pytest.mark.prove("sixteen processes")

COUNT = 16
SETTINGS = """
[node]
name = "{name}"
level = "root"
runs = []
beacons = false
port = {port}
state = "{state}"

[doc.session.friday]
mdns = false
listen = "127.0.0.1:{listen}"
peers = {peers}
operator = "{name}"

[doc.timing]
beat = "1s"
evasive = "2s"
gone = "4s"
"""


class Crowd(Edited):
    """Nodes of one session and nothing else; each knows one other at its start."""

    def __init__(self, place: Path, count: int) -> None:
        super().__init__(place, {f"node-{number:02}": "" for number in range(count)})
        blocks = free_blocks((count + 9) // 10, 21_600)
        self.listen = {name: blocks[number // 10] + number % 10 for number, name in enumerate(self.parents)}
        self.acked: list[tuple[str, int]] = []
        """Every entry that a program was told of."""

    def __enter__(self) -> Self:
        super().__enter__()
        self.until(self.is_mesh, "everybody knows everybody", 120)
        return self

    def settings(self, name: str, port: int, state: Path) -> str:
        names = list(self.parents)
        before = names[names.index(name) - 1]
        peers = [f"127.0.0.1:{self.listen[before]}"]
        return SETTINGS.format(name=name, port=port, state=state, listen=self.listen[name], peers=peers)

    def enter(self, name: str, jam: int) -> None:
        """One entry at a node; whether it was acknowledged is remembered."""
        try:
            with SyncClient(self.place / name, session="friday", timeout=2) as client:
                done = client.add(f"period=1 jam={jam}", '<pass team="home" points="1"/>')
        except DocError:
            return  # it is down just now
        self.acked.append((done.source, done.sequence))

    def have(self, name: str) -> dict[str, int]:
        """Of each source, up to which number the node has it."""
        with self.client(name) as client:
            return {row["source"]: row["latest"] for row in client.sources()}


@pytest.mark.proves("GSP-005", "GSP-030")
def test_sixteen_nodes_that_are_killed_and_stopped_end_with_the_same_and_lose_no_acknowledged_entry(
    tmp_path: Path, *, soak: bool
) -> None:
    chance = random.Random(16)
    with Crowd(tmp_path, COUNT) as crowd:
        names = list(crowd.parents)
        for number in range(60 if soak else 12):
            for name in chance.sample(names, 4):
                crowd.enter(name, 1 + number % 9)
            victim = chance.choice(names)
            if number % 3 == 0:
                crowd.kill(victim)
            elif number % 3 == 1:
                process = crowd.member(victim).process
                assert process is not None
                os.kill(process.pid, signal.SIGSTOP)
                time.sleep(0.3)  # tidy: how long it stands still is what is tried
                os.kill(process.pid, signal.SIGCONT)
            crowd.fleet.watch()
        crowd.until(lambda: crowd.is_mesh() and crowd.is_equal(), "all are back, with the same log", 120)
        assert 1 == len(crowd.digests())
        have = crowd.have(names[0])
        assert len(crowd.acked) > 20
        assert [] == [entry for entry in crowd.acked if entry[1] > have.get(entry[0], 0)]
