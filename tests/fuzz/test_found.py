"""What the targets and the machines have found, each as a test of its name (FUZ-004)."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.configuration.test_states import Child
from weft.base.chance import Chance
from weft.base.effects import Source
from weft.base.errors import OurFault, PeerError, UserError
from weft.base.memories import Memories
from weft.base.now import SECOND, Now
from weft.base.records import CoreRecord
from weft.base.settings import parse_toml
from weft.cores.configuration.messages import FollowParent
from weft.cores.document import memory
from weft.cores.document.fold.schema import Schema
from weft.cores.store.core import Store
from weft.cores.store.messages import StoreSettings
from weft.cores.topology.atlas import Atlas
from weft.node.census import Census, report_of
from weft.sim.digest import Walk
from weft.wire.replication import Bundle, KThxBai, KvSync
from weft.wire.store import mesh
from weft.wire.store.messages import Publication

NODE = b"n" * 16
NO_TEXT = b'{"number":1,"uuid":"\xff","level":"\xff","digest":"\xff"}'
DEEP = b'{"number":1,"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
"""Deeper than msgspec follows on any Python: a thousand levels until 3.11, ten thousand since then."""


def whole(core: Any) -> bytes:
    """All that it remembers, but for what it counts."""
    return b"".join(Walk().pieces(core, 0))


class Kept(msgspec.Struct, array_like=True, frozen=True):
    text: str


def _report(value: bytes) -> Any:
    return report_of(NODE, value)


def _census(value: bytes) -> Any:
    census = Census()
    census.learn([(f"/TOPO/site/node/{NODE.hex()}", value)], 1)
    return census.records.get(NODE)


def _atlas(value: bytes) -> Any:
    atlas = Atlas()
    atlas.apply((("/TOPO/root", value), (f"/TOPO/g/node/{NODE.hex()}", value)), 1)
    return atlas.root or atlas.nodes.get(NODE)


def _root_of_record(value: bytes) -> Any:
    child = Child()
    child.core.store.apply("/TOPO/root", 1, value, None)
    return child.core.context.root_uuid() or None


@pytest.mark.proves("FUZ-001", "SEC-042")
@pytest.mark.parametrize("value", [NO_TEXT, DEEP], ids=["no-text", "deep"])
@pytest.mark.parametrize("read", [_report, _census, _atlas, _root_of_record])
def test_an_event_or_a_pair_that_no_reader_of_json_takes_ended_the_node(
    read: Callable[[bytes], Any], value: bytes
) -> None:
    assert None is read(value)


@pytest.mark.proves("FUZ-001", "SEC-042")
def test_the_last_write_of_a_chain_that_is_nested_deeply_ended_the_child() -> None:
    child = Child()
    child.order(FollowParent("p:27500", ("/CONFIG/web/",), True))
    with pytest.raises(PeerError) as refused:
        child.hear(KvSync("/.chains/CONFIG/web/a", 5, DEEP))
    assert "value" == refused.value.code


def test_a_memory_that_is_no_text_is_newer_data_and_no_other_exception() -> None:
    with pytest.raises(OurFault, match="newer-data"):
        Memories("x", {1: Kept}).from_record(CoreRecord("x", 1, b"\x91\xa1\xff"))
    with pytest.raises(OurFault, match="newer-data"):
        memory.session_of(CoreRecord("document", 1, b"\x91\xa1\xff"))


@pytest.mark.proves("SEC-044")
@pytest.mark.parametrize("text", ["a = " + "[" * 5_000, "a." * 5_000 + "a = 1"], ids=["deep", "dotted"])
def test_the_schema_of_a_session_is_bounded_before_it_is_parsed(text: str) -> None:
    with pytest.raises(UserError) as refused:
        Schema.load(text)
    assert "bad-schema" == refused.value.code


@pytest.mark.proves("SEC-044")
@pytest.mark.parametrize("end", ["\x85", "\u2028", "\u2029"])
def test_a_line_of_toml_ends_at_its_line_feed_and_at_no_other_character(end: str) -> None:
    """A small file with such characters took the parser minutes: each piece of its one line was within the bounds."""
    key = f'"{end}"' + ".a" * 30
    with pytest.raises(ValueError, match="too deeply dotted"):
        parse_toml(".".join([key] * 100) + " = 1")
    with pytest.raises(ValueError, match="too long"):
        parse_toml(f'a = "{(end + "x" * 1_000) * 5}"')
    assert {"a": end} == parse_toml(f'a = "{end}"')


@pytest.mark.proves("CHK-019")
@pytest.mark.parametrize(
    "answer",
    [
        KThxBai("/.tip/CONFIG/web/", 7),
        KThxBai("/CONFIG/g1/", 7),
        KvSync("/CONFIG/g1/a", 7, b"1"),
        Bundle((KvSync("/CONFIG/web/a", 7, b"1"), KvSync("/CONFIG/g1/a", 7, b"1")), KThxBai("/CONFIG/web/", 7)),
    ],
    ids=["tip", "end", "pair", "bundle"],
)
def test_an_answer_that_nobody_asked_for_counted_as_a_sign_of_life_or_in_part(answer: Any) -> None:
    child = Child()
    child.order(FollowParent("p:27500", ("/CONFIG/web/",), False))
    before = whole(child.core)
    with pytest.raises(PeerError) as refused:
        child.hear(answer)
    assert ("not-asked", [], before) == (refused.value.code, child.do(), whole(child.core))


@pytest.mark.proves("CHK-019")
@pytest.mark.parametrize(
    "answer", [Publication("ping", b"\xc0"), mesh.Hello(fabric="weft", node="b", boot=1 << 62)], ids=["topic", "boot"]
)
def test_what_may_not_be_said_on_a_dialled_link_of_the_store_counted_as_a_sign_of_life(answer: Any) -> None:
    there = "10.0.0.2:27500"
    core = Store(StoreSettings(name="me", boot=7, endpoint="10.0.0.1:27500", peers=(there,)), Chance("found"))
    core.restore([], Now(SECOND, SECOND))
    core.wake(Now(SECOND, SECOND))
    core.effects()
    before = whole(core)
    with pytest.raises(PeerError):
        core.receive(answer, Source("mesh-call", there.encode()), Now(2 * SECOND, 2 * SECOND))
    assert ([], before) == (core.effects(), whole(core))
