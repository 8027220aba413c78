"""A node of Weft beside a real MoaT-KV server is killed while a program writes: what was acknowledged is there, at both."""

import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.interop.moat.peers import CYCLE_S, until
from tests.interop.moat.world import Room, Woven

ROUNDS = 3
WRITES_MAX = 5_000
ENOUGH = 150
PATIENCE_S = 10 * CYCLE_S


def write(node: Woven, number: int, acknowledged: list[int], is_enough: threading.Event) -> None:
    """A program that writes, until its node is gone."""
    with suppress(OSError, EOFError), node.client() as client:
        for k in range(WRITES_MAX):
            client.set(f"r{number}.{k}", k)
            acknowledged.append(k)
            if k == ENOUGH:
                is_enough.set()
    is_enough.set()


def write_until_killed(node: Woven, number: int) -> list[int]:
    """What was acknowledged before the kill."""
    acknowledged: list[int] = []
    is_enough = threading.Event()
    writer = threading.Thread(target=write, args=(node, number, acknowledged, is_enough))
    writer.start()
    assert is_enough.wait(PATIENCE_S)
    node.kill()
    writer.join()
    return acknowledged


def lost_at(room: Room, name: str, number: int, acknowledged: list[int]) -> list[int]:
    """What a member does not have, once it has the last one."""
    last = acknowledged[-1]
    with room.members[name].client() as client:
        until(lambda: client.get(f"r{number}.{last}") == last, f"{name} has the last one", PATIENCE_S)
        return [k for k in acknowledged if client.get(f"r{number}.{k}") != k]


@pytest.mark.proves("FLD-021")
def test_the_last_acknowledged_writes_before_a_kill_are_at_both(tmp_path: Path) -> None:
    with Room(tmp_path, "new") as room:
        room.real("n1", "hello").ready()
        node = room.woven("n2")
        node.ready()
        for number in range(ROUNDS):
            acknowledged = write_until_killed(node, number)
            node.start()
            node.ready()
            assert [] == [k for name in ("n1", "n2") for k in lost_at(room, name, number, acknowledged)]
        room.all_live()
