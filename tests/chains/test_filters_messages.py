"""Filters over messages: what they see, what they leave, and what becomes of what cannot be read (CHN-060, 061, 065)."""

from hashlib import blake2b
from typing import Any

import msgspec
import pytest

from tests.chains.views import APP, ORIGIN, T0, at, link, parcel, passed, view
from weft.cores.chains import limits
from weft.cores.chains.edit import MASK
from weft.cores.chains.filters import House
from weft.cores.chains.messageview import MessageView
from weft.cores.chains.states import Verdict

HOT = {"name": "cpu", "value": 93.5, "n": 3, "hot": True, "tags": {"rack": "7"}, "service.name": "web", "none": None}


# What is seen


@pytest.mark.proves("CHN-060")
@pytest.mark.parametrize("fmt", ["json", "msgpack"])
def test_a_map_is_one_record_and_an_array_of_maps_is_filtered_record_by_record(fmt: str) -> None:
    hot = link(kind="match", where={"value": {"gt": 5}})
    assert {"value": 9} == passed(hot, {"value": 9}, fmt=fmt)
    assert None is passed(hot, {"value": 1}, fmt=fmt)
    assert [{"value": 9}, {"value": 7}] == passed(hot, [{"value": 9}, {"value": 1}, {"value": 7}], fmt=fmt)
    assert [{"value": 9}] == passed(hot, [{"value": 9}], fmt=fmt)


@pytest.mark.proves("CHN-060")
def test_an_emptied_message_is_deleted_and_an_empty_one_is_not() -> None:
    hot = link(kind="match", where={"value": {"gt": 5}})
    assert None is passed(hot, [{"value": 1}, {"value": 2}])
    assert [] == passed(hot, [])


@pytest.mark.proves("CHN-060", "CHN-007")
def test_what_no_filter_has_changed_leaves_as_the_very_bytes_that_came() -> None:
    odd = b' { "value" :  9.0 }'
    seen = MessageView(parcel(odd))
    assert Verdict.PASSED is link(kind="match", where={"value": 9}).offer(seen, at(0))
    assert (False, True) == (seen.is_changed, seen.close() is seen.parcel.frames)


@pytest.mark.proves("CHN-007")
def test_frames_behind_the_first_are_left_alone() -> None:
    seen = view([{"a": 1}, {"a": 2}], "json", b"\xff", b"{")
    link(kind="match", where={"a": 1}).offer(seen, at(0))
    assert (b'[{"a":1}]', b"\xff", b"{") == seen.close()


@pytest.mark.proves("CHN-060")
@pytest.mark.parametrize("fmt", ["raw", "text", "xml"])
def test_a_format_without_fields_is_one_record_without_fields(fmt: str) -> None:
    for table, expected in (
        ({"kind": "match", "where": {"a": {"exists": False}}}, Verdict.PASSED),
        ({"kind": "match", "where": {"a": 1}}, Verdict.DROPPED),
        ({"kind": "match", "when": "size == 3"}, Verdict.PASSED),
        ({"kind": "sample", "every": 2}, Verdict.PASSED),
        ({"kind": "edit", "edits": [["set", "a", 1]], "on_error": "drop"}, Verdict.DROPPED),
    ):
        seen = MessageView(parcel(b"<a>", fmt))
        assert expected is link(**table).offer(seen, at(0)), table


@pytest.mark.proves("CHN-060")
@pytest.mark.parametrize(
    "payload, fmt",
    [
        (b"{", "json"),
        (b"5", "json"),
        (b'[1,{"a":1}]', "json"),
        (b"\xc1", "msgpack"),
        (b"", "msgpack"),
        (b"\x81\x01\x02", "msgpack"),
    ],
)
@pytest.mark.parametrize(
    "on_error, expected", [("keep", Verdict.PASSED), ("drop", Verdict.DROPPED), ("fail", Verdict.FAILED)]
)
def test_an_undecodable_payload_is_kept_dropped_or_failed_and_counted(
    payload: bytes, fmt: str, on_error: str, expected: Verdict
) -> None:
    of = link(kind="match", where={"a": 1}, on_error=on_error)
    seen = MessageView(parcel(payload, fmt))
    assert expected is of.offer(seen, at(0))
    assert (1, 1, payload) == (of.counters.failed, of.counters.offered, seen.close()[0])


def test_a_filter_that_looks_at_no_field_takes_an_undecodable_payload_as_one_record() -> None:
    of = link(kind="rate-limit", count=1, on_error="fail")
    verdicts = [of.offer(MessageView(parcel(b"{")), at(0)) for _ in range(2)]
    assert ([Verdict.PASSED, Verdict.DROPPED], 0) == (verdicts, of.counters.failed)


def test_more_records_than_a_payload_may_have_are_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RECORDS_MAX", 2)
    assert [True, False] == [view([{}] * count).is_readable for count in (2, 3)]


# where and when


@pytest.mark.proves("CHN-060")
@pytest.mark.parametrize(
    "where, expected",
    [
        ({"name": "cpu"}, True),
        ({"name": {"prefix": "cp"}}, True),
        ({"name": {"in": ["mem", "cpu"]}}, True),
        ({"name": {"gt": "cpt", "lt": "cpv"}}, True),
        ({"name": {"gt": 5}}, False),
        ({"name": {"ne": 5}}, True),
        ({"value": {"ge": 93.5, "le": 93.5}}, True),
        ({"value": {"gt": "9"}}, False),
        ({"value": {"prefix": "9"}}, False),
        ({"n": 3}, True),
        ({"n": 3.0}, True),
        ({"n": {"in": [1, 3]}}, True),
        ({"n": {"in": ["3", 3]}}, True),
        ({"hot": True}, True),
        ({"hot": 1}, False),
        ({"hot": {"gt": 0}}, False),
        ({"hot": {"in": [True]}}, True),
        ({"n": True}, False),
        ({"tags.rack": "7"}, True),
        ({"tags.rack.deep": {"exists": False}}, True),
        ({"name.deep": {"exists": True}}, False),
        ({"service.name": "web"}, True),
        ({"tags": {"exists": True}}, True),
        ({"tags": {"in": ["x", 1]}}, False),
        ({"none": {"exists": False}}, True),
        ({"missing": {"ne": 1}}, True),
        ({"missing": {"lt": 1}}, False),
        ({"name": "cpu", "n": 4}, False),
    ],
)
def test_where_on_messages(where: dict[str, Any], expected: bool) -> None:
    assert (HOT if expected else None) == passed(link(kind="match", where=where), HOT)


@pytest.mark.proves("CHN-061")
@pytest.mark.parametrize(
    "when, expected",
    [
        (f'type == "{APP}" && dir == "in"', True),
        (f'origin == "{ORIGIN.hex()}"', True),
        (f"ts == {T0} && depth == 2", True),
        ("size > 10", True),
        ("f.value > 90 && f.n < 4", True),
        ('f.tags.rack == "7"', True),
        ('"rack" in f.tags', True),
        ('"name" in f && size(f) == 7', True),
        ('f["n"] == 3', True),
        ("has(f.nothing)", False),
        ('f.name.startsWith("mem")', False),
    ],
)
def test_when_on_messages(when: str, expected: bool) -> None:
    assert (HOT if expected else None) == passed(link(kind="match", when=when, dir="in"), HOT, depth=2)


@pytest.mark.proves("CHN-061")
@pytest.mark.parametrize(
    "when", ["f.nothing > 1", "f.value", "1 / (f.n - 3) == 0", "f.name + 1 == 2", 'f.name.matches("(")']
)
@pytest.mark.parametrize("on_error, left", [("keep", 2), ("drop", 1), ("fail", 0)])
def test_an_expression_without_answer_is_an_error_of_that_record(when: str, on_error: str, left: int) -> None:
    of = link(kind="match", when=f"has(f.fine) || {when}", on_error=on_error)
    found = passed(of, [HOT, {"fine": 1}])
    assert (left, 1) == (len(found or ()), of.counters.failed)


@pytest.mark.proves("CHN-061")
def test_where_and_when_must_both_hold() -> None:
    of = link(kind="match", where={"n": 3}, when="f.value > 90")
    assert [HOT] == passed(of, [HOT, {"n": 3, "value": 1}, {"n": 4, "value": 99}])


def test_what_an_expression_does_not_see_is_left_by_a_filter_that_is_no_match() -> None:
    of = link(kind="threshold", above=100, when='f.name == "cpu"')
    assert [{"name": "mem", "value": 5}] == passed(of, [{"name": "mem", "value": 5}, {"name": "cpu", "value": 5}])


@pytest.mark.proves("CHN-061")
def test_a_macro_does_not_go_through_long_lists() -> None:
    of = link(kind="match", when="f.list.exists(x, x == 0)")
    for count, failed in ((1_024, 0), (1_025, 1)):
        passed(of, {"list": [0] * count})
        assert failed == of.counters.failed


def test_a_library_that_panics_is_an_error_of_that_record(monkeypatch: pytest.MonkeyPatch) -> None:
    class Panic(BaseException):
        """As the library's own: no Exception."""

    class Broken:
        def execute(self, context: object) -> bool:
            raise Panic

    of = link(kind="match", when="f.a == 1", on_error="drop")
    assert of._when is not None
    monkeypatch.setattr(of._when, "_program", Broken())
    assert None is passed(of, {"a": 1})


def test_an_expression_is_given_nothing_of_the_record_before() -> None:
    of = link(kind="match", when="f.a == 1", on_error="drop")
    assert [{"a": 1}] == passed(of, [{"a": 1}, {"b": 1}, {"a": 2}])


# Kinds


@pytest.mark.proves("CHN-065")
def test_match_keeps_or_deletes_what_matches() -> None:
    records = [{"n": 1}, {"n": 2}, {"n": 3}]
    assert records[:2] == passed(link(kind="match", where={"n": {"lt": 3}}), records)
    assert records[2:] == passed(link(kind="match", where={"n": {"lt": 3}}, invert=True), records)
    assert records == passed(link(kind="match", where={"n": {"gt": 3}}, invert=True), records)


@pytest.mark.proves("CHN-066")
def test_threshold_looks_at_any_field_and_a_text_is_no_number() -> None:
    records = [{"load": {"one": 5}}, {"load": {"one": 1}}, {"load": {"one": "5"}}, {"load": 5}, {}]
    of = link(kind="threshold", field="load.one", above=3)
    assert ([records[0], records[2]], 1) == (passed(of, records), of.counters.failed)
    assert [records[1]] == passed(link(kind="threshold", field="load.one", below=3, on_error="drop"), records)
    of = link(kind="threshold", above=0)
    assert ({"value": True}, 1) == (passed(of, {"value": True}), of.counters.failed)


@pytest.mark.proves("CHN-066")
def test_edges_of_messages_are_kept_by_key_or_by_type_and_origin() -> None:
    hot: dict[str, Any] = {"kind": "threshold", "above": 5, "mode": "edge"}
    records = [{"host": "a", "value": 6}, {"host": "b", "value": 7}, {"host": "a", "value": 8}]
    assert records[:1] == passed(link(**hot), records)
    assert records[:2] == passed(link(**hot, key=["host"]), records)
    of = link(**hot)
    assert [{"value": 6}, {"value": 6}, None] == [passed(of, {"value": 6}, origin=bytes([n]) * 16) for n in (1, 2, 1)]


@pytest.mark.proves("CHN-063")
def test_rate_limit_counts_records_by_key() -> None:
    of = link(kind="rate-limit", count=1, per="1s", key=["host"])
    records = [{"host": "a"}, {"host": "a"}, {"host": "b"}, {}, {"host": None}]
    assert [records[0], records[2], records[3]] == passed(of, records)
    assert [records[0]] == passed(of, records[:2], at(10**9))


@pytest.mark.proves("CHN-065")
@pytest.mark.parametrize(
    "edits, expected",
    [
        ([["set", "a", 5]], {"a": 5, "b": {"c": "x1y22"}}),
        ([["set", "b.d", True]], {"a": "A", "b": {"c": "x1y22", "d": True}}),
        ([["set", "n.m", 1.5]], {"a": "A", "b": {"c": "x1y22"}, "n": {"m": 1.5}}),
        ([["rename", "a", "z"]], {"b": {"c": "x1y22"}, "z": "A"}),
        ([["rename", "b.c", "c"]], {"a": "A", "b": {}, "c": "x1y22"}),
        ([["rename", "nothing", "c"]], {"a": "A", "b": {"c": "x1y22"}}),
        ([["remove", "b"]], {"a": "A"}),
        ([["set", "d.e", 1], ["set", "d.e", 2]], {"a": "A", "b": {"c": "x1y22"}, "d": {"e": 2}}),
        ([["remove", "b.c"], ["remove", "x.y"]], {"a": "A", "b": {}}),
        ([["mask", "b"]], {"a": "A", "b": MASK}),
        ([["mask", "nothing"]], {"a": "A", "b": {"c": "x1y22"}}),
        ([["replace", "b.c", r"(\d+)", r"<\1>"]], {"a": "A", "b": {"c": "x<1>y<22>"}}),
        ([["replace", "b.c", "(x)|y", r"…\1\\\0"]], {"a": "A", "b": {"c": r"…x\x1…\y22"}}),
        ([["replace", "b", "x", "y"]], {"a": "A", "b": {"c": "x1y22"}}),
        (
            [["set", "a", "q"], ["rename", "a", "e"], ["mask", "e"], ["set", "a", 1]],
            {"a": 1, "b": {"c": "x1y22"}, "e": MASK},
        ),
    ],
)
@pytest.mark.parametrize("fmt", ["json", "msgpack"])
def test_edit(edits: list[list[Any]], expected: dict[str, Any], fmt: str) -> None:
    assert expected == passed(link(kind="edit", edits=edits), {"a": "A", "b": {"c": "x1y22"}}, fmt=fmt)


@pytest.mark.proves("CHN-065")
def test_a_hash_needs_the_secret_of_the_node() -> None:
    table: dict[str, Any] = {"kind": "edit", "edits": [["hash", "user"]]}
    key = blake2b(b"secret", digest_size=32, person=b"weft.edit.hash").digest()
    expected = blake2b(b"ada", digest_size=16, key=key).hexdigest()
    assert {"user": expected} == passed(link(House(secret=b"secret"), **table), {"user": "ada"})
    other = passed(link(House(secret=b"another"), **table), {"user": "ada"})
    assert (32, True) == (len(other["user"]), other["user"] != expected)
    assert {"user": MASK} == passed(link(**table), {"user": "ada"}), "a digest that everybody can make hides nothing"


@pytest.mark.proves("CHN-065")
def test_a_hash_tells_values_apart_and_nothing_else() -> None:
    of = link(House(secret=b"s"), kind="edit", edits=[["hash", "v"]])
    values = ["ada", "5", ["5"], {"a": 1, "b": 2}, {"b": 2, "a": 1}]
    hashes = [passed(of, {"v": value})["v"] for value in values]
    assert (4, hashes[3]) == (len(dict.fromkeys(hashes)), hashes[4])


@pytest.mark.proves("CHN-065")
@pytest.mark.parametrize(
    "on_error, expected",
    [
        ("keep", [{"a": 1, "b": {"c": 2}}, {"a": {"deep": 1}, "b": {"c": 9}}]),
        ("drop", [{"a": {"deep": 1}, "b": {"c": 9}}]),
        ("fail", None),
    ],
)
def test_a_record_that_cannot_be_edited_to_the_end_is_not_edited_at_all(on_error: str, expected: Any) -> None:
    of = link(kind="edit", edits=[["set", "b.c", 9], ["set", "a.deep", 1]], on_error=on_error)
    assert expected == passed(of, [{"a": 1, "b": {"c": 2}}, {"a": {}, "b": {}}])


def test_a_key_with_dots_in_itself_is_the_field_that_is_meant() -> None:
    of = link(kind="edit", edits=[["remove", "service.name"], ["mask", "a.b"]])
    assert {"a": {"b": MASK}, "service": {"name": 1}} == passed(
        of, {"service.name": "x", "service": {"name": 1}, "a": {"b": 2}}
    )


def test_a_value_that_has_no_text_cannot_be_hashed() -> None:
    of = link(House(secret=b"s"), kind="edit", edits=[["hash", "a"]], on_error="drop")
    assert [{"b": 1}] == passed(of, [{"a": msgspec.msgpack.Ext(5, b"x")}, {"b": 1}], fmt="msgpack")


@pytest.mark.proves("CHN-065")
def test_neither_is_one_of_which_a_text_becomes_too_long() -> None:
    of = link(kind="edit", edits=[["set", "b", 9], ["replace", "a", "x", "yy"]])
    long = "x" * 40_000
    assert [{"a": long}, {"a": "yy", "b": 9}] == passed(of, [{"a": long}, {"a": "x"}])


def test_a_pattern_is_not_looked_for_in_long_texts() -> None:
    of = link(kind="edit", edits=[["replace", "a", "", "xx"]], on_error="drop")
    assert ["xxaxxaxx", None, None] == [
        (found := passed(of, {"a": "a" * count})) and found["a"] for count in (2, 40_000, 65_537)
    ]


def test_a_text_too_long_to_be_looked_through_is_an_error_even_if_nothing_matches() -> None:
    of = link(kind="edit", edits=[["replace", "a", "b", ""]], on_error="drop")
    assert [True, False] == [passed(of, {"a": "a" * count}) is not None for count in (65_536, 65_537)]


def test_an_edit_does_not_make_a_payload_larger_than_one_may_be() -> None:
    of = link(kind="edit", edits=[["set", "new", "x" * 256]], on_error="keep")
    records = [{"a": "y" * 90} for _ in range(10_000)]
    assert (records, 10_000) == (passed(of, records), of.counters.failed)
    assert "x" * 256 == passed(of, records[:3])[0]["new"]


def test_what_was_edited_before_stays_when_an_edit_has_no_room() -> None:
    seen = view([{"a": "y" * 90} for _ in range(10_000)])
    link(kind="edit", edits=[["rename", "a", "b"]]).offer(seen, at(0))
    expected = seen.close()
    assert Verdict.PASSED is link(kind="edit", edits=[["set", "new", "x" * 256]]).offer(seen, at(0))
    assert expected == seen.close()
    assert expected[0].startswith(b'[{"b":"yy')


@pytest.mark.proves("CHN-014")
def test_an_edit_never_changes_what_was_given_out_before() -> None:
    seen = view([{"a": {"b": 1}}, {"a": {"b": 2}}])
    given = [seen.parcel.frames]
    for edits in ([["set", "a.b", 7]], [["remove", "a"]]):
        link(kind="edit", edits=edits).offer(seen, at(0))
        given.append(seen.close())
    expected = [b'[{"a":{"b":1}},{"a":{"b":2}}]', b'[{"a":{"b":7}},{"a":{"b":7}}]', b"[{},{}]"]
    assert expected == [frames[0] for frames in given]


@pytest.mark.proves("CHN-065")
def test_an_edit_that_changes_nothing_leaves_the_very_bytes() -> None:
    seen = MessageView(parcel(b'{"a" : 1}'))
    of = link(kind="edit", edits=[["set", "a", 1], ["remove", "b"], ["replace", "a", "x", "y"]])
    assert (Verdict.PASSED, b'{"a" : 1}') == (of.offer(seen, at(0)), seen.close()[0])
    assert passed(link(kind="edit", edits=[["set", "a", True]]), {"a": 1})["a"] is True


@pytest.mark.parametrize("kind", ["forward", "journal"])
def test_forward_and_journal_take_what_they_see(kind: str) -> None:
    of = link(kind=kind, dir="in", where={"level": {"ge": 3}})
    assert [None, Verdict.PASSED, None] == [
        of.takes(view(content)) for content in ({"level": 3}, {"level": 1}, [{"level": 1}, {"level": 5}])
    ]
    assert (4, 4, 4_000_000_000) == (of.counters.offered, of.counters.passed, of.spec.place)


@pytest.mark.parametrize("on_error, expected", [("keep", None), ("drop", Verdict.DROPPED), ("fail", Verdict.FAILED)])
def test_what_forward_cannot_judge_is_taken_unless_on_error_says_otherwise(
    on_error: str, expected: Verdict | None
) -> None:
    of = link(kind="forward", dir="in", when="f.level > 3", on_error=on_error)
    assert [expected] * 2 == [of.takes(view({})), of.takes(MessageView(parcel(b"{")))]
    assert 2 == of.counters.failed


def test_forward_takes_a_payload_that_cannot_be_read_only_if_on_error_lets_it() -> None:
    where = {"level": {"exists": False}}
    assert [None, Verdict.DROPPED] == [
        link(kind="forward", dir="in", where=where, on_error=on_error).takes(MessageView(parcel(b"{")))
        for on_error in ("keep", "drop")
    ]


def test_forward_takes_what_is_left_when_a_record_that_cannot_be_judged_is_dropped() -> None:
    seen = view([{"level": 5}, {}])
    assert None is link(kind="forward", dir="in", when="f.level > 3", on_error="drop").takes(seen)
    assert (b'[{"level":5}]',) == seen.close()
