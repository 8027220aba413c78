"""`weft fleet reset-root` at a node that follows a root which never was: what it forgets, says, and does next."""

import asyncio
import json
from typing import Any

import pytest

from weft.base.chance import Chance
from weft.base.effects import Reply
from weft.base.now import SECOND, Now
from weft.cli import fleet_root
from weft.cores.topology.core import Topology
from weft.cores.topology.memory import Promised, Root, to_record
from weft.cores.topology.messages import TopologySettings
from weft.shell.http.messages import Response
from weft.shell.orders import Desk

NOWHERE = "10.66.0.1:27500"
LIAR = b"l" * 16


class Node:
    """A node that was told of a root at an address where nobody is, asked as over http, without a socket between."""

    def __init__(self, level: str, *memories: Root | Promised) -> None:
        settings = TopologySettings(fleet="lab", name="n", level=level, base_port=27_510, beacons=False)
        self.core = Topology(settings, b"n" * 16, 1, Chance("n"))
        self.core.restore([(n, to_record(memory)) for n, memory in enumerate(memories, 1)], Now(0, 0))
        self.desk = Desk(self._obey, ("topology",))
        self.asked: list[tuple[int, str]] = []

    def _obey(self, core: str, order: Any) -> None:
        assert core == "topology"
        self.core.command(order, Now(SECOND, SECOND))
        for effect in self.core.effects():
            if isinstance(effect, Reply):
                self.desk.reply(effect.ticket, effect.answer)

    def order(self, port: int, name: str) -> dict[str, Any]:
        self.asked.append((port, name))
        page = asyncio.run(self._take(json.dumps({"order": name}).encode()))
        told: dict[str, Any] = json.loads(page.body)
        return told

    async def _take(self, body: bytes) -> Response:
        return await self.desk.take(body)


MISLED = (Root(4_000_000, LIAR, NOWHERE), Promised(4_000_000, LIAR))


@pytest.mark.parametrize(
    "node, told",
    [
        (
            Node("root", *MISLED),
            f"the node followed {NOWHERE}, epoch 4000000; it becomes the root again, as its file says\n",
        ),
        (Node("auto", *MISLED), f"the node followed {NOWHERE}, epoch 4000000; it follows the next root that calls\n"),
        (Node("auto"), "the node followed no root; it follows the next root that calls\n"),
    ],
    ids=["root-of-the-file", "collector", "fresh"],
)
def test_the_hand_says_which_root_was_forgotten_and_what_comes_now(
    node: Node, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fleet_root, "order", node.order)
    assert 0 == fleet_root.reset_root(port=27_510)
    assert told == capsys.readouterr().out
    assert [(27_510, "reset-root")] == node.asked
    assert NOWHERE != node.core.context.root.endpoint


def test_the_answer_is_json_for_programs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(fleet_root, "order", Node("auto", *MISLED).order)
    assert 0 == fleet_root.reset_root(json=True)
    assert {"root": NOWHERE, "epoch": 4_000_000, "now": "seeks"} == json.loads(capsys.readouterr().out)


def test_what_a_node_answers_moves_no_cursor_in_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fleet_root, "order", lambda port, name: {"root": "a\x1b[2J", "epoch": 1, "now": "seeks"})
    fleet_root.reset_root()
    assert "\x1b" not in capsys.readouterr().out
