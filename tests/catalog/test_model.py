"""Random commands against the two state tables, written once more, as short as they are; three planted bugs.

The model knows nothing of the core: instances and connections as plain values, each command as the text says it.
"""

from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.rig import Broker, Peer
from weft.cores.catalog import records
from weft.cores.catalog.context import Context
from weft.cores.catalog.refusals import Refusal
from weft.cores.catalog.registry import Registry
from weft.cores.catalog.states import On

Key = tuple[str, str]
ADDRESSES: Final = {"d1": "10.0.0.1", "d2": "10.0.0.1", "d3": "10.0.0.2", "r1": "10.0.0.1", "r2": "10.0.0.2", "ad": ""}
"""Two DEALERs and a REQ of one owner, one of each of another, and an administrator."""
Step = tuple[str, ...]


class Thing:
    def __init__(self, owner: str) -> None:
        self.owner, self.state, self.port, self.is_left = owner, "none", "", False


class Model:
    """What the broker believes, and what it says."""

    def __init__(self) -> None:
        self.things: dict[Key, Thing] = {}
        self.links: dict[str, Key | None] = {}
        """Of a DEALER that is BOUND, its key; None: CLOSED; not here: NEW."""
        self.events: list[tuple[str, str]] = []

    def step(self, verb: str, who: str, *words: str) -> str:
        """The answer: a code, a command, or nothing."""
        if who in self.links and self.links[who] is None:
            return ""
        return str(getattr(self, verb)(who, *words))

    # Who is who

    def owner(self, who: str) -> str:
        return ADDRESSES[who] or "127.0.0.1"

    def owns(self, who: str, thing: Thing) -> bool:
        return who == "ad" or thing.owner == self.owner(who)

    def bound(self, who: str) -> Key | None:
        key = self.links.get(who)
        return key if key in self.things and self.owns(who, self.things[key]) else None

    def named(self, who: str, name: str, number: str) -> Key | None:
        bound = self.bound(who)
        if bound and name in ("", bound[0]) and number in ("", bound[1]):
            fit = [bound]
        else:
            fit = [k for k, t in self.things.items() if k[0] == name and self.owns(who, t)]
            fit = [k for k in fit if number in ("", k[1]) and not self.things[k].is_left]
        return fit[0] if len(fit) == 1 and not self.things[fit[0]].is_left else None

    def back(self, key: Key) -> None:
        thing = self.things[key]
        if thing.state != "active":
            thing.state, thing.is_left = "active", False
            self.events.append(("active", key[0]))

    # Commands

    def uwu(self, who: str, name: str, number: str, port: str) -> str:
        key = (name, number or f"{self.owner(who)}:0")
        thing = self.things.get(key) or Thing(self.owner(who))
        if thing.state in ("active", "suspect") and not self.owns(who, thing):
            return "name-taken"
        if who in self.links:
            self.links[who] = None
            return "</3"
        if thing.state != "active" or thing.port != port:
            self.events.append(("register", name))
        owner = thing.owner if self.owns(who, thing) else self.owner(who)
        thing.owner, thing.state, thing.port, thing.is_left = owner, "active", port, False
        self.things[key] = thing
        if who.startswith("d"):
            self.links[who] = key
        return "OwO"

    def uou(self, who: str, name: str, number: str, port: str) -> str:
        bound = self.bound(who)
        if not name and not bound:
            return "missing-field"
        if bound and name in ("", bound[0]):
            if number not in ("", bound[1]):
                return "immutable-field"
            key = bound
        else:
            fit = [k for k in self.things if k[0] == name and number in ("", k[1])]
            own = [k for k in fit if self.owns(who, self.things[k])]
            if not fit or (len(own) > 1) or not own:
                return "not-registered" if not fit else "missing-field" if len(own) > 1 else "not-owner"
            key = own[0]
        thing = self.things[key]
        if thing.state in ("active", "suspect") and thing.port != port:
            self.events.append(("update", key[0]))
        thing.port = port
        self.back(key)
        return "u.u"

    def beat(self, who: str, name: str, number: str) -> str:
        key = self.named(who, name, number)
        if who.startswith("d"):
            self.links[who] = key
        if key is None:
            return "</3"
        self.back(key)
        return "u.u"

    def bye(self, who: str, name: str, number: str) -> str:
        key = self.named(who, name, number) or self.bound(who)
        if key and not self.things[key].is_left:
            self.things[key].state, self.things[key].is_left = "inactive", True
            self.events.append(("inactive", key[0]))
        if not who.startswith("d"):
            return "u.u"
        self.links[who] = None
        return ""

    def awk(self, who: str) -> str:
        self.look(who)
        return ""

    def look(self, who: str) -> str:
        bound = self.bound(who)
        if bound and not self.things[bound].is_left:
            self.back(bound)
        return "o_O"

    def reply(self, who: str) -> str:
        if who.startswith("d"):
            self.links[who] = None
        return "</3"

    def deregister(self, who: str, name: str, number: str) -> str:
        self.look(who) if who == "ad" else None
        if who != "ad":
            return "not-authorised"
        fit = [k for k in self.things if k[0] == name and number in ("", k[1])]
        if len(fit) != 1:
            return "bad-argument" if fit else "not-registered"
        del self.things[fit[0]]
        self.events.append(("remove", name))
        return "o_O"

    # Time

    def _becomes(self, name: str, number: str, before: str, then: str) -> str:
        for key, thing in self.things.items():
            if key == (name, number) and thing.state == before:
                thing.state = then
                self.events.append((then, name))
        return ""

    def silent(self, who: str, name: str, number: str) -> str:
        return self._becomes(name, number, "active", "suspect")

    def overdue(self, who: str, name: str, number: str) -> str:
        return self._becomes(name, number, "suspect", "inactive")

    def state(self) -> dict[Key, tuple[str, ...]]:
        return {key: (thing.state, thing.owner, thing.port) for key, thing in self.things.items()}


# The same steps on the broker


class Real:
    def __init__(self) -> None:
        self.broker = Broker()
        self.peers = {name: self._peer(name, address) for name, address in ADDRESSES.items()}

    def _peer(self, name: str, address: str) -> Peer:
        return self.broker.dealer(address) if name.startswith("d") else self.broker.req(address)

    def step(self, verb: str, who: str, *words: str) -> str:
        if verb in MOVES:
            instance = self.broker.core.book.get(*words)
            if instance is not None:
                self.broker.core.registry.move(instance, MOVES[verb])
                self.broker.turn()
            return ""
        answers = SAY[verb](self.peers[who], *words)
        assert len(answers) <= 1
        if not answers:
            return ""
        is_refused = answers[0].body and b'"code"' in answers[0].body[0]
        return str(answers[0].json["code"]) if is_refused else answers[0].command.decode()

    def state(self) -> dict[Key, tuple[str, ...]]:
        return {
            one.key: (one.state.name.lower(), one.owner, str(one.record.get("port", "")))
            for one in self.broker.core.book.all()
        }

    @property
    def events(self) -> list[tuple[str, str]]:
        return self.broker.changes


def said_of(name: str, number: str, port: str) -> dict[str, Any]:
    said = {"name": name, "id": number}
    return {key: word for key, word in said.items() if word} | {"port": int(port) if port else None}


def entered(name: str, number: str, port: str) -> dict[str, Any]:
    return {key: word for key, word in said_of(name, number, port).items() if word is not None}


MOVES: Final = {"silent": On.SILENT, "overdue": On.OVERDUE}
SAY: Final[dict[str, Callable[..., list[Any]]]] = {
    "uwu": lambda peer, *words: peer.say(b"UwU", entered(*words)),
    "uou": lambda peer, *words: peer.say(b"UoU", said_of(*words)),
    "beat": lambda peer, name, number: peer.say(b"<3", name.encode(), number.encode()),
    "bye": lambda peer, name, number: peer.say(b"</3", name.encode(), number.encode()),
    "awk": lambda peer: peer.say(b"u.u"),
    "look": lambda peer: peer.say(b"u_U", b"A"),
    "reply": lambda peer: peer.say(b"o_O", b"{}"),
    "deregister": lambda peer, name, number: peer.say(b"u_U", b"dbp.deregister", name.encode(), number.encode()),
}
WHO = st.sampled_from(list(ADDRESSES))
NAME, NUMBER = st.sampled_from(["A", "A", "B"]), st.sampled_from(["t1", "t1", "t2", ""])
PORT = st.sampled_from(["", "7", "8"])
ANY_NAME = st.one_of(NAME, st.just(""))
STEP: Final = st.one_of(
    st.tuples(st.just("uwu"), WHO, NAME, NUMBER, PORT),
    st.tuples(st.just("uwu"), WHO, NAME, NUMBER, PORT),
    st.tuples(st.just("uou"), WHO, ANY_NAME, NUMBER, PORT),
    st.tuples(st.sampled_from(["beat", "bye"]), WHO, ANY_NAME, NUMBER),
    st.tuples(st.sampled_from(["awk", "look", "look", "reply"]), WHO),
    st.tuples(st.just("deregister"), st.sampled_from(["ad", "ad", "d1"]), NAME, NUMBER),
    st.tuples(st.sampled_from(["silent", "overdue"]), st.just("ad"), NAME, st.sampled_from(["t1", "t2"])),
)
STEPS: Final = st.lists(STEP, min_size=5, max_size=40)


def play(steps: list[Step]) -> Real:
    """Both, step by step: equal answers, states and events."""
    model, real = Model(), Real()
    for step in steps:
        assert model.step(*step) == real.step(*step), step
        assert model.state() == real.state(), step
        assert model.events == real.events, step
    return real


@given(STEPS)
@pytest.mark.proves("CAT-018", "CAT-020", "CAT-021", "CAT-022", "CAT-080")
def test_the_broker_does_what_the_tables_say(steps: list[Step]) -> None:
    real = play(steps)
    assert list(range(1, len(real.events) + 1)) == indexes(real)


def indexes(real: Real) -> list[int]:
    """Those of all changes."""
    return [row.sequence for row in real.broker.rows]


@settings(max_examples=20)
@given(STEPS)
def test_the_same_steps_make_the_same_effects(steps: list[Step]) -> None:
    one, other = Real(), Real()
    for step in steps:
        for real in (one, other):
            real.step(*step)
            real.broker.pass_time(0.3)
    for name in ("journal", "said", "events", "probed"):
        assert getattr(one.broker, name) == getattr(other.broker, name)
    assert one.broker.core.context.counters == other.broker.core.context.counters


OWN: Final[list[Step]] = [("uwu", "d1", "A", "t1", "7"), ("uou", "r2", "A", "t1", "8")]
NULL: Final[list[Step]] = [("uwu", "r1", "A", "t1", "7"), ("uou", "r1", "A", "t1", ""), ("look", "r1")]
GAP: Final[list[Step]] = [("uwu", "r1", "A", "t1", "7"), ("uwu", "r2", "A", "t1", "8"), ("uwu", "r1", "B", "t1", "7")]


def test_canary_10_an_owner_who_is_not_asked_for_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    play(OWN)
    monkeypatch.setattr("weft.cores.catalog.registry.owns", lambda asker, instance: True)
    with pytest.raises(AssertionError):
        play(OWN)


def test_canary_11_a_null_that_is_kept_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {("A", "t1"): ("active", "10.0.0.1", "")} == play(NULL).state()
    monkeypatch.setattr(
        records, "merge", lambda name, record, changes, **_: records.Registration(name, None, {**record, **changes})
    )
    with pytest.raises(AssertionError):
        play(NULL)


def test_canary_24_an_index_that_is_lost_with_a_denial_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [1, 2] == indexes(play(GAP))

    def deny_and_count(registry: Registry, instance: Any, said: Any) -> None:
        registry.context.index += 1
        raise Refusal("name-taken", "taken")

    monkeypatch.setattr(Registry, "deny_taken", deny_and_count)
    with pytest.raises(AssertionError):
        assert [1, 2] == indexes(play(GAP))


def test_the_model_sees_a_change_that_is_not_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Context, "announce", lambda context, op, instance, reason="": None)
    with pytest.raises(AssertionError):
        play(OWN)


def test_the_model_knows_every_verb_of_a_step() -> None:
    assert {*SAY, *MOVES} <= {name for name in vars(Model) if not name.startswith("_")}
