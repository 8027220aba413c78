"""Two to five nodes, everything that may happen to them in any order, then quiet: all are equal (P6)."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.store.net import Net
from weft.base.records import StreamRecord

NAMES = ("a", "b", "c", "d", "e")
names = st.sampled_from(NAMES)
paths = st.sampled_from(("p", "q", "p.x"))
QUIET_S = 200.0
"""Forty clocks."""


class Rounds(RuleBasedStateMachine):
    """Writes, deletions, cuts, crashes and restarts on bad links; at the end the links are good and everybody is up."""

    @initialize(
        count=st.integers(2, 5),
        seed=st.integers(0, 999),
        link=st.sampled_from(("mqtt", "mesh")),
        loss=st.sampled_from((0.0, 0.1, 0.3)),
        most=st.sampled_from((0.003, 0.5, 2.0)),
    )
    def begin(self, count: int, seed: int, link: str, loss: float, most: float) -> None:
        self.net = Net(NAMES[:count], seed=seed, link=link, loss=loss, doubling=0.1, delay=(0.001, most), is_mixed=True)
        self.net.run(2)
        self.net.found("a")
        self.net.run(40)

    def _node(self, name: str) -> Any:
        return self.net[NAMES[NAMES.index(name) % len(self.net.nodes)]]

    @rule(name=names, path=paths, value=st.integers(0, 9))
    def write(self, name: str, path: str, value: int) -> None:
        node = self._node(name)
        if node.is_up:
            node.write(path, value)

    @rule(name=names, path=paths)
    def delete(self, name: str, path: str) -> None:
        node = self._node(name)
        if node.is_up:
            node.delete(path)

    @rule(span=st.sampled_from((0.001, 0.1, 1, 5, 30)))
    def wait(self, span: float) -> None:
        self.net.run(span)

    @rule(side=st.sets(names))
    def cut(self, side: set[str]) -> None:
        self.net.cut(side)

    @rule()
    def heal(self) -> None:
        self.net.heal()

    @rule(name=names)
    def kill(self, name: str) -> None:
        self.net.kill(self._node(name).name)

    @rule(name=names, when=st.sampled_from(("before", "after")), path=paths)
    def fail(self, name: str, when: str, path: str) -> None:
        node = self._node(name)
        if node.is_up:
            self.net.fail_at_next_write(node.name, when)
            node.write(path, 10)
            node.fails = ""

    @rule(name=names)
    def start(self, name: str) -> None:
        node = self._node(name)
        if not node.is_up:
            self.net.start(node.name)

    @rule(name=names, span=st.integers(-100_000, 100_000))
    def jump(self, name: str, span: int) -> None:
        self.net.jump(self._node(name).name, span)

    @precondition(lambda self: hasattr(self, "net"))
    @invariant()
    def nobody_has_a_tick_that_its_node_did_not_take(self) -> None:
        for node in self.net.up():
            for name, top in node.store.replica.book.tops().items():
                disk = self.net[name].disk
                taken = [
                    record.sequence for record in disk if isinstance(record, StreamRecord) and record.origin == name
                ]
                assert top <= max(taken, default=0), f"{node.name} knows {name}:{top}"

    def teardown(self) -> None:
        if not hasattr(self, "net"):
            return
        net = self.net
        net.heal()
        for name, node in net.nodes.items():
            if not node.is_up:
                net.start(name)
        net.settle(QUIET_S)
        assert len({tuple(sorted(tops.items())) for tops in net.tops()}) == 1
        assert [] == net.unexplained()


@pytest.mark.proves("STO-012", "STO-032", "PNG-013", "LNK-001")
def test_after_anything_and_then_quiet_all_hold_the_same_and_no_acknowledged_write_is_unexplained(soak: bool) -> None:
    how = settings(max_examples=1_500 if soak else 30, stateful_step_count=60 if soak else 40)
    run_state_machine_as_test(Rounds, settings=how)
