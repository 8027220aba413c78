"""Who may see a board and who may enter there (SEC-046): this machine, who says the token, who has the view key."""

import pytest

from weft.shell.http.gate import Gate
from weft.shell.http.messages import Request

TOKEN = "a token of the tests"
GATE = Gate(TOKEN, always_token=True)
FAR = "192.168.1.44"


def writes(headers: dict[str, str], gate: Gate = GATE, peer: str = "127.0.0.1") -> bool:
    return gate.may_write(Request("POST", "/", headers=headers, peer=peer))


@pytest.mark.proves("SEC-046")
def test_a_board_is_called_by_an_address_and_never_by_a_name_of_others() -> None:
    hosts = ("192.168.1.4:8090", "[fe80::1]:8090", "localhost:8090", "evil.example:8090", "")
    assert [True, True, True, False, False] == [GATE.is_ours(host) for host in hosts]
    at_home = Gate(TOKEN, is_loopback=True)
    assert [False, False, True, False, False] == [at_home.is_ours(host) for host in hosts]


@pytest.mark.proves("SEC-046")
@pytest.mark.parametrize(
    "peer, headers, may",
    [
        ("127.0.0.1", {}, True),
        ("::1", {}, True),
        ("::ffff:127.0.0.1", {}, True),
        (FAR, {}, False),
        ("::ffff:192.168.1.44", {}, False),
        ("fe80::1%eth0", {}, False),
        (FAR, {"authorization": f"Bearer {TOKEN}"}, True),
        (FAR, {"cookie": f"a=b; weft_board={GATE.view}"}, True),
        (FAR, {"cookie": f"weft_board={GATE.view}x"}, False),
        (FAR, {"cookie": f"weft_board={TOKEN}"}, False),
        (FAR, {"cookie": "weft_board"}, False),
        (FAR, {"cookie": "\x00=;;=,"}, False),
    ],
)
def test_from_elsewhere_a_board_is_seen_with_a_key_only(peer: str, headers: dict[str, str], may: bool) -> None:
    assert may == GATE.may_read(Request("GET", "/", headers=headers, peer=peer))


@pytest.mark.proves("SEC-046")
def test_a_key_in_the_address_becomes_a_cookie_that_lets_nobody_enter() -> None:
    expected = f"weft_board={GATE.view}; Path=/; HttpOnly; SameSite=Strict"
    told = [
        GATE.opens(query)
        for query in (f"key={GATE.view}", "key=a+token+of+the+tests", "key=wrong", "view=hall", "&" * 20)
    ]
    assert [expected, expected, "", "", ""] == told
    assert not writes({"authorization": f"Bearer {GATE.view}"})
    assert not writes({"cookie": expected})
    assert not writes({"authorization": "Bearer \xff"})
    assert writes({"authorization": f"bearer {TOKEN}"})


@pytest.mark.proves("SEC-046")
@pytest.mark.proves("SEC-002", part="on an open fabric orders come from programs of the machine only")
def test_without_a_token_programs_of_this_machine_write_and_nobody_else() -> None:
    gate = Gate(is_open=True)
    empty = {"authorization": "Bearer "}
    told = [writes(headers, gate, peer) for peer in ("127.0.0.1", "::1", FAR) for headers in ({}, empty)]
    assert [True, True, True, True, False, False] == told
    assert gate.opens("key=") == gate.opens(f"key={gate.view}") == ""


@pytest.mark.proves("SEC-046")
@pytest.mark.parametrize(
    "peer, host, status",
    [
        ("127.0.0.1", "localhost:27506", None),
        ("127.0.0.1", "192.168.1.4:27506", None),
        ("127.0.0.1", "evil.example:27506", 421),
        ("::1", "evil.example", 421),
        (FAR, "monitored.example:27506", None),
    ],
)
def test_an_open_server_is_read_by_any_name_but_for_a_browser_of_this_machine(
    peer: str, host: str, status: int | None
) -> None:
    refused = Gate(is_open=True).refuses(Request("GET", "/", headers={"host": host}, peer=peer), writes=False)
    assert status == (None if refused is None else refused.status)


@pytest.mark.proves("SEC-046")
@pytest.mark.parametrize(
    "peer, headers, status",
    [
        ("127.0.0.1", {}, None),
        ("127.0.0.1", {"origin": "http://localhost"}, None),
        ("127.0.0.1", {"origin": "http://evil.example"}, 403),
        ("127.0.0.1", {"origin": "null"}, 403),
        ("127.0.0.1", {"host": "evil.example"}, 421),
        ("127.0.0.1", {"content-type": "text/plain"}, 415),
        (FAR, {}, 401),
        (FAR, {"authorization": f"Bearer {TOKEN}"}, None),
        (FAR, {"authorization": f"Bearer {TOKEN}", "host": "evil.example"}, 421),
    ],
)
def test_what_writes_is_refused_before_it_is_read(peer: str, headers: dict[str, str], status: int | None) -> None:
    usual = {"host": "localhost", "content-type": "application/json"}
    refused = Gate(TOKEN).refuses(Request("POST", "/", headers=usual | headers, peer=peer), writes=True)
    assert status == (None if refused is None else refused.status)
