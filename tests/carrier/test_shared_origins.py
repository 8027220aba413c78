"""Operations of documents go up from every node of a session under the numbers of their source (GSP-034).

So a root hears each number from several children, and may itself be one of the session: nothing is lost, nothing is kept
more than once for each way that it can come by, and every journal below may forget.
"""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.carrier.rig import World
from tests.drain.world import World as DrainWorld
from weft.base.now import SECOND
from weft.base.records import LostRecord, Stream, StreamRecord
from weft.cores.carrier import parent
from weft.cores.carrier.seen import Seen, Verdict

SOURCE = "friday/" + "5a" * 16
NUMBERS = range(1, 7)
TREE = {"root": "", "mid": "root", "a": "mid", "b": "root"}
"""All four are of the session; a's records pass through mid, which has the same ones."""


def operation(teller: str, number: int) -> StreamRecord:
    """The same operation everywhere; when and from whom it was received each node says for itself."""
    attributes = {"session": "friday", "eff": 1.5, "from": teller}
    received = 1_000 + len(teller)
    return StreamRecord(Stream.DOCUMENTS, SOURCE, None, number, 77, received, "set", b"<set/>", attributes)


class Session:
    """A tree whose nodes all tell of the operations of one source, each in its order and at its own pace."""

    def __init__(self) -> None:
        self.world = World()
        for name, above in TREE.items():
            self.world.collector(name, above) if above else self.world.root(name)
        self.told = Counter[str]()
        self.world.advance(1)

    def tell(self, name: str) -> None:
        """The next operation of a node, if it has one left; a node that is down has none."""
        machine = self.world.machines[name]
        if machine.is_up and self.told[name] < NUMBERS[-1]:
            self.told[name] += 1
            machine.write(operation(name, self.told[name]))

    def restart(self, name: str) -> None:
        """Die and begin again with what is on disk; afterwards the last operation is told once more at most."""
        self.world.machines[name].crash()
        self.world.machines[name].start()

    def finish(self) -> None:
        for name in TREE:
            while self.told[name] < NUMBERS[-1]:
                self.tell(name)
        self.world.advance(60)

    def kept(self) -> Counter[int]:
        """How often each number stands in the root's journal."""
        return Counter(r.sequence for r in self.world.machines["root"].samples() if r.origin == SOURCE)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("tell"), st.sampled_from(list(TREE))),
        st.tuples(st.just("restart"), st.sampled_from(list(TREE))),
        st.tuples(st.just("wait"), st.sampled_from(["0.05", "1", "12"])),
    ),
    max_size=40,
)


def play(steps: list[tuple[str, str]]) -> Session:
    session = Session()
    for verb, word in steps:
        if verb == "wait":
            session.world.advance(float(word))
        else:
            getattr(session, verb)(word)
    session.finish()
    return session


def judge(session: Session) -> None:
    """What must hold, whatever has happened."""
    kept = session.kept()
    assert set(NUMBERS) == set(kept), "nothing is lost"
    assert max(kept.values()) <= 2, "once from below, and once its own"
    assert not session.world.machines["root"].lost(), "nor said to be"
    below = [session.world.machines[name] for name in TREE if name != "root"]
    assert [[], [], []] == [machine.samples() for machine in below], "all of it is safe, and forgotten there"


@pytest.mark.proves("GSP-034", "CHN-035")
@settings(max_examples=40)
@given(STEPS)
def test_numbers_that_all_nodes_tell_are_at_the_root_once_from_below_and_once_its_own(
    steps: list[tuple[str, str]],
) -> None:
    judge(play(steps))


@pytest.mark.proves("GSP-034", "CHN-035")
def test_what_the_root_has_made_itself_is_not_taken_from_below_again() -> None:
    session = Session()
    for _ in NUMBERS:
        session.tell("root")
    session.finish()
    assert dict.fromkeys(NUMBERS, 1) == session.kept()
    assert {"root"} == {r.attributes["from"] for r in session.world.machines["root"].samples()}


def test_what_one_node_has_given_up_another_still_brings() -> None:
    """A full journal announces its oldest operations as lost: they are not, and the root has both."""
    session = Session()
    session.world.cut("a")
    for _ in NUMBERS:
        session.tell("a")
    session.world.machines["a"].drop_oldest(share=2)
    session.world.settle()
    session.world.heal("a")
    session.world.advance(30)
    for name in ("root", "mid"):
        session.told[name] = NUMBERS[-1]  # they know nothing of it
    session.finish()
    assert dict.fromkeys(NUMBERS, 1) == session.kept()
    lost = [(r.stream, r.origin, r.era, r.first, r.last) for r in session.world.machines["root"].lost()]
    assert [(Stream.DOCUMENTS, SOURCE, None, 1, 3)] == lost


@pytest.mark.proves("LAK-002")
def test_what_stands_twice_in_the_journal_is_drained_twice_and_is_one_number() -> None:
    """The lake's ranges are sets; silver takes a number once (tests/pipeline/test_documents)."""
    session = Session()
    for _ in NUMBERS:
        session.tell("b")
        session.world.advance(1)
        session.tell("root")
    session.finish()
    assert dict.fromkeys(NUMBERS, 2) == session.kept()
    drain = DrainWorld("shared")
    records = [r for r in session.world.machines["root"].archive() if isinstance(r, StreamRecord | LostRecord)]
    drain.append(list(records))
    drain.run(30 * SECOND)
    assert 2 * len(NUMBERS) == sum(len(segment.lsns) for segment in drain.lake[Stream.DOCUMENTS])


class Forgetful(Seen):
    """Remembers no number of an origin without a start."""

    def take(self, record: StreamRecord) -> Verdict:
        return super().take(record) if record.era is not None else Verdict.NEW


class HighestOnly(Seen):
    """Takes the highest number of an origin for all below it, as if one node alone told of them, in order."""

    def take(self, record: StreamRecord) -> Verdict:
        highest = self.__dict__.setdefault("highest", Counter())
        if record.sequence <= highest[record.origin]:
            return Verdict.KNOWN
        highest[record.origin] = record.sequence
        return super().take(record)


@pytest.mark.parametrize(
    ("bug", "check"),
    [
        (Forgetful, test_what_the_root_has_made_itself_is_not_taken_from_below_again),
        (HighestOnly, test_what_one_node_has_given_up_another_still_brings),
    ],
)
def test_a_planted_bug_would_be_seen(
    bug: type[Seen], check: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    check()
    monkeypatch.setattr(parent, "Seen", bug)
    with pytest.raises(AssertionError):
        check()
