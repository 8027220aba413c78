"""The specified transcripts X1 to X10, frame by frame; the recorded forms of the vectors; three planted bugs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.catalog.rig import WALL, Answer, Broker, Peer
from weft.base.now import SECOND, Now
from weft.cores.catalog.serving import Serving
from weft.wire.catalog import times

VECTORS = Path(__file__).parents[1] / "vectors"
A = {"name": "A", "ip": "1.2.3.4", "port": 9}
EMPTY = {"state": "active", "health": "unknown", "interval_ms": 1000, "observed_ip": "127.0.0.1", "net": ""}


def vectors(group: str, file: str = "computed") -> list[dict[str, Any]]:
    rows = map(json.loads, (VECTORS / f"catalog-{file}.jsonl").read_text("utf-8").splitlines())
    return [row for row in rows if row["id"].startswith(group)]


def bare(record: dict[str, Any]) -> dict[str, Any]:
    """A record without when."""
    return {**record, "_dbp": {key: value for key, value in record["_dbp"].items() if key != "since"}}


@pytest.mark.proves("CAT-031")
def test_x1_a_list_of_an_empty_catalog_is_an_empty_object() -> None:
    assert [Answer((), b"o_O", bytes.fromhex("fd01d64e"), (b"{}",))] == Broker().dealer().say(b"u_U", b"")


@pytest.mark.proves("CAT-017", "BEA-014")
def test_x2_what_a_req_registers_is_found() -> None:
    broker = Broker()
    (approved,) = broker.req().say(b"UwU", A)
    expected = {"heartbeat": 1000, "liveness": 3, "dbp": 1, "instance": "1.2.3.4:9", "index": 1, "hb": 5246}
    assert (b"OwO", expected | {"epoch": broker.core.context.epoch}) == (approved.command, approved.json)
    found = broker.req().ask(b"A")
    assert {"A": {"ip": "1.2.3.4", "port": 9, "_dbp": EMPTY | {"instance": "1.2.3.4:9", "index": 1}}} == {
        name: bare(record) for name, record in found.items()
    }


@pytest.mark.parametrize(("kind", "frames"), [("req", [b"", b"u.u", b"\x00", b""]), ("dealer", [b"", b"u.u", b"\x00"])])
@pytest.mark.proves("CAT-007", "CAT-018")
def test_x3_an_update_changes_and_deletes_keys(kind: str, frames: list[bytes]) -> None:
    broker = Broker()
    broker.req().say(b"UwU", A | {"function": "read"})
    peer = getattr(broker, kind)()
    (awk,) = peer.say(b"UoU", {"name": "A", "port": 10, "function": None})
    assert len(frames) == len(awk.frames)
    assert [frames[1], *frames[3:]] == [awk.frames[1], *awk.frames[3:]]
    found = broker.req().ask(b"A")["A"]
    assert {"ip": "1.2.3.4", "port": 10} == {key: found[key] for key in found if key != "_dbp"}
    assert "1.2.3.4:9" == found["_dbp"]["instance"]


@pytest.mark.proves("CAT-033")
def test_x4_who_is_not_there_is_warned_of() -> None:
    found = Broker().req().ask(b"zz")
    assert {"warning": "inactive", "service": "zz", "state": "unknown", "last_seen": None} == {
        key: found[key] for key in found if key != "Error"
    }
    assert found["Error"]


@pytest.mark.proves("CAT-020")
@pytest.mark.proves("CAT-008", part="code and service")
def test_x5_who_is_unknown_may_not_update_and_is_sent_away_for_a_beat() -> None:
    dealer = Broker().dealer()
    (denied,) = dealer.say(b"UoU", {"name": "Q"})
    assert (b"(O_O)", "not-registered", "Q") == (denied.command, denied.json["code"], denied.json["service"])
    (away,) = dealer.say(b"<3", b"Q")
    assert [b"", b"</3", away.time] == away.frames
    assert [] == dealer.say(b"u_U", b"")


DENIALS: list[tuple[bytes, bytes | dict[str, Any], str, str | None, list[str] | None]] = [
    (b"u_U", b"dbp.deregister", "not-authorised", None, None),
    (b"UwU", b"[]", "bad-json", None, None),
    (b"UwU", {}, "missing-field", None, ["name"]),
    (b"UwU", {"name": "a@b"}, "bad-name", None, ["name"]),
    (b"UwU", {"name": "B", "port": 0, "tags": 1}, "bad-field", "B", ["port", "tags"]),
    (b"UwU", {"name": "B", "_dbp": 1}, "reserved-key", None, ["_dbp"]),
    (b"UoU", {"name": "Q"}, "not-registered", "Q", None),
    (b"UoU", {"name": "A", "name2": None, "port": "9"}, "bad-field", "A", ["port"]),
    (b"<\\3", b"", "not-authorised", None, None),
]


@pytest.mark.proves("CAT-008")
@pytest.mark.parametrize(("command", "body", "code", "service", "fields"), DENIALS, ids=str)
def test_a_denial_is_an_object_of_text_code_and_where_known_service_and_fields(
    command: bytes, body: bytes | dict[str, Any], code: str, service: str | None, fields: list[str] | None
) -> None:
    broker = Broker()
    broker.req().say(b"UwU", A)
    (denied,) = broker.req().say(command, body, b"A")
    told = denied.json
    assert isinstance(told.pop("Error"), str)
    known = {"code": code, "service": service, "fields": fields}
    assert (b"(O_O)", {key: value for key, value in known.items() if value is not None}) == (denied.command, told)


@pytest.mark.proves("CAT-020")
def test_x6_a_second_registration_on_one_dealer_closes_it_and_leaves_the_instance() -> None:
    broker = Broker()
    dealer = broker.dealer()
    assert [b"OwO"] == dealer.commands(b"UwU", A)
    assert [b"</3"] == dealer.commands(b"UwU", A | {"port": 10})
    assert "active" == broker.req().ask(b"A")["A"]["_dbp"]["state"]
    assert [("register", "A")] == broker.changes


def test_x7_one_req_registers_several() -> None:
    req = Broker().req()
    assert [b"OwO"] == req.commands(b"UwU", {"name": "C1"})
    assert [b"OwO"] == req.commands(b"UwU", {"name": "C2"})


def test_x8_nobody_stops_the_broker() -> None:
    req = Broker().req()
    assert ["not-authorised", "not-authorised"] == [req.code(command, b"") for command in (b"<\\3", b"^o^")]
    assert {} == req.ask()


TIMES = [row for row in vectors("time-") if "reply_frame" in row["means"]]
ANSWERED_AT = Now(SECOND, WALL + 7 * SECOND)
each_time = pytest.mark.parametrize("row", TIMES, ids=lambda row: row["id"])


def answered(row: dict[str, Any]) -> str:
    broker = Broker(at=ANSWERED_AT)
    (answer,) = broker.req().say(b"u_U", b"", time=bytes.fromhex(row["payload"]))
    return answer.time.hex()


@each_time
@pytest.mark.proves("CAT-011")
def test_x9_the_answer_has_the_time_in_the_format_of_the_question(row: dict[str, Any]) -> None:
    assert row["means"]["reply_frame"] == answered(row)


@pytest.mark.parametrize("form", ["f32le", "f64le"])
def test_canary_12_an_answer_whose_time_has_always_one_size_is_seen(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "answer", lambda frame, wall_s: times.write(form, wall_s))
    assert any(row["means"]["reply_frame"] != answered(row) for row in TIMES)


@pytest.mark.proves("CAT-032")
def test_x10_of_several_names_those_that_are_missing_are_said() -> None:
    broker = Broker()
    broker.req().say(b"UwU", A)
    found = broker.req().ask(b"A", b"zz")
    assert ["A", "_dbp"] == sorted(found)
    assert {"missing": [{"service": "zz", "state": "unknown"}]} == found["_dbp"]


# What stands around them


@pytest.mark.proves("CAT-005")
def test_an_envelope_comes_back_with_the_answer() -> None:
    (answer,) = Broker().req().send([b"\x00\x01", b"proxy", b"", b"u_U", b"", b""])
    assert (b"\x00\x01", b"proxy") == answer.envelope


@pytest.mark.proves("CAT-006", "CAT-007")
def test_a_dealer_behind_an_envelope_has_no_connection() -> None:
    broker = Broker()
    dealer = broker.dealer()
    frames = [b"q7", b"", b"UwU", b"", json.dumps(A).encode()]
    assert [[b"OwO"], [b"OwO"]] == [[answer.command for answer in dealer.send(frames)] for _ in range(2)]
    assert b"" == broker.one("A").bound
    (awk,) = dealer.send([b"q7", b"", b"<3", b"", b"A"])
    assert [b"q7", b"", b"u.u", awk.time, b""] == awk.frames


@pytest.mark.parametrize("row", vectors("bad-"), ids=lambda row: row["id"])
def test_what_is_no_message_is_dropped_and_counted(row: dict[str, Any]) -> None:
    broker = Broker()
    assert [] == broker.dealer().send([bytes.fromhex(frame) for frame in row["frames"]])
    assert 1 == broker.counted("malformed")


@pytest.mark.parametrize("row", vectors("deny-"), ids=lambda row: row["id"])
@pytest.mark.proves("CAT-080")
def test_a_registration_that_is_none_is_denied_with_its_code(row: dict[str, Any]) -> None:
    broker = Broker()
    (answer,) = broker.dealer().send([bytes.fromhex(frame) for frame in row["frames"]])
    assert (b"(O_O)", row["means"]["code"]) == (answer.command, answer.json["code"])
    assert [] == broker.rows


HERMES = [row for row in vectors("h-", "hermes") if row["direction"].endswith("→peer broker")]
SILENT = {"h-unknown-cmd", "h-two", "h-disc3", "h-disc4"}
"""What existing brokers answer, and this one drops (R14), or closes without a word."""


@pytest.mark.parametrize("row", HERMES, ids=lambda row: row["id"])
def test_what_existing_nodes_say_is_answered_once_or_dropped(row: dict[str, Any]) -> None:
    broker = Broker()
    broker.req().say(b"UwU", A)
    is_req = row["direction"].startswith("req")
    frames = [bytes.fromhex(frame) for frame in row["frames"]]
    peer: Peer = broker.req() if is_req else broker.dealer()
    assert (0 if row["id"] in SILENT else 1) == len(peer.send([b"", *frames] if is_req else frames))


# Canaries


def test_canary_3_and_4_a_req_is_told_nothing_unasked_and_no_awk_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    def unasked(broker: Broker) -> tuple[int, int]:
        req = broker.req()
        req.say(b"UwU", A)
        pushed = [peer for peer, _ in _said_in(broker, 2.5) if peer == req.identity]
        return len(req.say(b"u.u")), len(pushed)

    assert (0, 0) == unasked(Broker())
    with monkeypatch.context() as patch:
        patch.setattr(Serving, "_bind", _bind_anybody)
        assert unasked(Broker())[1] > 0
    monkeypatch.setattr(Serving, "note", Serving.acknowledge)
    dealer = Broker().dealer()
    dealer.say(b"UwU", A)
    assert [b"u.u"] == dealer.commands(b"u.u")


def _said_in(broker: Broker, span_s: float) -> list[Any]:
    before = len(broker.said)
    broker.pass_time(span_s)
    return broker.said[before:]


def _bind_anybody(serving: Serving, asker: Any, instance: Any) -> None:
    serving.connections.bind(asker, instance)
    instance.bound = asker.peer
