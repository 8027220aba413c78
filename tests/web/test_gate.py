"""Who may see a board and who may enter there (SEC-046): this machine, who says the token, who has the view key."""

import pytest

from weft.web.gate import Gate

TOKEN = "a token of the tests"
GATE = Gate(TOKEN, is_loopback=False)
FAR = "192.168.1.44"


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
    assert may == GATE.may_see(peer, headers)


@pytest.mark.proves("SEC-046")
def test_a_key_in_the_address_becomes_a_cookie_that_lets_nobody_enter() -> None:
    expected = f"weft_board={GATE.view}; Path=/; HttpOnly; SameSite=Strict"
    told = [
        GATE.opens(query)
        for query in (f"key={GATE.view}", "key=a+token+of+the+tests", "key=wrong", "view=hall", "&" * 20)
    ]
    assert [expected, expected, "", "", ""] == told
    assert not GATE.may_enter({"authorization": f"Bearer {GATE.view}"})
    assert not GATE.may_enter({"cookie": expected})
    assert not GATE.may_enter({"authorization": "Bearer \xff"})
    assert GATE.may_enter({"authorization": f"bearer {TOKEN}"})
