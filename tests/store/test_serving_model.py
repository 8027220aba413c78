"""P9: conditional sets of several clients at one node, against a linear model of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from tests.store.desk import Desk, value_of
from tests.store.rig import DELETE
from weft.cores.store import actions
from weft.wire.store.clients import Links

KEYS = ("a", "a.b", "c")
ABSENT = object()
CONDITIONS = st.sampled_from(("none", "new", "head", "old head", "wrong node", "prev", "wrong prev", "idem"))
REQUESTS = st.lists(
    st.tuples(
        st.sampled_from(KEYS), st.sampled_from(("set", "delete")), CONDITIONS, st.integers(0, 2), st.integers(0, 2)
    ),
    max_size=40,
)


class Model:
    """What one node holds, as somebody who takes one request after the other sees it."""

    def __init__(self) -> None:
        self.tick = 0
        self.values: dict[str, Any] = {}
        self.heads: dict[str, int] = {}

    def ask(self, key: str, what: str, fields: dict[str, Any], value: int) -> tuple[str, bool]:
        """The code of the refusal, and whether something changed."""
        current = self.values.get(key, ABSENT)
        if what == "set" and fields.get("idem") and current == value:
            return "", False
        if "prev" in fields and current != fields["prev"]:
            return "value-mismatch", False
        if "chain" in fields:
            chain = fields["chain"]
            if chain is None and current is not ABSENT:
                return "exists", False
            if chain is not None and (current is ABSENT or ("n1", self.heads[key]) != (chain.node, chain.tick)):
                return "chain-mismatch", False
        if what == "delete" and current is ABSENT:
            return "", False
        self.tick += 1
        self.heads[key] = self.tick
        if what == "set":
            self.values[key] = value
        else:
            del self.values[key]
        return "", True

    def condition(self, key: str, kind: str, other: int) -> dict[str, Any]:
        """Fields of a request, right or wrong."""
        head = self.heads.get(key, 1)
        known: dict[str, dict[str, Any]] = {
            "none": {},
            "new": {"chain": None},
            "head": {"chain": Links("n1", head)},
            "old head": {"chain": Links("n1", max(1, head - 1))},
            "wrong node": {"chain": Links("n2", head)},
            "prev": {"prev": self.values.get(key, other)},
            "wrong prev": {"prev": "never"},
            "idem": {"idem": True},
        }
        return known[kind]


def play(requests: list[tuple[str, str, str, int, int]]) -> None:
    """All requests, from three clients, without waiting for answers; then everything is compared."""
    desk, model = Desk("n1"), Model()
    clients = [desk.client() for _ in range(3)]
    expected = []
    for number, (key, what, kind, value, who) in enumerate(requests):
        fields = model.condition(key, kind, value)
        own = {"value": value} if what == "set" else {}
        seq = clients[who].start(f"{what}_value", path=key, **own, **fields)
        expected.append((who, seq, *model.ask(key, what, fields, value), model.heads.get(key)))
        if number % 3 == 0:
            desk.turn()
    desk.settle()
    for who, seq, code, changed, head in expected:
        [answer] = clients[who].heard(seq)
        assert code == answer.etype
        if not code:
            assert changed is answer.changed
            assert head == (answer.chain.tick if isinstance(answer.chain, Links) else None)
    assert model.tick == desk.node.context.tick
    for key in KEYS:
        answer = clients[0].ask("get_value", path=key)
        assert model.values.get(key, DELETE) == (value_of(answer) if bytes(answer.value) else DELETE)
    assert list(range(1, model.tick + 1)) == [
        tick for first, last in desk.node.book.seen("n1") for tick in range(first, last + 1)
    ]


@pytest.mark.proves("CLN-003", "STO-036")
@given(REQUESTS)
def test_conditional_writes_are_those_of_a_linear_model(requests: list[tuple[str, str, str, int, int]]) -> None:
    play(requests)


def test_a_condition_that_is_compared_with_nothing_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions.Conditions, "check", lambda _: None)
    with pytest.raises(AssertionError):
        play([("a", "set", "none", 1, 0), ("a", "set", "new", 2, 1)])


def test_a_condition_is_told_only_where_there_is_one() -> None:
    desk = Desk("n1")
    client = desk.client()
    client.ask("set_value", path="a", value=1)
    assert 1 == value_of(client.ask("set_value", path="a", value=2), "prev")
    assert b"" == bytes(client.ask("set_value", path="a", value=3, prev=2).prev)
    assert UNSET is client.ask("set_value", path="a", value=4, nchain=0).chain
