"""Dialogues of the clone core: what it serves, what it takes, how it follows."""

from typing import Any

import pytest

from tests.clone.test_states import SETTINGS, START, UPDATES, answers, in_state, kinds, later
from weft.base.effects import Confirm, Confirmed, Connect, Effect, Send, Source, Tell
from weft.base.errors import OurFault, PeerError
from weft.base.now import MILLISECOND, SECOND, Now
from weft.cores.clone import limits
from weft.cores.clone.context import ASK, FOLLOW, PUBLISH, SERVE, TAKE
from weft.cores.clone.core import Clone
from weft.cores.clone.messages import (
    CloneSettings,
    Hugz,
    ICanHaz,
    KeyRefused,
    KThxBai,
    KvPub,
    KvSet,
    KvSync,
    LearnPairs,
    ServerFollowed,
    ServerLost,
    StepDown,
    TakeRoot,
    Wanted,
    WriteRefused,
    WritesDone,
    WritesWanted,
)
from weft.cores.clone.states import State
from weft.wire.envelope import Answer, Asked

NODE = b"n" * 16
MARK = b"m" * 16
SERVES = CloneSettings(serves=True, writable=("/client/", "/one"), loose_prefix="/client/")
CLIENT = Source(SERVE, b"c1")
WRITER = Source(TAKE, b"")


def serving(settings: CloneSettings = SERVES, count: int = 0) -> Clone:
    """A root with so many pairs, numbered from 1."""
    core = Clone(settings, NODE)
    core.command(TakeRoot(), START)
    core.command(
        LearnPairs(tuple((f"/k/{n:05}", b"v") for n in range(count)), count, tuple(range(1, count + 1))), START
    )
    core.effects()
    return core


def said(effects: list[Effect], channel: str) -> list[Any]:
    return [effect.message for effect in effects if isinstance(effect, Send) and effect.channel == channel]


def told(effects: list[Effect]) -> list[Any]:
    return [effect.event for effect in effects if isinstance(effect, Tell)]


def leave(core: Clone, now: Now = START) -> list[Effect]:
    """What is wanted done; its turn leaves at once."""
    effects = core.effects()
    for asked in [effect for effect in effects if isinstance(effect, Confirm)]:
        core.command(Confirmed(SERVE, asked.peer, asked.count, asked.token, 0), now)
    return effects


def answered(core: Clone, subtree: str, now: Now = START) -> list[Any]:
    """A whole snapshot."""
    core.receive(Asked((), ICanHaz(subtree, dialect="chp")), CLIENT, now)
    heard = said(leave(core, now), SERVE)
    while (due := core.deadline()) is not None and due <= now.mono:
        core.wake(now)
        heard += said(leave(core, now), SERVE)
    assert all(type(answer) is Answer and () == answer.envelope for answer in heard)
    return [answer.message for answer in heard]


def code_of(core: Clone, message: Any, source: Source) -> str:
    with pytest.raises(PeerError) as caught:
        core.receive(message, source, START)
    assert [] == core.effects(), "a refusal changes nothing"
    return caught.value.code


# Serving


@pytest.mark.proves("CFG-061")
def test_a_snapshot_is_what_begins_with_the_subtree_and_its_end_has_the_highest_number() -> None:
    core = serving()
    pairs: tuple[tuple[str, bytes | None], ...] = (("/a/x", b"1"), ("/b", b"2"), ("/a/y", b"3"), ("/gone", None))
    core.command(LearnPairs(pairs, 9, (4, 6, 8, 9)), START)
    assert [4, 6, 8, 9] == [update.number for update in said(core.effects(), PUBLISH)]
    synced = [KvSync("/a/x", 4, b"", b"1"), KvSync("/a/y", 8, b"", b"3")]
    assert [*synced, KThxBai("/a/", 9)] == answered(core, "/a/")
    assert [*synced, KThxBai("/a", 9)] == answered(core, "/a"), "any beginning will do"
    assert [*synced, KvSync("/b", 6, b"", b"2"), KThxBai("", 9)] == answered(core, "")
    assert [KThxBai("/z/", 9)] == answered(core, "/z/")


def test_changes_without_numbers_of_their_own_have_that_of_the_last() -> None:
    core = serving()
    core.command(LearnPairs((("/a", b"1"),), 5), START)
    assert [KvPub("/a", 5, NODE, b"1")] == said(core.effects(), PUBLISH)


def test_a_snapshot_that_a_full_queue_refuses_is_said_again_and_ends_after_everything() -> None:
    core = serving(count=limits.PORTION + 3)
    core.receive(Asked((), ICanHaz("", dialect="chp")), CLIENT, START)
    assert 500 == len(said(core.effects(), SERVE))
    core.wake(START)
    assert [] == said(core.effects(), SERVE), "its turn has not left"
    core.command(Confirmed(SERVE, b"c1", 500, 1, 500), START)
    core.wake(START)
    assert [] == said(core.effects(), SERVE)
    assert START.mono + 10_000_000 == core.deadline()
    now = later(limits.PORTION_NS)
    sizes = []
    for token in range(2, 6):
        core.wake(now)
        sizes.append(len(said(core.effects(), SERVE)))
        core.command(Confirmed(SERVE, b"c1", sizes[-1], token, 0), now)
    assert [500, 3, 1, 0] == sizes
    assert (1, 500 + 3) == (core.counters.served, core.counters.pairs_served)


def test_a_client_that_takes_nothing_is_given_up() -> None:
    core = serving(count=1)
    core.receive(Asked((), ICanHaz("", dialect="chp")), CLIENT, START)
    for step in range(limits.STUCK_NS // SECOND + 1):
        core.effects()
        core.command(Confirmed(SERVE, b"c1", 1, step + 1, 1), later(step * SECOND))
        core.wake(later(step * SECOND))
        core.wake(later(step * SECOND + limits.PORTION_NS))
    assert (1, 0) == (core.counters.stuck, core.counters.served)
    assert not core.server.streams


def test_a_snapshot_shows_one_number_whatever_is_written_meanwhile() -> None:
    core = serving(count=limits.PORTION + 1)
    core.receive(Asked((), ICanHaz("", dialect="chp")), CLIENT, START)
    core.command(LearnPairs((("/k/00500", b"new"),), 999), START)
    leave(core)
    core.wake(START)
    assert [Answer((), KvSync("/k/00500", 501, b"", b"v"))] == said(core.effects(), SERVE)


def test_one_client_has_a_few_snapshots_at_once() -> None:
    core = serving(count=1)
    for _ in range(limits.REQUESTS_PER_CLIENT_MAX):
        core.receive(Asked((), ICanHaz("", dialect="chp")), CLIENT, START)
    core.effects()
    assert "busy" == code_of(core, Asked((), ICanHaz("", dialect="chp")), CLIENT)


@pytest.mark.proves("CFG-061")
def test_each_second_has_a_beat_also_for_clients_of_a_subtree_in_which_nothing_is_written() -> None:
    core = Clone(SERVES, NODE)
    core.command(TakeRoot(), START)
    assert [Hugz()] == said(core.effects(), PUBLISH)
    core.command(LearnPairs((("/a", b"1"),), 1), later(SECOND // 2))
    core.effects()
    assert START.mono + SECOND == core.deadline()
    core.wake(later(SECOND - 1))
    assert [] == said(core.effects(), PUBLISH)
    core.wake(later(SECOND))
    assert [Hugz()] == said(core.effects(), PUBLISH)


def test_who_is_not_the_root_is_mute_so_that_clients_turn_elsewhere() -> None:
    core = Clone(SERVES, NODE)
    core.command(LearnPairs((("/a", b"1"),), 1, (1,)), START)
    assert ([], None) == (core.effects(), core.deadline())
    assert "not-root" == code_of(core, Asked((), ICanHaz("", dialect="chp")), CLIENT)
    assert "not-root" == code_of(core, KvSet("/client/a", 0, MARK, b"1"), WRITER)
    core.command(TakeRoot(is_acting=True), START)
    assert [KvSync("/a", 1, b"", b"1"), KThxBai("", 1)] == answered(core, ""), "it has learned before"
    core.command(StepDown(), START)
    assert core.deadline() is None


@pytest.mark.proves("CFG-060")
def test_without_ports_nothing_is_said_and_without_a_server_nobody_is_asked() -> None:
    core = serving(CloneSettings())
    core.command(LearnPairs((("/a", b"1"),), 1), START)
    assert ([], None, State.RESTING) == (core.effects(), core.deadline(), core.state)


# Writes of clients


@pytest.mark.proves("CFG-062", "CFG-063")
def test_a_write_is_wanted_and_what_is_published_tells_whose_it_was() -> None:
    core = serving()
    core.receive(KvSet("/client/a", 0, MARK, b"1", ttl_s=2.5), WRITER, START)
    assert [WritesWanted(1, (Wanted("/client/a", b"1", 2.5),))] == told(core.effects())
    core.command(LearnPairs((("/client/b", b"1"), ("/client/a", b"1")), 8, (7, 8)), START)
    core.command(WritesDone(1), START)
    first, second = said(core.effects(), PUBLISH)
    assert KvPub("/client/b", 7, NODE, b"1") == first
    assert KvPub("/client/a", 8, MARK, b"1", 2.5) == second
    ends_ms = (START.wall + 5 * SECOND // 2) // MILLISECOND
    assert KvSync("/client/a", 8, MARK, b"1", None, ends_ms) == answered(core, "/client/a")[0]
    core.command(LearnPairs((("/client/a", None),), 9, (9,)), START)
    assert [KvPub("/client/a", 9, NODE, b"")] == said(core.effects(), PUBLISH)


def test_a_write_that_changed_nothing_or_was_not_taken_is_forgotten() -> None:
    core = serving()
    for ticket, code in ((1, 0), (2, 11)):
        core.receive(KvSet("/client/a", 0, MARK, b"1"), WRITER, START)
        core.command(WritesDone(ticket, code), START)
    assert WriteRefused("/client/a", 11, 1) == told(core.effects())[-1]
    core.command(LearnPairs((("/client/a", b"1"),), 3, (3,)), START)
    assert [KvPub("/client/a", 3, NODE, b"1")] == said(core.effects(), PUBLISH)


@pytest.mark.proves("CFG-063")
@pytest.mark.parametrize(
    "key, full",
    [("/client/a", "/client/a"), ("/one", "/one"), ("7813", "/client/7813"), ("a/b", "/client/a/b")],
)
def test_what_may_be_written(key: str, full: str) -> None:
    core = serving()
    core.receive(KvSet(key, 0, MARK, b"1"), WRITER, START)
    assert [WritesWanted(1, (Wanted(full, b"1"),))] == told(core.effects())


@pytest.mark.proves("CFG-063")
@pytest.mark.parametrize(
    "key, code",
    [
        ("/other", "not-writable"),
        ("/one/more", "not-writable"),
        ("/CONFIG/global/heartbeat", "not-writable"),
        ("/client/", "key"),
        ("/client/a b", "key"),
        ("/client/HUGZ", "key"),
        ("k" * 250, "key"),
    ],
)
def test_what_may_not_be_written(key: str, code: str) -> None:
    assert code == code_of(serving(), KvSet(key, 0, MARK, b"1"), WRITER)


@pytest.mark.proves("CFG-063")
def test_by_default_nothing_may_be_written() -> None:
    core = serving(CloneSettings(serves=True))
    assert "not-writable" == code_of(core, KvSet("/client/a", 0, MARK, b"1"), WRITER)
    assert "loose-key" == code_of(core, KvSet("7813", 0, MARK, b"1"), WRITER)


def test_writes_that_nobody_answers_are_bounded() -> None:
    core = serving()
    for number in range(limits.OPEN_MAX):
        core.receive(KvSet("/client/a", 0, MARK, b"%d" % number), WRITER, START)
    core.effects()
    assert "busy" == code_of(core, KvSet("/client/a", 0, MARK, b"x"), WRITER)


# Following


def wants(effects: list[Effect]) -> list[tuple[Wanted, ...]]:
    return [event.writes for event in told(effects) if isinstance(event, WritesWanted)]


@pytest.mark.proves("CFG-064")
def test_what_stands_under_the_prefix_becomes_the_snapshot_and_then_follows() -> None:
    core = in_state(State.ASKING)
    here: tuple[tuple[str, bytes | None], ...] = (("/guide/old", b"1"), ("/guide/a", b"0"), ("/guidebook", b"2"))
    core.command(LearnPairs(here, 3), START)
    now_ms = START.wall // MILLISECOND
    snapshot = [
        KvSync("/a", 2, MARK, b"1"),
        KvSync("/b", 4, MARK, b"2", expires_ms=now_ms + 1_500),
        KvSync("/ended", 5, MARK, b"3", expires_ms=now_ms),
        KvSync("7813", 6, MARK, b"4", ttl_s=limits.TTL_MAX_S * 2.0),
    ]
    for pair in snapshot:
        core.receive(pair, answers(core), START)
    core.receive(KvPub("/a", 9, MARK, b"9"), UPDATES, START)
    core.receive(KvPub("/a", 7, MARK, b"7"), UPDATES, START)
    core.receive(KvPub("/a", 8, MARK, b"8", ttl_s=2.0), UPDATES, START)
    assert [] == core.effects()
    core.receive(KThxBai(None, 7), answers(core), START)
    effects = core.effects()
    assert (
        Wanted("/guide/old", b""),
        Wanted("/guide/a", b"1"),
        Wanted("/guide/b", b"2", 1.5),
        Wanted("/guide/ended", b""),
        Wanted("/guide/7813", b"4"),
    ) == wants(effects)[0]
    assert ServerFollowed("127.0.0.1:5556", 7, 4) == told(effects)[1]
    assert State.ASKING is core.state, "9 came before 8: asked again"


def test_updates_that_waited_follow_in_order_without_those_that_the_snapshot_has() -> None:
    core = in_state(State.ASKING)
    for number in range(6, 10):
        core.receive(KvPub("/a", number, MARK, b"%d" % number), UPDATES, START)
    core.receive(KThxBai(None, 7), answers(core), START)
    assert [(Wanted("/guide/a", b"8"),), (Wanted("/guide/a", b"9"),)] == wants(core.effects())
    core.receive(KvPub("/a", 10, MARK, b"", ttl_s=3.0), UPDATES, START)
    assert [(Wanted("/guide/a", b""),)] == wants(core.effects()), "a deletion has no time to live"
    assert (10, 2, State.FOLLOWING) == (core.follower.last, core.counters.leftovers, core.state)


@pytest.mark.proves("CFG-064")
def test_a_server_that_is_mute_at_first_is_asked_again_with_longer_pauses() -> None:
    core = in_state(State.ASKING)
    asked_at, lost_at, now = [0], None, START
    while now.mono < START.mono + 40 * SECOND:
        due = core.deadline()
        assert due is not None
        now = later(due - START.mono)
        core.wake(now)
        effects = core.effects()
        asked_at.append((due - START.mono) // SECOND)
        if ServerLost in kinds(effects):
            lost_at = asked_at[-1]
    assert [0, 1, 3, 7, 15, 31, 61] == asked_at
    assert 15 == lost_at
    core.receive(KThxBai(None, 1), Source("clone-ask", b"1"), now)
    assert (State.ASKING, 1) == (core.state, core.counters.late), "an answer to an older question"
    core.receive(KThxBai(None, 1), answers(core), now)
    assert [ServerFollowed("127.0.0.1:5556", 1, 0)] == told(core.effects())


def test_a_beat_tells_of_lost_updates_but_not_with_number_0() -> None:
    core = in_state(State.FOLLOWING)
    core.receive(Hugz(), UPDATES, later(limits.CALM_NS))
    core.receive(Hugz(7), UPDATES, later(limits.CALM_NS))
    assert State.FOLLOWING is core.state
    core.receive(Hugz(8), UPDATES, later(limits.CALM_NS))
    assert (State.ASKING, 1) == (core.state, core.counters.holes)


@pytest.mark.parametrize("message", [Hugz(2), KvPub("/a", 2, MARK, b"1")])
def test_a_lower_number_is_old_at_first_and_later_that_of_a_new_server(message: Hugz | KvPub) -> None:
    core = in_state(State.FOLLOWING)
    core.receive(message, UPDATES, later(limits.LEFTOVER_NS - 1))
    assert State.FOLLOWING is core.state
    core.receive(message, UPDATES, later(limits.LEFTOVER_NS))
    assert State.ASKING is core.state


def test_holes_in_a_row_have_longer_and_longer_pauses() -> None:
    core = in_state(State.FOLLOWING)
    pauses, now = [], START
    for _ in range(4):
        core.receive(KvPub("/a", 99, MARK, b"1"), UPDATES, now)
        asked = ICanHaz in kinds(core.effects())
        if not asked:
            due = core.deadline()
            assert due is not None
            pauses.append((due - now.mono) // SECOND)
            now = later(due - now.mono, now)
            core.wake(now)
        core.receive(KThxBai(None, 7), answers(core), now)
        core.effects()
    assert [1, 2, 4] == pauses
    now = later(limits.CALM_NS, now)
    core.receive(KvPub("/a", 99, MARK, b"1"), UPDATES, now)
    assert ICanHaz in kinds(core.effects())


def test_a_silent_server_is_lost_once_and_found_once() -> None:
    core = in_state(State.FOLLOWING)
    core.wake(later(limits.SILENCE_NS))
    assert ServerLost("127.0.0.1:5556", "silent") == told(core.effects())[0]
    now = later(limits.SILENCE_NS + 20 * SECOND)
    for _ in range(5):
        core.wake(now)
        assert [] == told(core.effects())
        now = later(31 * SECOND, now)
    core.receive(KThxBai(None, 7), answers(core), now)
    assert [ServerFollowed("127.0.0.1:5556", 7, 0)] == told(core.effects())


def test_a_server_that_never_beats_is_asked_again_now_and_then_without_a_word() -> None:
    core = in_state(State.ASKING)
    core.receive(KThxBai(None, 7), answers(core), START)
    core.effects()
    pauses, now = [], START
    for connections in ([ASK], [FOLLOW, ASK], [ASK]):
        due = core.deadline()
        assert due is not None
        pauses.append(due - now.mono)
        now = later(due - START.mono)
        core.wake(now)
        effects = core.effects()
        assert (connections, []) == ([e.channel for e in effects if isinstance(e, Connect)], told(effects))
        core.receive(KThxBai(None, 7), answers(core), now)
        assert ([], State.FOLLOWING) == (told(core.effects()), core.state)
    assert [2_000_000_000, 60_000_000_000, 2_000_000_000] == pauses


def test_a_key_that_can_be_none_here_is_left_out_and_told() -> None:
    core = in_state(State.ASKING)
    for key in ("/a b", "", "/x/HUGZ", "k" * 254):
        core.receive(KvSync(key or "/", 1, b"", b"1"), answers(core), START)
    core.receive(KThxBai(None, 7), answers(core), START)
    core.receive(KvPub("/c d", 8, MARK, b"1"), UPDATES, START)
    effects = core.effects()
    assert ["/a b", "/", "k" * 254] == [event.key for event in told(effects) if isinstance(event, KeyRefused)]
    assert ([], 8, 5) == (wants(effects), core.follower.last, core.counters.keys_refused)


def test_a_write_that_is_not_taken_is_told_and_all_is_asked_for_again() -> None:
    core = in_state(State.FOLLOWING)
    core.receive(KvPub("/a", 8, MARK, b"1"), UPDATES, START)
    (ticket,) = [event.ticket for event in told(core.effects())]
    core.command(WritesDone(ticket, 11), START)
    assert [WriteRefused("/guide/a", 11, 1)] == told(core.effects())
    assert State.ASKING is core.state
    core.command(WritesDone(ticket, 11), START)
    assert [] == core.effects()


def test_many_pairs_are_several_orders() -> None:
    core = in_state(State.ASKING)
    for number in range(limits.ORDER_WRITES_MAX + 1):
        core.receive(KvSync(f"/{number}", number, b"", b"1"), answers(core), START)
    for number in range(3):
        core.receive(KvSync(f"/big/{number}", number, b"", b"1" * limits.ORDER_BYTES_MAX), answers(core), START)
    core.receive(KThxBai(None, 9_999), answers(core), START)
    assert [1_000, 2, 1, 1] == [len(writes) for writes in wants(core.effects())]


@pytest.mark.parametrize("limit", ["WAITING_UPDATES_MAX", "WAITING_BYTES_MAX", "STAGE_PAIRS_MAX", "STAGE_BYTES_MAX"])
def test_what_is_held_is_bounded(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, limit, 3)
    core = in_state(State.ASKING)
    for number in range(1, 5):
        core.receive(KvPub("/a", number, b"", b"1"), UPDATES, START)
        core.receive(KvSync(f"/{number}", number, b"", b"1"), answers(core), START)
    assert core.counters.holes > 0
    assert max(len(core.follower._waiting), len(core.follower._stage)) <= 4


def test_who_is_no_root_any_more_hears_nothing_of_the_server() -> None:
    core = in_state(State.FOLLOWING)
    source = answers(core)
    core.command(StepDown(), START)
    core.effects()
    core.receive(KvPub("/a", 8, MARK, b"1"), UPDATES, START)
    core.receive(KvSync("/a", 8, MARK, b"1"), source, START)
    assert ([], None, 2) == (core.effects(), core.deadline(), core.counters.late)
    core.command(TakeRoot(is_acting=True), START)
    assert State.RESTING is core.state, "who only acts as root writes nothing"


def test_nothing_is_kept_and_no_other_order_is_known() -> None:
    core = Clone(SETTINGS, NODE)
    core.restore([], START)
    assert [] == list(core.condense())
    with pytest.raises(OurFault):
        core.command(object(), START)
    assert "command" == code_of(serving(), object(), CLIENT)
