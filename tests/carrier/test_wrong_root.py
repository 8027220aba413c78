"""What is safe only the root of record can say: whatever anybody else calls safe is kept (FLD-012)."""

from typing import Any

import pytest

from weft.base.chance import Chance
from weft.base.effects import Send, Source
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.base.records import Stream, StreamRecord
from weft.base.spool import Journaled
from weft.cores.carrier.context import Context
from weft.cores.carrier.core import Carrier
from weft.cores.carrier.messages import AssignParent, CarrierSettings, Hack, Hello, RootIs, Welcome

ROOT, STRANGER = b"r" * 16, b"f" * 16
ME, ERA = b"c" * 16, 7


def child(*, trusts_parent: bool = False) -> Carrier:
    """One with three records in its journal, in front of a parent that was found by its beacon."""
    settings = CarrierSettings(name="s1", level="sensor", trusts_parent=trusts_parent)
    core = Carrier(settings, ME, ERA, Chance("wrong"))
    core.restore((), Now(0, 0))
    records = tuple(StreamRecord(Stream.SAMPLES, ME, ERA, n, 0, 0, "m", b"x", {}) for n in (1, 2, 3))
    core.command(Journaled(1, records), Now(0, 0))
    core.command(AssignParent("127.0.0.1:1", "p"), Now(0, 0))
    core.effects()
    return core


def welcome(core: Carrier, **said: Any) -> None:
    usual = {
        "v": 1,
        "addr": "",
        "boot": 1,
        "level": "root",
        "parent": None,
        "children": [],
        "credit": 0,
        "credit_bytes": 0,
        "beat": 1_000,
    }
    usual |= {
        "node": STRANGER,
        "name": "p",
        "dead": 5_000,
        "era": 1,
        "first": 1,
        "next": 1,
        "upto": 0,
        "win": 100,
        "winb": 1 << 20,
    }
    core.receive(Welcome(**{**usual, **said}), Source("up", b""), Now(SECOND, SECOND))
    core.effects()


def hack(core: Carrier, **said: Any) -> None:
    core.receive(
        Hack(**{"era": ERA, "upto": 3, "win": 100, "winb": 1 << 20, **said}), Source("up", b""), Now(SECOND, 0)
    )
    core.effects()


def forgotten(core: Carrier) -> int:
    return core.outbox.safe


@pytest.mark.proves("FLD-012")
@pytest.mark.parametrize(
    "root", [None, (STRANGER, 0), (STRANGER, 1), (ROOT, 1)], ids=["nobody", "own", "later", "epoch"]
)
def test_a_stranger_took_the_samples_and_called_them_safe(root: tuple[bytes, int] | None) -> None:
    core = child()
    core.command(RootIs(ROOT, 0), Now(0, 0))
    welcome(core)
    hack(core, safe=3, root=root)
    assert (3, 0) == (core.outbox.held, forgotten(core))
    assert 1 == core.counters.refused["not-the-root"]
    core.command(AssignParent("127.0.0.1:2", "root"), Now(SECOND, 0))
    hello = next(
        effect.message for effect in core.effects() if isinstance(effect, Send) and type(effect.message) is Hello
    )
    assert (1, 4) == (hello.first, hello.next), "the stranger is gone: all of it is offered to the root"


@pytest.mark.proves("FLD-012")
def test_a_parent_that_does_not_say_what_is_safe_made_the_child_forget_what_it_held() -> None:
    core = child()
    core.command(RootIs(ROOT, 0), Now(0, 0))
    welcome(core)
    hack(core)
    assert 0 == forgotten(core)


@pytest.mark.proves("FLD-012")
@pytest.mark.parametrize("root", [None, (STRANGER, 0)])
def test_who_knows_no_root_yet_forgets_nothing_for_a_parent_that_a_beacon_named(root: tuple[bytes, int] | None) -> None:
    core = child()
    welcome(core)
    hack(core, safe=3, root=root)
    assert 0 == forgotten(core)


@pytest.mark.proves("FLD-012")
def test_of_the_root_of_record_it_is_believed_in_a_welcome_too() -> None:
    core = child()
    core.command(RootIs(ROOT, 4), Now(0, 0))
    welcome(core, upto=0, root=(ROOT, 4))
    hack(core, safe=2, root=(ROOT, 4))
    assert 2 == forgotten(core)


def test_what_was_called_safe_counts_as_soon_as_the_configuration_names_that_root() -> None:
    """A fresh node hears its parent before its configuration, and after an election the parent may be the first to know."""
    core = child()
    welcome(core)
    hack(core, safe=3, root=(ROOT, 1))
    for node, epoch, safe in ((ROOT, 0, 0), (ROOT, 1, 3)):
        core.command(RootIs(node, epoch), Now(SECOND, 0))
        assert safe == forgotten(core)


def test_a_parent_whose_address_a_person_wrote_may_be_of_another_make() -> None:
    core = child(trusts_parent=True)
    welcome(core)
    hack(core)
    assert 3 == forgotten(core)


@pytest.mark.proves("FLD-012")
def test_but_not_when_it_names_another_root() -> None:
    core = child(trusts_parent=True)
    core.command(RootIs(ROOT, 0), Now(0, 0))
    welcome(core)
    hack(core, safe=3, root=(STRANGER, 0))
    assert 0 == forgotten(core)


def test_a_parent_says_whose_word_it_passes_on_and_says_it_again_when_there_is_another_root() -> None:
    core = Carrier(CarrierSettings(name="c1", level="collector"), b"p" * 16, 3, Chance("label"))
    core.restore((), Now(0, 0))
    core.command(RootIs(ROOT, 0), Now(0, 0))
    hello = Hello(v=1, role="node", name="s1", id=ME, era=ERA, first=1, next=1)
    core.receive(hello, Source("down", b"s1"), Now(SECOND, SECOND))
    core.command(RootIs(ROOT, 1), Now(SECOND, SECOND))
    said = [effect.message for effect in core.effects() if isinstance(effect, Send)]
    assert [(Welcome, (ROOT, 0)), (Hack, (ROOT, 1))] == [(type(message), message.root) for message in said]


@pytest.mark.proves("FLD-012")
def test_a_planted_bug_that_believes_anybody_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Context, "believes", lambda self, root: True)
    core = child()
    core.command(RootIs(ROOT, 0), Now(0, 0))
    welcome(core)
    hack(core, safe=3, root=(STRANGER, 0))
    assert 3 == forgotten(core)


def test_a_parent_that_speaks_another_version_is_refused() -> None:
    core = child()
    for version in (0, 2):
        with pytest.raises(PeerError) as refused:
            welcome(core, v=version)
        assert ("version", str(version)) == (refused.value.code, refused.value.why)
    assert 0 == core.outbox.safe
