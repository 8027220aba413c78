"""What a start must know of the one before: what was handed over, and who has sent what; and for whom messages wait.

All of it was found by nights in the simulator (`weft sim --scenario chains`).
"""

import pytest

from tests.chains.rig import ERA, Rig, Site
from tests.chains.test_inbox import FORWARD, JOURNAL, kept, letter, node
from weft.base.mail import INBOX, OUTBOX
from weft.base.records import Record, Stream, StreamRecord
from weft.cores.carrier.seen import Seen
from weft.wire import clients


def streams(records: list[Record]) -> list[int]:
    return [record.stream for record in records if isinstance(record, StreamRecord)]


def again(site: Site, journal: list[Record], level: str) -> tuple[Rig, Site]:
    """The next start of the node, on this journal."""
    rig, fresh = node(JOURNAL if level == "root" else FORWARD, level=level, era=ERA + 1)
    fresh.core.restore(list(enumerate(journal, 1)), rig.now)
    return rig, fresh


@pytest.mark.proves("CHN-036", "CHN-034")
@pytest.mark.parametrize("access", ["rw", "confirm"])
@pytest.mark.parametrize("is_condensed", [False, True])
@pytest.mark.parametrize(("level", "stream"), [("root", int(Stream.MESSAGES)), ("collector", OUTBOX)])
def test_what_waits_behind_the_filter_that_handed_it_over_is_not_handed_over_again(
    access: str, is_condensed: bool, level: str, stream: int
) -> None:
    rig, site = node(JOURNAL if level == "root" else FORWARD, level=level)
    options = {"access": "rw"} if access == "rw" else {"confirm": True}
    rig.reg("B", "h", 1, options)  # after all, so behind the filter
    journal = [*site.core.screen(letter(), rig.now), *kept(site)]
    assert [INBOX, stream] == streams(journal)
    if is_condensed:
        journal = list(site.core.condense())
    rig, fresh = again(site, journal, level)
    session = rig.reg("B", "h", 1, options)
    fresh.core.wake(rig.now)
    assert ([], [(1, 1, True)]) == (streams(kept(fresh)), session.offers)


@pytest.mark.proves("CHN-036")
def test_what_parked_before_the_filter_is_handed_over_once_when_it_comes_there() -> None:
    rig, site = node(JOURNAL, level="root")
    rig.reg("B", "h", 1, {"access": "rw", "at": 5})
    rig.reg("B", "late", 1, {"access": "rw"})
    journal = [*site.core.screen(letter(), rig.now)]
    site.core.engine.hand_back(site.sessions["h"], 1, clients.NextItem(id=1), (), rig.now)
    journal += kept(site)
    assert [INBOX, Stream.MESSAGES] == streams(journal)
    rig, fresh = again(site, journal, "root")
    fresh.core.wake(rig.now)
    assert [] == streams(kept(fresh))


@pytest.mark.proves("CHN-036")
def test_two_journal_filters_take_a_message_once() -> None:
    rig, site = node(JOURNAL, {**JOURNAL, "name": "k"}, level="root")
    assert [Stream.MESSAGES] == streams(list(site.core.screen(letter(), rig.now)))


@pytest.mark.proves("CHN-042")
@pytest.mark.parametrize("is_condensed", [False, True])
@pytest.mark.parametrize("level", ["root", "collector"])
def test_a_tag_is_known_again_if_a_filter_has_handed_over_what_it_stood_for(level: str, is_condensed: bool) -> None:
    rig, site = node(JOURNAL if level == "root" else FORWARD, level=level)
    session = site.session("s")
    item = clients.SendItem(tag=7, type="t", to=["DIRECT"])
    site.core.engine.accept(session, item, (b"x",), rig.now)
    journal = kept(site)
    assert 1 == len(streams(journal))
    rig, fresh = again(site, list(site.core.condense()) if is_condensed else journal, level)
    fresh.core.engine.accept(fresh.session("s"), item, (b"x",), rig.now)
    assert ([], 1) == (streams(kept(fresh)), fresh.core.context.counters.repeated_tags)


@pytest.mark.proves("CHN-042", "JRN-042")
def test_tags_are_remembered_as_the_journal_has_them() -> None:
    rig, site = node(level="collector")
    rig.reg("B", "h", 1, {"access": "rw", "dir": "out"})
    journal: list[Record] = []
    for tag, kind in ((1, "t"), (2, "u"), (3, "u"), (4, "here")):
        to = ["DIRECT"] if kind == "here" else ["PARENTSOF"]
        site.core.engine.accept(site.session("s"), clients.SendItem(tag=tag, type=kind, to=to), (b"x",), rig.now)
        journal += kept(site)
    site.core.engine.hand_back(site.sessions["h"], 1, clients.NextItem(id=1), (), rig.now)
    journal += kept(site)
    _, fresh = again(site, journal, "collector")
    assert list(site.core.condense()) == list(fresh.core.condense())


@pytest.mark.proves("CHN-042", "JRN-042")
def test_tags_of_one_turn_are_remembered_in_their_order_whatever_became_of_the_messages() -> None:
    rig, site = node(FORWARD)
    for tag, kind in enumerate(("DIRECT", "PARENTSOF", "DIRECT"), 1):
        item = clients.SendItem(tag=tag, type="t", to=[kind])
        site.core.engine.accept(site.session("s"), item, (b"x",), rig.now)
    _, fresh = again(site, kept(site), "collector")
    assert 1 == len(list(fresh.core.condense()))
    assert list(site.core.condense()) == list(fresh.core.condense())


@pytest.mark.proves("CHN-019")
@pytest.mark.parametrize("options", [{"confirm": True}, {"access": "rw", "fail": "wait"}])
def test_what_a_dead_client_held_goes_to_the_one_that_came_back_before_it_was_known_to_be_dead(
    options: dict[str, object],
) -> None:
    rig, site = node()
    first = rig.reg("B", "h", 1, options)
    site.core.screen(letter(), rig.now)
    second = site.sessions["h"] = type(first)(rig, "B", "h")
    second.id = b"another".ljust(16)
    rig.reg("B", "h", 1, options)
    first.is_gone = True
    site.core.engine.lose(first, rig.now)
    assert [(1, 1, True)] == second.offers


@pytest.mark.proves("JRN-042")
def test_what_a_root_has_seen_is_condensed_alike_whatever_came_first() -> None:
    made = [StreamRecord(stream, b"A" * 16, ERA, 1, 0, 0, "k", b"", {}) for stream in (2, 1)]
    one, other = Seen(), Seen()
    for record in made:
        one.take(record)
    for record in reversed(made):
        other.take(record)
    assert list(one.condense()) == list(other.condense())
