"""A root calls, nodes answer, and each is told its place: the dialogue of joining, word by word."""

from typing import Any

import pytest

from weft.base.chance import Chance
from weft.base.effects import Connect, Effect, Persist, Send, Source, Tell
from weft.base.now import SECOND, Now
from weft.cores.topology.core import Topology
from weft.cores.topology.messages import (
    Announcement,
    Answer,
    Asked,
    Control,
    LearnPairs,
    PlaceAssigned,
    RecordsWanted,
    RecordWritten,
    RootTaken,
    TopologySettings,
)
from weft.cores.topology.states import Role, Standing

GROUP = (("/CONFIG/all/members", b'["*"]'),)


def at(seconds: float) -> Now:
    return Now(round(seconds * SECOND), 1_795_000_000 * SECOND + round(seconds * SECOND))


def make(name: str, port: int, **changes: Any) -> Topology:
    settings = TopologySettings(
        fleet="lab", name=name, level=changes.pop("level", "auto"), base_port=port, beacons=False, **changes
    )
    core = Topology(settings, name.encode().ljust(16, b"."), 1, Chance(name))
    core.restore((), at(0))
    return core


def run(core: Topology, until: float) -> list[Effect]:
    """Wake it as often as it asks for until then."""
    done = core.effects()
    while (due := core.deadline()) is not None and due <= until * SECOND:
        core.wake(Now(due, due))
        done += core.effects()
    return done


def events(effects: list[Effect]) -> list[Any]:
    return [effect.event for effect in effects if isinstance(effect, Tell)]


def sent(effects: list[Effect], channel: str) -> list[Any]:
    return [effect.message for effect in effects if isinstance(effect, Send) and effect.channel == channel]


def make_root(*, join: tuple[str, ...] = ()) -> Topology:
    root = make("root", 27_500, level="root", join=join)
    root.command(LearnPairs(GROUP, 1), at(0))
    return root


@pytest.mark.proves("TOP-001", "TOP-002", "TOP-003", "TOP-010", "TOP-012", "TOP-016")
def test_a_node_is_called_answers_and_is_told_its_place_after_its_record_is_written() -> None:
    root, node = make_root(join=("127.0.0.1:27600",)), make("n1", 27_600)
    run(node, 0)
    said = run(root, 4)
    assert [RootTaken(0, False, 1, 1)] == events(said)[:1]
    assert [Connect("announce", "127.0.0.1:27600")] == [e for e in said if isinstance(e, Connect)]
    marco = sent(said, "announce")[0]
    assert ("/MARCO", "127.0.0.1:27500", root.node) == (marco.key, marco.endpoint, marco.uuid)
    assert {"fleet": "lab", "epoch": 0, "count": 1, "protocol": 1} == {
        name: marco.content[name] for name in ("fleet", "epoch", "count", "protocol")
    }

    node.receive(marco, Source("announced", b""), at(4))
    assert Standing.CALLED is node.standing
    polo = sent(node.effects(), "call")[0]
    assert ("polo", "127.0.0.1:27600", node.node) == (polo.command, polo.endpoint, polo.uuid)

    root.receive(Asked((b"",), polo), Source("control", b"\x00id"), at(4))
    effects = root.effects()
    wanted = next(event for event in events(effects) if isinstance(event, RecordsWanted))
    assert [] == sent(effects, "control")  # not before it is written
    assert [f"/TOPO/all/node/{node.node.hex()}"] == [key for key, _ in wanted.writes]
    assert all(len(key) + len(value) <= 400 for key, value in wanted.writes)

    root.command(RecordWritten(wanted.ticket), at(4))
    (answer,) = sent(root.effects(), "control")
    assert isinstance(answer, Answer)
    node.receive(answer.message, Source("call", b"127.0.0.1:27500"), at(4))
    effects = node.effects()
    place = PlaceAssigned("127.0.0.1:27500", "root", "127.0.0.1:27500", "collector", "all", 1, 0, ("/",))
    assert [place] == events(effects)
    assert isinstance(effects[0], Persist)
    assert Standing.JOINED is node.standing


def test_the_root_of_a_file_waits_two_beats_without_its_disk_and_not_at_all_with_it_alone() -> None:
    root = make_root()
    assert [] == events(run(root, 3.9))
    assert Role.STARTING is root.role
    effects = run(root, 4.0)
    assert RootTaken(0, False, 1, 1) in events(effects)
    kept = [record for effect in effects if isinstance(effect, Persist) for record in effect.records]
    again = make("root", 27_500, level="root")
    again.restore(list(enumerate(kept, 1)), at(0))
    assert RootTaken(0, False, 1, 1) in events(run(again, 0))


def test_a_call_of_another_fleet_or_in_plain_text_is_no_reason_to_stop() -> None:
    node = make("n1", 27_600)
    run(node, 0)
    other = Announcement("/MARCO", "127.0.0.1:27500", b"r" * 16, {"fleet": "elsewhere", "epoch": 9})
    node.receive(other, Source("announced", b""), at(1))
    assert Standing.BASE is node.standing
    node.receive(Announcement("/MARCO", "127.0.0.1:27500", b"r" * 16, {"text": "7"}), Source("announced", b""), at(1))
    assert ["polo"] == [said.command for said in sent(node.effects(), "call") if isinstance(said, Control)]
